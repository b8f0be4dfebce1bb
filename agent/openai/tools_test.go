package openai_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"oneclaw/agent"
	"oneclaw/agent/openai"
	"oneclaw/agent/provider"
	emulator "oneclaw/internal/emulator/openai"
	"oneclaw/toolgroups"
)

// oddSchemas are parameters as real servers describe them, each refused by some service (twilio-labs/mcp #56,
// kintone/mcp-server #547, kimi-code #1610, gemini-cli #13326).
var oddSchemas = map[string]string{
	"names of Twilio":        `{"type":"object","properties":{"StartTime<":{"type":"string"},"StartTime>":{"type":"string"},"StartTime":{"type":"string"}}}`,
	"names of OData":         `{"type":"object","properties":{"$filter":{"type":"string"},"o":{"type":"object","properties":{"a b":{"type":"array","items":{"type":"object","properties":{"ключ":{"type":"string"}},"required":["ключ"]}}}}},"required":["$filter"]}`,
	"draft 4":                `{"type":"object","properties":{"n":{"type":"number","minimum":1,"exclusiveMinimum":true},"b":{"type":"string","required":true}}}`,
	"a pair":                 `{"type":"object","properties":{"p":{"type":"array","items":[{"type":"number"},{"type":"number"}],"additionalItems":false}}}`,
	"a pair of 2020-12":      `{"type":"object","properties":{"p":{"type":"array","prefixItems":[{"type":"number"},{"type":"string"}]}}}`,
	"an array of anything":   `{"type":"object","properties":{"p":{"type":"array"},"q":{"type":"array","items":true}}}`,
	"no type":                `{"type":"object","properties":{"p":{"description":"x"},"q":{"enum":["a",null,""]},"r":true}}`,
	"required but undefined": `{"type":"object","properties":{"p":{"type":"object","required":["q"]}},"required":["p","gone","p"]}`,
	"pydantic":               `{"type":"object","properties":{"i":{"$ref":"#/$defs/Issue"},"o":{"anyOf":[{"$ref":"#/$defs/Issue"},{"type":"null"}],"default":null}},"$defs":{"Issue":{"type":"object","properties":{"sub":{"type":"array","items":{"$ref":"#/$defs/Issue"}}}}}}`,
	"a reference to nothing": `{"type":"object","properties":{"i":{"$ref":"#/$defs/Gone"},"e":{"$ref":"https://example.test/x.json"}}}`,
	"zod":                    `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"type":"object","properties":{"x":{"type":["string","number"]}}},"b":{"$ref":"#/properties/a"}}}`,
	"types of other worlds":  `{"type":"object","properties":{"a":{"type":"STRING"},"b":{"type":"date"},"c":{"type":["int","str"]},"d":{"type":"any"},"e":{"type":null}}}`,
	"keywords without sense": `{"type":"object","properties":{"a":{"type":"string","minLength":"3","maxLength":-1,"enum":[],"pattern":null,"description":7},"b":{"anyOf":[]},"c":7}}`,
	"a choice at the top":    `{"type":"object","properties":{"a":{"type":"string"}},"oneOf":[{"required":["a"]}]}`,
	"a choice with siblings": `{"type":"object","properties":{"a":{"type":"object","properties":{"k":{"type":"string"}},"anyOf":[{"required":["k"]},{"properties":{"l":{"type":"integer","enum":[1,2]}}}]}}}`,
	"allOf":                  `{"type":"object","properties":{"a":{"description":"d","allOf":[{"type":"object","properties":{"x":{"type":"string"}}},{"properties":{"y":{"type":"boolean"}},"required":["x"]}]}}}`,
	"choices of both kinds":  `{"type":"object","properties":{"a":{"allOf":[{"description":"d"}],"anyOf":[{"type":"string"}],"oneOf":[{"type":"integer"}]}}}`,
}

