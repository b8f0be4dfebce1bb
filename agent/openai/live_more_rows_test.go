package openai_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/agent"
	"oneclaw/agent/openai"
	"oneclaw/agent/provider"
	emulator "oneclaw/internal/emulator/openai"
	"oneclaw/toolgroups"
)

// An error that comes in a stream is one of its kind, in whatever form, and not a reply
// that broke off.
//
// Errors come inside streams, in many forms.
func TestErrorsInStreams(t *testing.T) {
	raw := func(lines string) answer { return respond(200, "text/event-stream", lines) }
	for name, tc := range map[string]struct {
		answer answer
		kind   agent.Kind
		says   string
		sent   int
	}{
		"groq":               {raw("event: error\ndata: {\"error\":{\"message\":\"bad\",\"type\":\"invalid_request_error\",\"status_code\":400}}\n\n"), agent.KindRejected, "bad", 1},
		"groq, a limit":      {raw("event: error\ndata: {\"error\":{\"message\":\"slow\",\"type\":\"tokens\",\"code\":\"rate_limit_exceeded\"}}\n\n"), agent.KindRateLimit, "slow", 4},
		"lm studio":          {raw("event: error\ndata: {\"error\":{\"message\":\"Trying to keep the first 9000 tokens\"},\"message\":\"x\"}\n\n"), agent.KindOverflow, "Trying to keep", 1},
		"a text":             {stream(hello, `{"error":"prompt is too long"}`), agent.KindOverflow, "too long", 1},
		"a text of a name":   {raw("event: error\ndata: the model crashed\n\n"), agent.KindUnavailable, "the model crashed", 4},
		"anthropic":          {raw("event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"), agent.KindUnavailable, "Overloaded", 4},
		"openrouter":         {stream(hello, `{"id":"gen","error":{"code":502,"message":"Provider disconnected"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`), agent.KindUnavailable, "Provider disconnected", 4},
		"openrouter, behind": {stream(`{"error":{"code":400,"message":"Provider returned error","metadata":{"raw":"{\"error\":\"the prompt is too long\"}"}}}`), agent.KindOverflow, "too long", 1},
		"flat":               {stream(`{"object":"error","message":"This model's maximum context length is 8 tokens","type":"BadRequestError","code":400}`), agent.KindOverflow, "maximum context", 1},
		"fastapi":            {raw("event: error\ndata: {\"detail\":\"no such thing\"}\n\n"), agent.KindUnavailable, "no such thing", 4},
		"not streamed":       {respond(200, "application/json", `{"error":"Context size has been exceeded"}`), agent.KindOverflow, "exceeded", 1},
		"in the last line":   {raw("data: {\"error\":{\"message\":\"bad\",\"type\":\"invalid_request_error\"}}"), agent.KindRejected, "bad", 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, p := client(t, openai.Config{}, tc.answer, tc.answer, tc.answer, tc.answer)
				_, err := c.Complete(t.Context(), question(), nil)
				if f := kindOf(t, err); f.Kind != tc.kind || !strings.Contains(err.Error(), tc.says) || len(p.bodies) != tc.sent {
					t.Errorf("%v after %d requests; want %s, %q after %d", err, len(p.bodies), tc.kind, tc.says, tc.sent)
				}
			})
		})
	}
}

// A key that Gemini does not know is refused with the status of an invalid request.
func TestAWrongKeyAtGemini(t *testing.T) {
	p, _ := emulator.ProfileByName("gemini")
	l := newLive(t, p, func(cfg *emulator.Config) { cfg.Key = "another" })
	for name, ask := range map[string]func() error{
		"a reply":    func() error { _, err := l.model().Complete(t.Context(), question(), nil); return err },
		"its models": func() error { _, err := openai.ListModels(t.Context(), l.cfg); return err },
	} {
		if f := kindOf(t, ask()); f.Kind != agent.KindAuth || f.Status != 400 {
			t.Errorf("%s: %v", name, f)
		}
	}
}

