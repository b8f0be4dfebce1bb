package agent_test

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"oneclaw/agent"
)

// callTexts are replies with a call of read_file for a.txt in the marks of each family (openclaw #4016, vllm #54256,
// ollama PR 18307).
var callTexts = map[string]string{
	"bare JSON":                     `{"name":"read_file","arguments":{"path":"a.txt"}}`,
	"bare JSON, parameters":         "\n {\"name\": \"read_file\", \"parameters\": {\"path\": \"a.txt\"}}\n",
	"bare JSON, text arguments":     `{"name":"read_file","arguments":"{\"path\":\"a.txt\"}"}`,
	"in a list":                     `[{"name":"read_file","arguments":{"path":"a.txt"}}]`,
	"as OpenAI has it":              `{"tool_calls":[{"id":"1","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"a.txt\"}"}}]}`,
	"in a fence":                    "```json\n{\"name\":\"read_file\",\"arguments\":{\"path\":\"a.txt\"}}\n```",
	"behind words":                  "I look.\n\n{\"name\":\"read_file\",\"arguments\":{\"path\":\"a.txt\"}}",
	"behind a thought":              "<think>Let me read.</think>\n{\"name\":\"read_file\",\"arguments\":{\"path\":\"a.txt\"}}",
	"Phi":                           `functools[{"name":"read_file","arguments":{"path":"a.txt"}}]`,
	"Hermes":                        "I look.\n<tool_call>\n{\"name\":\"read_file\",\"arguments\":{\"path\":\"a.txt\"}}\n</tool_call>",
	"Hermes, a bracket missing":     `<tool_call>{"name":"read_file","arguments":{"path":"a.txt"}</tool_call>`,
	"Hermes, a comma too many":      `<tool_call>{"name":"read_file","arguments":{"path":"a.txt",},}</tool_call>`,
	"Hermes, cut end":               `<tool_call>{"name":"read_file","arguments":{"path":"a.txt"}}`,
	"Hermes, in a fence":            "<tool_call>\n```json\n{\"name\":\"read_file\",\"arguments\":{\"path\":\"a.txt\"}}\n```\n</tool_call>",
	"Qwen coder":                    "<tool_call>\n<function=read_file>\n<parameter=path>\na.txt\n</parameter>\n</function>\n</tool_call>",
	"Qwen coder, no outer mark":     "I look.\n<function=read_file>\n<parameter=path>\na.txt\n</parameter>\n</function>\n</tool_call>",
	"Llama":                         `<function=read_file>{"path":"a.txt"}</function>`,
	"Llama, python tag":             `<|python_tag|>{"name":"read_file","parameters":{"path":"a.txt"}}<|eom_id|>`,
	"GLM":                           "<tool_call>read_file\n<arg_key>path</arg_key>\n<arg_value>a.txt</arg_value>\n</tool_call>",
	"Gemma 4":                       `<|channel>thought` + "\nLet me look.<channel|>" + `<|tool_call>call:read_file{path:<|"|>a.txt<|"|>}<tool_call|>`,
	"Gemma 4, no mark":              `<|channel>thought` + "\nLet me look.<channel|>" + `call:read_file{path:<|"|>a.txt<|"|>}`,
	"Gemma 4, in an open thought":   `<|channel>thought` + "\nLet me look." + `<|tool_call>call:read_file{path:<|"|>a.txt<|"|>}<tool_call|><|tool_response>`,
	"Mistral":                       `[TOOL_CALLS][{"name":"read_file","arguments":{"path":"a.txt"}}]`,
	"Mistral, new":                  `[TOOL_CALLS]read_file[ARGS]{"path":"a.txt"}`,
	"Kimi":                          `<|tool_calls_section_begin|><|tool_call_begin|>functions.read_file:0<|tool_call_argument_begin|>{"path":"a.txt"}<|tool_call_end|><|tool_calls_section_end|>`,
	"DeepSeek":                      "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read_file\n```json\n{\"path\":\"a.txt\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
	"DeepSeek, new":                 `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read_file<｜tool▁sep｜>{"path":"a.txt"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>`,
	"gpt-oss":                       `<|channel|>analysis<|message|>Look.<|end|><|start|>assistant<|channel|>commentary to=functions.read_file <|constrain|>json<|message|>{"path":"a.txt"}<|call|>`,
	"Claude's form":                 "<function_calls>\n<invoke name=\"read_file\">\n<parameter name=\"path\">a.txt</parameter>\n</invoke>\n</function_calls>",
	"MiniMax":                       "<minimax:tool_call>\n<invoke name=\"read_file\">\n<parameter name=\"path\">a.txt</parameter>\n</invoke>\n</minimax:tool_call>",
	"Command":                       `<|START_THINKING|>Look.<|END_THINKING|><|START_ACTION|>[{"tool_call_id":"0","tool_name":"read_file","parameters":{"path":"a.txt"}}]<|END_ACTION|>`,
	"Nemotron":                      `<TOOLCALL>[{"name":"read_file","arguments":{"path":"a.txt"}}]</TOOLCALL>`,
	"a function call in one tag":    `<function_call>{"name":"read_file","arguments":{"path":"a.txt"}}</function_call>`,
	"Claude's form, with a prefix":  "<antml:function_calls>\n<antml:invoke name=\"read_file\">\n<antml:parameter name=\"path\">a.txt</antml:parameter>\n</antml:invoke>\n</antml:function_calls>",
	"Claude's form, no outer mark":  "I look.\n<invoke name=\"read_file\">\n<parameter name=\"path\">a.txt</parameter>\n</invoke>\n</function_calls>",
	"DeepSeek V3.2":                 "I look.\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"read_file\">\n<｜DSML｜parameter name=\"path\" string=\"true\">a.txt</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
	"DeepSeek V4":                   "<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"read_file\">\n<｜DSML｜parameter name=\"path\" string=\"true\">a.txt</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>",
	"DeepSeek V4, no outer mark":    "<｜DSML｜invoke name=\"read_file\">\n<｜DSML｜parameter name=\"path\" string=\"true\">a.txt</｜DSML｜parameter>\n</｜DSML｜invoke>",
	"Seed":                          "<seed:tool_call>\n<function=read_file>\n<parameter=path>a.txt</parameter>\n</function>\n</seed:tool_call>",
	"LongCat":                       "<longcat_tool_call>read_file\n<longcat_arg_key>path</longcat_arg_key>\n<longcat_arg_value>a.txt</longcat_arg_value>\n</longcat_tool_call>",
	"Jamba, Hunyuan":                `<tool_calls>[{"name":"read_file","arguments":{"path":"a.txt"}}]</tool_calls>`,
	"Phi 4 mini":                    `<|tool_call|>[{"name":"read_file","arguments":{"path":"a.txt"}}]<|/tool_call|>`,
	"Granite":                       `<|tool_call|>[{"name":"read_file","arguments":{"path":"a.txt"}}]`,
	"Qwen, small":                   "<tools>\n{\"name\":\"read_file\",\"arguments\":{\"path\":\"a.txt\"}}\n</tools>",
	"InternLM":                      `<|action_start|><|plugin|>{"name":"read_file","parameters":{"path":"a.txt"}}<|action_end|>`,
	"Mistral, with an id":           `[TOOL_CALLS]read_file[CALL_ID]abc123def[ARGS]{"path":"a.txt"}`,
	"gpt-oss, named by the role":    `<|channel|>analysis<|message|>Look.<|end|><|start|>assistant to=functions.read_file<|channel|>commentary json<|message|>{"path":"a.txt"}<|call|>`,
	"gpt-oss, begun in the prompt":  ` to=functions.read_file<|channel|>commentary json<|message|>{"path":"a.txt"}<|call|>`,
	"bare JSON, input":              `{"type":"tool_use","name":"read_file","input":{"path":"a.txt"}}`,
	"bare JSON, an action":          `{"action":"read_file","action_input":{"path":"a.txt"}}`,
	"bare JSON, OpenAI's parallel":  `{"tool_uses":[{"recipient_name":"functions.read_file","parameters":{"path":"a.txt"}}]}`,
	"an answer's last line, spaced": "I look.\n  { \"name\" : \"read_file\", \"arguments\" : { \"path\" : \"a.txt\" } }  ",
}

