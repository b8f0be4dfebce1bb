package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
)

// What is written during a turn is answered, in order.
func TestAMessageDuringATurnIsAnsweredAfterIt(t *testing.T) {
	s := newSlow()
	histories := make(chan int, 3)
	r := newHarness(t, func(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
		histories <- len(turn.History)
		return s.think(ctx, turn)
	})
	r.accept(direct("1", "slow one"))
	<-s.asked
	r.accept(direct("2", "two"), direct("3", "three"))
	close(s.free)
	got := texts(r.platform.wait(t, 3))
	if want := []string{"re: slow one", "re: two", "re: three"}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("answers: %q, want %q", got, want)
	}
	for _, want := range []int{1, 3, 5} {
		if n := <-histories; n != want {
			t.Errorf("a turn saw %d messages, want %d: what was answered before it, and its question", n, want)
		}
	}
}

// TestAConversationThatIsGoneBeginsAnew takes the log of a chat away, with and without
// the bot keeping its end in memory.
//
// After a change of the session the next message goes to the new one.
func TestAConversationThatIsGoneBeginsAnew(t *testing.T) {
	t.Parallel()
	r := newHarness(t, echo)
	c := conversation.Conversation{Chat: chats.Chat{Platform: "fake", ID: "1"}, Generation: 1}
	sent := 0
	for n, restarts := range []bool{false, true} {
		r.accept(direct(fmt.Sprint("a", n), "before"))
		sent++
		r.platform.wait(t, sent)
		r.stop() // the receipt is written
		if restarts {
			r.start()
		} else {
			r.start()
			r.accept(direct(fmt.Sprint("b", n), "kept in memory"))
			sent++
			r.platform.wait(t, sent)
		}
		if err := r.cfg.Store.Drop(t.Context(), c.Log()); err != nil {
			t.Fatal(err)
		}
		r.accept(direct(fmt.Sprint("c", n), "after"))
		sent++
		if got := texts(r.platform.wait(t, sent)); got[sent-1] != "re: after" || len(got) != sent {
			t.Errorf("answers: %q", got)
		}
		r.stop()
		if n := countHistory(t, r, 1); n != 2 {
			t.Errorf("the new conversation has %d messages, want the question and its answer", n)
		}
		r.start()
	}
}

// summing echoes, and sums up only once the answer has been seen.
type summing struct {
	thinker
	seen func() bool
	told chan bool
}

func (s summing) Compact(context.Context, agent.Turn, int) (agent.Message, bool, error) {
	s.told <- s.seen()
	return agent.Message{}, false, errors.New("the model for summaries is out of order")
}

func TestTheAnswerIsSentBeforeWhatFollowsItAndWhateverBecomesOfThat(t *testing.T) {
	told := make(chan bool, 10)
	r := newHarness(t, echo)
	r.stop()
	r.cfg.Turns.Agent = summing{thinker: echo, told: told, seen: func() bool { return len(r.platform.texts()) > 0 }}
	r.start()
	r.accept(direct("1", "one"))
	if !<-told {
		t.Error("the answer had to wait for a summary")
	}
	r.accept(direct("2", "two"))
	if got := texts(r.platform.wait(t, 2)); got[0] != "re: one" || got[1] != "re: two" {
		t.Errorf("answers: %q", got)
	}
}