// Each server's words for a prompt that is too long are known, and the size that they name.
//
// Each server has words of its own for a prompt that is too long.
func TestOverflowInTheWordsOfEachServer(t *testing.T) {
	for text, size := range map[string]int{
		"You passed 9000 input tokens and requested 0 output tokens. However, the model's context length is only 8192 tokens.":                                       8192,
		"The decoder prompt (length 9000) is longer than the maximum model length of 4096. Make sure that max_model_len is no smaller.":                              4096,
		"This model's maximum prompt length is 131072 but the request contains 140000 tokens.":                                                                       131072,
		"Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough": 4096,
		"Context size has been exceeded.":                                                                                       0,
		"the request exceeds the available context size (4096 tokens), try increasing it":                                       4096,
		"prompt is too long: 210000 tokens > 200000 maximum":                                                                    200000,
		"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).":                               1048576,
		"Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length":                32768,
		"Invalid request: Your request exceeded model token limit: 262144":                                                      262144,
		"This model's maximum context length is 65,536 tokens. However, you requested 70000 tokens (69000 in the messages).":    65536,
		"Please reduce the length of the messages or completion. Current length is 42328 while limit is 40000":                  40000,
		"Please reduce the length of the messages or completion.":                                                               0,
		"This endpoint's maximum context length is 163840 tokens. However, you requested about 200000 tokens (199000 of text).": 163840,
	} {
		for _, status := range []int{400, 500} {
			cfg := openai.Config{ModelCache: openai.NewModelCache()}
			c, p := client(t, cfg, refusal(status, "", text))
			_, err := c.Complete(t.Context(), question(), nil)
			if kindOf(t, err).Kind != agent.KindOverflow || len(p.bodies) != 1 {
				t.Errorf("%d %s: %v after %d requests", status, text, err, len(p.bodies))
			}
			if c, _ = client(t, cfg); c.Profile().ContextTokens != size {
				t.Errorf("%s: the context is known as %d", text, c.Profile().ContextTokens)
			}
		}
	}
	c, _ := client(t, openai.Config{ContextTokens: 1000, Settings: provider.Settings{ContextTokens: 2000}})
	if got := c.Facts().ContextTokens; got.Value != 2000 || got.From != "the settings" {
		t.Errorf("set, it is %+v", got)
	}
	listed := respond(200, "application/json", `{"data":[{"id":"test-model","max_model_len":4096},{"id":"m","max_context_length":32768}]}`)
	for model, size := range map[string]int{"test-model": 4096, "m": 32768} {
		c, err := openai.New(openai.Config{BaseURL: "http://model.test/v1", Model: model, ContextTokens: 1000, HTTPClient: &http.Client{Transport: &listing{answer: listed}}})
		if err != nil {
			t.Fatal(err)
		}
		if facts, err := c.CurrentFacts(t.Context()); err != nil || facts.ContextTokens.Value != size || facts.ContextTokens.From != "the provider" {
			t.Errorf("%s: %+v, %v", model, facts, err)
		}
	}
}

// A call that cannot be read is chance: it is asked for again, twice and no more.
//
// A call that cannot be read is an accident, and passes the next time.
func TestAFailedCallIsAskedForAgain(t *testing.T) {
	const code = "tool_use_failed"
	text := "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details."
	inStream := respond(200, "text/event-stream", fmt.Sprintf("event: error\ndata: {\"error\":{\"message\":%q,\"type\":\"invalid_request_error\",\"code\":%q,\"status_code\":400}}\n\n", text, code))
	for name, bad := range map[string]answer{"status": refusal(400, code, text), "stream": inStream} {
		synctest.Test(t, func(t *testing.T) {
			c, p := client(t, openai.Config{}, bad, bad, stream(hello, stop))
			if got, err := c.Complete(t.Context(), question(), nil); err != nil || got.Text != "Hel" || len(p.bodies) != 3 {
				t.Errorf("%s: %+v, %v after %d requests", name, got, err, len(p.bodies))
			}
			c, p = client(t, openai.Config{}, bad, bad, bad, bad)
			_, err := c.Complete(t.Context(), question(), nil)
			if kindOf(t, err).Kind != agent.KindUnavailable || len(p.bodies) != 3 {
				t.Errorf("%s: %v after %d requests", name, err, len(p.bodies))
			}
		})
	}
}

