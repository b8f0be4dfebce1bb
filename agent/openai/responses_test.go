package openai_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"oneclaw/agent"
	"oneclaw/agent/openai"
	"oneclaw/agent/provider"
	emulator "oneclaw/internal/emulator/openai"
)

// Events of the Responses API as its reference shows them.
const (
	created   = `{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","model":"gpt-6-sol","output":[]}}`
	textHel   = `{"type":"response.output_text.delta","sequence_number":1,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"Hel"}`
	textLo    = `{"type":"response.output_text.delta","sequence_number":2,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"lo"}`
	itemText  = `{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Hello","annotations":[]}]}`
	itemThink = `{"id":"rs_1","type":"reasoning","encrypted_content":"gAAA","summary":[{"type":"summary_text","text":"Thinking"}],"status":null}`
	itemOne   = `{"id":"fc_1","type":"function_call","status":"completed","call_id":"call_1","name":"tool_0","arguments":"{\"q\":1}"}`
	itemTwo   = `{"id":"fc_2","type":"function_call","status":"completed","call_id":"call_2","name":"tool_1","arguments":"{}"}`
	spent     = `"usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":64,"cache_write_tokens":12},"output_tokens":7,"output_tokens_details":{"reasoning_tokens":3},"total_tokens":107}`
)

func done(item string) string {
	return `{"type":"response.output_item.done","output_index":0,"item":` + item + `}`
}

func added(id, call, name string) string {
	return `{"type":"response.output_item.added","output_index":0,"item":{"id":"` + id + `","type":"function_call","call_id":"` + call + `","name":"` + name + `","arguments":""}}`
}

func arguments(id, delta string) string {
	return fmt.Sprintf(`{"type":"response.function_call_arguments.delta","output_index":0,"item_id":%q,"delta":%q}`, id, delta)
}

func completed(items ...string) string {
	return `{"type":"response.completed","response":{"object":"response","status":"completed","model":"gpt-6-sol","output":[` + strings.Join(items, ",") + `],` + spent + `}}`
}

// events is a stream without the [DONE] that this API does not send.
func events(list ...string) answer {
	var b strings.Builder
	for _, e := range list {
		var kind struct {
			Type string `json:"type"`
		}
		if err := json.Unmarshal([]byte(e), &kind); err != nil {
			panic(err)
		}
		b.WriteString("event: " + kind.Type + "\ndata: " + e + "\n\n")
	}
	return respond(200, "text/event-stream", b.String())
}

