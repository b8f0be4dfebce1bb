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

// post sends a raw body and returns the status and the error object.
func (f *fixture) post(body string) (int, client.APIError) {
	f.t.Helper()
	req, err := http.NewRequestWithContext(f.t.Context(), http.MethodPost, f.url+"/chat/completions", strings.NewReader(body))
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
	var envelope struct {
		Error client.APIError `json:"error"`
	}
	if resp.StatusCode != http.StatusOK {
		if err := json.Unmarshal(data, &envelope); err != nil {
			f.t.Fatalf("%v in %s", err, data)
		}
	}
	return resp.StatusCode, envelope.Error
}

const (
	user  = `{"role":"user","content":"hi"}`
	calls = `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"x","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"x","arguments":"{}"}}]}`
	resA  = `{"role":"tool","tool_call_id":"a","content":"1"}`
	resB  = `{"role":"tool","tool_call_id":"b","content":"2"}`
)

func TestMessagesAreChecked(t *testing.T) {
	f := start(t, openai.Config{})
	tests := []struct {
		name, messages string
		want           string // part of the message; empty where it is accepted
	}{
		{"plain", user, ""},
		{"parts", `{"role":"user","content":[{"type":"text","text":"hi"}]}`, ""},
		{"round", user + "," + calls + "," + resB + "," + resA, ""},
		{"two rounds with the same ids", user + "," + calls + "," + resA + "," + resB + "," + calls + "," + resA + "," + resB, ""},
		{"none", "", "empty array"},
		{"role", `{"role":"boss","content":"x"}`, "Invalid value: 'boss'"},
		{"null user", `{"role":"user","content":null}`, "expected a string, got null"},
		{"null assistant", user + `,{"role":"assistant","content":null}`, "expected a string, got null"},
		{"result without call", user + "," + resA, "must be a response to a preceeding message"},                     //nolint:misspell // the service's own wording
		{"result twice", user + "," + calls + "," + resA + "," + resA, "must be a response to a preceeding message"}, //nolint:misspell // the service's own wording
		{"result of an older round", user + "," + calls + "," + resA + "," + resB + "," + user + "," + resA, "must be a response"},
		{"result missing at the end", user + "," + calls + "," + resA, "did not have response messages: b"},
		{"result missing before user", user + "," + calls + "," + resA + "," + user, "did not have response messages: b"},
		{"no call id", user + `,{"role":"tool","content":"x"}`, "must have a 'tool_call_id'"},
		{"same id", user + "," + strings.ReplaceAll(calls, `"b"`, `"a"`), "Duplicate value for 'tool_call_id' of 'a'"},
		{"bad call name", user + "," + strings.ReplaceAll(calls, `"x"`, `"a b"`), "does not match pattern"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			status, e := f.post(`{"model":"emulator","messages":[` + tt.messages + `]}`)
			switch {
			case tt.want == "" && status != 200:
				t.Errorf("refused: %s", e.Message)
			case tt.want != "" && (status != 400 || !strings.Contains(e.Message, tt.want) || e.Type != "invalid_request_error"):
				t.Errorf("got %d %q (%s), want %q", status, e.Message, e.Type, tt.want)
			}
		})
	}
}

func tool(name, schema string) string {
	return fmt.Sprintf(`{"type":"function","function":{"name":%q,"parameters":%s}}`, name, schema)
}

func TestToolsAreChecked(t *testing.T) {
	f := start(t, openai.Config{})
	object := `{"type":"object","properties":{}}`
	many := func(n int) string {
		list := make([]string, n)
		for i := range list {
			list[i] = tool(fmt.Sprintf("t%d", i), object)
		}
		return strings.Join(list, ",")
	}
	tests := []struct{ name, tools, want, code string }{
		{"128", many(128), "", ""},
		{"items", tool("x", `{"type":"object","properties":{"l":{"type":"array","items":{"type":"string"}}}}`), "", ""},
		{"129", many(129), "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 129 instead.", "array_above_max_length"},
		{"empty", "", "empty array", "empty_array"},
		{"twice", tool("x", object) + "," + tool("x", object), "occurs twice", "invalid_value"},
		{"name", tool("a.b", object), "does not match pattern", "invalid_value"},
		{"long name", tool(strings.Repeat("x", 65), object), "maximum length 64", "string_above_max_length"},
		{"not an object", tool("x", `{"type":"array"}`), `got 'type: "array"'`, "invalid_function_parameters"},
		{"no type", tool("x", `{}`), "type", "invalid_function_parameters"},
		{
			"no items", tool("x", `{"type":"object","properties":{"o":{"type":"object","properties":{"l":{"type":"array"}}}}}`),
			"Invalid schema for function 'x': In context=('properties', 'o', 'properties', 'l'), array schema missing items.", "invalid_function_parameters",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			status, e := f.post(`{"model":"emulator","messages":[` + user + `],"tools":[` + tt.tools + `]}`)
			switch {
			case tt.want == "" && status != 200:
				t.Errorf("refused: %s", e.Message)
			case tt.want != "" && (status != 400 || !strings.Contains(e.Message, tt.want) || e.Code != tt.code):
				t.Errorf("got %d %q (%v)", status, e.Message, e.Code)
			}
		})
	}
}

