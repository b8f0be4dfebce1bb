package bridge_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/bridge"
	"oneclaw/bridge/access"
	"oneclaw/bridge/chats"
	"oneclaw/storage"
)

// answers counts the answers to a text that were sent to a chat, without those that are marked as
// possible repeats.
func answers(all []sent, chat, text string) (n int) {
	for _, s := range all {
		if s.to.Chat.ID == chat && s.text == "re: "+text && !s.repeat {
			n++
		}
	}
	return n
}

// keptMessages are the messages that are kept with requests, and how many bytes their records have.
func keptMessages(t *testing.T, store storage.Store) (n, size int) {
	t.Helper()
	for entry, err := range store.List(t.Context(), storage.Range{Prefix: "access/"}) {
		if err != nil {
			t.Fatal(err)
		}
		var record struct{ Message json.RawMessage }
		if err := json.Unmarshal(entry.Value, &record); err != nil {
			t.Fatal(err)
		}
		if record.Message != nil {
			n++
		}
		size += len(entry.Value)
	}
	return n, size
}

// What a stranger wrote is answered when they are let in, whichever write fails (B2).
func TestWhatANewcomerWroteIsAnsweredOnceThoughAWriteFails(t *testing.T) {
	t.Parallel()
	for _, byButton := range []bool{true, false} {
		for fails, ended := 1, false; !ended; fails++ {
			t.Run(fmt.Sprintf("by button %t, step %d", byButton, fails), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					u := newOwned(t)
					u.accept(from("2", "a", "hello"))
					u.untilTold("2", 1)
					letIn := from("1", "b", "/people add fake:2")
					if card := u.card("someone new"); byButton {
						letIn = pressOn(card, "p", "1", card.button(t, "Let in"))
					}
					u.stop()
					store, f := u.cfg.Store, &flaw{fails: fails}
					u.cfg.Store = leakyStore{flakyStore{Store: store, flaw: f}}
					u.start()
					for u.bridge.Accept(t.Context(), letIn) != nil {
						pass(t, 1)
					}
					for f.count() < fails && f.moves(t) {
					}
					u.cfg.Store = store
					u.restart()
					u.untilTold("2", 3)
					pass(t, 60)
					if n := answers(u.platform.shown(), "2", "hello"); n != 1 {
						t.Errorf("answered %d times: %q", n, u.told("2"))
					}
					if n, _ := keptMessages(t, store); n != 0 {
						t.Error("the message is kept with the person still")
					}
					ended = f.count() < fails
				})
			})
		}
	}
}

// The one who lets a newcomer in may be at another replica than the newcomer.
func TestWhatANewcomerWroteIsAnsweredByTheReplicaOfTheirChat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newSeveral(t, 2, echo, func(cfg *bridge.Config) { cfg.Access = access.Access{} })
		claim, err := access.NewClaim(t.Context(), all[0].cfg.Store, time.Now(), false)
		if err != nil {
			t.Fatal(err)
		}
		all[0].accept(from("1", "claim", "/claim "+claim.Code))
		pass(t, 10)
		const newcomers = 8
		for n := range newcomers {
			all[n%2].accept(from(fmt.Sprint("2", n), "a", "hello"))
		}
		pass(t, 20)
		n := 0
		for _, r := range all {
			for _, card := range r.platform.shown() {
				if strings.Contains(card.text, "someone new") {
					n++
					press := pressOn(card, fmt.Sprint("p", n), "1", card.button(t, "Let in"))
					all[0].accept(press)
					all[1].accept(press)
				}
			}
		}
		pass(t, 60)
		if n != newcomers {
			t.Errorf("the owner was asked about %d", n)
		}
		for n := range newcomers {
			who := fmt.Sprint("2", n)
			if n := answers(all[0].platform.shown(), who, "hello") + answers(all[1].platform.shown(), who, "hello"); n != 1 {
				t.Errorf("%s is answered %d times: %q", who, n, all.texts())
			}
		}
		all.stop(t)
	})
}

// What strangers can have the bot keep is bounded, and goes when it is decided or too late.
func TestWhatStrangersWroteIsKeptWithinBounds(t *testing.T) {
	u := newOwned(t)
	u.accept(from("2", "a", strings.Repeat("long ", 10_000)))
	wantText(t, u.untilTold("2", 1)[0], "If so, I will tell you here")
	card := u.card("They wrote: `long")
	u.press(card, "p", "1", "Let in")
	wantText(t, u.untilTold("2", 2)[1], "Please send your message again")

	u.accept(from("3", "a", "secret of 3"))
	u.untilTold("3", 1)
	u.press(u.card("secret of 3"), "q", "1", "Refuse")
	u.card("(`fake:3`) is refused")
	if n, _ := keptMessages(t, u.cfg.Store); n != 0 {
		t.Error("what was refused is kept")
	}
	var many []chats.Message
	for n := range 40 {
		many = append(many, from(fmt.Sprint("4", n), "a", strings.Repeat("x", 10_000)))
	}
	u.accept(many...)
	for _, m := range many {
		u.untilTold(m.Chat.ID, 1)
	}
	if n, size := keptMessages(t, u.cfg.Store); n != 20 || size > 20*17<<10 {
		t.Errorf("%d messages are kept in %d bytes", n, size)
	}
}
