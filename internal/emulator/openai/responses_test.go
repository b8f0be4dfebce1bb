package openai_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	client "github.com/sashabaranov/go-openai"

	"oneclaw/internal/emulator/openai"
)

// respond sends a raw body to the Responses API and returns status and body.
func (f *fixture) respond(body string) (int, string) {
	f.t.Helper()
	req, err := http.NewRequestWithContext(f.t.Context(), http.MethodPost, f.url+"/responses", strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	resp, err := f.http.Do(req)
	if err != nil {
		f.t.Fatal(err)
	}
	data, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		f.t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

func TestResponsesInputIsChecked(t *testing.T) {
	const (
		call  = `{"type":"function_call","call_id":"a","name":"x","arguments":"{}"}`
		out   = `{"type":"function_call_output","call_id":"a","output":"1"}`
		think = `{"type":"reasoning","id":"rs_1","encrypted_content":"gAAAAemulated-reasoning","summary":[]}`
	)
	f := start(t, openai.Config{Responder: openai.NewScript(openai.Reply{Text: "1"}, openai.Reply{Text: "2"}, openai.Reply{Text: "3"}, openai.Reply{Text: "4"})})
	for _, tc := range []struct {
		name, input, tools string
		want               string // part of the error; empty where it is accepted
	}{
		{"text", `"hi"`, "", ""},
		{"message", `[` + user + `]`, "", ""},
		{"round", `[` + user + `,` + think + `,` + call + `,` + out + `]`, "", ""},
		{"tools", `"hi"`, `[{"type":"function","name":"x","parameters":{"type":"object","properties":{}},"strict":false}]`, ""},
		{"strict by default", `"hi"`, `[{"type":"function","name":"x","parameters":{"type":"object","properties":{}}}]`, "additionalProperties"},
		{"nested tools", `"hi"`, `[{"type":"function","function":{"name":"x"}}]`, "tools[0].name"},
		{"bad schema", `"hi"`, `[{"type":"function","name":"x","strict":false,"parameters":{"type":"array"}}]`, "Invalid schema"},
		{"nothing", `[]`, "", "Invalid type"},
		{"unknown role", `[{"role":"tool","content":"x"}]`, "", "Supported values"},
		{"unknown item", `[{"type":"smoke"}]`, "", "Invalid value"},
		{"lost output", `[` + call + `]`, "", "No tool output found"},
		{"late output", `[` + call + `,` + user + `,` + out + `]`, "", "No tool output found"},
		{"lost call", `[` + out + `]`, "", "No tool call found"},
		{"call without arguments", `[{"type":"function_call","call_id":"a","name":"x"}]`, "", "Missing required parameter"},
		{"same call twice", `[` + call + `,` + call + `]`, "", "Duplicate"},
		{"reasoning alone", `[` + think + `]`, "", "without its required following item"},
		{"reasoning before a user", `[` + think + `,` + user + `]`, "", "without its required following item"},
		{"reasoning not stored", `[` + strings.Replace(think, "gAAAAemulated-reasoning", "", 1) + `,` + call + `,` + out + `]`, "", "not found"},
		{"forged reasoning", `[` + strings.Replace(think, "gAAAA", "gBBBB", 1) + `,` + call + `,` + out + `]`, "", "could not be verified"},
	} {
		body := fmt.Sprintf(`{"model":"emulator","store":false,"input":%s`, tc.input)
		if tc.tools != "" {
			body += `,"tools":` + tc.tools
		}
		status, got := f.respond(body + "}")
		if accepted := status == http.StatusOK; accepted != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %d %s, want %q", tc.name, status, got, tc.want)
		}
	}
}

// The client library of the program reads what is sent.
func TestResponsesThroughTheLibrary(t *testing.T) {
	f := start(t, openai.Config{Responder: openai.NewScript(
		openai.Reply{Text: "one two three four five", Calls: []openai.ToolCall{{Name: "x", Arguments: `{"a":1}`}}},
		openai.Reply{Text: "cut", Finish: "length"}, openai.Reply{Text: "a b c d e f", End: openai.EndError, Deltas: 1},
	)})
	read := func() (text, last string, err error) {
		stream, err := f.client.CreateResponseStream(t.Context(), client.CreateResponseRequest{
			Model: openai.DefaultModel, Input: "hi", Include: []client.ResponseInclude{client.ResponseIncludeReasoningEncryptedContent},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { err = errors.Join(err, stream.Close()) }()
		for {
			e, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				return text, last, nil
			}
			if err != nil {
				return text, last, err
			}
			if e.Type == client.ResponseStreamEventOutputTextDelta {
				text += e.Delta
			}
			if last = string(e.Type); e.Response != nil && e.Type == client.ResponseStreamEventCompleted {
				output, err := json.Marshal(e.Response.Output)
				if err != nil || !strings.Contains(string(output), `"call_id":"call_1_0"`) || !strings.Contains(string(output), "encrypted_content") || e.Response.Usage.OutputTokens == 0 {
					t.Errorf("output %s, %+v, %v", output, e.Response.Usage, err)
				}
			}
		}
	}
	for _, want := range [][2]string{{"one two three four five", "response.completed"}, {"cut", "response.incomplete"}, {"a b c d ", "error"}} {
		if text, last, err := read(); err != nil || text != want[0] || last != want[1] {
			t.Errorf("%q, %s, %v; want %v", text, last, err, want)
		}
	}
}
