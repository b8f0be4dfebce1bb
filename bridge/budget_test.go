package bridge_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/interact"
	"oneclaw/toolgroups"
)

var errSpent = errors.New("all is spent")

// broke is an agent without a budget.
func broke(context.Context, agent.Turn) iter.Seq2[agent.Message, error] {
	return func(yield func(agent.Message, error) bool) {
		yield(agent.Message{}, &agent.ModelError{Kind: agent.KindBudget, Notice: "Today's budget is used up.", Err: errSpent})
	}
}

func asking(c *bridge.Config) {
	v := &voter{}
	c.CardHandlers = map[string]interact.Handler{"vote": v.handle}
	c.Hooks.RefusalCard = func(_ context.Context, scope toolgroups.Scope, failure error) (interact.Card, error) {
		if !errors.Is(failure, errSpent) {
			return interact.Card{}, failure
		}
		card := vote()
		card.Text = "Today's budget is used up, " + scope.User
		return card, nil
	}
}

// A turn without a budget is no incident: it is answered with a card, and the question
// stays on record.
func TestATurnWithoutBudgetIsAnsweredWithACard(t *testing.T) {
	r := newHarness(t, broke, asking)
	r.accept(direct("1", "hello"), direct("1", "hello")) // the second is a repeated delivery
	got := r.platform.wait(t, 1)[0]
	if got.text != "Today's budget is used up, fake:1" || len(got.buttons) != 2 {
		t.Errorf("answered %+v", got)
	}
	r.accept(pressOn(got, "p1", "1", got.button(t, "Yes")))
	r.platform.until(t, "edit", func(all []sent) bool { return strings.Contains(all[0].text, "chose yes") })
	r.accept(direct("1", "hello"))
	said := 0
	for m, err := range conversation.Messages(t.Context(), r.cfg.Store, "fake:1/1") {
		if err != nil || m.Text != "hello" {
			t.Errorf("on record: %+v, %v", m, err)
		}
		said++
	}
	r.stop()
	if all := r.platform.texts(); len(all) != 1 {
		t.Errorf("answered %q", all)
	}
	if said != 1 {
		t.Errorf("%d messages on record", said)
	}
}

// A card without buttons is told, too.
func TestANoticeIsTold(t *testing.T) {
	r := newHarness(t, broke, asking, func(c *bridge.Config) {
		c.Hooks.RefusalCard = func(context.Context, toolgroups.Scope, error) (interact.Card, error) {
			return interact.Card{Kind: "vote", Text: "Please wait a minute."}, nil
		}
	})
	r.accept(direct("1", "hello"))
	if got := r.platform.wait(t, 1)[0]; got.text != "Please wait a minute." || len(got.buttons) != 0 {
		t.Errorf("answered %+v", got)
	}
}

// Without anybody who makes a card, and in a task, the notice stands alone.
func TestATaskWithoutBudgetIsTold(t *testing.T) {
	told := newResults()
	r := newHarness(t, broke, asking, func(c *bridge.Config) { c.Hooks.OnTaskDone = told.done })
	r.submit(task("a.1", "News", "tell me"))
	result := told.next(t)
	got := r.platform.wait(t, 1)
	if got[0].text != heading+"News\n\nToday's budget is used up." || !result.Refused || result.Incident != "" {
		t.Errorf("told %q, %+v", got[0].text, result)
	}
}