// A call that a model's server leaves in the text is a call, and is not shown, also while the reply comes.
func TestCallsInTheTextAreCalls(t *testing.T) {
	for name, text := range callTexts {
		t.Run(name, func(t *testing.T) {
			c := newChat(t, agent.Config{})
			found := false
			c.turn.OnReply = func(reply agent.Reply) { found = found || reply.CallsInText }
			c.say("read it", says(text), says("Done."))
			calls := c.history[1].Calls
			var got map[string]any
			if len(calls) != 1 || calls[0].Name != "read_file" || json.Unmarshal([]byte(calls[0].Arguments), &got) != nil || !reflect.DeepEqual(got, map[string]any{"path": "a.txt"}) || !found {
				t.Errorf("calls %+v", calls)
			}
			if shown := c.history[1].Text; strings.ContainsAny(shown, "{<[|") || shown != "" && shown != "I look." {
				t.Errorf("the text is %q", shown)
			}
			if c.count("read_file") != 1 || c.last().Text != "Done." {
				t.Errorf("ran %q, then %q", c.ran, c.last().Text)
			}
			for i := range text {
				if shown := agent.VisiblePrefix(text[:i], false); strings.ContainsAny(shown, "{<[|`") || strings.Contains(shown, "a.txt") || strings.Contains(shown, "read_file") || strings.Contains(shown, "functools") {
					t.Fatalf("after %d bytes %q is shown", i, shown)
				}
			}
		})
	}
}

