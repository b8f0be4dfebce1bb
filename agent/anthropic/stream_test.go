package anthropic_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"oneclaw/agent"
	"oneclaw/agent/anthropic"
	"oneclaw/agent/provider"
)

// played answers each request with the next of the streams, and keeps what it was asked.
func played(t *testing.T, streams ...[]string) (c *anthropic.Client, asked func() []string) {
	t.Helper()
	bodies := make(chan string, len(streams))
	next := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || next == len(streams) {
			http.Error(w, "there is no more", http.StatusTeapot)
			return
		}
		bodies <- string(body)
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range streams[next] {
			_, _ = fmt.Fprintf(w, "data: %s\n\n", e)
		}
		next++
	}))
	t.Cleanup(srv.Close)
	c, err := anthropic.New(anthropic.Config{BaseURL: srv.URL, APIKey: key, Model: "claude-sonnet-5", HTTPClient: srv.Client(), Retry: provider.Retry{MaxAttempts: 1}})
	if err != nil {
		t.Fatal(err)
	}
	return c, func() (all []string) {
		close(bodies)
		for b := range bodies {
			all = append(all, b)
		}
		return all
	}
}

func began(input int) string {
	return fmt.Sprintf(`{"type":"message_start","message":{"model":"claude-sonnet-5","content":[],"usage":{"input_tokens":%d,"cache_read_input_tokens":5,"cache_creation_input_tokens":null}}}`, input)
}

func ended(why string, output int) []string {
	return []string{
		fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":%d}}`, why, output),
		`{"type":"message_stop"}`,
	}
}

// What a reply thought goes back as it came, with what was added to it, and fields that we do not know.
func TestWhatWasThoughtGoesBack(t *testing.T) {
	const hidden = `{"type":"redacted_thinking","data":"a<b>\u00e9","new":[1,2]}`
	c, asked := played(t, append([]string{
		began(10), `{"type":"ping"}`, `{"type":"unheard_of"}`,
		`{"type":"content_block_start","index":0,"content_block":` + hidden + `}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"thinking","thinking":"","signature":"","new":true}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"thinking_delta","thinking":"Is 1 < "}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"thinking_delta","thinking":"2?"}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"signature_delta","signature":"c2ln"}}`,
		`{"type":"content_block_start","index":2,"content_block":{"type":"text","text":"One. "}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"Two."}}`,
		`{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_1","name":"note","input":{}}}`,
		`{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"text\":"}}`,
		`{"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"toolu_2","name":"note","input":{}}}`,
		`{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"1}"}}`,
		`{"type":"content_block_start","index":5,"content_block":{"type":"tool_use","id":"toolu_3","name":"note","input":{}}}`,
		`{"type":"content_block_delta","index":5,"delta":{"type":"input_json_delta","partial_json":"{\"cut"}}`,
	}, ended("tool_use", 4)...), append([]string{
		began(20), `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Three."}}`,
	}, ended("end_turn", 2)...))
	var shown strings.Builder
	said := agent.Message{Role: agent.RoleUser, Text: "Count."}
	reply, err := c.Complete(t.Context(), agent.Request{Messages: []agent.Message{said}}, func(d agent.Delta) { shown.WriteString(d.Text) })
	if err != nil {
		t.Fatal(err)
	}
	arguments := ""
	for _, call := range reply.Calls {
		arguments += call.ID + call.Arguments
	}
	if want := "One. Two."; reply.Text != want || shown.String() != want || arguments != `toolu_1{"text":1}toolu_2{}toolu_3{"cut` {
		t.Errorf("%q, shown %q, calls %s", reply.Text, shown.String(), arguments)
	}
	if want := (agent.Usage{Input: 15, Cached: 5, Output: 4}); reply.Usage != want {
		t.Errorf("%+v, want %+v", reply.Usage, want)
	}
	history := []agent.Message{said, {Role: agent.RoleAssistant, Text: reply.Text, Reasoning: reply.Reasoning, Calls: reply.Calls}}
	for _, call := range reply.Calls {
		history = append(history, agent.Message{Role: agent.RoleTool, CallID: call.ID, Status: agent.StatusOK, Text: "done"})
	}
	if _, err := c.Complete(t.Context(), agent.Request{Messages: history}, nil); err != nil {
		t.Fatal(err)
	}
	again := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(asked()[1]) // as good as escaped
	for _, want := range []string{hidden, `"new":true`, `"thinking":"Is 1 < 2?"`, `"signature":"c2ln"`, `{"type":"text","text":"One. Two."}`} {
		if !strings.Contains(again, want) {
			t.Errorf("%s does not go back: %s", want, again)
		}
	}
}

