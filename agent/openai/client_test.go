package openai_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"oneclaw/agent"
	"oneclaw/agent/openai"
	"oneclaw/agent/provider"
)

func TestNew(t *testing.T) {
	for name, cfg := range map[string]openai.Config{
		"no model":       {},
		"no host":        {Model: "m", BaseURL: "localhost"},
		"another scheme": {Model: "m", BaseURL: "ftp://host/v1"},
		"negative":       {Model: "m", ContextTokens: -1},
		"negative wait":  {Model: "m", Retry: provider.Retry{MaxWait: -1}},
	} {
		if _, err := openai.New(cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	c, err := openai.New(openai.Config{Model: "m", ContextTokens: 8192})
	if err != nil || c.Profile().ContextTokens != 8192 {
		t.Errorf("%v, %v", c, err)
	}
}

func TestStreamedReply(t *testing.T) {
	c, p := client(t, openai.Config{}, respond(200, "text/event-stream",
		"data: "+hello+"\n\n"+strings.Repeat(": keep-alive\n\n", 1000)+"data:\n\ndata: "+lo+"\n\ndata:"+stop+"\n\ndata: "+usage+"\n\ndata: [DONE]\n\n"))
	var deltas []agent.Delta
	got, err := c.Complete(t.Context(), question(), func(d agent.Delta) { deltas = append(deltas, d) })
	if err != nil {
		t.Fatal(err)
	}
	want := agent.Reply{Text: "Hello", Model: "m-1", Usage: agent.Usage{Input: 100, Cached: 64, Output: 7}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reply (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]agent.Delta{{Text: "Hel"}, {Text: "lo"}}, deltas); diff != "" {
		t.Errorf("deltas (-want +got):\n%s", diff)
	}
	req := p.requests[0]
	if req.URL.String() != "http://model.test/v1/chat/completions" || req.Header.Get("Authorization") != "Bearer "+key {
		t.Errorf("request %s, %v", req.URL, req.Header)
	}
	wantBody := `{"model":"test-model","stream":true,"stream_options":{"include_usage":true},` +
		`"messages":[{"role":"system","content":"You help."},{"role":"user","content":"Hi"}]}`
	if diff := cmp.Diff(wantBody, p.bodies[0]); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
}

func TestOverTheNetwork(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		for _, e := range []string{hello, lo, stop, "[DONE]"} {
			_, _ = fmt.Fprintf(w, "data: %s\r\n\r\n", e)
			_ = http.NewResponseController(w).Flush()
		}
	}))
	defer srv.Close()
	c, err := openai.New(openai.Config{BaseURL: srv.URL + "/v1", Model: "m", HTTPClient: srv.Client()})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := c.Complete(t.Context(), question(), nil); err != nil || got.Text != "Hello" {
		t.Errorf("%+v, %v", got, err)
	}
}

// A connection serves the next request if the server ends the stream soon after the last event, and a
// server that does not holds no answer up.
func TestAConnectionServesTheNextRequest(t *testing.T) {
	for name, c := range map[string]struct {
		last        string // event
		end         time.Duration
		connections int
		api         string
	}{
		"the stream ends":     {"[DONE]", 10 * time.Millisecond, 1, openai.APIChat},
		"a response is whole": {`{"type":"response.completed","response":{"status":"completed"}}`, 10 * time.Millisecond, 1, openai.APIResponses},
		"it does not end":     {"[DONE]", time.Hour, 2, openai.APIChat},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				accepted := make(pipes)
				server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Type", "text/event-stream")
					for _, e := range []string{hello, stop, c.last} {
						_, _ = fmt.Fprintf(w, "data: %s\n\n", e)
					}
					_ = http.NewResponseController(w).Flush()
					select {
					case <-time.After(c.end):
					case <-r.Context().Done():
					}
				})}
				go func() { _ = server.Serve(accepted) }()
				connections := 0
				transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
					connections++
					ours, theirs := net.Pipe()
					accepted <- theirs
					return ours, nil
				}}
				client, err := openai.New(openai.Config{BaseURL: "http://model.test/v1", Model: "m", API: c.api, HTTPClient: &http.Client{Transport: transport}})
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				for range 2 {
					if _, err := client.Complete(t.Context(), question(), nil); err != nil {
						t.Fatal(err)
					}
				}
				if took := time.Since(began); connections != c.connections || took > time.Second {
					t.Errorf("%d connections, %s", connections, took)
				}
				transport.CloseIdleConnections()
				_ = server.Close()
			})
		})
	}
}

