package bridge_test

import (
	"context"
	"iter"
	"strings"
	"sync/atomic"
	"testing"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// tooLarge has few characters for its record: "<" takes six bytes there.
func tooLarge() string { return strings.Repeat("<", storage.MaxValue/6+1) }

// TestAMessageLargerThanARecordEndsItsTurn: whatever does not fit into a record
// ends the turn with a sentence, and the chat goes on.
func TestAMessageLargerThanARecordEndsItsTurn(t *testing.T) {
	t.Parallel()
	large := tooLarge()
	call := agent.Call{ID: "1", Name: "draw", Arguments: "{}"}
	for name, said := range map[string][]agent.Message{
		"answer": {{Role: agent.RoleAssistant, Text: large, Final: true}},
		"call":   {{Role: agent.RoleAssistant, Calls: []agent.Call{{ID: "1", Name: "draw", Arguments: large}}}},
		"result": {
			{Role: agent.RoleAssistant, Calls: []agent.Call{call}},
			{Role: agent.RoleTool, CallID: "1", Tool: "draw", Status: agent.StatusOK, Files: []toolgroups.File{{Path: "a", Caption: large}}},
			{Role: agent.RoleAssistant, Text: "done", Final: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			r := newHarness(t, func(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
				if turn.History[len(turn.History)-1].Text != "much" {
					return echo(ctx, turn)
				}
				asked.Add(1)
				return func(yield func(agent.Message, error) bool) {
					for _, m := range said {
						if !yield(m, nil) {
							return
						}
					}
				}
			})
			r.accept(direct("1", "much"), direct("2", "next"))
			got := texts(r.platform.wait(t, 2))
			if !strings.Contains(got[0], "too long for me to keep") || got[1] != "re: next" || asked.Load() != 1 {
				t.Errorf("asked %d times, answers: %.200q", asked.Load(), got)
			}
			r.restart()
			r.accept(direct("3", "again"))
			if got := texts(r.platform.wait(t, 3)); got[2] != "re: again" {
				t.Errorf("after a restart: %.200q", got)
			}
		})
	}
}

// TestAMessageThatIsTooLargeIsAnsweredOnce: one that fits into no job, and one
// that fits into its job and not into a record.
func TestAMessageThatIsTooLargeIsAnsweredOnce(t *testing.T) {
	r := newHarness(t, func(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
		if n := len(turn.History[len(turn.History)-1].Recalled); n > 0 {
			t.Errorf("a message with %d bytes of memory reached the agent", n)
		}
		return echo(ctx, turn)
	}, func(c *bridge.Config) {
		c.Turns.Recall = func(_ context.Context, _ toolgroups.Scope, question string) (found string, own, shown bool, err error) {
			return strings.Repeat(tooLarge(), strings.Count(question, "recall")), true, true, nil
		}
	})
	r.accept(direct("1", tooLarge()), direct("2", "recall"), direct("3", "next"))
	got := texts(r.platform.wait(t, 3))
	if !strings.Contains(got[0], "too long for me") || !strings.Contains(got[1], "too long for me to keep") || got[2] != "re: next" {
		t.Errorf("answers: %.200q", got)
	}
	edit := direct("3", tooLarge())
	edit.Kind = chats.KindEdit
	r.accept(edit)
	if err := r.bridge.Submit(t.Context(), bridge.Submission{Key: "k", Chat: direct("", "").Chat, User: "1", Text: tooLarge()}); err == nil {
		t.Error("a task that fits into no job was taken")
	}
}

// TestAnAnswerLargerThanItsJobBecomesASentence: the parts of an answer stand in
// its job.
func TestAnAnswerLargerThanItsJobBecomesASentence(t *testing.T) {
	r := newHarness(t, echo, func(c *bridge.Config) {
		c.Commands = []bridge.Command{{
			CommandInfo: chats.CommandInfo{Name: "much"},
			Run:         func(context.Context, bridge.CommandCall) (string, error) { return tooLarge(), nil },
		}}
	})
	r.accept(direct("1", "/much"))
	if got := texts(r.platform.wait(t, 1)); !strings.Contains(got[0], "too long for me to keep") {
		t.Errorf("answers: %.200q", got)
	}
	r.accept(direct("2", "next"))
	if got := texts(r.platform.wait(t, 2)); got[1] != "re: next" {
		t.Errorf("answers: %.200q", got)
	}
}
