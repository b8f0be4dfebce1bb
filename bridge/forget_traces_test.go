package bridge_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"

	"oneclaw/agent"
	"oneclaw/bridge"
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
