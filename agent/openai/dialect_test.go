package openai_test

import (
	"encoding/json"
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

func TestBaseURLs(t *testing.T) {
	for _, tc := range []struct {
		dialect    openai.Dialect
		base, want string
	}{
		{"", "", "https://api.openai.com/v1"},
		{openai.DialectAnthropic, "", "https://api.anthropic.com/v1"},
		{openai.DialectAnthropic, "https://api.anthropic.com/", "https://api.anthropic.com/v1"},
		{"", "https://api.anthropic.com", "https://api.anthropic.com/v1"},
		{openai.DialectAnthropic, "https://gateway.test/anthropic", "https://gateway.test/anthropic"},
		{openai.DialectGemini, "", "https://generativelanguage.googleapis.com/v1beta/openai"},
		{openai.DialectGemini, "https://generativelanguage.googleapis.com/v1beta", "https://generativelanguage.googleapis.com/v1beta/openai"},
		{"", "https://generativelanguage.googleapis.com", "https://generativelanguage.googleapis.com/v1beta/openai"},
		{openai.DialectGemini, "https://generativelanguage.googleapis.com/v1beta/openai/", "https://generativelanguage.googleapis.com/v1beta/openai"},
	} {
		p := &playedServer{t: t, answers: []answer{stream(hello, stop)}}
		c, err := openai.New(openai.Config{Dialect: tc.dialect, BaseURL: tc.base, Model: "m", HTTPClient: &http.Client{Transport: p}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Complete(t.Context(), question(), nil); err != nil {
			t.Fatal(err)
		}
		if got := p.requests[0].URL.String(); got != tc.want+"/chat/completions" {
			t.Errorf("%+v: %s", tc, got)
		}
	}
	if _, err := openai.New(openai.Config{Model: "m", Dialect: "klingon"}); err == nil {
		t.Error("an unknown dialect: no error")
	}
}

// Gemini gives a signature with the first call of a reply and refuses the turn without
// it. A call that another model made gets the stand-in that Google documents.
func TestGeminiSignatures(t *testing.T) {
	const sign = `{"google":{"thought_signature":"c2lnbg=="}}`
	c, p := client(t, openai.Config{Model: "gemini-3-pro", Dialect: openai.DialectGemini},
		stream(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"tool_0","arguments":"{}"},"type":"function","extra_content":`+sign+`},{"index":1,"id":"b","type":"function","function":{"name":"tool_1","arguments":"{}"}}]}}]}`, stop),
		stream(hello, stop), stream(hello, stop))
	first, err := c.Complete(t.Context(), question(), nil)
	if err != nil || len(first.Calls) != 2 {
		t.Fatalf("%+v, %v", first, err)
	}
	history := func(reasoning string) []agent.Message {
		return append(question().Messages, agent.Message{Role: agent.RoleAssistant, Calls: first.Calls, Reasoning: reasoning},
			agent.Message{Role: agent.RoleTool, CallID: "a", Text: "1"}, agent.Message{Role: agent.RoleTool, CallID: "b", Text: "2"})
	}
	call := func(body string) (first, second string) {
		var got struct {
			Messages []struct {
				Calls []struct {
					Extra json.RawMessage `json:"extra_content"`
				} `json:"tool_calls"`
			} `json:"messages"`
		}
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatal(err)
		}
		return string(got.Messages[1].Calls[0].Extra), string(got.Messages[1].Calls[1].Extra)
	}
	if _, err := c.Complete(t.Context(), agent.Request{Messages: history(first.Reasoning)}, nil); err != nil {
		t.Fatal(err)
	}
	if a, b := call(p.bodies[1]); a != sign || b != "" {
		t.Errorf("signatures %q, %q", a, b)
	}
	if _, err := c.Complete(t.Context(), agent.Request{Messages: history("thoughts of another model")}, nil); err != nil {
		t.Fatal(err)
	}
	if a, _ := call(p.bodies[2]); !strings.Contains(a, "skip_thought_signature_validator") {
		t.Errorf("another's call has the signature %q", a)
	}
	for name, cfg := range map[string]openai.Config{
		"before the third": {Model: "gemini-2.5-flash", Dialect: openai.DialectGemini}, "another server": {Model: "gpt-5-mini"},
	} {
		if body := sent(t, cfg, agent.Request{Messages: history(first.Reasoning)}); strings.Contains(body, "extra_content") || strings.Contains(body, "c2lnbg") {
			t.Errorf("%s: %s", name, body)
		}
	}
}

func TestSchemas(t *testing.T) {
	const odd = `{"type":"object","additionalProperties":false,"properties":{` +
		`"a":{"type":["string","null"],"format":"uri","default":"x"},"n":{"type":"integer","enum":[1,2]},"c":{"const":"x"},` +
		`"l":{"type":"array","items":{}},"o":{"oneOf":[{"type":"string"},{"type":"object","properties":{"z":{}}}]},"e":{"type":"string","enum":["<a>","b"]}},` +
		`"required":["a"]}`
	const anything = `{"anyOf":[{"type":"string"},{"type":"number"},{"type":"boolean"},{"type":"object"}]}`
	for name, tc := range map[string]struct {
		cfg    openai.Config
		schema string
		want   string
	}{
		"gemini": {
			openai.Config{Dialect: openai.DialectGemini},
			strings.Replace(odd, `"required"`, `"$schema":"x","anyOf":[{"required":["a"]}],"required"`, 1),
			`{"properties":{"a":{"nullable":true,"type":"string"},"c":{"enum":["x"],"type":"string"},` +
				`"e":{"enum":["<a>","b"],"type":"string"},"l":{"items":` + anything + `,"type":"array"},"n":{"description":"One of 1,2.","type":"integer"},` +
				`"o":{"anyOf":[{"type":"string"},{"properties":{"z":` + anything + `},"type":"object"}]}},"required":["a"],"type":"object"}`,
		},
		"anthropic":            {openai.Config{Dialect: openai.DialectAnthropic}, `{"type":"object","oneOf":[],"properties":{"a":{"anyOf":[{"type":"null"}]}}}`, `{"properties":{"a":{"anyOf":[{"type":"null"}]}},"type":"object"}`},
		"anthropic, plain":     {openai.Config{Dialect: openai.DialectAnthropic}, `{"type":"object","properties":{}}`, `{"type":"object","properties":{}}`},
		"openai takes it all":  {openai.Config{}, odd, odd},
		"gemini, no parameter": {openai.Config{Dialect: openai.DialectGemini}, `{"type":"object","properties":{}}`, `{"type":"object","properties":{}}`},
		"gemini, a reference to a definition that contains itself": {
			openai.Config{Model: "google/gemini-3-pro"},
			`{"type":"object","properties":{"issue":{"$ref":"#/$defs/Issue","description":"D"},"both":{"allOf":[{"$ref":"#/$defs/Label"},{"properties":{"n":{"type":["string","number"]}}}]}},` +
				`"$defs":{"Issue":{"type":"object","properties":{"labels":{"type":"array","items":{"$ref":"#/$defs/Label"}},"parent":{"anyOf":[{"$ref":"#/$defs/Issue"},{"type":"null"}]}},"required":["labels"]},` +
				`"Label":{"type":"object","properties":{"name":{"type":"string","enum":["bug","",null]}}}}}`,
			`{"properties":{"both":{"properties":{"n":{"anyOf":[{"type":"string"},{"type":"number"}]},"name":{"enum":["bug"],"type":"string"}},"type":"object"},` +
				`"issue":{"description":"D","properties":{"labels":{"items":` + label + `,"type":"array"},"parent":{"nullable":true,"properties":{"labels":{"items":` + label + `,"type":"array"},` +
				`"parent":{"nullable":true,"properties":{"labels":{"items":` + label + `,"type":"array"},"parent":{"nullable":true,"type":"object"}},"required":["labels"],"type":"object"}},"required":["labels"],"type":"object"}},` +
				`"required":["labels"],"type":"object"}},"type":"object"}`,
		},
		"gemini, what each of two schemas requires": {
			openai.Config{Model: "gemini-3-pro"},
			`{"type":"object","properties":{"a":{"allOf":[{"type":"object","properties":{"x":{"type":"string"}},"required":["x"]},{"properties":{"y":{"type":"string"}},"required":["y"]}]}}}`,
			`{"properties":{"a":{"properties":{"x":{"type":"string"},"y":{"type":"string"}},"required":["y","x"],"type":"object"}},"type":"object"}`,
		},
		"gemini, a pair": {
			openai.Config{Model: "gemini-3-pro"},
			`{"type":"object","properties":{"p":{"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}],"minItems":2},"big":{"type":"integer","maximum":725653563933458433}}}`,
			`{"properties":{"big":{"maximum":725653563933458433,"type":"integer"},"p":{"items":{"anyOf":[{"type":"string"},{"type":"integer"}]},"minItems":2,"type":"array"}},"type":"object"}`,
		},
		"gemini, null as OpenAPI 3.0 writes it": {
			openai.Config{Model: "gemini-3-pro"},
			`{"type":"object","properties":{"s":{"type":"string","nullable":true,"description":"D"},"e":{"type":"string","nullable":true,"enum":["x",null]},"c":{"nullable":true,"oneOf":[{"type":"string"},{"type":"integer"}]}}}`,
			`{"properties":{"c":{"anyOf":[{"nullable":true,"type":"string"},{"nullable":true,"type":"integer"}]},"e":{"enum":["x"],"nullable":true,"type":"string"},"s":{"description":"D","nullable":true,"type":"string"}},"type":"object"}`,
		},
		"kimi, null as OpenAPI 3.0 writes it, and patterns": {
			openai.Config{Model: "kimi-k2.6"},
			`{"type":"object","properties":{"s":{"type":"string","nullable":true},"h":{"type":"object","patternProperties":{"^x-":{"type":"string"}},"additionalProperties":false}}}`,
			`{"properties":{"h":{"type":"object"},"s":{"anyOf":[{"type":"string"},{"type":"null"}]}},"type":"object"}`,
		},
		"kimi, no type": {
			openai.Config{Model: "kimi-k2.6"},
			`{"type":"object","properties":{"mode":{"enum":["a","b"]},"u":{"type":"string","anyOf":[{"minLength":1},{"enum":["x"]}]}},"required":["mode","gone"]}`,
			`{"properties":{"mode":{"enum":["a","b"],"type":"string"},"u":{"anyOf":[{"minLength":1,"type":"string"},{"enum":["x"],"type":"string"}]}},"required":["mode"],"type":"object"}`,
		},
		"claude, draft 4 and the names of Twilio": {
			openai.Config{Model: "anthropic/claude-sonnet-5"},
			`{"type":"object","properties":{"n":{"type":"number","minimum":0,"exclusiveMinimum":true},"StartTime<":{"type":"string"},"StartTime_":{"type":"string"},"t":{"type":"array","items":[{"type":"string"},{"type":"int"}]}},"required":["StartTime<","StartTime<"]}`,
			`{"properties":{"StartTime_":{"type":"string"},"StartTime__2":{"description":"(StartTime<)","type":"string"},"n":{"exclusiveMinimum":0,"type":"number"},"t":{"items":{},"prefixItems":[{"type":"string"},{"type":"integer"}],"type":"array"}},"required":["StartTime__2"],"type":"object"}`,
		},
	} {
		body := sent(t, tc.cfg, agent.Request{
			Messages: question().Messages, Tools: []toolgroups.Tool{{Name: "t", Description: "d", Parameters: json.RawMessage(tc.schema)}},
		})
		want := `[{"type":"function","function":{"name":"t","description":"d","parameters":` + tc.want + `}}]`
		if diff := cmp.Diff(want, field(t, body, "tools")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// label is what Gemini is shown of a label in [TestSchemas].
const label = `{"properties":{"name":{"enum":["bug"],"type":"string"}},"type":"object"}`

func TestListModels(t *testing.T) {
	list := func(dialect openai.Dialect, base string, a answer) ([]openai.ModelInfo, *http.Request, error) {
		p := &listing{answer: a}
		got, err := openai.ListModels(t.Context(), openai.Config{Dialect: dialect, BaseURL: base, APIKey: key, HTTPClient: &http.Client{Transport: p}})
		return got, p.request, err
	}
	got, req, err := list("", "http://model.test/v1", respond(200, "application/json",
		`{"data":[{"id":"b","context_length":1000.0},{"id":"a","name":"A","max_model_len":5},{"id":""},{"id":"c","context_window":-1},{"id":"d","max_input_tokens":1e300}]}`))
	want := []openai.ModelInfo{{ID: "b", ContextTokens: 1000}, {ID: "a", Name: "A", ContextTokens: 5}, {ID: "c"}, {ID: "d", ContextTokens: 1e9}}
	for i := range want {
		if n := want[i].ContextTokens; n > 0 {
			want[i].Facts.ContextTokens = provider.Fact[int]{Value: n, From: "the provider"}
		}
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if req.URL.String() != "http://model.test/v1/models" || req.Header.Get("Authorization") != "Bearer "+key {
		t.Errorf("%s %v", req.URL, req.Header)
	}
	_, req, err = list(openai.DialectAnthropic, "", respond(200, "application/json", `{"data":[],"has_more":false}`))
	if err != nil || req.URL.String() != "https://api.anthropic.com/v1/models?limit=1000" || req.Header.Get("X-Api-Key") != key || req.Header.Get("Authorization") != "" {
		t.Errorf("%s %v, %v", req.URL, req.Header, err)
	}
	got, _, err = list(openai.DialectGemini, "", respond(200, "application/json", `{"object":"list","data":[{"id":"models/gemini-3-pro","display_name":"Gemini 3 Pro"}]}`))
	if err != nil || len(got) != 1 || got[0].ID != "gemini-3-pro" || got[0].Name != "Gemini 3 Pro" {
		t.Errorf("%+v, %v", got, err)
	}
	const private = "page of an internal server"
	for name, tc := range map[string]struct {
		answer answer
		kind   agent.Kind
	}{
		"wrong key": {refusal(401, "x", "Incorrect API key "+key), agent.KindAuth}, "no such page": {respond(404, "text/html", private), agent.KindRejected},
		"no list": {respond(200, "text/html", private), agent.KindUnavailable}, "other JSON": {respond(200, "application/json", `{"secret":"`+private+`"}`), agent.KindUnavailable},
		"down": {func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF }, agent.KindUnavailable},
	} {
		_, _, err := list("", "http://model.test/v1", tc.answer)
		if f := kindOf(t, err); f.Kind != tc.kind || strings.Contains(err.Error(), private) || strings.Contains(err.Error(), "model.test") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := list("", "nowhere", nil); err == nil {
		t.Error("a wrong address: no error")
	}
}

// listing answers a request without a body.
type listing struct {
	answer  answer
	request *http.Request
}

func (l *listing) RoundTrip(req *http.Request) (*http.Response, error) {
	l.request = req
	return l.answer(req)
}