// A schema that a service would refuse is repaired for its family, at every depth, whatever names the server
// and the model have, and always in the same way.
func TestSchemasThatServersRefuseAreRepaired(t *testing.T) {
	for _, service := range []string{"openai", "anthropic", "gemini", "kimi"} {
		for _, at := range []string{"under its own name", "behind a gateway"} {
			p, _ := emulator.ProfileByName(service)
			l, allowed := newLive(t, p), 0
			if at == "behind a gateway" {
				l, allowed = gateway(t, service, "house-model"), 1
				l.think = func(context.Context, emulator.Request) (emulator.Reply, error) {
					return emulator.Reply{Text: "Fine."}, nil
				}
			}
			for name, schema := range oddSchemas {
				req := question()
				req.Tools = []toolgroups.Tool{{Name: "odd", Parameters: json.RawMessage(schema)}}
				got, err := l.model(once).Complete(t.Context(), req, nil)
				if refused := l.refusals(); err != nil || len(refused) > allowed || len(got.LeftOut) > 0 {
					t.Errorf("%s %s, %s: refused %q, left out %q, %v", service, at, name, refused, got.LeftOut, err)
				}
				first := l.last().ToolsJSON
				for blanks := range 5 {
					req.Tools[0].Parameters = json.RawMessage(schema + strings.Repeat(" ", blanks+1)) // none that is remembered
					if _, err := l.model(once).Complete(t.Context(), req, nil); err != nil || !bytes.Equal(bytes.ReplaceAll(l.last().ToolsJSON, []byte(" "), nil), bytes.ReplaceAll(first, []byte(" "), nil)) {
						t.Errorf("%s %s, %s: sent as %s and as %s, which no cache has, %v", service, at, name, first, l.last().ToolsJSON, err)
						break
					}
				}
			}
		}
	}
}

// A renamed property has its own name again in the call that the tool gets, at every depth, and the name that
// the model knows in later requests. All other bytes stay.
func TestRenamedPropertiesAreMappedBack(t *testing.T) {
	tool := toolgroups.Tool{Name: "list", Parameters: json.RawMessage(oddSchemas["names of OData"])}
	for service, names := range map[string][3]string{"anthropic": {"_filter", "a_b", "_"}, "gemini": {"_filter", "a_b", "_"}, "openai": {"_filter", "a_b", "_"}} {
		p, _ := emulator.ProfileByName(service)
		l := newLive(t, p)
		written := fmt.Sprintf(`{ "%s": "a_b: 1", "o": {"%s": [{"%s":725653563933458433, "free": {"\u0061": 1.0}}]}}`, names[0], names[1], names[2])
		own := `{ "$filter": "a_b: 1", "o": {"a b": [{"ключ":725653563933458433, "free": {"\u0061": 1.0}}]}}`
		l.think = func(_ context.Context, req emulator.Request) (emulator.Reply, error) {
			return emulator.Reply{Calls: []emulator.ToolCall{{Name: "list", Arguments: written}}}, nil
		}
		req := question()
		req.Tools = []toolgroups.Tool{tool}
		got, err := l.model(once).Complete(t.Context(), req, nil)
		if err != nil || len(got.Calls) != 1 || got.Calls[0].Arguments != own {
			t.Fatalf("%s: %+v, %v", service, got.Calls, err)
		}
		req.Messages = append(req.Messages, agent.Message{Role: agent.RoleAssistant, Calls: got.Calls, Reasoning: got.Reasoning},
			agent.Message{Role: agent.RoleTool, CallID: got.Calls[0].ID, Text: "none"})
		if _, err := l.model(once).Complete(t.Context(), req, nil); err != nil {
			t.Fatal(err)
		}
		for _, m := range l.last().Messages {
			for _, call := range m.ToolCalls {
				if call.Arguments != written {
					t.Errorf("%s is sent %s", service, call.Arguments)
				}
			}
		}
	}
}