func TestResponsesReplies(t *testing.T) {
	usage := agent.Usage{Input: 100, Cached: 64, CacheWritten: 12, Output: 7}
	for name, tc := range map[string]struct {
		answer answer
		want   agent.Reply
	}{
		"text":         {events(created, textHel, textLo, done(itemText), completed(itemText)), agent.Reply{Text: "Hello", Model: "gpt-6-sol", Usage: usage}},
		"items alone":  {events(created, textHel, textLo, done(itemText), completed()), agent.Reply{Text: "Hello", Model: "gpt-6-sol", Usage: usage}},
		"deltas alone": {events(created, textHel, textLo, completed()), agent.Reply{Text: "Hello", Model: "gpt-6-sol", Usage: usage}},
		"unknown events": {
			events(created, `{"type":"response.web_search_call.searching","delta":{"x":1}}`, `{"type":"keepalive"}`, textHel, textLo, completed(itemText, `{"type":"new_thing","id":"x"}`)),
			agent.Reply{Text: "Hello", Model: "gpt-6-sol", Usage: usage},
		},
		"calls": {events(created, completed(itemOne, itemTwo)), agent.Reply{Model: "gpt-6-sol", Usage: usage, Calls: []agent.Call{
			{ID: "call_1", Name: "tool_0", Arguments: `{"q":1}`}, {ID: "call_2", Name: "tool_1", Arguments: "{}"},
		}}},
		"calls at one place": {
			events(
				created, added("fc_1", "call_1", "tool_0"), added("fc_2", "call_2", "tool_1"), arguments("fc_1", `{"q":`), arguments("fc_2", "{"), arguments("fc_1", "1}"), arguments("fc_2", "}"),
				done(itemOne), completed(),
			),
			agent.Reply{Model: "gpt-6-sol", Usage: usage, Calls: []agent.Call{{ID: "call_1", Name: "tool_0", Arguments: `{"q":1}`}, {ID: "call_2", Name: "tool_1", Arguments: "{}"}}},
		},
		"a call whose id changes": {
			events(created, added("fc_0", "call_1", "tool_0"), arguments("x", `{"q":1}`), done(itemOne), completed()),
			agent.Reply{Model: "gpt-6-sol", Usage: usage, Calls: []agent.Call{{ID: "call_1", Name: "tool_0", Arguments: `{"q":1}`}}},
		},
		"refusal": {
			events(created, `{"type":"response.refusal.delta","delta":"No."}`, completed(`{"type":"message","content":[{"type":"refusal","refusal":"No."}]}`)),
			agent.Reply{Text: "No.", Model: "gpt-6-sol", Usage: usage},
		},
		"truncated": {
			events(created, textHel, `{"type":"response.incomplete","response":{"status":"incomplete","model":"m","output":[],"incomplete_details":{"reason":"max_output_tokens"}}}`),
			agent.Reply{Text: "Hel", Model: "m", Truncated: true},
		},
		"filtered late": {
			events(created, textHel, `{"type":"response.incomplete","response":{"status":"incomplete","model":"m","output":[],"incomplete_details":{"reason":"content_filter"}}}`),
			agent.Reply{Text: "Hel", Model: "m", Truncated: true, Filtered: true},
		},
		"not streamed": {
			respond(200, "application/json", `{"object":"response","status":"completed","model":"m","output":[`+itemText+`],`+spent+`}`),
			agent.Reply{Text: "Hello", Model: "m", Usage: usage},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, p := client(t, openai.Config{Model: "gpt-6-sol"}, tc.answer)
			got, err := c.Complete(t.Context(), question(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("reply (-want +got):\n%s", diff)
			}
			if got := p.requests[0].URL.String(); got != "http://model.test/v1/responses" {
				t.Errorf("sent to %s", got)
			}
		})
	}
}

// What is not whole, fails for a while or for good is told as over the other API.
func TestResponsesFailures(t *testing.T) {
	failed := func(code, message string) answer {
		return events(created, textHel, `{"type":"response.failed","response":{"status":"failed","error":{"code":"`+code+`","message":"`+message+`"}}}`)
	}
	good := events(created, textHel, textLo, completed(itemText))
	for name, tc := range map[string]struct {
		answer answer
		kind   agent.Kind
		again  bool
	}{
		"cut off":         {events(created, textHel), agent.KindUnavailable, true},
		"server error":    {failed("server_error", "Sorry"), agent.KindUnavailable, true},
		"rate limit":      {failed("rate_limit_exceeded", "Slow down"), agent.KindRateLimit, true},
		"overflow":        {failed("context_length_exceeded", "Your input exceeds the context window"), agent.KindOverflow, false},
		"invalid":         {failed("invalid_prompt", "No"), agent.KindRejected, false},
		"a policy":        {failed("bio_policy", "This content can't be shown"), agent.KindRejected, false},
		"another policy":  {events(created, `{"type":"error","code":"cyber_policy","message":"This content can't be shown","param":null}`), agent.KindRejected, false},
		"a picture":       {failed("unsupported_image_media_type", "No"), agent.KindRejected, false},
		"a new code":      {failed("new_code", "Sorry"), agent.KindUnavailable, true},
		"error event":     {events(created, `{"type":"error","code":"server_error","message":"Sorry","param":null}`), agent.KindUnavailable, true},
		"nested error":    {events(`{"type":"error","error":{"code":"insufficient_quota","message":"Pay","type":"x"}}`), agent.KindCredit, false},
		"filtered":        {events(`{"type":"response.incomplete","response":{"status":"incomplete","output":[],"incomplete_details":{"reason":"content_filter"}}}`), agent.KindRejected, false},
		"no response":     {events(`{"type":"response.completed"}`), agent.KindUnavailable, true},
		"wrong key":       {refusal(401, "invalid_api_key", "Incorrect API key provided: "+key), agent.KindAuth, false},
		"unknown model":   {refusal(404, "model_not_found", "No such model"), agent.KindRejected, false},
		"service is away": {refusal(503, "", "Overloaded"), agent.KindUnavailable, true},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := client(t, openai.Config{Model: "gpt-6-sol", Retry: provider.Retry{MaxAttempts: 1}}, tc.answer)
			_, err := c.Complete(t.Context(), question(), nil)
			if f := kindOf(t, err); f.Kind != tc.kind || errors.Is(err, provider.ErrFiltered) != (strings.Contains(name, "policy") || name == "filtered") {
				t.Errorf("%v, want %s", err, tc.kind)
			}
			synctest.Test(t, func(t *testing.T) {
				c, p := client(t, openai.Config{Model: "gpt-6-sol"}, tc.answer, good)
				var deltas []agent.Delta
				reply, err := c.Complete(t.Context(), question(), func(d agent.Delta) { deltas = append(deltas, d) })
				if again := err == nil; again != tc.again || len(p.requests) == 2 != tc.again {
					t.Errorf("sent %d times, %v", len(p.requests), err)
				}
				if shown := visible(deltas); err == nil && (reply.Text != "Hello" || shown != "Hello") {
					t.Errorf("reply %q, shown %q", reply.Text, shown)
				}
			})
		})
	}
}