// A call in which the output limit was reached is seen to be cut off, also where it had no
// arguments yet: it is not one without arguments.
func TestACallThatIsCutOffIsNotOneWithoutArguments(t *testing.T) {
	for _, came := range []string{"", `{\"text\":\"all of`} {
		c, _ := played(t, append([]string{
			began(10),
			`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"note","input":{}}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":""}}`,
			`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_2","name":"note","input":{}}}`,
			`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"` + came + `"}}`,
		}, ended("max_tokens", 100)...))
		reply, err := c.Complete(t.Context(), agent.Request{Messages: []agent.Message{{Role: agent.RoleUser, Text: "Note all."}}}, nil)
		if err != nil || !reply.Truncated || len(reply.Calls) != 2 {
			t.Fatalf("%+v, %v", reply, err)
		}
		if whole, cut := reply.Calls[0].Arguments, reply.Calls[1].Arguments; whole != "{}" || json.Valid([]byte(cut)) {
			t.Errorf("%q: the call before it has %q, the one that is cut off %q", came, whole, cut)
		}
	}
}

// Gateways number the blocks from one, or leave numbers out (omlx #1353, new-api #5482), as text, or all the
// same, and leave out the stop reason or the last event: each delta belongs to the block that last began with its
// number.
func TestBlocksAreKnownByTheirNumbers(t *testing.T) {
	block := func(index, kind string) string {
		return `{"type":"content_block_start","index":` + index + `,"content_block":` + kind + `}`
	}
	delta := func(index, of string) string {
		return `{"type":"content_block_delta","index":` + index + `,"delta":` + of + `}`
	}
	const said, call = `{"type":"text","text":""}`, `{"type":"tool_use","id":"toolu_1","name":"note","input":{}}`
	const one, args = `{"type":"text_delta","text":"One."}`, `{"type":"input_json_delta","partial_json":"{\"n\":1}"}`
	for name, events := range map[string][]string{
		"from one":       append([]string{began(1), block("1", said), delta("1", one), block("2", call), delta("2", args)}, ended("tool_use", 1)...),
		"a gap":          append([]string{began(1), block("0", said), block("2", call), delta("2", args), delta("0", one)}, ended("tool_use", 1)...),
		"all the same":   append([]string{began(1), block("0", said), delta("0", one), block("0", call), delta("0", args)}, ended("tool_use", 1)...),
		"texts":          append([]string{began(1), block(`"0"`, said), delta(`"0"`, one), block(`"1"`, call), delta(`"1"`, args)}, ended("tool_use", 1)...),
		"no reason":      {began(1), block("0", said), delta("0", one), block("1", call), delta("1", args), `{"type":"message_stop"}`},
		"no last event":  append([]string{began(1), block("0", said), delta("0", one), block("1", call), delta("1", args)}, ended("tool_use", 1)[0]),
		"a number as id": append([]string{began(1), block("0", said), delta("0", one), block("1", strings.Replace(call, `"toolu_1"`, "7", 1)), delta("1", args)}, ended("tool_use", 1)...),
		"not streamed":   {`{"type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"One."},{"type":"tool_use","id":"toolu_1","name":"note","input":{"n":1}}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":2}}`},
		"odd usage":      append([]string{`{"type":"message_start","message":{"usage":{"input_tokens":"1","output_tokens":[]}}}`, block("0", said), delta("0", one), block("1", call), delta("1", args)}, ended("tool_use", 1)...),
		"other types":    append([]string{began(1), `{"type":"keepalive","message":"still here","delta":"x"}`, block("0", `{"type":"text","text":"","citations":{},"signature":7}`), delta("0", one), block("1", call), delta("1", args)}, ended("tool_use", 1)...),
	} {
		c, _ := played(t, events)
		reply, err := c.Complete(t.Context(), agent.Request{Messages: []agent.Message{{Role: agent.RoleUser, Text: "Count."}}}, nil)
		if err != nil || reply.Text != "One." || len(reply.Calls) != 1 || reply.Calls[0].Arguments != `{"n":1}` {
			t.Errorf("%s: %+v, %v", name, reply, err)
		}
	}
	for name, events := range map[string][]string{
		"a call that is cut, no reason": {began(1), block("0", call), delta("0", `{"type":"input_json_delta","partial_json":"{"}`), `{"type":"message_stop"}`},
		"no end":                        {began(1), block("0", said), delta("0", one)},
	} {
		c, _ := played(t, events)
		if reply, err := c.Complete(t.Context(), agent.Request{Messages: []agent.Message{{Role: agent.RoleUser, Text: "Count."}}}, nil); err == nil {
			t.Errorf("%s: %+v", name, reply)
		}
	}
}

