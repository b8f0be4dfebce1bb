package bridge_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/bridge/cards"
	"oneclaw/bridge/chats"
	"oneclaw/storage"
)

// mortalEditor dies in the middle of edits as well.
type mortalEditor struct{ mortalPlatform }

func (p mortalEditor) Edit(ctx context.Context, to chats.Address, id string, part chats.Part) error {
	_, err := p.request(func() (string, error) { return "", p.platform.Edit(ctx, to, id, part) })
	return err
}

// TestC17ACardOutlivesAnyKill kills the bridge at every step of a card that is pressed, that
// expires, or that changes and is pressed then: the message shows what became of it in the
// end, and a press is decided once.
func TestC17ACardOutlivesAnyKill(t *testing.T) {
	for name, fate := range map[string]fate{
		"is pressed": {[]string{"Yes"}, "fake:1 chose yes"},
		"changes":    {[]string{"Later", "No"}, "fake:1 chose no"},
		"expires":    {nil, "nobody voted"},
	} {
		t.Run(name, func(t *testing.T) {
			diesAtEachStep(t, 12, func(t *testing.T, life *mortal) {
				synctest.Test(t, func(t *testing.T) { liveCard(t, life, fate) })
			})
		})
	}
}

// fate is which buttons of a card are pressed, and what its message shows in the end.
type fate struct {
	presses []string
	shown   string
}

func liveCard(t *testing.T, life *mortal, fate fate) {
	t.Helper()
	v := &voter{decide: func(p cards.Press) (cards.Result, error) {
		switch p.Choice {
		case "":
			return cards.Result{Text: "nobody voted"}, nil
		case "later":
			return cards.Result{Text: "And now?", Choices: [][]cards.Choice{{{Label: "No", Value: "no"}}}}, nil
		}
		return cards.Result{Text: p.User + " chose " + p.Choice, Close: true}, nil
	}}
	r := newRig(t, echo, voting(v))
	r.stop()
	store, shown := r.cfg.Store, r.platform
	r.cfg.Store, r.cfg.Platforms = mortalStore{store, life}, []chats.Platform{mortalEditor{mortalPlatform{shown, life}}}
	r.start()
	act := func() {
		card := vote()
		card.Expires = time.Now().Add(time.Hour)
		_ = r.bridge.Post(t.Context(), "k", chatOne, card) // dead, maybe
		pass(t, 5)
		for _, label := range fate.presses {
			all := shown.in("1")
			if len(all) == 0 {
				continue
			}
			last := all[len(all)-1]
			for _, b := range slices.Concat(last.buttons...) {
				if b.Label == label {
					_ = r.bridge.Accept(t.Context(), pressOn(last, label, "1", b.Data))
				}
			}
			pass(t, 60)
		}
		if fate.presses == nil {
			pass(t, 2*3600)
		}
	}
	act()
	r.stop()
	before := len(v.seen()) // what is dead asks again and again
	r.cfg.Store, r.cfg.Platforms = store, []chats.Platform{shown}
	r.start()
	act()
	r.stop()
	all := shown.in("1")
	if len(all) == 0 && fate.presses == nil {
		return // its time was over before it could be sent
	}
	if len(all) == 0 || all[len(all)-1].text != fate.shown || all[len(all)-1].buttons != nil {
		t.Errorf("shown are %+v", all)
	}
	for entry, err := range store.List(t.Context(), storage.Range{Prefix: "card/"}) {
		var kept cards.Kept
		if err == nil {
			err = json.Unmarshal(entry.Value, &kept)
		}
		if err != nil || kept.Open() || kept.Text != fate.shown {
			t.Errorf("the store has %s (%v)", entry.Value, err)
		}
	}
	if n := keys(t, store, "job/open/"); n != 0 || keys(t, store, "card/") != 1 {
		t.Errorf("%d jobs are open, %d cards are there", n, keys(t, store, "card/"))
	}
	if n := len(v.seen()) - before; n > max(1, len(fate.presses)) {
		t.Errorf("the second life asked the handler %d times", n)
	}
}