// visible is what is left of a streamed reply.
func visible(deltas []agent.Delta) string {
	var b strings.Builder
	for _, d := range deltas {
		if d.Restart {
			b.Reset()
		}
		b.WriteString(d.Text)
	}
	return b.String()
}

func TestResponsesStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		go func() { _, _ = io.WriteString(w, "data: "+textHel+"\n\n") }()
		c, _ := client(t, openai.Config{Model: "gpt-6-sol", Retry: provider.Retry{MaxAttempts: 1}}, func(req *http.Request) (*http.Response, error) {
			context.AfterFunc(req.Context(), func() { _ = w.CloseWithError(context.Cause(req.Context())) })
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: r}, nil
		})
		_, err := c.Complete(t.Context(), question(), nil)
		if f := kindOf(t, err); f.Kind != agent.KindUnavailable || !strings.Contains(err.Error(), "sent nothing for too long") {
			t.Errorf("error %v", err)
		}
		synctest.Wait()
	})
}

// Reasoning goes back within the turn, in its place, without what the API refuses, and
// to nobody but the model that gave it.
func TestReasoningGoesBack(t *testing.T) {
	phased := strings.Replace(itemText, `"role"`, `"phase":"commentary","role"`, 1)
	c, p := client(t, openai.Config{Model: "gpt-6-sol"},
		events(created, completed(itemThink, phased, itemOne, strings.ReplaceAll(itemThink, "rs_1", "rs_2"), itemTwo)), events(completed(itemText)), events(completed(itemText)))
	first, err := c.Complete(t.Context(), agent.Request{System: "You help.", Messages: question().Messages, Tools: tools(1)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	history := append(question().Messages,
		agent.Message{Role: agent.RoleAssistant, Text: first.Text, Calls: first.Calls, Reasoning: first.Reasoning},
		agent.Message{Role: agent.RoleTool, CallID: "call_1", Text: "one"}, agent.Message{Role: agent.RoleTool, CallID: "call_2"})
	if _, err := c.Complete(t.Context(), agent.Request{Messages: history}, nil); err != nil {
		t.Fatal(err)
	}
	think := `{"type":"reasoning","id":"rs_1","encrypted_content":"gAAA","summary":[{"type":"summary_text","text":"Thinking"}]}`
	rest := `{"type":"function_call_output","call_id":"call_1","output":"one"},{"type":"function_call_output","call_id":"call_2","output":"(empty)"}`
	one := `{"type":"function_call","call_id":"call_1","name":"tool_0","arguments":"{\"q\":1}"}`
	two := `{"type":"function_call","call_id":"call_2","name":"tool_1","arguments":"{}"}`
	user := `{"role":"user","content":"Hi"}`
	want := "[" + strings.Join([]string{
		user, think, `{"role":"assistant","content":"Hello","phase":"commentary"}`, one, strings.Replace(think, "rs_1", "rs_2", 1), two, rest,
	}, ",") + "]"
	if diff := cmp.Diff(want, field(t, p.bodies[1], "input")); diff != "" {
		t.Errorf("in the turn (-want +got):\n%s", diff)
	}
	plain := "[" + strings.Join([]string{user, `{"role":"assistant","content":"Hello"}`, one, two, rest}, ",")
	history = append(history, agent.Message{Role: agent.RoleUser, Text: "And?"})
	if _, err := c.Complete(t.Context(), agent.Request{Messages: history}, nil); err != nil {
		t.Fatal(err)
	}
	if got := field(t, p.bodies[2], "input"); got != plain+`,{"role":"user","content":"And?"}]` {
		t.Errorf("in the next turn %s", got)
	}
	if got := field(t, sentOver(t, openai.Config{Model: "gpt-6-luna"}, events(completed(itemText)), agent.Request{Messages: history[:4]}), "input"); got != plain+"]" {
		t.Errorf("another model is sent %s", got)
	}
	if body := sent(t, openai.Config{}, agent.Request{Messages: history[:4]}); strings.Contains(body, "gAAA") || strings.Contains(body, "carried") {
		t.Errorf("another API is sent %s", body)
	}
	wantBody := `{"include":["reasoning.encrypted_content"],"model":"gpt-6-sol","store":false,"stream":true,"tools":[`
	if !strings.HasPrefix(p.bodies[0], wantBody) || !strings.HasSuffix(p.bodies[0], `"strict":false}],"input":[{"role":"system","content":"You help."},`+user+`]}`) {
		t.Errorf("body %s", p.bodies[0])
	}
}

func sentOver(t *testing.T, cfg openai.Config, a answer, req agent.Request) string {
	t.Helper()
	c, p := client(t, cfg, a)
	if _, err := c.Complete(t.Context(), req, nil); err != nil {
		t.Fatal(err)
	}
	return p.bodies[0]
}

func TestWhichAPI(t *testing.T) {
	const hosted, other = "https://api.openai.com/v1", "https://gateway.test/v1"
	for _, tc := range []struct {
		base, model, want string
	}{
		{hosted, "gpt-5-mini", "chat/completions"},
		{hosted, "gpt-4o", "chat/completions"},
		{hosted, "gpt-6-sol", "responses"},
		{hosted, "gpt-6.1-sol", "responses"},
		{hosted, "gpt-7-new", "responses"},
		{hosted, "gpt-5.2-pro", "responses"},
		{hosted, "gpt-5.1-codex-mini", "responses"},
		{hosted, "o3-deep-research", "responses"},
		{other, "gpt-6-sol", "responses"}, // known by its whole name
		{other, "gpt-6-like", "chat/completions"},
		{other, "gpt-5.2-pro", "chat/completions"},
	} {
		a := stream(hello, stop)
		if tc.want == "responses" {
			a = events(completed(itemText))
		}
		c, p := client(t, openai.Config{BaseURL: tc.base, Model: tc.model, Retry: provider.Retry{MaxAttempts: 1}}, a)
		if _, err := c.Complete(t.Context(), agent.Request{Messages: question().Messages, Tools: tools(1)}, nil); err != nil {
			t.Errorf("%+v: %v", tc, err)
		} else if got := p.requests[0].URL.String(); got != tc.base+"/"+tc.want {
			t.Errorf("%+v: %s", tc, got)
		}
	}
}

// A server as strict as the hosted one accepts every prefix of every conversation, and
// gets its reasoning back in a turn with tools.
func TestStrictResponses(t *testing.T) {
	t.Parallel()
	srv, err := emulator.New(emulator.Config{Models: []string{"gpt-6-sol"}, Responder: emulator.ResponderFunc(func(_ context.Context, req emulator.Request) (emulator.Reply, error) {
		if len(req.Tools) == 1 && req.Messages[len(req.Messages)-1].Role == "user" {
			return emulator.Reply{Text: "let me see", Calls: []emulator.ToolCall{{Name: "tool_0", Arguments: `{"a":"ä"}`}, {Name: "tool_0", Arguments: "{}"}}}, nil
		}
		return emulator.Reply{Text: "fine <b>"}, nil
	})})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	}()
	base, err := srv.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	c, err := openai.New(openai.Config{BaseURL: base, Model: "gpt-6-sol", HTTPClient: &http.Client{Transport: transport}, Retry: provider.Retry{MaxAttempts: 1}})
	if err != nil {
		t.Fatal(err)
	}
	req := agent.Request{System: "You help.", Messages: question().Messages, Tools: tools(1), CacheKey: "c"}
	first, err := c.Complete(t.Context(), req, nil)
	if err != nil || len(first.Calls) != 2 || first.Text != "let me see" {
		t.Fatalf("%+v, %v", first, err)
	}
	req.Messages = append(req.Messages, agent.Message{Role: agent.RoleAssistant, Text: first.Text, Calls: first.Calls, Reasoning: first.Reasoning})
	for _, call := range first.Calls {
		req.Messages = append(req.Messages, agent.Message{Role: agent.RoleTool, CallID: call.ID, Text: "ok"})
	}
	var deltas []agent.Delta
	second, err := c.Complete(t.Context(), req, func(d agent.Delta) { deltas = append(deltas, d) })
	if err != nil || second.Text != "fine <b>" || visible(deltas) != second.Text || second.Usage.Input == 0 {
		t.Errorf("%+v, %v, %v", second, deltas, err)
	}
	requests := srv.Requests()
	if last := requests[len(requests)-1]; !last.Responses || last.ReasoningItems != 1 || last.Messages[2].ToolCalls[0].Arguments != `{"a":"ä"}` {
		t.Errorf("the server saw %+v", last)
	}
	rapid.Check(t, func(rt *rapid.T) {
		history := append(conversation(rt), agent.Message{Role: agent.RoleUser, Text: "now"})
		window, _ := agent.Window(history, rapid.IntRange(0, 200).Draw(rt, "tokens"))
		got, err := c.Complete(t.Context(), agent.Request{
			System: "You help.", Messages: window, Tools: tools(3),
		}, nil)
		if err != nil || got.Text != "fine <b>" {
			rt.Errorf("%+v, %v", got, err)
		}
	})
}

// FuzzResponses: whatever a server sends, nothing panics, and a reply that counts was
// ended by it.
func FuzzResponses(f *testing.F) {
	f.Add(created + "\n" + textHel + "\n" + completed(itemThink, itemText, itemOne))
	f.Add(`{"type":"response.failed","response":null}` + "\n{}")
	f.Add(`{"type":"response.completed","response":{"output":[null,{"type":"message","content":null}],"usage":null}}`)
	f.Add(`{"type":"error"}`)
	f.Fuzz(func(t *testing.T, lines string) {
		body := "data: " + strings.ReplaceAll(lines, "\n", "\n\ndata: ") + "\n\n"
		c, _ := client(t, openai.Config{Model: "gpt-6-sol", Retry: provider.Retry{MaxAttempts: 1}}, respond(200, "text/event-stream", body))
		reply, err := c.Complete(t.Context(), question(), nil)
		if err != nil {
			_ = kindOf(t, err)
			return
		}
		if !strings.Contains(lines, "response") {
			t.Errorf("a reply out of nothing: %+v", reply)
		}
		again := agent.Message{Role: agent.RoleAssistant, Text: reply.Text, Calls: reply.Calls, Reasoning: reply.Reasoning}
		sentOver(t, openai.Config{Model: "gpt-6-sol"}, events(completed(itemText)), agent.Request{Messages: append(question().Messages, again)})
	})
}