// pipes is a listener of pipes.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error { close(p); return nil }

func (pipes) Addr() net.Addr { return &net.TCPAddr{} }

func TestReplies(t *testing.T) {
	const cut = `{"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}`
	const filtered = `{"choices":[{"index":0,"delta":{},"finish_reason":"content_filter"}]}`
	for name, tc := range map[string]struct {
		answer answer
		want   agent.Reply
	}{
		"truncated":     {stream(hello, cut), agent.Reply{Text: "Hel", Model: "m-1", Truncated: true}},
		"full context":  {stream(hello, `{"choices":[{"index":0,"delta":{},"finish_reason":"model_length"}]}`), agent.Reply{Text: "Hel", Model: "m-1", Truncated: true}},
		"filtered late": {stream(hello, filtered), agent.Reply{Text: "Hel", Model: "m-1", Truncated: true, Filtered: true}},
		"cache written": {
			stream(hello, stop, `{"model":"m-1","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":64,"cache_write_tokens":30}}}`),
			agent.Reply{Text: "Hel", Model: "m-1", Usage: agent.Usage{Input: 100, Cached: 64, CacheWritten: 30, Output: 7}},
		},
		"usage without details": {
			stream(hello, stop, `{"model":"m-1","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":7,"prompt_tokens_details":null}}`),
			agent.Reply{Text: "Hel", Model: "m-1", Usage: agent.Usage{Input: 100, Output: 7}},
		},
		"reasoning in the total alone": { // as xAI counts
			stream(hello, stop, `{"model":"m-1","choices":[],"usage":{"prompt_tokens":12,"completion_tokens":2,"total_tokens":331,"completion_tokens_details":{"reasoning_tokens":317}}}`),
			agent.Reply{Text: "Hel", Model: "m-1", Usage: agent.Usage{Input: 12, Output: 319}},
		},
		"no usage":       {stream(hello, stop), agent.Reply{Text: "Hel", Model: "m-1"}},
		"cut after stop": {respond(200, "text/event-stream", "data: "+hello+"\n\ndata: "+stop+"\n"), agent.Reply{Text: "Hel", Model: "m-1"}},
		"not streamed": {
			respond(200, "application/json", "{\n \"model\": \"m-2\",\n \"choices\": [{\"index\":0,\"message\":{\"content\":\"Hi <b>\\n\",\"reasoning\":\"hm\"},\"finish_reason\":\"stop\"}],\n \"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1}}"),
			agent.Reply{Text: "Hi <b>\n", Reasoning: carriedBy("reasoning", "hm"), Model: "m-2", Usage: agent.Usage{Input: 3, Output: 1}},
		},
		"reasoning": {
			stream(`{"choices":[{"index":0,"delta":{"content":null,"reasoning_content":"I th"}}]}`, `{"choices":[{"index":0,"delta":{"reasoning_content":"ink"}}]}`, hello, stop),
			agent.Reply{Text: "Hel", Reasoning: carriedBy("reasoning_content", "I think"), Model: "m-1"},
		},
		"refused": {
			stream(`{"choices":[{"index":0,"delta":{"refusal":"I will not."}}]}`, stop), agent.Reply{Text: "I will not.", Model: "m-1"},
		},
		"second choice": {
			stream(hello, `{"choices":[{"index":1,"delta":{"content":"other"}}]}`, stop), agent.Reply{Text: "Hel", Model: "m-1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := client(t, openai.Config{}, tc.answer)
			got, err := c.Complete(t.Context(), question(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("reply (-want +got):\n%s", diff)
			}
		})
	}
}

func TestToolCalls(t *testing.T) {
	piece := func(calls string) string {
		return `{"choices":[{"index":0,"delta":{"tool_calls":[` + calls + `]}}]}`
	}
	const done = `{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`
	a, b := agent.Call{ID: "a", Name: "one", Arguments: `{"x":1}`}, agent.Call{ID: "b", Name: "two", Arguments: `{}`}
	for name, tc := range map[string]struct {
		events []string
		want   []agent.Call
	}{
		"by index": {[]string{
			piece(`{"index":0,"id":"a","type":"function","function":{"name":"one","arguments":""}}`),
			piece(`{"index":1,"id":"b","type":"function","function":{"name":"two","arguments":"{"}}`),
			piece(`{"index":0,"function":{"arguments":"{\"x\":"}},{"index":1,"function":{"arguments":"}"}}`),
			piece(`{"index":0,"function":{"arguments":"1}"}}`),
		}, []agent.Call{a, b}},
		"whole, no index": {[]string{
			piece(`{"id":"a","function":{"name":"one","arguments":"{\"x\":1}"}},{"id":"b","function":{"name":"two","arguments":"{}"}}`),
		}, []agent.Call{a, b}},
		"whole, all of index 0": {[]string{
			piece(`{"index":0,"id":"a","function":{"name":"one","arguments":"{\"x\":1}"}}`),
			piece(`{"index":0,"id":"b","function":{"name":"two","arguments":"{}"}}`),
		}, []agent.Call{a, b}},
		"whole, all of index 0, no ids": {[]string{
			piece(`{"index":0,"function":{"name":"one","arguments":"{\"x\":1}"}}`),
			piece(`{"index":0,"function":{"name":"two","arguments":"{}"}}`),
		}, []agent.Call{{Name: "one", Arguments: `{"x":1}`}, {Name: "two", Arguments: "{}"}}},
		"pieces, no index": {[]string{
			piece(`{"id":"a","function":{"name":"one","arguments":"{\"x\""}}`), piece(`{"function":{"arguments":":1}"}}`),
			piece(`{"id":"b","function":{"name":"two"}}`), piece(`{"id":"b","function":{"arguments":"{}"}}`),
		}, []agent.Call{a, b}},
		"no ids, no index": {[]string{
			piece(`{"function":{"name":"one","arguments":"{\"x\":1}"}}`), piece(`{"function":{"name":"two","arguments":"{}"}}`),
		}, []agent.Call{{Name: "one", Arguments: `{"x":1}`}, {Name: "two", Arguments: "{}"}}},
		"same tool twice, no ids": {[]string{
			piece(`{"function":{"name":"one","arguments":"{}"}},{"function":{"name":"one","arguments":"{}"}}`),
		}, []agent.Call{{Name: "one", Arguments: "{}"}, {Name: "one", Arguments: "{}"}}},
		"name repeated in every piece": {[]string{
			piece(`{"index":0,"id":"a","function":{"name":"one","arguments":"{\"x\""}}`),
			piece(`{"index":0,"id":"a","function":{"name":"one","arguments":":1}"}}`),
		}, []agent.Call{a}},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := client(t, openai.Config{}, stream(append(tc.events, done)...))
			got, err := c.Complete(t.Context(), question(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

// What goes wrong, and how often the request is sent because of it.
func TestFailures(t *testing.T) {
	brokenOff := respond(200, "text/event-stream", "data: "+hello+"\n\n")
	noConnection := func(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused for " + key) }
	for name, tc := range map[string]struct {
		answer answer
		kind   agent.Kind
		status int
		sent   int
	}{
		"bad key":           {refusal(401, "invalid_api_key", "Incorrect API key provided: "+key), agent.KindAuth, 401, 1},
		"forbidden":         {refusal(403, "", "no"), agent.KindAuth, 403, 1},
		"moderated":         {refusal(403, "", "Your input was flagged by our moderation"), agent.KindRejected, 403, 1},
		"bad request":       {refusal(400, "invalid_value", "wrong"), agent.KindRejected, 400, 1},
		"no model":          {refusal(404, "model_not_found", "no such model"), agent.KindRejected, 404, 1},
		"no model, a text":  {respond(404, "application/json", `{"error":"model not found"}`), agent.KindRejected, 404, 1},
		"overflow":          {refusal(400, "context_length_exceeded", "too long"), agent.KindOverflow, 400, 1},
		"overflow by words": {refusal(400, "", "This model's maximum context length is 8192 tokens"), agent.KindOverflow, 400, 1},
		"body too large":    {respond(413, "text/html", "<html>"), agent.KindOverflow, 413, 1},
		"bad key at xAI":    {respond(400, "application/json", `{"code":"Client specified an invalid argument","error":"Incorrect API key provided: na***ys. You can obtain an API key from https://console.x.ai."}`), agent.KindAuth, 400, 1},
		"no money":          {refusal(429, "insufficient_quota", "pay"), agent.KindCredit, 429, 1},
		"no money at xAI":   {refusal(403, "", "Your team 1 has either used all available credits or reached its monthly spending limit."), agent.KindCredit, 403, 1},
		"no money at Kimi":  {refusal(429, "", "Your account org-1 <ak-1> is suspended due to insufficient balance, please recharge your account"), agent.KindCredit, 429, 1},
		"no money, a 402":   {refusal(402, "", "Insufficient Balance"), agent.KindCredit, 402, 1},
		"rate":              {refusal(429, "rate_limit_exceeded", "slow down"), agent.KindRateLimit, 429, 4},
		"server error":      {respond(502, "text/html", "<html>"+strings.Repeat("x", 1<<20)), agent.KindUnavailable, 502, 4},
		"overloaded":        {respond(529, "text/plain", ""), agent.KindUnavailable, 529, 4},
		"no connection":     {noConnection, agent.KindUnavailable, 0, 4},
		"broken off":        {brokenOff, agent.KindUnavailable, 0, 4},
		"no choices":        {stream(usage), agent.KindUnavailable, 0, 4},
		"nonsense":          {stream("nonsense"), agent.KindUnavailable, 0, 4},
		"error in stream":   {stream(hello, `{"error":{"message":"overloaded","type":"server_error"}}`), agent.KindUnavailable, 0, 4},
		"error in a chunk":  {stream(`{"id":"x","error":{"message":"slow","code":429},"choices":[]}`), agent.KindRateLimit, 429, 4},
		"error in a 200":    {respond(200, "application/json", `{"error":{"message":"wrong","type":"invalid_request_error"}}`), agent.KindRejected, 0, 1},
		"error with a name": {respond(200, "text/event-stream", "event: error\ndata: {\"error\":{\"message\":\"slow\",\"code\":429}}\n\n"), agent.KindRateLimit, 429, 4},
		"error of a line":   {respond(200, "text/plain", "{\"error\":{\"message\":\"wrong\",\"type\":\"invalid_request_error\"}}\n"), agent.KindRejected, 0, 1},
		"ends with error":   {stream(hello, `{"choices":[{"index":0,"delta":{},"finish_reason":"error"}]}`), agent.KindUnavailable, 0, 4},
		"interrupted":       {stream(hello, `{"choices":[{"index":0,"delta":{},"finish_reason":"insufficient_system_resource"}]}`), agent.KindUnavailable, 0, 4},
		"aborted":           {stream(hello, `{"choices":[{"index":0,"delta":{},"finish_reason":"abort"}]}`), agent.KindUnavailable, 0, 4},
		"not JSON":          {respond(200, "application/json", "<html>"), agent.KindUnavailable, 0, 4},
		"filtered":          {stream(`{"choices":[{"index":0,"delta":{},"finish_reason":"content_filter"}]}`), agent.KindRejected, 0, 1},
		"without an end":    {respond(200, "text/event-stream", "data: "+strings.Repeat("x", 17<<20)), agent.KindUnavailable, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, p := client(t, openai.Config{}, tc.answer, tc.answer, tc.answer, tc.answer, stream(hello, stop))
				_, err := c.Complete(t.Context(), question(), nil)
				failure := kindOf(t, err)
				if failure.Kind != tc.kind || failure.Status != tc.status {
					t.Errorf("error %v, want %s and status %d", err, tc.kind, tc.status)
				}
				if len(p.bodies) != tc.sent {
					t.Errorf("sent %d times, want %d", len(p.bodies), tc.sent)
				}
				if len(err.Error()) > 700 {
					t.Errorf("error of %d bytes", len(err.Error()))
				}
			})
		})
	}
}

// A reply that breaks off is begun anew, and whoever watches is told.
func TestBrokenStreamIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		c, p := client(t, openai.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))},
			respond(200, "text/event-stream", "data: "+hello+"\n\n"), refusal(500, "", "oops "+key), stream(lo, stop))
		var deltas []agent.Delta
		got, err := c.Complete(t.Context(), question(), func(d agent.Delta) { deltas = append(deltas, d) })
		if err != nil || got.Text != "lo" {
			t.Fatalf("%+v, %v", got, err)
		}
		if diff := cmp.Diff([]agent.Delta{{Text: "Hel"}, {Restart: true}, {Text: "lo"}}, deltas); diff != "" {
			t.Errorf("deltas (-want +got):\n%s", diff)
		}
		if p.bodies[0] != p.bodies[1] || p.bodies[1] != p.bodies[2] {
			t.Error("the repeated requests differ")
		}
		if strings.Count(log.String(), "retrying model request") != 2 || strings.Contains(log.String(), key) {
			t.Errorf("log %s", log.String())
		}
	})
}

