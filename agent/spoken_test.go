package agent_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"oneclaw/agent"
)

func TestOnlyWhatIsSpokenIsLeft(t *testing.T) {
	for text, want := range map[string]string{
		"Hello *there*, 1 < 2.":                                      "Hello *there*, 1 < 2.",
		"<think>They want X. SECRET THOUGHT</think>\n\nHi.":          "Hi.",
		" <Thinking>one</thinking><think>two</think> Hi.":            "Hi.",
		"<think>It never ends":                                       "",
		"SECRET THOUGHT without an opening.</think>Hi.":              "Hi.",
		"Hi.<|im_end|>":                                              "Hi.",
		"<|start|>assistant<|channel|>final<|message|>Hi.<|return|>": "Hi.",
		"<|channel|>analysis<|message|>SECRET THOUGHT<|end|><|start|>assistant<|channel|>final<|message|>Hi.": "Hi.",
		"<|channel|>commentary to=functions.read_file <|constrain|>json<|message|>{\"path\":\"a\"}<|call|>":   "",
		"<|start_header_id|>assistant<|end_header_id|>\n\nHi.<|eot_id|>":                                      "Hi.",

		"Hi.<｜end▁of▁sentence｜>": "Hi.",

		"[INST] x [/INST] Hi.</s>":                                "x  Hi.",
		"I look.\n<tool_call>\n{\"name\":\"exec\"}\n</tool_call>": "I look.",
		"<s>I look.\n<function_calls>x":                           "I look.",
		"[TOOL_CALLS]":                                            "",
		"Hi.<end_of_turn>":                                        "Hi.",
		"Between `<think>` and `</think>` models think; `<|im_end|>` ends.": "Between `<think>` and `</think>` models think; `<|im_end|>` ends.",
		"```html\n<think>x</think><|im_end|>\n```\nThat is it.":             "```html\n<think>x</think><|im_end|>\n```\nThat is it.",
		"a <b> c [d] <s1> |x| <|> 2<3 [INSTALL]":                            "a <b> c [d] <s1> |x| <|> 2<3 [INSTALL]",
		"":                                                                  "",
	} {
		if got := agent.VisibleText(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// However thoughts and signs are strewn, none of them is left outside of code.
func TestNoSignsReachAChat(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOfN(rapid.SampledFrom([]string{
			"word ", "\n", "<|im_end|>", "<|im_start|>assistant\n", "<|eot_id|>", "</s>", "<|channel|>analysis<|message|>", "THOUGHT", "<|end|>",
			"<|channel|>final<|message|>", "<tool_call>", "</tool_call>", "<｜x｜>", "<|", "|>",
		}), 0, 12).Draw(t, "pieces")
		text := strings.Join(pieces, "")
		got := agent.VisibleText(text)
		if strings.Contains(got, "<|im_") || strings.Contains(got, "<|channel|>") || strings.Contains(got, "<tool_call>") || strings.Contains(got, "<|end|>") {
			t.Fatalf("%q leaves %q", text, got)
		}
		said := strings.Repeat("x", len(pieces))
		if got := agent.VisibleText("<think>" + strings.ReplaceAll(text, "</think>", "") + "</think>" + said); got != said && said != "" {
			t.Fatalf("%q leaves %q of %q", text, got, said)
		}
	})
}

// A model that only thinks is asked once more, and its thoughts are no answer.
func TestThoughtsAreNoAnswer(t *testing.T) {
	c := newChat(t, agent.Config{})
	c.say("hi", says("<think>SECRET THOUGHT"), says("<think>SECRET THOUGHT</think>Hello."))
	if got := c.last(); got.Text != "Hello." || !got.Final {
		t.Errorf("got %+v", got)
	}
	for _, m := range c.history {
		if strings.Contains(m.Text, "SECRET") {
			t.Errorf("kept %+v", m)
		}
	}
}