// A tool that the server refuses nevertheless is left out where the refusal names it, by its index or its name,
// and not sent again. The rest of the request is answered.
func TestARefusedToolIsLeftOut(t *testing.T) {
	three := []toolgroups.Tool{{Name: "note"}, {Name: "crm_list", Group: "crm"}, {Name: "crm_read", Group: "crm"}}
	for name, said := range map[string]answer{
		"Claude":        refusal(400, "", "tools.1.custom.input_schema: something new"),
		"OpenAI":        refusal(400, "invalid_function_parameters", "Invalid schema for function 'crm_list': In context=(), 'x' is not permitted."),
		"a parameter":   respond(400, "application/json", `{"error":{"message":"Invalid value","param":"tools[1].function.parameters"}}`),
		"Gemini":        refusal(400, "", "* GenerateContentRequest.tools[0].function_declarations[1].parameters.properties[x]: unknown"),
		"Vertex":        refusal(400, "", "Unable to submit request because `crm_list` functionDeclaration `parameters.x` schema is odd"),
		"Mistral":       respond(422, "application/json", `{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","tools",1,"function","parameters"],"msg":"no"}]}}`),
		"Bedrock":       refusal(400, "", "The value at toolConfig.tools.1.toolSpec.inputSchema.json.type must be one of the following: object."),
		"a temperature": refusal(400, "", "tools.1.custom.input_schema.properties.temperature: something new"),
		"llama.cpp":     refusal(500, "", "Failed to convert the schema of tool crm_list: unsupported"),
	} {
		cfg := openai.Config{ModelCache: openai.NewModelCache()}
		answers := []answer{said, stream(hello, stop), stream(hello, stop)}
		if name == "Gemini" || name == "Claude" || name == "a temperature" || name == "Vertex" {
			answers = append([]answer{said}, answers...) // after the first, the family is known
		}
		c, p := client(t, cfg, answers...)
		for range 2 {
			req := question()
			req.Tools = three
			got, err := c.Complete(t.Context(), req, nil)
			body := p.bodies[len(p.bodies)-1]
			if err != nil || len(got.LeftOut) != 1 || got.LeftOut[0] != "crm_list" || strings.Contains(body, "crm_list") || !strings.Contains(body, "crm_read") {
				t.Errorf("%s: left out %q, %v: %s", name, got.LeftOut, err, body)
			}
		}
		if len(p.bodies) != len(answers) || strings.Contains(p.bodies[0], "temperature") {
			t.Errorf("%s: %d requests", name, len(p.bodies))
		}
	}
}