// What breaks the order of a stream is no reply.
func TestBrokenStreams(t *testing.T) {
	for name, events := range map[string][]string{
		"no end":             {began(1), `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"One."}}`},
		"no reason":          {began(1), `{"type":"message_stop"}`},
		"more of no block":   {began(1), `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}`},
		"no JSON":            {began(1), `{"type":`},
		"an error by itself": {began(1), `{"type":"error","error":{"type":"invalid_request_error","message":"No."}}`},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := played(t, append(events, map[bool][]string{true: ended("end_turn", 1)}[name != "no end" && name != "no reason"]...))
			reply, err := c.Complete(t.Context(), agent.Request{Messages: []agent.Message{{Role: agent.RoleUser, Text: "Count."}}}, nil)
			if err == nil {
				t.Errorf("%+v", reply)
			}
		})
	}
}

// canned is a server that gives one answer.
type canned string

func (c canned) RoundTrip(req *http.Request) (*http.Response, error) {
	if _, err := io.Copy(io.Discard, req.Body); err != nil {
		return nil, err
	}
	header := http.Header{"Content-Type": {"text/event-stream"}}
	return &http.Response{StatusCode: 200, Header: header, Body: io.NopCloser(strings.NewReader(string(c))), Request: req}, nil
}

// FuzzStream: no reply, however broken, does more than fail.
func FuzzStream(f *testing.F) {
	for _, events := range [][]string{
		append([]string{began(1), `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"One."}}`}, ended("end_turn", 1)...),
		append([]string{began(1), `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"b","input":{}}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{"}}`}, ended("tool_use", 1)...),
		{`{"type":"message_start","message":null}`, `{"type":"content_block_start","index":-1,"content_block":null}`, `{"type":"error","error":null}`},
	} {
		f.Add("data: " + strings.Join(events, "\n\ndata: ") + "\n\n")
	}
	f.Fuzz(func(t *testing.T, body string) {
		c, err := anthropic.New(anthropic.Config{
			BaseURL: "http://model.test", APIKey: key, Model: "claude-sonnet-5", HTTPClient: &http.Client{Transport: canned(body)}, Retry: provider.Retry{MaxAttempts: 1},
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Complete(t.Context(), agent.Request{Messages: []agent.Message{{Role: agent.RoleUser, Text: "Count."}}}, func(agent.Delta) {})
		var failure *agent.ModelError
		if err != nil && !errors.As(err, &failure) || err != nil && strings.Contains(err.Error(), key) {
			t.Errorf("error %v", err)
		}
	})
}

// The provider bills what it has generated, also if it was not shown, broke off, or was refused on the way.
func TestFailedAttemptsAreCounted(t *testing.T) {
	thinking := `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"` + strings.Repeat("x", 400) + `"}}`
	text := `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"One."}}`
	for name, c := range map[string]struct {
		events []string
		want   agent.Usage
	}{
		"thinking":     {[]string{began(10), thinking}, agent.Usage{Input: 15, Cached: 5, Output: 100}},
		"refused":      {append([]string{began(10), text}, ended("refusal", 30)...), agent.Usage{Input: 15, Cached: 5, Output: 30}},
		"nothing came": {[]string{began(10), `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`}, agent.Usage{}},
	} {
		t.Run(name, func(t *testing.T) {
			model, _ := played(t, c.events)
			reply, err := model.Complete(t.Context(), agent.Request{Messages: []agent.Message{{Role: agent.RoleUser, Text: "Count."}}}, nil)
			if err == nil || reply.Usage != c.want {
				t.Errorf("%+v, want %+v, %v", reply.Usage, c.want, err)
			}
		})
	}
}

// A reply counts once it is whole, whatever becomes of its connection.
func TestAWholeReplyCountsWhateverFollows(t *testing.T) {
	for name, after := range map[string]func(*http.Request){
		"the connection breaks":     func(*http.Request) { panic(http.ErrAbortHandler) },
		"the connection stays open": func(r *http.Request) { <-r.Context().Done() },
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", "text/event-stream")
				for _, e := range append([]string{began(1), `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"One."}}`}, ended("end_turn", 1)...) {
					_, _ = fmt.Fprintf(w, "data: %s\n\n", e)
				}
				_ = http.NewResponseController(w).Flush()
				after(r)
			}))
			defer srv.Close()
			c, err := anthropic.New(anthropic.Config{BaseURL: srv.URL, APIKey: key, Model: "claude-sonnet-5", HTTPClient: srv.Client(), Retry: provider.Retry{MaxAttempts: 1}})
			if err != nil {
				t.Fatal(err)
			}
			reply, err := c.Complete(t.Context(), agent.Request{Messages: []agent.Message{{Role: agent.RoleUser, Text: "Count."}}}, nil)
			if err != nil || reply.Text != "One." {
				t.Errorf("%+v, %v", reply, err)
			}
		})
	}
}
