package openai_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"oneclaw/agent"
	"oneclaw/agent/openai"
	"oneclaw/agent/provider"
)

// The provider bills what it has generated, also if it was not shown, broke off, or was withheld: the usage
// counts it with or without a reply. A request that was refused costs nothing.
func TestFailedAttemptsAreCounted(t *testing.T) {
	const input = 26 // of the question, as it is estimated
	long := strings.Repeat("x", 400)
	broken := func(delta string) answer {
		return respond(200, "text/event-stream", `data: {"choices":[{"index":0,"delta":`+delta+"}]}\n\n")
	}
	chat, responses := openai.Config{}, openai.Config{Model: "gpt-6-sol"}
	for name, c := range map[string]struct {
		cfg     openai.Config
		answers []answer
		want    agent.Usage
		fails   bool
	}{
		"thinking": {chat, []answer{broken(`{"reasoning_content":"` + long + `"}`)}, agent.Usage{Input: input, Output: 100}, true},
		"a call":   {chat, []answer{broken(`{"tool_calls":[{"index":0,"function":{"name":"abcd","arguments":"` + long + `"}}]}`)}, agent.Usage{Input: input, Output: 101}, true},
		"before the reply": {
			chat,
			[]answer{broken(`{"content":"` + long + `"}`), refusal(503, "", "Overloaded"), stream(hello, stop, usage)},
			agent.Usage{Input: input + 100, Cached: 64, Output: 107},
			false,
		},
		"before a reply without usage": {chat, []answer{broken(`{"content":"` + long + `"}`), stream(hello, stop)}, agent.Usage{Input: 2 * input, Output: 104}, false},
		"withheld":                     {chat, []answer{stream(`{"choices":[{"index":0,"delta":{},"finish_reason":"content_filter"}]}`, usage)}, agent.Usage{Input: 100, Cached: 64, Output: 7}, true},
		"refused":                      {chat, []answer{refusal(400, "", "no")}, agent.Usage{}, true},
		"nothing came":                 {chat, []answer{respond(200, "text/event-stream", "")}, agent.Usage{}, true},
		"over the Responses API":       {responses, []answer{events(`{"type":"response.reasoning_summary_text.delta","delta":"` + long + `"}`)}, agent.Usage{Input: input, Output: 100}, true},
		"failed": {
			responses,
			[]answer{events(created, textHel, `{"type":"response.failed","response":{"status":"failed","error":{"code":"bio_policy","message":"No"},`+spent+`}}`)},
			agent.Usage{Input: 100, Cached: 64, CacheWritten: 12, Output: 7},
			true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.cfg.Retry = provider.Retry{MaxAttempts: len(c.answers)}
				model, _ := client(t, c.cfg, c.answers...)
				req := question()
				req.ToolTokens = 20
				got, err := model.Complete(t.Context(), req, nil)
				if failure := (*agent.ModelError)(nil); errors.As(err, &failure) != c.fails || got.Usage != c.want {
					t.Errorf("%+v, want %+v, %v", got.Usage, c.want, err)
				}
			})
		})
	}
}
