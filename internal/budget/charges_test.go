package budget_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/internal/budget"
	"oneclaw/storage"
)

// TestChargesOfADeadProcessAreAddedOnce: charges that an earlier format left, too. A damaged one is put aside
// first.
func TestChargesOfADeadProcessAreAddedOnce(t *testing.T) {
	b := newBench(t, budget.Limits{})
	b.spend(10, ann()) // it is killed before it adds that to the accounts
	for key, value := range map[string]string{
		"account/charges/DEAD/1": `{"day":"2026-11-21","sums":[
			{"account":{"kind":"user","name":"telegram:1"},"sum":{"calls":1,"input":7}},{"account":{"kind":"total"},"sum":{"calls":1,"input":7}}]}`,
		"account/charges/DEAD/2": `{"day":"2026-11-21"}`,
		"account/charges/~/1":    "{",
	} {
		if _, err := b.store.Put(t.Context(), key, []byte(value), storage.Absent); err != nil {
			t.Fatal(err)
		}
	}
	full := true
	b.cfg.OnDamaged = func(context.Context, storage.Entry) error {
		if full {
			return errors.New("no space left")
		}
		return nil
	}
	after := b.another()
	if got, err := after.Report(t.Context(), ann()); err == nil {
		t.Errorf("in a full store: %+v", got)
	}
	full = false
	for _, wait := range []time.Duration{0, time.Hour, 48 * time.Hour} {
		b.clock.set(noon().Add(wait))
		if r, err := after.Report(t.Context(), ann()); err != nil || r.Month.Spent.Calls != 1 || r.ChatTotal.Input != 10 {
			t.Errorf("after %v: %+v, %v", wait, r, err)
		}
		if got := b.kept("2026-11-21/user/telegram:1"); got.Calls != 1 && wait == 0 || got.Calls != 2 && wait > 0 {
			t.Errorf("after %v %d calls are in the account", wait, got.Calls)
		}
	}
	for e, err := range b.store.List(t.Context(), storage.Range{Prefix: "account/charges/"}) {
		t.Errorf("%s is left: %s, %v", e.Key, e.Value, err)
	}
}

// TestChargesAreAddedToTheAccountsWithinSeconds: nobody has to ask for them.
func TestChargesAreAddedToTheAccountsWithinSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, budget.Limits{})
		for range 5 {
			b.spend(7, ann())
		}
		time.Sleep(3 * time.Second) //nolint:forbidigo // of the bubble
		total, err := b.store.Get(t.Context(), "account/2026-11-21/total/")
		if err != nil {
			t.Fatal(err)
		}
		chat, err := b.store.Get(t.Context(), "account/2026-11-21/chat/telegram:1")
		if got := b.kept("2026-11-21/chat/telegram:1"); err != nil || chat.Revision != total.Revision || got.Calls != 5 {
			t.Errorf("%d calls are added, in the writes %v and %v: %v", got.Calls, chat.Revision, total.Revision, err)
		}
		closeStore(t, b)
	})
}