func TestOtherRefusals(t *testing.T) {
	t.Parallel()
	f := start(t, openai.Config{Context: 1000, MaxBody: 10_000})
	for _, tt := range []struct {
		body   string
		status int
		want   string
	}{
		{`{`, 400, "could not parse the JSON body"},
		{`{"messages":[` + user + `]}`, 400, "must provide a model"},
		{`{"model":"gpt-9","messages":[` + user + `]}`, 404, "The model `gpt-9` does not exist"},
		{`{"model":"emulator"}`, 400, "Missing required parameter: 'messages'"},
		{`{"model":"emulator","stream_options":{"include_usage":true},"messages":[` + user + `]}`, 400, "only allowed when 'stream' is enabled"},
		{`{"model":"emulator","messages":[{"role":"user","content":"` + strings.Repeat("x", 5000) + `"}]}`, 400, "maximum context length is 1000"},
		{strings.Repeat("x", 10_001), 413, "too large"},
	} {
		if status, e := f.post(tt.body); status != tt.status || !strings.Contains(e.Message, tt.want) {
			t.Errorf("got %d %q, want %d %q", status, e.Message, tt.status, tt.want)
		}
	}
}

func TestKeyAndModels(t *testing.T) {
	f := start(t, openai.Config{Key: "sk-right", Models: []string{"a", "b"}})
	_, err := f.client.ListModels(t.Context())
	var e *client.APIError
	if !errors.As(err, &e) || e.HTTPStatusCode != 401 || e.Code != "invalid_api_key" {
		t.Fatalf("got %v", err)
	}
	if strings.Contains(err.Error(), "sk-") {
		t.Error("the key is repeated")
	}
	conf := client.DefaultConfig("sk-right")
	conf.BaseURL, conf.HTTPClient = f.url, f.http
	list, err := client.NewClientWithConfig(conf).ListModels(t.Context())
	if err != nil || len(list.Models) != 2 || list.Models[1].ID != "b" {
		t.Fatalf("got %+v %v", list, err)
	}
}

func TestRecords(t *testing.T) {
	f := start(t, openai.Config{MaxRequests: 2})
	for _, text := range []string{"one", "two", "three"} {
		if _, err := f.client.CreateChatCompletion(t.Context(), ask(text)); err != nil {
			t.Fatal(err)
		}
	}
	list := f.Requests()
	if len(list) != 2 || list[1].Messages[0].Content != "three" || list[1].Seq != 3 || !list[1].HasKey || f.Count() != 3 {
		t.Errorf("got %+v", list)
	}
}

func TestCacheIsTheCommonPrefix(t *testing.T) {
	f := start(t, openai.Config{Responder: openai.ResponderFunc(say("ok"))})
	long := strings.Repeat("The same words at the beginning. ", 400)
	cached := func(key, tools, system, text string) int {
		req := ask(text)
		req.User = key
		req.Messages = append([]client.ChatCompletionMessage{{Role: "system", Content: system}}, req.Messages...)
		if tools != "" {
			req.Tools = []client.Tool{{Type: "function", Function: &client.FunctionDefinition{Name: tools, Parameters: json.RawMessage(`{"type":"object"}`)}}}
		}
		resp, err := f.client.CreateChatCompletion(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		if resp.Usage.PromptTokensDetails == nil {
			t.Fatal("no details of usage")
		}
		return resp.Usage.PromptTokensDetails.CachedTokens
	}
	if n := cached("k", "", long, "a"); n != 0 {
		t.Errorf("first request: %d", n)
	}
	want := len(`[{"role":"system","content":"`+long) / 4 / 128 * 128
	if n := cached("k", "", long, "b"); n != want {
		t.Errorf("same beginning: %d, want %d", n, want)
	}
	if n := cached("other", "", long, "b"); n != 0 {
		t.Errorf("other key: %d", n)
	}
	if n := cached("k", "x", long, "b"); n != 0 {
		t.Errorf("new tools come first, so all is lost: %d", n)
	}
	short := long[:4*1000]
	if n := cached("short", "", short, "a") + cached("short", "", short, "a"); n != 0 {
		t.Errorf("less than 1024 tokens are not cached: %d", n)
	}
}
