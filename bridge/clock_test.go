package bridge_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/storage"
)

const day = 24 * time.Hour

// keys counts the keys of a store with a prefix.
func keys(t *testing.T, store storage.KV, prefix string) int {
	t.Helper()
	n := 0
	for _, err := range store.List(t.Context(), storage.Range{Prefix: prefix}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// TestAClockThatIsSetBackClearsNothing has the clock wrong by days when a conversation is
// cleared, and set right while the bot is down.
func TestAClockThatIsSetBackClearsNothing(t *testing.T) {
	for _, command := range []string{"/clear", "/stop"} {
		t.Run(command, func(t *testing.T) {
			var c clock
			s := newSlow()
			r := newHarness(t, s.think, func(cfg *bridge.Config) { cfg.Now = c.Now })
			c.advance(2 * day)
			r.accept(direct("1", "slow one"))
			<-s.asked
			r.accept(direct("2", command))
			r.platform.wait(t, 1)
			r.accept(direct("3", "before"))
			r.platform.wait(t, 2)
			r.stop()
			c.advance(-3 * day)
			r.start()
			r.accept(direct("4", "after"), direct("5", "and on"))
			got := texts(r.platform.wait(t, 4))
			if fmt.Sprint(got[1:]) != "[re: before re: after re: and on]" {
				t.Errorf("answers: %q", got)
			}
		})
	}
}

// TestReceiptsOutliveAClockThatJumps wants no message answered twice because of a clock
// that was wrong for a while, and no receipt kept for ever.
func TestReceiptsOutliveAClockThatJumps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c clock
		r := newHarness(t, echo, func(cfg *bridge.Config) { cfg.Now = c.Now })
		r.accept(direct("1", "one"))
		r.platform.wait(t, 1)
		pass(t, 30*60)
		c.advance(30 * day)
		pass(t, 3600) // the receipts have been looked through
		r.accept(direct("1", "one"), direct("2", "two"))
		r.platform.wait(t, 2)
		c.advance(-30 * day)
		pass(t, 2*3600)
		r.accept(direct("1", "one"), direct("2", "two"))
		pass(t, 1)
		if got := strings.Join(r.platform.texts(), ", "); got != "re: one, re: two" {
			t.Errorf("answers: %s", got)
		}
		if n := keys(t, r.cfg.Store, "job/done/"); n != 2 {
			t.Errorf("%d receipts, want 2", n)
		}
		// Both are forgotten a week later, the one from the future too.
		pass(t, int((receipts.Age+3*time.Hour)/time.Second))
		r.stop()
		if n := keys(t, r.cfg.Store, "job/done/"); n != 0 {
			t.Errorf("%d receipts after a week, want none", n)
		}
	})
}

func TestConversationsOfTasksAreForgottenInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c clock
		told := newResults()
		r := newHarness(t, echo, func(cfg *bridge.Config) { cfg.Now, cfg.Hooks.OnTaskDone = c.Now, told.done })
		r.accept(direct("1", "one"))
		r.submit(task("a.1", "News", "tell me"))
		result := told.next(t)
		waitAnswered(t, r.platform, "re: one", "re: tell me")
		for _, want := range []int{2, 1} {
			pass(t, 2*3600)
			if n := keys(t, r.cfg.Store, "conversation/"); n != want {
				t.Errorf("%d conversations, want %d", n, want)
			}
			r.stop()
			c.advance(bridge.TaskAge)
			r.start()
		}
		for record, err := range r.cfg.Store.Records(t.Context(), result.Session, storage.Query{}) {
			t.Fatalf("the task's log still has %s (%v)", record.Data, err)
		}
		if n := countHistory(t, r, 1); n != 2 {
			t.Errorf("the chat's log has %d messages, want 2", n)
		}
	})
}

// What runs on another replica is not in the queue of the leader.
func TestTheConversationOfATaskThatRunsElsewhereIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, echo)
		c := conversation.Conversation{Owner: "fake:1", Chat: chats.Chat{Platform: "fake", ID: "1"}, Generation: 1, Task: "a.1", StartedAt: time.Now().Add(-2 * bridge.TaskAge)}
		key := queue.OpenPrefix + queue.KeyOf(chats.Message{Chat: c.Chat, ID: c.Task, Kind: receipts.KindTask})
		if _, err := r.cfg.Store.Put(t.Context(), key, []byte(`{"holder":"another"}`), storage.Absent); err != nil {
			t.Fatal(err)
		}
		if err := c.AddToList(t.Context(), r.cfg.Store); err != nil {
			t.Fatal(err)
		}
		for _, want := range []int{1, 0} {
			pass(t, 2*3600)
			if n := keys(t, r.cfg.Store, "conversation/"); n != want {
				t.Errorf("%d conversations, want %d", n, want)
			}
			if err := r.cfg.Store.Delete(t.Context(), key, storage.Any); err != nil {
				t.Fatal(err)
			}
		}
	})
}
