package bridge_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/storage"
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

// What a user did to the messages of others is on record with these.
func TestForgetTakesRatingsAndDecisionsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, echo, func(cfg *bridge.Config) { cfg.Access.Allow = []string{"fake:1", "fake:6", "fake:7"} })
		r.accept(group("1", "6", "Bob asks"))
		r.platform.wait(t, 1)
		pass(t, 1)
		for _, user := range []string{"1", "7"} {
			r.accept(chats.NewFeedback(group("", "", "").Chat, "1", user, chats.FeedbackGood, time.Now()))
		}
		decided := &receipts.Receipt{Message: group("2", "6", "Bob runs a tool"), State: receipts.Done, Closed: time.Now()}
		decided.Turn.Approvals = []receipts.Approval{{Tool: "exec", Decision: &receipts.Decision{Choice: receipts.ChoiceAllow, By: "fake:1", Name: "Secretary"}}}
		if err := receipts.Put(t.Context(), r.cfg.Store, decided, storage.Absent); err != nil {
			t.Fatal(err)
		}
		pass(t, 1)
		if found := placesOf(t, r.cfg.Store, `"by":"fake:1"`); len(found) < 2 {
			t.Fatalf("only %q name the user", found)
		}
		r.forget(t)
		pass(t, 60)
		r.wantNoSecrets()
		for user, want := range map[string]int{"fake:1": 0, "fake:7": 1} {
			found := slices.DeleteFunc(placesOf(t, r.cfg.Store, `"by":"`+user), func(place string) bool { return !strings.HasPrefix(place, receipts.Prefix) })
			if len(found) != want {
				t.Errorf("%s is in %q", user, found)
			}
		}
	})
}

// What a user did to the message of another user is on record with its job as long as that is open, and
// is not in the receipt that comes later.
func TestForgetTakesRatingsAndDecisionsOfOpenJobsAway(t *testing.T) {
	t.Parallel()
	settings := func(cfg *bridge.Config) { cfg.Access.Admins = []string{"fake:1"} }
	for name, begin := range map[string]func(t *testing.T) (r *harness, goOn func()){
		"a decision": func(t *testing.T) (*harness, func()) {
			w := &execTools{}
			r := w.guarded(t, settings)
			r.accept(group("1", "6", "run a\nrun b"))
			cards := r.platform.wait(t, 2)
			r.accept(pressOn(cards[0], "p1", "1", cards[0].button(t, "Allow once")))
			return r, func() {
				r.accept(pressOn(cards[1], "p2", "6", cards[1].button(t, "Allow once")))
				r.platform.one(t, "ran b")
			}
		},
		"a rating": func(t *testing.T) (*harness, func()) {
			arrived, release := make(chan struct{}), make(chan struct{})
			r := newHarness(t, answering("one\ftwo"), settings)
			r.platform.fail = func(n int, after bool) error {
				if n == 2 && !after { // the second part of the answer
					close(arrived)
					<-release
				}
				return nil
			}
			r.accept(group("1", "6", "Bob asks"))
			<-arrived
			r.accept(chats.NewFeedback(oldChat, "1", "1", chats.FeedbackGood, time.Now()))
			return r, func() {
				close(release)
				r.platform.one(t, "two")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r, goOn := begin(t)
				// The card of a call says who decided, also later.
				found := func(sign string) []string {
					return slices.DeleteFunc(placesOf(t, r.cfg.Store, sign), func(place string) bool { return !strings.HasPrefix(place, "job/") })
				}
				pass(t, 1)
				if at := found(`"by":"fake:1"`); !slices.Contains(at, queue.OpenPrefix+"fake:g/1/text") {
					t.Fatalf("the user is only in %q", at)
				}
				r.forget(t)
				pass(t, 5)
				goOn()
				pass(t, 60)
				if _, err := r.cfg.Store.Get(t.Context(), receipts.Prefix+"fake:g/1/text"); err != nil {
					t.Error(err)
				}
				if at := found(`"by":"fake:1"`); len(at) > 0 {
					t.Errorf("the user is still in %q", at)
				}
			})
		})
	}
}

// A damaged record does not say what it was, but its key names the chat.
func TestForgetTakesDamagedRecordsOfTheDirectChatAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, echo)
		r.accept(direct("1", "hello"))
		r.platform.wait(t, 1)
		pass(t, 1)
		const damaged = `{"message":{"text":"secret`
		r.put("job/done/fake:1/9/text", damaged)
		letters := queue.DeadLetterStore{KV: r.cfg.Store, Log: slog.New(slog.DiscardHandler), Now: time.Now}
		for _, key := range []string{"job/done/fake:1/8/text", "memory/fake:1/8", "job/done/fake:g/8/text"} {
			if err := letters.AddDamaged(t.Context(), storage.Entry{Key: key, Value: []byte(damaged)}); err != nil {
				t.Fatal(err)
			}
		}
		r.forget(t)
		pass(t, 60)
		r.wantNoSecrets()
		if all := deadLetters(t, r); len(all) != 1 || all[0].Key != "job/done/fake:g/8/text" {
			t.Errorf("set aside are %+v", all)
		}
		var left receipts.Receipt
		entry, err := r.cfg.Store.Get(t.Context(), "job/done/fake:1/9/text")
		if err == nil {
			err = json.Unmarshal(entry.Value, &left)
		}
		if err != nil || left.State != receipts.Failed {
			t.Errorf("the receipt is %s: %v", entry.Value, err)
		}
	})
}