// Ollama cuts what is too long and says nothing, so it is asked how much fits.
//
// Ollama cuts a long prompt and says nothing.
func TestOllamaTellsItsContext(t *testing.T) {
	p, _ := emulator.ProfileByName("ollama")
	l := newLive(t, p, func(cfg *emulator.Config) { cfg.Context = 4096 })
	facts, err := l.model().CurrentFacts(t.Context())
	if err != nil || !facts.TruncatesSilently || facts.ContextTokens.Value != 4096 || !facts.Sees.No() || !facts.Reasons.Yes() {
		t.Errorf("%+v, %v", facts, err)
	}
	p.Pages = map[string]string{"/api/show": p.Pages["/api/show"]}
	if facts, err = newLive(t, p).model().CurrentFacts(t.Context()); err != nil || !facts.TruncatesSilently || facts.ContextTokens.From != "" {
		t.Errorf("not loaded: %+v, %v", facts, err)
	}
	if set, err := newLive(t, p).model(func(cfg *openai.Config) { cfg.Settings.ContextTokens = 8192 }).CurrentFacts(t.Context()); err != nil || set.ContextTokens.Value != 8192 {
		t.Errorf("set: %+v, %v", set, err)
	}
}

// A server nearby may take ten minutes to load its model; the setting says otherwise.
//
// A local server may take minutes to load its model.
func TestTheFirstByteOfALocalServerMayTakeLong(t *testing.T) {
	for _, tc := range []struct {
		base string
		set  time.Duration
		want time.Duration
	}{
		{"https://api.groq.com/openai/v1", 0, 2 * time.Minute},
		{"http://localhost:11434/v1", 0, 10 * time.Minute},
		{"http://192.168.1.5:8000/v1", 0, 10 * time.Minute},
		{"http://ollama:11434/v1", 0, 10 * time.Minute},
		{"http://localhost:11434/v1", time.Second, time.Second},
		{"https://api.groq.com/openai/v1", time.Hour, time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, _ := client(t, openai.Config{BaseURL: tc.base, FirstByteTimeout: tc.set, Retry: provider.Retry{MaxAttempts: 1}}, func(req *http.Request) (*http.Response, error) {
				<-req.Context().Done()
				return nil, req.Context().Err()
			})
			start := time.Now()
			_, err := c.Complete(t.Context(), question(), nil)
			if kindOf(t, err).Kind != agent.KindUnavailable || time.Since(start) != tc.want {
				t.Errorf("%+v: %v after %v", tc, err, time.Since(start))
			}
		})
	}
}

// Gemini refuses to be told that something is required that is no property.
//
// Gemini refuses to be told that something is required that is no property.
func TestRequiredNamesProperties(t *testing.T) {
	p, _ := emulator.ProfileByName("gemini")
	l := newLive(t, p)
	schema := `{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"string"}},"required":["b","gone"]},` +
		`"l":{"type":"array","items":{"type":"object","properties":{},"required":["none"]}}},"required":["a","gone"],"anyOf":[{"required":["a"]},{"required":["l"]}]}`
	req := question()
	req.Tools = []toolgroups.Tool{{Name: "t", Parameters: []byte(schema)}}
	if _, err := l.model(once).Complete(t.Context(), req, nil); err != nil {
		t.Fatal(err)
	}
	got := string(l.last().Tools[0].Parameters)
	if strings.Contains(got, "gone") || strings.Contains(got, "none") || !strings.Contains(got, `"required":["a"]`) || !strings.Contains(got, `"required":["b"]`) {
		t.Errorf("sent %s", got)
	}
}

