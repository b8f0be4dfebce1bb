package platformtest

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/outbox"
	"oneclaw/internal/wording"
)

// Growth describes a platform for [CheckGrowth].
type Growth struct {
	chats.Platform
	// Show shows a part in a chat, as a new message or in place of the previous one, and returns what
	// users then see. It fails if the service rejects the part.
	Show func(part chats.Part, anew bool) (string, error)
	// Mask masks secrets; Growing masks those in a text that still grows.
	Mask, Growing func(text string) string
	// Secrets are the secrets to mask.
	Secrets []string
}

// CheckGrowth checks that an answer, split into arbitrary chunks, is valid for the platform at each
// step, shows no secret, no reasoning and no partial tag, and finally equals the answer sent at once.
func CheckGrowth(t *testing.T, g Growth) {
	t.Helper()
	pieces := []string{
		"word ", "more of it. ", "**bold ", "** ", "*it* ", "`code` ", "`", "~~", "[link](http://a.b/c?d=1&e=2) ", "1 < 2 & 3 > 2 ", "\n\n", "\n- item ", "\n1. one ",
		"\n```go\nx := \"<y>\"\n", "```\n", "\n| a | b |\n|---|---|\n| c | d |\n", "\n> quoted ", "\n# Head\n", "<|channel|>analysis<|message|>THOUGHT about it<|end|>",
		"<|im_end|>", "<tool_call>THOUGHT</tool_call>", "世界，", "👩‍👩‍👧 ", "@name <@U1> <!channel> ", "snake_case_ ", "\\* ", "&amp; ", "]( ",
	}
	for _, secret := range g.Secrets {
		pieces = append(pieces, secret+" ", "("+secret+")")
	}
	rapid.Check(t, func(t *rapid.T) {
		answer := rapid.SampledFrom([]string{"", "<think>THOUGHT one\n two</think>\n\n", " <thinking>THOUGHT"}).Draw(t, "thought") +
			strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 12).Draw(t, "pieces"), "")
		anew := true
		show := func(part chats.Part) string {
			shown, err := g.Show(part, anew)
			if err != nil {
				t.Fatalf("%q is rejected: %v", part.Text, err)
			}
			anew = false
			g.checkShown(t, answer, shown)
			return shown
		}
		for range rapid.IntRange(1, 3).Draw(t, "steps") {
			said := outbox.ShownText(answer[:rapid.IntRange(0, len(answer)).Draw(t, "so far")], false, g.Growing)
			if parts := g.Render(said); wording.HasVisible(said) && len(parts) > 0 {
				show(parts[0])
			}
		}
		final := g.Mask(agent.VisibleText(answer))
		if parts := g.Render(final); wording.HasVisible(final) && len(parts) > 0 {
			grown := show(parts[0])
			if anew = true; show(parts[0]) != grown {
				t.Errorf("%q ends as %q", answer, grown)
			}
		}
	})
}

// checkShown checks what users see of an answer.
func (g Growth) checkShown(t *rapid.T, answer, shown string) {
	for _, secret := range g.Secrets {
		for _, half := range []string{secret[:len(secret)*2/3], secret[len(secret)/3:]} {
			if strings.Contains(shown, half) {
				t.Fatalf("answer %q: a secret is visible in %q", answer, shown)
			}
		}
	}
	if strings.Contains(answer, "`") || strings.Contains(answer, "~~~") {
		return // code shows such text as it is
	}
	for _, sign := range []string{"THOUGHT", "<think", "<|", "channel|", "tool_call", "</"} {
		if strings.Contains(shown, sign) {
			t.Fatalf("answer %q: reasoning or markup is visible in %q", answer, shown)
		}
	}
}