// A refusal of a tool's definition is told from one of a message that has calls.
func TestARefusalOfAToolIsToldFromOneOfAMessage(t *testing.T) {
	for text, want := range map[string]bool{
		"tools.0.custom.input_schema: something new": true, "Invalid schema for function 'gone': no": true, "Unrecognized schema: {}": true,
		"Invalid request: tools.function.parameters is not a valid moonshot flavored json schema": true,
		"Not the same number of function calls and responses":                                     false, "Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls'.": false,
		"messages.3.content.0: schema of the block is unknown": false, "wrong": false, "Unknown parameter: 'tool_call_id'": false,
	} {
		c, _ := client(t, openai.Config{Model: "kimi-k2.6", Retry: provider.Retry{MaxAttempts: 1}}, refusal(400, "", text))
		if _, err := c.Complete(t.Context(), question(), nil); kindOf(t, err).AboutTools != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}

// Whatever schema a server writes, each service accepts the tool.
func TestAnySchemaIsAccepted(t *testing.T) {
	var lives []*live
	for _, service := range []string{"openai", "anthropic", "gemini", "kimi"} {
		p, _ := emulator.ProfileByName(service)
		lives = append(lives, newLive(t, p))
	}
	rapid.Check(t, func(rt *rapid.T) {
		schema := anySchema(rt, 4)
		schema["type"] = "object"
		raw, err := json.Marshal(schema)
		if err != nil {
			rt.Fatal(err)
		}
		for _, l := range lives {
			before := len(l.refusals())
			req := question()
			req.Tools = []toolgroups.Tool{{Name: "odd", Parameters: raw}}
			if got, err := l.model(once).Complete(t.Context(), req, nil); err != nil || len(l.refusals()) > before || len(got.LeftOut) > 0 {
				rt.Fatalf("%s refuses %s: %q, %v", l.p.Name, raw, l.refusals(), err)
			}
		}
	})
}

// anySchema draws a schema, as often broken as not.
func anySchema(rt *rapid.T, depth int) map[string]any {
	sub := func() any {
		if depth == 0 || rapid.IntRange(0, 5).Draw(rt, "odd") == 0 {
			return rapid.SampledFrom([]any{true, false, nil, "x", 7, []any{}, map[string]any{}}).Draw(rt, "value")
		}
		return any(anySchema(rt, depth-1))
	}
	list := func() any {
		out := []any{}
		for range rapid.IntRange(0, 3).Draw(rt, "n") {
			out = append(out, sub())
		}
		return out
	}
	named := func() any {
		out := map[string]any{}
		for range rapid.IntRange(0, 3).Draw(rt, "n") {
			out[rapid.SampledFrom([]string{"a", "$a", "a<", "a_", "", "items", "ü", strings.Repeat("x", 70), strings.Repeat("x", 71)}).Draw(rt, "name")] = sub()
		}
		return out
	}
	out := map[string]any{}
	for range rapid.IntRange(0, 4).Draw(rt, "keywords") {
		keyword := rapid.SampledFrom([]string{"type", "properties", "items", "prefixItems", "anyOf", "oneOf", "allOf", "required", "enum", "const", "$ref", "minimum", "exclusiveMinimum", "minLength", "additionalProperties", "$defs", "description", "nullable", "not"}).Draw(rt, "keyword")
		switch keyword {
		case "properties", "$defs":
			out[keyword] = named()
		case "anyOf", "oneOf", "allOf", "prefixItems":
			out[keyword] = list()
		case "items":
			out[keyword] = rapid.SampledFrom([]func() any{list, sub}).Draw(rt, "items")()
		case "additionalProperties", "not":
			out[keyword] = sub()
		default:
			out[keyword] = rapid.SampledFrom([]any{
				"string", "number", "object", "array", "null", "int",
				[]any{"string", "null"},
				[]any{"array", "integer"},
				[]any{"a", "a", 1, nil, "", true},
				"#", "#/$defs/a", "#/properties/a", "#/$defs/none",
				1, -1, 1.5, true, nil,
				map[string]any{"a": 1},
			}).Draw(rt, "value")
		}
	}
	return out
}

// A few definitions that refer to each other twice describe more than any memory holds: what is sent is bounded.
func TestASchemaBombIsBounded(t *testing.T) {
	var defs []string
	for _, shape := range []string{`{"type":"object","properties":{"a":{"$ref":"#/$defs/D%d"},"b":{"$ref":"#/$defs/D%d"}}}`, `{"allOf":[{"$ref":"#/$defs/D%d"},{"$ref":"#/$defs/D%d"}]}`, `{"anyOf":[{"$ref":"#/$defs/D%d"},{"type":"array","items":{"$ref":"#/$defs/D%d"}}]}`} {
		defs = nil
		for i := range 40 {
			defs = append(defs, fmt.Sprintf(`"D%d":`+shape, i, i+1, i+1))
		}
		schema := `{"type":"object","properties":{"x":{"$ref":"#/$defs/D0"},"y":{"type":"string"}},"$defs":{` + strings.Join(defs, ",") + `,"D40":{"type":"string"}}}`
		for _, service := range []string{"openai", "anthropic", "gemini", "kimi"} {
			p, _ := emulator.ProfileByName(service)
			l, req := newLive(t, p), question()
			req.Tools = []toolgroups.Tool{{Name: "odd", Parameters: json.RawMessage(schema)}}
			got, err := l.model(once).Complete(t.Context(), req, nil)
			if size := len(l.last().ToolsJSON); err != nil || len(got.LeftOut) > 0 || size > 1<<20 || !strings.Contains(string(l.last().ToolsJSON), `"y":{`) {
				t.Errorf("%s: %d bytes, left out %q, %v", service, size, got.LeftOut, err)
			}
		}
	}
}

// A server that takes no tools, no system prompt, or one call in a reply, as its model's template says, is spoken
// to in the form that it takes, which is learned once. That it takes no tools is known.
func TestWhatATemplateRefuses(t *testing.T) {
	p, _ := emulator.ProfileByName("openai")
	for name, c := range map[string]struct {
		change func(p *emulator.Profile)
		most   int // refusals
		tools  bool
	}{
		"Ollama, no tools": {func(p *emulator.Profile) {
			p.NoTools = emulator.Error{Status: 400, Message: "{model} does not support tools"}
		}, 1, false},
		"vLLM, no tools": {func(p *emulator.Profile) {
			p.NoTools = emulator.Error{Status: 400, Message: `"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set`}
		}, 1, false},
		"OpenRouter, no tools": {func(p *emulator.Profile) {
			p.NoTools = emulator.Error{Status: 404, Message: "No endpoints found that support tool use. To learn more about provider routing, visit: https://openrouter.ai/docs/provider-routing"}
		}, 1, false},
		"llama.cpp, no tools": {func(p *emulator.Profile) {
			p.NoTools = emulator.Error{Status: 500, Message: "tools param requires --jinja flag"}
		}, 1, false},
		"no system prompt": {func(p *emulator.Profile) {
			p.NoSystem = emulator.Error{Status: 400, Message: "System role not supported"}
		}, 1, true},
		"no system prompt, as a fault": {func(p *emulator.Profile) {
			p.NoSystem = emulator.Error{Status: 500, Type: "server_error", Message: "Jinja Exception: System role not supported"}
		}, 1, true},
		"one call": {func(p *emulator.Profile) {
			p.SeveralCalls = emulator.Error{Status: 500, Message: "This model only supports single tool-calls at once!"}
		}, 1, true},
		"neither": {func(p *emulator.Profile) {
			p.NoTools, p.NoSystem = emulator.Error{Status: 400, Message: "Tools are not supported"}, emulator.Error{Status: 500, Message: "Conversation roles must alternate user/assistant/user/assistant/..."}
		}, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := p
			c.change(&p)
			l, talk := newLive(t, p), newTalk(t)
			talk.history = []agent.Message{
				{Role: agent.RoleUser, Text: "before"},
				{Role: agent.RoleAssistant, Text: "Now.", Calls: []agent.Call{{ID: "a", Name: "note", Arguments: `{"text":"x"}`}, {ID: "b", Name: "note", Arguments: `{"text":"y"}`}}},
				{Role: agent.RoleTool, CallID: "a", Tool: "note", Status: agent.StatusOK, Text: "noted x"},
				{Role: agent.RoleTool, CallID: "b", Tool: "note", Status: agent.StatusOK, Text: "noted y"},
				{Role: agent.RoleAssistant, Text: "Done.", Final: true},
			}
			if c.tools {
				l.think = func(_ context.Context, req emulator.Request) (emulator.Reply, error) {
					if _, results := rounds(req); len(results) > 0 {
						return emulator.Reply{Text: strings.Join(results, ";")}, nil
					}
					return notes("p", "q"), nil
				}
				talk.say(l.model(once), "go", `noted {"text":"p"};noted {"text":"q"}`)
				talk.say(l.model(once), "again", `noted {"text":"p"};noted {"text":"q"}`)
			} else {
				talk.say(l.model(once), "go", "Fine.")
				talk.say(l.model(once), "again", "Fine.")
			}
			if refused := l.refusals(); len(refused) > c.most || l.model().Profile().NoTools == c.tools || l.model().Facts().Tools.No() == c.tools {
				t.Errorf("refused %q, %+v", refused, l.model().Facts())
			}
			last := string(l.last().MessagesJSON)
			if !strings.Contains(last, "noted x") || !strings.Contains(last, "You help.") || strings.Contains(last, `"role":"user"},{"role":"user"`) {
				t.Errorf("sent %s", last)
			}
		})
	}
}

