package openai_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneclaw/agent"
	"oneclaw/agent/openai"
	"oneclaw/agent/provider"
	emulator "oneclaw/internal/emulator/openai"
)

// A server that imitates the API with other types is understood: arguments as an object (llama.cpp #20198), a
// number as id, a text as index, an empty error in each piece, an event of two lines, no finish reason before
// [DONE] (NVIDIA NIM).
func TestRepliesInOtherTypes(t *testing.T) {
	call := agent.Call{ID: "7", Name: "note", Arguments: `{"n":725653563933458433}`}
	delta := func(calls string) string {
		return `{"choices":[{"index":0,"delta":{"tool_calls":[` + calls + `]}}]}`
	}
	whole := delta(`{"index":0,"id":"7","type":"function","function":{"name":"note","arguments":"{\"n\":725653563933458433}"}}`)
	const end = `{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`
	raw := func(lines ...string) answer { return respond(200, "text/event-stream", strings.Join(lines, "\n")+"\n") }
	for name, c := range map[string]struct {
		answer answer
		want   agent.Reply
	}{
		"arguments as an object": {stream(delta(`{"index":0,"id":"7","function":{"name":"note","arguments":{"n":725653563933458433}}}`), end), agent.Reply{Calls: []agent.Call{call}}},
		"numbers and texts":      {stream(delta(`{"index":"0","id":7,"function":{"name":"note","arguments":""}}`), delta(`{"index":"0","function":{"arguments":"{\"n\":725653563933458433}"}}`), end), agent.Reply{Calls: []agent.Call{call}}},
		"an object, not streamed": {
			respond(200, "application/json", `{"choices":[{"index":"0","message":{"content":null,"tool_calls":[{"id":7,"type":"function","function":{"name":"note","arguments":{"n":725653563933458433}}}]},"finish_reason":null}]}`),
			agent.Reply{Calls: []agent.Call{call}},
		},
		"a byte order mark":        {respond(200, "application/json", "\ufeff"+`{"choices":[{"message":{"content":"Hello"},"finish_reason":"stop"}]}`), agent.Reply{Text: "Hello"}},
		"no arguments":             {stream(delta(`{"id":"7","function":{"name":"note","arguments":null}}`), end), agent.Reply{Calls: []agent.Call{{ID: "7", Name: "note"}}}},
		"no finish reason":         {stream(whole), agent.Reply{Calls: []agent.Call{call}}},
		"a text, no finish reason": {stream(hello, lo), agent.Reply{Text: "Hello", Model: "m-1"}},
		"an empty error":           {stream(`{"error":"","choices":[{"index":0,"delta":{"content":"Hel"}}]}`, `{"error":{},"choices":[{"delta":{"content":"lo"},"finish_reason":"stop"}],"usage":{"prompt_tokens":"x"}}`), agent.Reply{Text: "Hello"}},
		"an event of two lines":    {raw(`data: {"choices":[{"index":0,`, `: a comment`, `data: "delta":{"content":"Hello"},"finish_reason":"stop"}]}`, "", "data: [DONE]", ""), agent.Reply{Text: "Hello"}},
		"events without blanks":    {raw("data: "+hello, "data: "+lo, "data: "+stop, "data: [DONE]"), agent.Reply{Text: "Hello", Model: "m-1"}},
		"fields of other kinds":    {stream(`{"model":7,"choices":[{"index":0,"delta":{"content":"Hello","refusal":{},"reasoning":{"text":"x"},"reasoning_content":[]},"finish_reason":"stop"}]}`), agent.Reply{Text: "Hello", Model: "7"}},
		// open-webui #9927, hermes-browser-extension #11
		"messages that repeat the deltas": {
			stream(`{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"message":{"role":"assistant","content":""}}]}`, `{"choices":[{"index":0,"delta":{"content":"Hel"},"message":{"content":"Hel"}}]}`, `{"choices":[{"index":0,"delta":{"content":"lo"},"message":{"content":"Hello"},"finish_reason":"stop"}]}`),
			agent.Reply{Text: "Hello"},
		},
		"a message at the end of a stream": {stream(`{"choices":[{"delta":{"content":"Hello"}}]}`, `{"choices":[{"message":{"content":"Hello"},"finish_reason":"stop"}]}`), agent.Reply{Text: "Hello"}},
		"fields of other types": {
			stream(`{"model":{"id":1},"type":7,"choices":[{"delta":{"content":"Hello","refusal":false,"reasoning":{"text":"x"},"reasoning_details":{},"tool_calls":{}},"finish_reason":1}]}`),
			agent.Reply{Text: "Hello"},
		},
		"content of other types": {
			stream(`{"choices":[{"delta":{"content":{"type":"text","text":"Hel"}}}]}`, `{"choices":[{"delta":{"content":["l",{"type":"text","text":"o"},7]}}]}`, `{"choices":[{"delta":{"content":false},"finish_reason":"stop"}]}`),
			agent.Reply{Text: "Hello"},
		},
		"an event that is no object": {stream(`"keep-alive"`, `{"choices":[{"delta":{"content":"Hello"},"finish_reason":"stop"}]}`), agent.Reply{Text: "Hello"}},
		"an empty call":              {stream(`{"choices":[{"delta":{"content":"Hello","tool_calls":[{"index":0,"id":"","function":null}]},"finish_reason":"stop"}]}`), agent.Reply{Text: "Hello"}},
		"counts with a decimal point": {
			stream(`{"choices":[{"delta":{"content":"Hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10.0,"completion_tokens":"2","total_tokens":-5,"prompt_tokens_details":null}}`),
			agent.Reply{Text: "Hello", Usage: agent.Usage{Input: 10, Output: 2}},
		},
	} {
		m, _ := client(t, openai.Config{Retry: provider.Retry{MaxAttempts: 1}}, c.answer)
		got, err := m.Complete(t.Context(), question(), nil)
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	for name, broken := range map[string]answer{
		"a call that is cut":     stream(delta(`{"id":"7","function":{"name":"note","arguments":"{\"n\":"}}`)),
		"nothing":                stream(`{"choices":[]}`),
		"no end":                 raw("data: "+hello, "data: "+lo),
		"half an event":          raw(`data: {"choices":[{"index":0,`, ""),
		"an error of two pieces": raw(`data: {"error":`, `data: {"message":"Overloaded"}}`, ""),
	} {
		m, _ := client(t, openai.Config{Retry: provider.Retry{MaxAttempts: 1}}, broken)
		var failure *agent.ModelError
		if got, err := m.Complete(t.Context(), question(), nil); !errors.As(err, &failure) || failure.Kind != agent.KindUnavailable {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// The same tokens count the same over every form of the API: a gateway in front of Anthropic counts the cache
// beside the input (Portkey 1.15.2), Gemini and xAI count reasoning in the total alone.
func TestTheCacheIsInputOverEveryForm(t *testing.T) {
	want := agent.Usage{Input: 20_100, Cached: 20_000, Output: 5}
	for name, c := range map[string]struct {
		model, usage string
		want         agent.Usage
	}{
		"OpenAI":                       {"gpt-4.1", `{"prompt_tokens":20100,"completion_tokens":5,"total_tokens":20105,"prompt_tokens_details":{"cached_tokens":20000}}`, want},
		"Portkey":                      {"house-model", `{"prompt_tokens":100,"completion_tokens":5,"total_tokens":20105,"prompt_tokens_details":{"cached_tokens":20000}}`, want},
		"no total":                     {"house-model", `{"prompt_tokens":100,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":20000}}`, want},
		"Anthropic's fields":           {"house-model", `{"prompt_tokens":100,"completion_tokens":5,"total_tokens":20105,"cache_read_input_tokens":20000,"cache_creation_input_tokens":0}`, want},
		"a cache that is written":      {"house-model", `{"prompt_tokens":100,"completion_tokens":5,"total_tokens":20105,"cache_creation_input_tokens":20000}`, agent.Usage{Input: 20_100, CacheWritten: 20_000, Output: 5}},
		"written, and not said":        {"anthropic/claude-sonnet-5", `{"prompt_tokens":100,"completion_tokens":5,"total_tokens":20105}`, agent.Usage{Input: 20_100, Output: 5}},
		"LiteLLM":                      {"claude-sonnet-5", `{"prompt_tokens":20100,"completion_tokens":5,"total_tokens":20105,"cache_read_input_tokens":20000,"prompt_tokens_details":{"cached_tokens":20000}}`, want},
		"small cache beside the input": {"house-model", `{"prompt_tokens":1000,"completion_tokens":5,"total_tokens":1405,"prompt_tokens_details":{"cached_tokens":400}}`, agent.Usage{Input: 1400, Cached: 400, Output: 5}},
		"reasoning in the total alone": {"gemini-3-pro", `{"prompt_tokens":100,"completion_tokens":5,"total_tokens":405,"prompt_tokens_details":{"cached_tokens":64}}`, agent.Usage{Input: 100, Cached: 64, Output: 305}},
	} {
		m, _ := client(t, openai.Config{Model: c.model, Retry: provider.Retry{MaxAttempts: 1}}, stream(hello, stop, `{"choices":[],"usage":`+c.usage+`}`))
		if got, err := m.Complete(t.Context(), question(), nil); err != nil || got.Usage != c.want {
			t.Errorf("%s: %+v, want %+v, %v", name, got.Usage, c.want, err)
		}
	}
	text, _ := client(t, openai.Config{API: openai.APIResponses, Retry: provider.Retry{MaxAttempts: 1}},
		events(`{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":null},{"type":"message","content":"Hello"}]}}`))
	if got, err := text.Complete(t.Context(), question(), nil); err != nil || got.Text != "Hello" {
		t.Errorf("a text as content: %+v, %v", got, err)
	}
	m, _ := client(t, openai.Config{Model: "claude-sonnet-5", API: openai.APIResponses, Retry: provider.Retry{MaxAttempts: 1}},
		events(`{"type":"response.completed","response":{"status":"completed","output":[{"type":"function_call","call_id":7,"name":"note","arguments":{"n":1}}],"usage":{"input_tokens":100,"output_tokens":5,"total_tokens":20105,"input_tokens_details":{"cached_tokens":20000}}}}`))
	if got, err := m.Complete(t.Context(), question(), nil); err != nil || got.Usage != want || len(got.Calls) != 1 || got.Calls[0].Arguments != `{"n":1}` || got.Calls[0].ID != "7" {
		t.Errorf("Responses: %+v, %v", got, err)
	}
}

// Behind a gateway that counts in its own way, or ends calls without a finish reason, a conversation goes as without.
func TestAConversationBehindAnOddGateway(t *testing.T) {
	var want []agent.Usage
	for i, change := range []func(p *emulator.Profile){func(*emulator.Profile) {}, func(p *emulator.Profile) { p.CacheBesideInput = true }, func(p *emulator.Profile) { p.NoFinishReason = true }} {
		p, _ := emulator.ProfileByName("openai")
		p.Model = "claude-sonnet-5"
		change(&p)
		l, talk := newLive(t, p), newTalk(t)
		talk.turn.Prompt = strings.Repeat("You help kindly. ", 600)
		l.think = threeRounds
		talk.say(l.model(once), "go", ofThreeRounds)
		var got []agent.Usage
		for _, m := range talk.history {
			if m.Usage != nil {
				got = append(got, *m.Usage)
			}
		}
		if i == 0 {
			want = got
		}
		if diff := cmp.Diff(want, got); diff != "" || got[len(got)-1].Cached == 0 {
			t.Errorf("gateway %d (-want +got):\n%s", i, diff)
		}
	}
}
