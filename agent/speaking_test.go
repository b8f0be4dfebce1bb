package agent_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"oneclaw/agent"
)

// spokenReplies are replies with what is meant for people in them.
func spokenReplies() map[string]string {
	return map[string]string{
		"Hello *there*, 1 < 2 and [x] or a[0].":                      "Hello *there*, 1 < 2 and [x] or a[0].",
		"<think>They want SECRET X. </think>\n\nHi.":                 "Hi.",
		" <Thinking>SECRET one</thinking><think>SECRET</think> Hi.":  "Hi.",
		"<think>It never SECRET ends":                                "",
		"Hi.<|im_end|>":                                              "Hi.",
		"<|start|>assistant<|channel|>final<|message|>Hi.<|return|>": "Hi.",
		"<|channel|>analysis<|message|>SECRET THOUGHT<|end|><|start|>assistant<|channel|>final<|message|>Hi.":    "Hi.",
		"<|channel|>commentary to=functions.SECRET <|constrain|>SECRETjson<|message|>{\"SECRET\":\"a\"}<|call|>": "",
		"<|start_header_id|>assistant<|end_header_id|>\n\nHi.<|eot_id|>":                                         "Hi.",
		"<|im_start|>assistant\nHi there.":                          "Hi there.",
		"Hi.<｜end of SECRET｜>":                                      "Hi.",
		"[INST] x [/INST] Hi.</s>":                                  "x  Hi.",
		"I look.\n<tool_call>\n{\"name\":\"SECRET\"}\n</tool_call>": "I look.",
		"```html\n<think>x</think><|im_end|>\n```\nThat is it.":     "```html\n<think>x</think><|im_end|>\n```\nThat is it.",
	}
}

// However a reply is cut, nothing that is not meant for people is shown while it comes, and
// nothing is missing at its end.
func TestNoThoughtIsShownWhileAReplyComes(t *testing.T) {
	for text, want := range spokenReplies() {
		for i := range text {
			got := agent.VisiblePrefix(text[:i], false)
			if strings.Contains(got, "SECRET") || !strings.Contains(text, "```") && (strings.Contains(got, "<|") || strings.Contains(got, "<th") || strings.Contains(got, "<｜")) {
				t.Errorf("%q: after %d bytes: %q", text, i, got)
			}
			if !strings.HasPrefix(strings.Join(strings.Fields(want), ""), strings.Join(strings.Fields(got), "")) {
				t.Errorf("%q: after %d bytes: %q, which is not how %q begins", text, i, got, want)
			}
		}
		if got := agent.VisiblePrefix(text+" ", false); strings.TrimSpace(got) != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// A model that begins in the middle of a thought is not shown before that ends.
func TestThoughtsWithoutABeginningAreHeldBack(t *testing.T) {
	text := "SECRET thought.</think>\n\nHi there."
	for i := range text {
		if got := agent.VisiblePrefix(text[:i], true); strings.Contains(got, "S") {
			t.Errorf("after %d bytes: %q", i, got)
		}
	}
	if got := agent.VisiblePrefix(text, true); got != "Hi there." {
		t.Errorf("got %q", got)
	}
	for model, want := range map[string]bool{"deepseek/deepseek-r1-distill": true, "Qwen3-8B": true, "gpt-5-mini": false, "claude-sonnet-4-5": false, "gemini-3-flash": false, "": false} {
		if got := agent.ThinksAloud(model); got != want {
			t.Errorf("%s: %v", model, got)
		}
	}
}

func TestNoSignIsShownInHalves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOfN(rapid.SampledFrom([]string{
			"word ", "\n", "<|im_end|>", "<|im_start|>assistant\n", "</s>", "<|channel|>analysis<|message|>THOUGHT<|end|>",
			"<|channel|>final<|message|>", "<tool_call>THOUGHT</tool_call>", "<｜x｜>",
		}), 0, 12).Draw(t, "pieces")
		text := strings.Join(pieces, "")
		got := agent.VisiblePrefix(text[:rapid.IntRange(0, len(text)).Draw(t, "so far")], false)
		for _, half := range []string{"<|", "THOUGHT", "im_", "channel", "<tool", "analysis", "assist", "｜"} {
			if strings.Contains(got, half) {
				t.Fatalf("%q shows %q", text, got)
			}
		}
	})
}