// A refusal of a request that is too large for the server, in whatever of the known words, is an overflow, and the
// size that it names is known.
func TestOverflowInManyWords(t *testing.T) {
	for text, limit := range map[string]int{
		"The input (45000 tokens) is longer than the model's context length (32768 tokens).": 32768,
		"prompt too long; exceeded max context length by 12 tokens":                          0,
		"Prompt exceeds max length": 0,
		"<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 204800]":                                                        204800,
		"The number of tokens to keep from the initial prompt is greater than the context length":                                                       0,
		"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 20 `max_new_tokens`":               4096,
		"prompt token count of 130531 exceeds the limit of 128000":                                                                                      128000,
		"Input length 6491 exceeds context length 1500":                                                                                                 1500,
		"input length and `max_tokens` exceed context limit: 199759 + 8192 > 200000, decrease input length or `max_tokens` and try again":               200000,
		"Request too large for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, Requested 42000. The input or output must be reduced": 30000,
	} {
		status := 400
		if strings.HasPrefix(text, "Request too large") {
			status = 429
		}
		cfg := openai.Config{ModelCache: openai.NewModelCache()}
		c, p := client(t, cfg, refusal(status, "", text))
		_, err := c.Complete(t.Context(), question(), nil)
		if f := kindOf(t, err); f.Kind != agent.KindOverflow || len(p.bodies) != 1 || c.Facts().ContextTokens.Value != limit {
			t.Errorf("%q: %v, context %+v", text, err, c.Facts().ContextTokens)
		}
	}
	busy := "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 20000, Requested 15000. Please try again in 10s."
	c, _ := client(t, openai.Config{Retry: provider.Retry{MaxAttempts: 1}}, refusal(429, "", busy))
	if _, err := c.Complete(t.Context(), question(), nil); kindOf(t, err).Kind != agent.KindRateLimit || c.Facts().ContextTokens.Value != 0 {
		t.Errorf("%v", err)
	}
}