// A server that does not know stream_options gets the request without, from then on.
//
// Some servers refuse `stream_options`.
func TestNoStreamOptions(t *testing.T) {
	for _, refused := range []answer{
		refusal(400, "", "Unrecognized request argument supplied: stream_options"),
		respond(422, "application/json", `{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}`),
	} {
		cfg := openai.Config{ModelCache: openai.NewModelCache(), Retry: provider.Retry{MaxAttempts: 1}}
		c, p := client(t, cfg, refused, stream(hello, stop))
		if _, err := c.Complete(t.Context(), question(), nil); err != nil || len(p.bodies) != 2 || strings.Contains(p.bodies[1], "stream_options") || !strings.Contains(p.bodies[1], `"stream":true`) {
			t.Errorf("%v, %q", err, p.bodies)
		}
		if c, p = client(t, cfg, stream(hello, stop)); strings.Contains(sentBy(t, c, p), "stream_options") {
			t.Error("it is sent again")
		}
		// Without an effect nothing is remembered.
		other := openai.Config{ModelCache: openai.NewModelCache()}
		c, _ = client(t, other, refused, refusal(400, "", "something else"))
		if _, err := c.Complete(t.Context(), question(), nil); err == nil {
			t.Error("no error")
		}
		if c, p = client(t, other, stream(hello, stop)); !strings.Contains(sentBy(t, c, p), "stream_options") {
			t.Error("it is remembered all the same")
		}
	}
}

func sentBy(t *testing.T, c *openai.Client, p *playedServer) string {
	t.Helper()
	if _, err := c.Complete(t.Context(), question(), nil); err != nil {
		t.Fatal(err)
	}
	return p.bodies[len(p.bodies)-1]
}

// A picture is tried where nothing is known of a model. Who refuses it is not shown
// another, unless the operator says that it sees; and nobody who is said to be blind is.
func TestPicturesAreTriedAndRefusalsRemembered(t *testing.T) {
	saved := pictures(t)
	for _, name := range []string{"groq", "deepseek", "ollama", "vllm", "llama.cpp"} {
		p, _ := emulator.ProfileByName(name)
		p.Model = "unheard-of"
		l := newLive(t, p)
		var shown atomic.Int32
		l.think = func(_ context.Context, req emulator.Request) (emulator.Reply, error) {
			shown.Add(int32(len(req.Messages[len(req.Messages)-1].Pictures)))
			return emulator.Reply{Text: "ok"}, nil
		}
		c := newTalk(t)
		c.turn.ReadFile = saved.read
		c.say(l.model(once, func(cfg *openai.Config) { cfg.Settings.Vision = "no" }), "look", "ok", "a.png")
		if len(l.refusals()) != 0 {
			t.Errorf("%s: shown to a blind model", name)
		}
		c.say(l.model(once), "look", "ok", "a.png")
		c.say(l.model(once), "look", "ok", "a.png")
		if n := len(l.refusals()); n != 1 || shown.Load() != 0 || !l.model().Facts().Sees.No() {
			t.Errorf("%s: refused %d times", name, n)
		}
		if !l.model(func(cfg *openai.Config) { cfg.Settings.Vision = "yes" }).Facts().Sees.Yes() {
			t.Errorf("%s: the setting does not count", name)
		}
	}
}

// A redirect is followed within a server, as the request that it is, and nowhere else.
func TestRedirectsStayWithinTheServer(t *testing.T) {
	to := func(status int, where string) answer {
		return respond(status, "text/plain", "", "Location", where)
	}
	c, p := client(t, openai.Config{}, to(308, "http://model.test/v2/chat/completions"), stream(hello, stop))
	if got, err := c.Complete(t.Context(), question(), nil); err != nil || got.Text != "Hel" || p.bodies[1] != p.bodies[0] {
		t.Errorf("%+v, %v, %q", got, err, p.bodies)
	}
	for _, a := range []answer{to(307, "https://evil.test/v1"), to(307, "http://model.test:8080/v1/chat/completions"), to(308, "https://model.test/v1/chat/completions"), to(302, "http://model.test/login"), to(301, "https://model.test/v1/chat/completions")} {
		c, p := client(t, openai.Config{}, a)
		_, err := c.Complete(t.Context(), question(), nil)
		if f := kindOf(t, err); f.Kind != agent.KindUnavailable || len(p.bodies) != 1 || !strings.Contains(err.Error(), "redirects to http") {
			t.Errorf("%v after %d requests", err, len(p.bodies))
		}
	}
}
