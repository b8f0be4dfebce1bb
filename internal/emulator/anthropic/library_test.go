package anthropic_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneclaw/internal/emulator/anthropic"
	"oneclaw/internal/emulator/npmtest"
	"oneclaw/internal/emulator/openai"
)

const spoken = "Grüße — two\nlines, and more **words** than one piece takes."

// Anthropic's own library reads each answer and each error of the emulator as those of the service.
func TestAnthropicsLibraryReadsEachAnswer(t *testing.T) {
	t.Parallel()
	_, base := listen(t, anthropic.Config{Key: "right", AlwaysThink: true, Responder: openai.ResponderFunc(func(_ context.Context, req openai.Request) (openai.Reply, error) {
		calls := []openai.ToolCall{{ID: "one", Name: "a", Arguments: `{"text":"ä – long enough for pieces"}`}, {ID: "two", Name: "b", Arguments: "{}"}}
		return map[string]openai.Reply{
			"text":    {Text: spoken},
			"calls":   {Calls: calls},
			"both":    {Text: spoken, Calls: calls},
			"length":  {Text: spoken, Finish: "max_tokens"},
			"refusal": {Text: spoken, Finish: "refusal"},
			"refused": {Err: &openai.Error{Status: 400, Message: "No."}},
			"limited": openai.RateLimited(3),
			"failed":  openai.Failed(529),
			"broken":  {Text: spoken, End: openai.EndError, Deltas: 3},
			"cut":     {Text: spoken, End: openai.EndCut, Deltas: 3},
		}[req.Messages[len(req.Messages)-1].Content], nil
	})})
	calls := []npmtest.Call{{ID: "one", Name: "a", Arguments: `{"text":"ä – long enough for pieces"}`}, {ID: "two", Name: "b", Arguments: "{}"}}
	cases := []struct {
		name, stop string // or a part of the error
		text       string
		calls      []npmtest.Call
		status     int
		code       string
	}{
		{name: "text", stop: "end_turn", text: spoken},
		{name: "calls", stop: "tool_use", calls: calls},
		{name: "both", stop: "tool_use", text: spoken, calls: calls},
		{name: "length", stop: "max_tokens", text: spoken},
		{name: "refusal", stop: "refusal", text: spoken},
		{name: "refused", stop: "No.", status: 400, code: "invalid_request_error"},
		{name: "limited", stop: "Rate limit", status: 429, code: "rate_limit_error"},
		{name: "failed", stop: "The server", status: 529, code: "overloaded_error"},
		{name: "broken", stop: "Overloaded", code: "overloaded_error"},
		{name: "cut", stop: "terminated"},
		{name: "another model", stop: "model: other", status: 404, code: "not_found_error"},
		{name: "another key", stop: "invalid x-api-key", status: 401, code: "authentication_error"},
	}
	var asked []npmtest.Asked
	for _, c := range cases {
		for _, way := range []string{"whole", "helper"} {
			asked = append(asked, npmtest.Ask("messages", way, base, anthropic.DefaultModel, c.name, c.calls != nil))
		}
	}
	for i, got := range npmtest.AskByLibraries(t, asked) {
		c, a := cases[i/2], asked[i]
		if c.text == "" && c.calls == nil {
			if c.status == 0 && a.Way == "whole" {
				c.stop, c.code = "Connection error.", "" // without a stream the connection breaks
			}
			if !strings.Contains(got.Error, c.stop) || got.Status != c.status || got.Code != c.code || c.status != 0 && got.Request == "" {
				t.Errorf("%s, %s: %+v", c.name, a.Way, got)
			}
			continue
		}
		answer := npmtest.Answer{Text: c.text, Calls: c.calls, Stop: c.stop, Thinking: got.Thinking, Input: got.Input, Output: got.Output}
		if a.Way != "whole" {
			answer.Shown = c.text
		}
		thought, signature, _ := strings.Cut(got.Thinking, "Claude ")
		if diff := cmp.Diff(answer, got); diff != "" || got.Input == 0 || got.Output < 2 || !strings.HasPrefix(thought, "thought ") || signature == "" {
			t.Errorf("%s, %s (-want +got):\n%s\n%q", c.name, a.Way, diff, got.Thinking)
		}
	}
}

// The library finds the model, too.
func TestAnthropicsLibraryFindsTheModel(t *testing.T) {
	t.Parallel()
	const script = `
const { Anthropic } = require("@anthropic-ai/sdk");
const { baseURL, model } = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
const api = new Anthropic({ baseURL, apiKey: "any", maxRetries: 0 });
Promise.all([api.models.retrieve(model), api.models.list()]).then(([one, list]) => {
  process.stdout.write(String(one.id === model && one.max_input_tokens > 0 && list.data.length === 1 && list.data[0].id === model));
});`
	_, base := listen(t, anthropic.Config{})
	if got := npmtest.Run(t, script, map[string]string{"baseURL": base, "model": anthropic.DefaultModel}, "@anthropic-ai/sdk"); string(got) != "true" {
		t.Error("the model is not as the library has it")
	}
}
