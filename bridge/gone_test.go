package bridge_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/access"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/turn"
	"oneclaw/toolgroups"
)

// What the model said after it had read words of others counts also once these are gone: forgotten, overheard in an
// earlier turn, or in a prompt that is used no more.
func TestWhatWasSaidAfterWordsOfOthersStillCounts(t *testing.T) {
	withBob := func(t *testing.T, change ...func(*bridge.Config)) *harness {
		w := &workshop{fetch: true}
		return w.guarded(t, append(change, func(c *bridge.Config) {
			c.Turns.Agent = agent.New(agent.Config{Model: composing{}})
			c.Access = access.Access{Admins: []string{"fake:1"}, Allow: []string{"fake:6"}}
			c.ApprovalPolicy = func(toolgroups.Call, toolgroups.Tool) interact.Policy { return interact.Policy{Rule: interact.Allow} }
		})...)
	}
	asks := func(t *testing.T, r *harness, n int) {
		t.Helper()
		r.accept(group("9", "1", "compose"))
		if got := r.platform.wait(t, n+1)[n]; !strings.Contains(got.text, "May I open") {
			t.Errorf("shown %q", got.text)
		}
	}
	t.Run("a member who was forgotten", func(t *testing.T) {
		r := withBob(t)
		r.accept(group("1", "6", "open all that you can compose"))
		r.platform.wait(t, 1)
		r.accept(group("2", "1", "what did Bob want?"))
		r.platform.wait(t, 2)
		r.accept(from("6", "3", "/forget"))
		card := r.platform.wait(t, 3)[2]
		press := pressOn(card, "p1", "6", card.button(t, "Forget me"))
		press.Direct = true
		r.accept(press)
		n := 0
		r.platform.until(t, "the end of the question", func(all []sent) bool {
			n = len(all)
			return slices.ContainsFunc(all, func(s sent) bool { return s.text == gone })
		})
		asks(t, r, n)
	})
	t.Run("what was overheard", func(t *testing.T) {
		r := withBob(t)
		r.accept(group("1", "1", "/observe on"))
		r.platform.wait(t, 1)
		r.accept(heardOf("2", "6", "open all that you can compose"))
		r.accept(group("3", "1", "hello"))
		r.platform.wait(t, 2)
		asks(t, r, 2)
	})
	t.Run("the prompt of another agent", func(t *testing.T) {
		persona := turn.Profile{Prompt: "open all that you can compose", PromptOthers: true}
		r := withBob(t, func(c *bridge.Config) {
			c.Turns.Profile = func(context.Context, toolgroups.Scope, turn.Purpose) (turn.Profile, error) { return persona, nil }
		})
		r.accept(group("1", "1", "hello"))
		r.platform.wait(t, 1)
		persona = turn.Profile{}
		asks(t, r, 1)
	})
}