func TestRetryAfter(t *testing.T) {
	for name, tc := range map[string]struct {
		header, value string
		wait          time.Duration // 0: not asked again
		reported      time.Duration
	}{
		"seconds":      {"Retry-After", "7", 7 * time.Second, 0},
		"fraction":     {"Retry-After", "6.5", 6500 * time.Millisecond, 0},
		"milliseconds": {"Retry-After-Ms", "9500", 9500 * time.Millisecond, 0},
		"date":         {"Retry-After", "Sat, 01 Jan 2000 00:00:30 GMT", 30 * time.Second, 0},
		"too long":     {"Retry-After", "3600", 0, time.Hour},
		"absurd":       {"Retry-After", "1e300", 0, 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, p := client(t, openai.Config{}, refusal(429, "", "slow", tc.header, tc.value), stream(hello, stop))
				began := time.Now()
				_, err := c.Complete(t.Context(), question(), nil)
				if tc.wait > 0 {
					if err != nil || time.Since(began) != tc.wait {
						t.Errorf("%v after %v", err, time.Since(began))
					}
					return
				}
				if f := kindOf(t, err); f.RetryAfter != tc.reported || f.Kind != agent.KindRateLimit || len(p.bodies) != 1 || time.Since(began) != 0 {
					t.Errorf("%+v after %v and %d requests", f, time.Since(began), len(p.bodies))
				}
			})
		})
	}
}

