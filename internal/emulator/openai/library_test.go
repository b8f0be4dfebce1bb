package openai_test

import (
	"context"
	_ "embed"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneclaw/internal/emulator/npmtest"
	"oneclaw/internal/emulator/openai"
)

const spoken = "Grüße — two\nlines, and more **words** than one piece takes."

// scripted are the answers to the questions by these names.
var scripted = openai.ResponderFunc(func(_ context.Context, req openai.Request) (openai.Reply, error) {
	calls := []openai.ToolCall{{ID: "one", Name: "a", Arguments: `{"text":"ä – long enough for pieces"}`}, {ID: "two", Name: "b", Arguments: "{}"}}
	return map[string]openai.Reply{
		"text":      {Text: spoken},
		"calls":     {Calls: calls},
		"both":      {Text: spoken, Calls: calls},
		"length":    {Text: spoken, Finish: "length"},
		"filter":    {Text: spoken, Finish: "content_filter"},
		"refused":   {Err: &openai.Error{Status: 400, Message: "No.", Code: "invalid_prompt"}},
		"limited":   openai.RateLimited(3),
		"failed":    openai.Failed(503),
		"broken":    {Text: spoken, End: openai.EndError, Deltas: 3},
		"by itself": {Text: spoken, End: openai.EndError, Deltas: 3, StreamError: &openai.Error{Message: "No.", Code: "invalid_prompt"}},
		"cut":       {Text: spoken, End: openai.EndCut, Deltas: 3},
	}[req.Messages[len(req.Messages)-1].Content], nil
})

// OpenAI's own library reads each answer and each error of the emulator as those of the service.
func TestOpenAIsLibraryReadsEachAnswer(t *testing.T) {
	t.Parallel()
	f := start(t, openai.Config{Responder: scripted, Key: "right"})
	calls := []npmtest.Call{{ID: "one", Name: "a", Arguments: `{"text":"ä – long enough for pieces"}`}, {ID: "two", Name: "b", Arguments: "{}"}}
	cases := []struct {
		name, chat, responses string // the stop, or the start of an error
		text                  string
		calls                 []npmtest.Call
		status                int
		code                  string
	}{
		{name: "text", chat: "stop", responses: "completed", text: spoken},
		{name: "calls", chat: "tool_calls", responses: "completed", calls: calls},
		{name: "both", chat: "tool_calls", responses: "completed", text: spoken, calls: calls},
		{name: "length", chat: "length", responses: "max_output_tokens", text: spoken},
		{name: "filter", chat: "content_filter", responses: "content_filter", text: spoken},
		{name: "refused", chat: "400 No.", responses: "400 No.", status: 400, code: "invalid_prompt"},
		{name: "limited", chat: "429 Rate limit", responses: "429 Rate limit", status: 429, code: "rate_limit_exceeded"},
		{name: "failed", chat: "503 The server", responses: "503 The server", status: 503, code: "server_error"},
		{name: "broken", chat: "The server had an error", responses: "The server had an error", code: "server_error"},
		{name: "by itself", chat: "No.", responses: "No.", code: "invalid_prompt"},
		{name: "cut", chat: "terminated", responses: "terminated"},
		{name: "another model", chat: "404 The model", responses: "404 The model", status: 404, code: "model_not_found"},
		{name: "another key", chat: "401 Incorrect", responses: "401 Incorrect", status: 401, code: "invalid_api_key"},
	}
	var asked []npmtest.Asked
	for _, c := range cases {
		for _, way := range [][2]string{{"chat", "whole"}, {"chat", "helper"}, {"responses", "whole"}, {"responses", "helper"}} {
			asked = append(asked, npmtest.Ask(way[0], way[1], f.url, openai.DefaultModel, c.name, c.calls != nil))
		}
	}
	for i, got := range npmtest.AskByLibraries(t, asked) {
		c, a := cases[i/4], asked[i]
		want := map[string]string{"chat": c.chat, "responses": c.responses}[a.API]
		if c.text == "" && c.calls == nil {
			if a.Way == "whole" && c.status == 0 {
				want = "Connection error." // without a stream the connection breaks
			}
			if !strings.HasPrefix(got.Error, want) || got.Status != c.status || a.Way == "helper" && got.Code != c.code || c.status != 0 && got.Request == "" {
				t.Errorf("%s of %s, %s: %+v", c.name, a.API, a.Way, got)
			}
			continue
		}
		shown := map[bool]string{true: c.text}[a.Way != "whole"]
		answer := npmtest.Answer{Text: c.text, Shown: shown, Calls: c.calls, Stop: want, Input: got.Input, Output: got.Output}
		if diff := cmp.Diff(answer, got); diff != "" || got.Input == 0 || got.Output == 0 {
			t.Errorf("%s of %s, %s (-want +got):\n%s", c.name, a.API, a.Way, diff)
		}
	}
}

// It reads the streams and errors of other services, too, as far as these keep to its API.
func TestOpenAIsLibraryReadsTheStreamsOfEachService(t *testing.T) {
	t.Parallel()
	// odd names what a service does differently: the helper takes parts of a content for a text, and a call without an
	// index for an error.
	odd := map[string]string{"mistral": "[object Object][object Object]" + spoken, "gemini": ""}
	var asked []npmtest.Asked
	profiles := openai.Profiles()
	for _, p := range profiles {
		p.ResponsesOnly = false
		f := start(t, openai.Config{Responder: scripted, Profile: p})
		for _, way := range [][2]string{{"helper", "both"}, {"events", "both"}, {"helper", "broken"}} {
			asked = append(asked, npmtest.Asked{API: "chat", Way: way[0], URL: f.url, Key: "any", Model: p.Model, Text: way[1], Tools: true})
		}
	}
	for i, got := range npmtest.AskByLibraries(t, asked) {
		name, a := profiles[i/3].Name, asked[i]
		want := spoken
		if text, isOdd := odd[name]; isOdd && a.Way == "helper" {
			want = text
		}
		whole := got.Error == "" && got.Text == want && len(got.Calls) == 2 && got.Calls[0].Arguments == `{"text":"ä – long enough for pieces"}` && got.Calls[1].Arguments == "{}"
		if failed := a.Text == "broken" || want == ""; failed && got.Error == "" || !failed && !whole {
			t.Errorf("%s of %s: %+v", a.Text, name, got)
		}
	}
}

//go:embed testdata/library.cjs
var libraryScript string

// The libraries of OpenAI and Google make the other calls that the emulator plays.
func TestLibrariesMakeTheOtherCalls(t *testing.T) {
	t.Parallel()
	p, _ := openai.ProfileByName("gemini")
	f, g := start(t, openai.Config{Key: "right", Transcript: "Well said."}), start(t, openai.Config{Profile: p, Key: "right"})
	npmtest.Run(t, libraryScript, map[string]any{"openai": f.url, "google": strings.TrimSuffix(g.url, "/v1beta/openai"), "model": p.Model, "speech": openai.Speech("Hello.")}, "openai", "@google/genai")
}
