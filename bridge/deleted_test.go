package bridge_test

import (
	"context"
	"iter"
	"slices"
	"testing"
	"testing/synctest"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/chats"
)

// TestTheTurnOfADeletedMessageEndsWithoutAnAnswer: whoever deletes a question, while it waits or while the agent
// works on it, gets no answer to it. Messages of others, and later ones, are answered.
func TestTheTurnOfADeletedMessageEndsWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		started := make(chan struct{})
		think := func(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
			text := turn.History[len(turn.History)-1].Text
			if text != "one" {
				return answering("re: "+text)(ctx, turn)
			}
			return func(yield func(agent.Message, error) bool) {
				close(started)
				<-ctx.Done()
				yield(agent.Message{}, context.Cause(ctx))
			}
		}
		r := newHarness(t, think, func(cfg *bridge.Config) { cfg.Turns.SeparateTurns = true })
		r.accept(direct("1", "one"))
		<-started
		r.accept(direct("2", "two"))
		r.accept(direct("3", "three"))
		for _, id := range []string{"3", "2", "1", "1", "7"} {
			gone := direct(id, "")
			gone.Kind = chats.KindDelete
			if id == "3" {
				gone.User = "77" // not the sender
			}
			r.accept(gone)
		}
		r.closed(3)
		if got, want := r.platform.texts(), []string{"re: three"}; !slices.Equal(got, want) {
			t.Errorf("shown is %q, want %q", got, want)
		}
	})
}