// A limit of tokens a minute that is smaller than the request is an overflow, too: waiting does not help.
func TestALimitBelowTheRequestIsAnOverflow(t *testing.T) {
	const text = "This request would exceed your organization's rate limit of 30,000 input tokens per minute"
	for size, want := range map[int]agent.Kind{200_000: agent.KindOverflow, 20_000: agent.KindRateLimit} {
		c, _ := client(t, openai.Config{Retry: provider.Retry{MaxAttempts: 1}}, refusal(429, "", text))
		req := question()
		req.Messages[0].Text = strings.Repeat("x", size)
		if _, err := c.Complete(t.Context(), req, nil); kindOf(t, err).Kind != want {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

// Results have the name of their tool for a gateway to Google, which tells parallel results apart by it, unless it
// refuses that.
func TestResultsHaveNamesForGoogle(t *testing.T) {
	req := question()
	req.Messages = append(req.Messages, agent.Message{Role: agent.RoleAssistant, Calls: []agent.Call{{ID: "a", Name: "list"}, {ID: "b", Name: "tool_call", Tool: "read"}}},
		agent.Message{Role: agent.RoleTool, CallID: "a", Tool: "list", Text: "1"}, agent.Message{Role: agent.RoleTool, CallID: "b", Tool: "read", Text: "2"})
	for _, c := range []struct {
		cfg  openai.Config
		want bool
	}{
		{openai.Config{Model: "google/gemini-3-pro-preview"}, true}, {openai.Config{Model: "gemini-3-pro", Dialect: openai.DialectGemini}, false}, {openai.Config{Model: "gpt-4.1"}, false},
	} {
		body := sent(t, c.cfg, req)
		if strings.Contains(body, `"tool_call_id":"a","name":"list"`) != c.want || strings.Contains(body, `"tool_call_id":"b","name":"tool_call"`) != c.want {
			t.Errorf("%s: %s", c.cfg.Model, body)
		}
	}
	c, p := client(t, openai.Config{Model: "gemini-3-pro"}, refusal(422, "", "messages.2.name: Extra inputs are not permitted"), stream(hello, stop))
	if _, err := c.Complete(t.Context(), req, nil); err != nil || strings.Contains(p.bodies[1], `"name":"list","content"`) {
		t.Errorf("%v: %s", err, p.bodies[len(p.bodies)-1])
	}
}
