package bridge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/interact"
	"oneclaw/storage"
)

// mortalEditor dies in the middle of edits as well.
type mortalEditor struct{ mortalPlatform }

func (p mortalEditor) Edit(ctx context.Context, to chats.Address, id string, part chats.Part) error {
	_, err := p.request(func() (string, error) { return "", p.platform.Edit(ctx, to, id, part) })
	return err
}

func (mortalEditor) ReportsReactions(context.Context, chats.Chat) bool { return true }

// outcome is which buttons of a card are pressed, or which reactions it gets, and what its message shows in the end.
type outcome struct {
	name    string
	presses []string
	shown   string
}

var fates = []outcome{
	{"is pressed", []string{"Yes"}, "fake:1 chose yes"},
	{"is reacted to", []string{"👍"}, "fake:1 chose yes"},
	{"changes", []string{"Later", "No"}, "fake:1 chose no"},
	{"expires", nil, "nobody voted"},
}

// fated handles the presses of such cards.
func fated() *voter {
	return &voter{decide: func(p interact.Press) (interact.Result, error) {
		switch p.Choice {
		case "":
			return interact.Result{Text: "nobody voted"}, nil
		case "later":
			return interact.Result{Text: "And now?", Choices: [][]interact.Choice{{{Label: "No", Value: "no"}}}}, nil
		}
		return interact.Result{Text: p.User + " chose " + p.Choice, Close: true}, nil
	}}
}

// meet posts a card and presses its buttons, as often as a platform delivers a press.
func (f outcome) meet(r *harness, times int) {
	card := vote()
	card.Expires = time.Now().Add(time.Hour)
	for range times {
		_ = r.bridge.Post(r.t.Context(), "k", chatOne, card) // dead, maybe
	}
	pass(r.t, 5)
	for _, label := range f.presses {
		all := r.platform.in("1")
		if len(all) == 0 {
			continue
		}
		last := all[len(all)-1]
		for range times {
			if chats.FeedbackOf(label) != "" {
				_ = r.bridge.Accept(r.t.Context(), reactTo(last, "1", label, 1))
			}
		}
		for _, b := range slices.Concat(last.buttons...) {
			for range times {
				if b.Label == label {
					_ = r.bridge.Accept(r.t.Context(), pressOn(last, label, "1", b.Data))
				}
			}
		}
		pass(r.t, 60)
	}
	if f.presses == nil {
		pass(r.t, 2*3600)
	}
}

// check looks at what the chat shows and the store has in the end.
func (f outcome) check(t *testing.T, p *platform, store storage.Store) {
	t.Helper()
	all := p.in("1")
	if len(all) == 0 && f.presses == nil {
		return // its time was over before it could be sent
	}
	if len(all) == 0 || all[len(all)-1].text != f.shown || all[len(all)-1].buttons != nil {
		t.Errorf("shown are %+v", all)
	}
	for entry, err := range store.List(t.Context(), storage.Range{Prefix: "card/"}) {
		var kept interact.StoredCard
		if err == nil {
			err = json.Unmarshal(entry.Value, &kept)
		}
		if err != nil || kept.IsOpen() || kept.Text != f.shown {
			t.Errorf("the store has %s (%v)", entry.Value, err)
		}
	}
	if open, there := keys(t, store, "job/open/"), keys(t, store, "card/"); open != 0 || there != 1 {
		t.Errorf("%d jobs are open, %d cards are there", open, there)
	}
}

// TestACardOutlivesAnyKill kills the bridge at every step of a card that is pressed, that
// expires, or that changes and is pressed then: the message shows what became of it in the
// end, and a press is decided once.
func TestACardOutlivesAnyKill(t *testing.T) {
	t.Parallel()
	for _, f := range fates {
		t.Run(f.name, func(t *testing.T) {
			diesAtEachStep(t, 12, func(t *testing.T, life *mortal) {
				synctest.Test(t, func(t *testing.T) { liveCard(t, life, f) })
			})
		})
	}
}

func liveCard(t *testing.T, life *mortal, f outcome) {
	t.Helper()
	v := fated()
	r := newHarness(t, echo, voting(v))
	r.stop()
	store, shown := r.cfg.Store, r.platform
	r.cfg.Store, r.cfg.Platforms = mortalStore{store, life}, []chats.Platform{mortalEditor{mortalPlatform{shown, life}}}
	r.start()
	f.meet(r, 1)
	r.stop()
	before := len(v.seen()) // what is dead asks again and again
	r.cfg.Store, r.cfg.Platforms = store, []chats.Platform{reacting{platform: shown}}
	r.start()
	f.meet(r, 1)
	r.stop()
	f.check(t, shown, store)
	if n := len(v.seen()) - before; n > max(1, len(f.presses))+1 { // once more if the end of a card meets its sending
		t.Errorf("the second life asked the handler %d times", n)
	}
}

// TestACardOutlivesAFailedWrite lets the store fail once, after the write or before it, at
// every write of such cards: nothing waits for a restart.
func TestACardOutlivesAFailedWrite(t *testing.T) {
	t.Parallel()
	for _, f := range fates {
		for fails := 1; fails <= 20; fails++ {
			t.Run(fmt.Sprint(f.name, " step ", fails), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newHarness(t, echo, voting(fated()))
					r.stop()
					store := r.cfg.Store
					r.cfg.Store, r.cfg.Platforms = flakyStore{Store: store, flaw: &flaw{fails: fails}}, []chats.Platform{reacting{platform: r.platform}}
					r.start()
					f.meet(r, 2)
					r.stop()
					f.check(t, r.platform, store)
				})
			})
		}
	}
}