// silence is a body that says something and then nothing more.
func silence(says string, every time.Duration, times int) answer {
	return func(req *http.Request) (*http.Response, error) {
		r, w := io.Pipe()
		go func() {
			for range times {
				select {
				case <-req.Context().Done():
				case <-time.After(every):
				}
				if req.Context().Err() != nil {
					break
				}
				if _, err := io.WriteString(w, says); err != nil {
					return
				}
			}
			<-req.Context().Done()
			_ = w.CloseWithError(context.Cause(req.Context()))
		}()
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: r}, nil
	}
}

func TestStalledStreams(t *testing.T) {
	hangs := func(req *http.Request) (*http.Response, error) {
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	for name, tc := range map[string]struct {
		answer answer
		after  time.Duration
	}{
		"no answer at all":    {hangs, 120 * time.Second},
		"headers alone":       {silence("", time.Second, 0), 60 * time.Second},
		"after the beginning": {silence("data: "+hello+"\n\n", 10*time.Second, 1), 70 * time.Second},
		"alive":               {silence(": still here\n\n", 50*time.Second, 1000), 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, _ := client(t, openai.Config{Retry: provider.Retry{MaxAttempts: 1}}, tc.answer)
				began := time.Now()
				_, err := c.Complete(t.Context(), question(), nil)
				if f := kindOf(t, err); f.Kind != agent.KindUnavailable || time.Since(began) != tc.after {
					t.Errorf("%v after %v, want %v", err, time.Since(began), tc.after)
				}
			})
		})
	}
}

func TestCancelled(t *testing.T) {
	for name, answers := range map[string][]answer{
		"in the stream": {silence("data: "+hello+"\n\n", time.Second, 1)},
		"in the pause":  {refusal(503, "", "busy", "Retry-After", "30")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, _ := client(t, openai.Config{}, answers...)
				stopped := errors.New("stopped by the user")
				ctx, cancel := context.WithCancelCause(t.Context())
				defer time.AfterFunc(5*time.Second, func() { cancel(stopped) }).Stop()
				began := time.Now()
				if _, err := c.Complete(ctx, question(), nil); !errors.Is(err, stopped) || time.Since(began) != 5*time.Second {
					t.Errorf("%v after %v", err, time.Since(began))
				}
			})
		})
	}
}
