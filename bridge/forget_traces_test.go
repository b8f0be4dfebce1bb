package bridge_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/receipts"
)

// The card about a task that failed in a group shows the title that the user gave it.
func TestForgetTakesTheCardOfAFailedTaskAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, func(context.Context, agent.Turn) iter.Seq2[agent.Message, error] {
			return func(yield func(agent.Message, error) bool) { yield(agent.Message{}, errors.New("no model")) }
		})
		r.submit(bridge.Submission{Key: "task", Chat: group("", "1", "").Chat, User: "1", Title: "Secret title", Text: "secret task"})
		r.platform.wait(t, 1)
		pass(t, 1)
		r.forget(t)
		pass(t, 60)
		r.wantNoSecrets()
	})
}

// The receipts of the erasures themselves are written last.
func TestNoReceiptOfAnErasureNamesTheUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, echo)
		thread := direct("t1", "hello")
		thread.Chat.Thread = "t"
		r.accept(direct("1", "hello"), thread, group("g1", "1", "hello"))
		r.platform.wait(t, 3)
		r.submit(bridge.Submission{Key: "task", Chat: group("", "1", "").Chat, User: "1", Title: "Title", Text: "task"})
		r.platform.wait(t, 4)
		pass(t, 1)
		r.forget(t)
		pass(t, 60)
		for _, sign := range []string{`"user":"1"`, `"user_name":"ann"`, `"ann"`} {
			found := placesOf(t, r.cfg.Store, sign)
			found = slices.DeleteFunc(found, func(place string) bool { return !strings.HasPrefix(place, receipts.Prefix) })
			if len(found) > 0 {
				t.Errorf("%s is still in %q", sign, found)
			}
		}
	})
}
