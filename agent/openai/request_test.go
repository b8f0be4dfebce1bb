package openai_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneclaw/agent"
	"oneclaw/agent/openai"
	"oneclaw/agent/provider"
	"oneclaw/toolgroups"
)

// sent is the body of the request that a conversation makes.
func sent(t *testing.T, cfg openai.Config, req agent.Request) string {
	t.Helper()
	c, p := client(t, cfg, stream(hello, stop))
	if _, err := c.Complete(t.Context(), req, nil); err != nil {
		t.Fatal(err)
	}
	return p.bodies[0]
}

func field(t *testing.T, body, name string) string {
	t.Helper()
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(body), &fields); err != nil {
		t.Fatal(err)
	}
	return string(fields[name])
}

func TestMessages(t *testing.T) {
	req := agent.Request{System: "Help \"well\"\n<now> é \xff\x01", Messages: []agent.Message{
		{Role: agent.RoleSummary, Text: "We met."},
		{Role: agent.RoleUser, Text: "look", Sender: "Ann [admin]\n", Files: []toolgroups.File{{Path: "docs/a.pdf"}, {Path: "b.png"}}},
		{Role: agent.RoleUser, Sender: "Bob", Text: "me too"},
		{Role: agent.RoleAssistant, Text: "I read.", Reasoning: carriedBy("reasoning_content", "old"), Calls: []agent.Call{
			{ID: "1", Name: "read_file", Arguments: `{"path": "x"}`},
			{ID: "2", Name: "functions.read file", Arguments: ""},
			{ID: "3", Name: "", Arguments: `{"path":`},
		}},
		{Role: agent.RoleTool, CallID: "1", Status: agent.StatusOK, Text: "it says \"hi\""},
		{Role: agent.RoleTool, CallID: "2", Status: agent.StatusOK},
		{Role: agent.RoleTool, CallID: "3", Status: agent.StatusError, Code: "validation_error", Text: "wrong"},
		{Role: agent.RoleAssistant, Text: "Done.", Final: true},
		{Role: agent.RoleUser, Files: []toolgroups.File{{Path: "c.txt"}}},
		{Role: agent.RoleAssistant, Reasoning: carriedBy("reasoning_content", "new"), Calls: []agent.Call{{ID: "4", Name: "read_file", Arguments: "{}"}}},
		{Role: agent.RoleTool, CallID: "4", Text: "c"},
	}}
	var got bytes.Buffer
	if err := json.Indent(&got, []byte(field(t, sent(t, openai.Config{}, req), "messages")), "", " "); err != nil {
		t.Fatal(err)
	}
	want := `[
 {"role":"system","content":"Help \"well\"\n<now> é ` + "\uFFFD" + `\u0001"},
 {"role":"user","content":"[Summary of the conversation so far]\nWe met.\n\n[Ann admin] look\n[file: docs/a.pdf]\n[file: b.png]\n\n[Bob] me too"},
 {"role":"assistant","content":"I read.","tool_calls":[
  {"type":"function","id":"1","function":{"name":"read_file","arguments":"{\"path\": \"x\"}"}},
  {"type":"function","id":"2","function":{"name":"functions_read_file","arguments":"{}"}},
  {"type":"function","id":"3","function":{"name":"unknown","arguments":"{\"invalid_arguments\":\"{\\\"path\\\":\"}"}}]},
 {"role":"tool","tool_call_id":"1","content":"it says \"hi\""},
 {"role":"tool","tool_call_id":"2","content":"(empty)"},
 {"role":"tool","tool_call_id":"3","content":"wrong"},
 {"role":"assistant","content":"Done."},
 {"role":"user","content":"[file: c.txt]"},
 {"role":"assistant","tool_calls":[
  {"type":"function","id":"4","function":{"name":"read_file","arguments":"{}"}}],"reasoning_content":"new"},
 {"role":"tool","tool_call_id":"4","content":"c"}
]`
	if diff := cmp.Diff(indented(t, want), got.String()); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

func indented(t *testing.T, s string) string {
	t.Helper()
	var compact, out bytes.Buffer
	if err := json.Compact(&compact, []byte(s)); err != nil {
		t.Fatal(err)
	}
	if err := json.Indent(&out, compact.Bytes(), "", " "); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func tools(n int) []toolgroups.Tool {
	list := make([]toolgroups.Tool, n)
	for i := range list {
		list[i] = toolgroups.Tool{
			Name: fmt.Sprintf("tool_%d", i), Description: "Finds <b> & \"more\".",
			Parameters: json.RawMessage(`{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}}}}`),
		}
	}
	return list
}

// The tools array is that of toolgroups, byte for byte, and a longer list begins
// with the bytes of a shorter one.
func TestToolsAreByteStable(t *testing.T) {
	all := tools(40)
	c, p := client(t, openai.Config{}, stream(hello, stop), stream(hello, stop), stream(hello, stop))
	for _, n := range []int{13, 40, 40} {
		req := question()
		req.Tools = all[:n:n]
		if _, err := c.Complete(t.Context(), req, nil); err != nil {
			t.Fatal(err)
		}
	}
	for i, n := range []int{13, 40, 40} {
		want := `"tools":` + string(toolgroups.EncodeTools(all[:n])) + `,"messages":[`
		if !strings.Contains(p.bodies[i], want) {
			t.Errorf("request %d: %.200s", i, p.bodies[i])
		}
	}
	if short := strings.TrimSuffix(field(t, p.bodies[0], "tools"), "]"); !strings.HasPrefix(field(t, p.bodies[1], "tools"), short) {
		t.Error("the longer array does not begin with the shorter one")
	}
	if body := sent(t, openai.Config{}, question()); strings.Contains(body, "tools") {
		t.Errorf("no tools: %s", body)
	}
}

// A changed description is another array.
func TestChangedToolIsSent(t *testing.T) {
	c, p := client(t, openai.Config{})
	for i := range 40 {
		p.answers = append(p.answers, stream(hello, stop))
		req := question()
		req.Tools = tools(2)
		req.Tools[1].Description = fmt.Sprint("version ", i%20)
		if _, err := c.Complete(t.Context(), req, nil); err != nil {
			t.Fatal(err)
		}
		if got, want := field(t, p.bodies[i], "tools"), string(toolgroups.EncodeTools(req.Tools)); got != want {
			t.Errorf("request %d: %s", i, got)
		}
	}
}

// A client says how many tools its server takes, for the array to be
// made to that length.
func TestTheLimitIsKnown(t *testing.T) {
	c, _ := client(t, openai.Config{})
	if got := c.Profile().MaxTools; got != 128 {
		t.Errorf("MaxTools is %d", got)
	}
}

func TestPromptCacheKey(t *testing.T) {
	req := question()
	req.CacheKey = "telegram:42/" + strings.Repeat("x", 100)
	if body := sent(t, openai.Config{}, req); strings.Contains(body, "prompt_cache_key") {
		t.Errorf("another server is sent %s", body)
	}
	for _, host := range []string{"https://api.openai.com/v1", "https://eu.api.openai.com/v1"} {
		got := field(t, sent(t, openai.Config{BaseURL: host}, req), "prompt_cache_key")
		if len(got) != 34 || strings.Contains(got, "telegram") {
			t.Errorf("%s: key %s", host, got)
		}
	}
	if body := sent(t, openai.Config{BaseURL: "https://api.openai.com.evil.test/v1"}, req); strings.Contains(body, "prompt_cache_key") {
		t.Errorf("a server with a like name is sent %s", body)
	}
}

// Who caches only on demand is asked to; nobody else is sent a field that may be unknown.
func TestCacheOnDemand(t *testing.T) {
	router := "https://openrouter.ai/api/v1"
	for _, tc := range []struct {
		cfg  openai.Config
		want bool
	}{
		{openai.Config{BaseURL: router, Model: "anthropic/claude-sonnet-5"}, true},
		{openai.Config{BaseURL: "https://eu.openrouter.ai/api/v1", Model: "Anthropic/claude-haiku-4.5"}, true},
		{openai.Config{BaseURL: router, Model: "openai/gpt-5-mini"}, false},
		{openai.Config{BaseURL: "https://notopenrouter.ai/v1", Model: "anthropic/claude-sonnet-5"}, false},
		{openai.Config{BaseURL: "https://api.anthropic.com/v1", Model: "claude-sonnet-5"}, false},
		{openai.Config{BaseURL: "http://127.0.0.1:1/v1", Model: "anthropic/claude-sonnet-5"}, false},
	} {
		body := sent(t, tc.cfg, question())
		if got := strings.Contains(body, `"cache_control":{"type":"ephemeral"}`); got != tc.want {
			t.Errorf("%s at %s: %s", tc.cfg.Model, tc.cfg.BaseURL, body)
		}
	}
}

// FuzzMessages: whatever the texts, the request is JSON and says what they said.
func FuzzMessages(f *testing.F) {
	f.Add("Hi", "name", `{"a":1}`, "result")
	f.Add("\xff\u2028\"\\\x00\t", "a b\xff", `{"a":`, "")
	f.Fuzz(func(t *testing.T, text, name, arguments, result string) {
		body := sent(t, openai.Config{}, agent.Request{Messages: []agent.Message{
			{Role: agent.RoleUser, Text: "x" + text},
			{Role: agent.RoleAssistant, Calls: []agent.Call{{ID: "1", Name: name, Arguments: arguments}}},
			{Role: agent.RoleTool, CallID: "1", Text: "x" + result},
		}})
		var got struct {
			Messages []struct {
				Content   string
				ToolCalls []struct {
					Function struct{ Name, Arguments string }
				} `json:"tool_calls"`
			}
		}
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatal(err)
		}
		same := func(what, sent, meant string) {
			// As runes: each invalid byte is one replacement character.
			if want := string([]rune(meant)); sent != want {
				t.Errorf("%s %q, want %q", what, sent, want)
			}
		}
		same("text", got.Messages[0].Content, "x"+text)
		same("result", got.Messages[2].Content, "x"+result)
		call := got.Messages[1].ToolCalls[0].Function
		var object map[string]any
		if err := json.Unmarshal([]byte(call.Arguments), &object); err != nil {
			t.Errorf("arguments %q: %v", call.Arguments, err)
		}
		if call.Name == "" || len(call.Name) > 64 || strings.ContainsFunc(call.Name, func(r rune) bool {
			return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-", r)
		}) {
			t.Errorf("name %q", call.Name)
		}
	})
}

// FuzzStream: no reply, however broken, does more than fail.
func FuzzStream(f *testing.F) {
	f.Add([]byte("data: " + hello + "\n\ndata: " + stop + "\n\ndata: [DONE]\n"))
	f.Add([]byte(`data: {"choices":[{"delta":{"tool_calls":[{"index":-1,"function":{"arguments":"x"}}]},"finish_reason":"stop"}]}`))
	f.Add([]byte(`data: {"error":"x"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, kind := range []string{"text/event-stream", "application/json"} {
			c, _ := client(t, openai.Config{Retry: provider.Retry{MaxAttempts: 1}}, respond(200, kind, string(body)))
			if _, err := c.Complete(t.Context(), question(), func(agent.Delta) {}); err != nil {
				_ = kindOf(t, err)
			}
		}
	})
}

// FuzzMediaAnswers: whatever a server sends for a picture, a recording, a transcript or embeddings, it is taken
// as it is or refused, and costs nothing less than nothing.
func FuzzMediaAnswers(f *testing.F) {
	f.Add([]byte(`{"data":[{"b64_json":"iVBORw0KGgo="}],"usage":{"input_tokens":-1,"output_tokens":2}}`))
	f.Add([]byte(`{"data":[{"b64_json":"data:image/png;base64,iVBORw0KGgo="}]}`))
	f.Add([]byte(`{"data":[{"b64_json":"data:"},null]}`))
	f.Add([]byte("OggS\x00\x02" + strings.Repeat("\x00", 22) + "OpusHead"))
	f.Add([]byte("\xff\xfb\x90\x00"))
	f.Add([]byte(`{"text":"Hi","usage":{"seconds":1e300,"input_tokens":-9}}`))
	f.Add([]byte(`{"data":[{"index":0,"embedding":[0.5]},{"index":-1,"embedding":[]}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		c, err := openai.New(openai.Config{
			Model: "m", BaseURL: "http://model.test/v1", APIKey: key, HTTPClient: &http.Client{Transport: canned(body)}, Retry: provider.Retry{MaxAttempts: 1},
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, source := range [][]byte{nil, []byte("\x89PNG\r\n\x1a\n")} {
			if _, usage, err := c.CreateImage(t.Context(), openai.ImageRequest{Prompt: "x", Size: "1024x1024", Source: source}); err != nil {
				_ = kindOf(t, err)
			} else if usage.Input < 0 || usage.Output < 0 {
				t.Errorf("a picture costs %+v", usage)
			}
		}
		for _, format := range []string{"opus", "mp3"} {
			if sound, err := c.CreateSpeech(t.Context(), "x", "alloy", format); err != nil {
				_ = kindOf(t, err)
			} else if string(sound) != string(body) || len(sound) == 0 {
				t.Errorf("%s is %q", format, sound)
			}
		}
		if heard, err := c.Transcribe(t.Context(), "a.ogg", []byte("x")); err != nil {
			_ = kindOf(t, err)
		} else if u := heard.Usage; u.Input < 0 || u.Output < 0 || u.Seconds < 0 || u.Seconds > 86_400 {
			t.Errorf("a recording costs %+v", u)
		}
		if vectors, err := c.Embed(t.Context(), []string{"x"}); err != nil {
			_ = kindOf(t, err)
		} else if len(vectors) != 1 || len(vectors[0]) == 0 {
			t.Errorf("embedded as %v", vectors)
		}
	})
}

type canned string

func (c canned) RoundTrip(req *http.Request) (*http.Response, error) {
	if _, err := io.Copy(io.Discard, req.Body); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(c))), Request: req}, nil
}

func BenchmarkComplete(b *testing.B) {
	for _, n := range []int{100, 2000} {
		c, err := openai.New(openai.Config{Model: "m", BaseURL: "http://model.test/v1", HTTPClient: &http.Client{
			Transport: canned("data: " + hello + "\n\ndata: " + stop + "\n\ndata: [DONE]\n\n"),
		}})
		if err != nil {
			b.Fatal(err)
		}
		req := question()
		req.Tools = tools(13)
		for i := range n {
			req.Messages = append(req.Messages,
				agent.Message{Role: agent.RoleUser, Text: fmt.Sprintf("%d What is the weather like where you are?", i)},
				agent.Message{Role: agent.RoleAssistant, Text: "I have no windows here, but I am told that it rains.\n\nTake a coat."})
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Complete(context.Background(), req, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestTemperatureIsSentToModelsThatTakeOne(t *testing.T) {
	warm := 0.2
	for model, sent := range map[string]bool{"gpt-4o": true, "llama-3": true, "gpt-5-mini": false, "o3": false} {
		reply := respond(200, "text/event-stream", "data: "+hello+"\n\ndata: "+stop+"\n\ndata: [DONE]\n")
		c, p := client(t, openai.Config{Model: model, Retry: provider.Retry{MaxAttempts: 1}}, reply)
		req := question()
		req.Temperature = &warm
		if _, err := c.Complete(t.Context(), req, nil); err != nil {
			t.Fatalf("%s: %v", model, err)
		}
		if got := strings.Contains(p.bodies[0], `"temperature":0.2`); got != sent {
			t.Errorf("%s is sent a temperature: %v, want %v", model, got, sent)
		}
	}
}