// Several calls are all taken, with numbers and nested values as they are.
func TestSeveralCallsInTheText(t *testing.T) {
	for name, text := range map[string]string{
		"Hermes":     `<tool_call>{"name":"read_file","arguments":{"n":725653563933458433}}</tool_call><tool_call>{"name":"get_current_time","arguments":{}}</tool_call>`,
		"Mistral":    `[TOOL_CALLS]read_file[ARGS]{"n":725653563933458433}[TOOL_CALLS]get_current_time[ARGS]{}`,
		"JSON lines": `{"name":"read_file","arguments":{"n":725653563933458433}}` + "\n" + `{"name":"get_current_time","arguments":{}}`,
		"Gemma 4":    `<|tool_call>call:read_file{n:725653563933458433}<tool_call|><|tool_call>call:get_current_time{}<tool_call|>`,
		"XML":        "<function_calls><invoke name=\"read_file\"><parameter name=\"n\">725653563933458433</parameter></invoke><invoke name=\"get_current_time\"></invoke></function_calls>",
	} {
		c := newChat(t, agent.Config{})
		c.say("go", says(text), says("Done."))
		calls := c.history[1].Calls
		if len(calls) != 2 || calls[0].Arguments != `{"n":725653563933458433}` || calls[1].Name != "get_current_time" || calls[1].Arguments != "{}" || calls[0].ID == calls[1].ID {
			t.Errorf("%s: %+v", name, calls)
		}
	}
	c := newChat(t, agent.Config{})
	c.say("go", says(`<|tool_call>call:read_file{path:<|"|>a "b" {c}: d,<|"|>,deep:{list:[1,<|"|>x<|"|>,true,null],empty:{}},on:false}<tool_call|>`), says("Done."))
	if got := c.history[1].Calls; len(got) != 1 || got[0].Arguments != `{"path":"a \"b\" {c}: d,","deep":{"list":[1,"x",true,null],"empty":{}},"on":false}` {
		t.Errorf("%+v", got)
	}
}

// What only looks like a call is an answer: JSON that was asked for, calls of tools that are not offered, calls in
// code between words, and calls that a finished thought considers.
func TestWhatIsNoCallIsAnAnswer(t *testing.T) {
	for text, want := range map[string]string{
		`{"name":"Ann","age":7}`:                                                                              `{"name":"Ann","age":7}`,
		`{"name":"read_file"}`:                                                                                `{"name":"read_file"}`,
		`{"name":"gmail_search","arguments":{"q":"x"}}`:                                                       `{"name":"gmail_search","arguments":{"q":"x"}}`,
		`I look. <tool_call>{"name":"read_file","arguments":{"path":"a.txt"}`:                                 "I look.",
		`[{"name":"read_file","arguments":{}},{"name":"other"}]`:                                              `[{"name":"read_file","arguments":{}},{"name":"other"}]`,
		"Models write `<tool_call>{\"name\":\"read_file\",\"arguments\":{}}</tool_call>` for a call.":         "Models write `<tool_call>{\"name\":\"read_file\",\"arguments\":{}}</tool_call>` for a call.",
		"For example:\n```json\n{\"name\":\"read_file\",\"arguments\":{}}\n```\nThat reads a file.":           "For example:\n```json\n{\"name\":\"read_file\",\"arguments\":{}}\n```\nThat reads a file.",
		`<think>I could write <tool_call>{"name":"read_file","arguments":{}}</tool_call>, but no.</think>Hi.`: "Hi.",
		`<|channel>thought` + "\nSECRET<channel|>Hi.":                                                         "Hi.",
		"SECRET, because it began before.\n<channel|>Hi.<turn|>":                                              "Hi.",
		"[THINK]SECRET[/THINK]Hi.":                                                                            "Hi.",
		"<|START_THINKING|>SECRET<|END_THINKING|><|START_RESPONSE|>Hi.<|END_RESPONSE|>":                       "Hi.",
		"◁think▷SECRET◁/think▷Hi.":                                                                            "Hi.",
		"First.<|channel>thought SECRET<channel|> Second.":                                                    "First. Second.",
		"First. <think>SECRET</think>Second.":                                                                 "First. Second.",
		"<longcat_think>SECRET</longcat_think>Hi.":                                                            "Hi.",
		"<antml:thinking>SECRET</antml:thinking>Hi.":                                                          "Hi.",
		"<think>SECRET</think>\n<answer>Hi.</answer>":                                                         "Hi.",
		"SECRET, in steps.\n[BEGIN FINAL RESPONSE]Hi.[END FINAL RESPONSE]":                                    "Hi.",
		"a |> b <| c, x <|> y":                                                                                "a |> b <| c, x <|> y",
	} {
		c := newChat(t, agent.Config{})
		c.say("go", says(text))
		if got := c.last(); got.Text != want || len(got.Calls) > 0 || len(c.ran) > 0 {
			t.Errorf("%q: %q, calls %+v", text, got.Text, got.Calls)
		}
		for i := range text {
			if shown := agent.VisiblePrefix(text[:i], strings.HasPrefix(text, "SECRET")); strings.Contains(shown, "SECRET") {
				t.Errorf("%q: after %d bytes %q is shown", text, i, shown)
			}
		}
		if got := c.last(); strings.Contains(text, "SECRET") && !strings.HasPrefix(text, "First") && !strings.Contains(got.Reasoning, "SECRET") {
			t.Errorf("%q: the thought is not on record: %q", text, got.Reasoning)
		}
	}
}

// FuzzCallsInText: whatever a model writes, it is read within bounds, and only calls of offered tools are made of it.
func FuzzCallsInText(f *testing.F) {
	for _, text := range callTexts {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_ = agent.VisiblePrefix(text, false)
		c, asked := newChat(t, agent.Config{}), 0
		m := model(func(context.Context, agent.Request) (agent.Reply, error) {
			if asked++; asked > 1 {
				return says("Done."), nil
			}
			return says(text), nil
		})
		if err := c.run(m, agent.Message{Role: agent.RoleUser, Text: "go"}); err != nil {
			t.Fatal(err)
		}
		for _, m := range c.history {
			for _, call := range m.Calls {
				if _, ok := c.registry.Tool(call.Name); !ok {
					t.Errorf("%q becomes a call of %s", text, call.Name)
				}
			}
		}
	})
}
