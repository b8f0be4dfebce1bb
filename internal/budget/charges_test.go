package budget_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/agent"
	"oneclaw/internal/budget"
	"oneclaw/storage"
)

// charged has a ledger whose calls nothing bounds make one, and returns when it is on record.
func (b *bench) charged(next func() (storage.Event, error, bool)) {
	b.t.Helper()
	if err := ask(b.t, b.Ledger, ann(), &fake{usage: agent.Usage{Input: 7}}, request(1)); err != nil {
		b.t.Fatal(err)
	}
	for {
		e, err, ok := next()
		if err != nil || !ok {
			b.t.Fatal(err)
		}
		if !e.Deleted && strings.Contains(string(e.Value), "sums") {
			return
		}
	}
}

// TestChargesOfAKilledProcessAreAddedOnce: what was on record and not yet added when a process was
// killed is added by the next one, and not again where the first lives after all.
func TestChargesOfAKilledProcessAreAddedOnce(t *testing.T) {
	b := newBench(t, budget.Limits{})
	next, stop := iter.Pull2(b.store.Watch(t.Context(), "account/charges/"))
	defer stop()
	b.charged(next)
	b.cfg.Exclusive = true
	after := b.another() // the first is not closed
	if got := report(t, after, ann()); got.Total.Spent.Calls != 1 || got.User.Spent.Input != 7 || got.Month.Spent.Calls != 1 {
		t.Errorf("after a kill %+v", got)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if got := b.kept("2026-11-21/total/"); got.Calls != 1 {
		t.Errorf("%d calls are on record, want 1", got.Calls)
	}
	if got := b.kept("ever/telegram:1"); got.Input != 7 {
		t.Errorf("the chat has used %+v", got)
	}
	for e, err := range b.store.List(t.Context(), storage.Range{Prefix: "account/charges/"}) {
		t.Errorf("%s is left: %v", e.Key, err)
	}
}

// TestChargesAreAddedTogether: what calls used in a second is one write to the accounts.
func TestChargesAreAddedTogether(t *testing.T) {
	t.Parallel()
	b := newBench(t, budget.Limits{})
	next, stop := iter.Pull2(b.store.Watch(t.Context(), "account/charges/"))
	defer stop()
	for range 5 {
		b.charged(next)
	}
	if got := report(t, b.Ledger, ann()); got.Total.Spent.Calls != 5 || got.Chat.Spent.Input != 35 {
		t.Errorf("%+v", got)
	}
	total, err := b.store.Get(t.Context(), "account/2026-11-21/total/")
	if err != nil {
		t.Fatal(err)
	}
	chat, err := b.store.Get(t.Context(), "account/2026-11-21/chat/telegram:1")
	if err != nil || chat.Revision != total.Revision {
		t.Errorf("the accounts were written apart: %v and %v, %v", chat.Revision, total.Revision, err)
	}
}

// TestChargesThatAreFoundAgainAreAddedOnce: a search that ends at a damaged record, which cannot be moved
// aside, is made again, and finds what it had found before.
func TestChargesThatAreFoundAgainAreAddedOnce(t *testing.T) {
	b := newBench(t, budget.Limits{})
	next, stop := iter.Pull2(b.store.Watch(t.Context(), "account/charges/"))
	defer stop()
	b.charged(next)
	if _, err := b.store.Put(t.Context(), "account/charges/~/1", []byte("{"), storage.Absent); err != nil {
		t.Fatal(err)
	}
	full := true
	b.cfg.Exclusive = true
	b.cfg.OnDamaged = func(context.Context, storage.Entry) error {
		if full {
			return errors.New("no space left")
		}
		return nil
	}
	after := b.another() // the first is not closed
	if got, err := after.Report(t.Context(), ann()); err == nil {
		t.Errorf("in a full store: %+v", got)
	}
	full = false
	if got := report(t, after, ann()); got.Total.Spent.Calls != 1 || got.User.Spent.Input != 7 {
		t.Errorf("afterwards: %+v", got)
	}
}

// TestChargesOfADeadReplicaSurviveAnOutage: they are found again and again while they cannot be added, and
// added once.
func TestChargesOfADeadReplicaSurviveAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, budget.Limits{})
		if _, err := b.store.Put(t.Context(), "account/charges/DEAD/1", []byte(`{"day":"2026-11-21","sums":[
			{"account":{"kind":"user","name":"telegram:1"},"sum":{"calls":1,"input":7}},{"account":{"kind":"total"},"sum":{"calls":1,"input":7}}]}`), storage.Absent); err != nil {
			t.Fatal(err)
		}
		store := &stumbling{Store: b.store}
		b.cfg.Store = store
		l := b.another()
		b.spendOn(l, 10)
		time.Sleep(500 * time.Millisecond) //nolint:forbidigo // of the bubble: it is on record
		store.failures.Store(1 << 20)
		time.Sleep(time.Hour) //nolint:forbidigo // of the bubble
		store.failures.Store(0)
		if got, err := l.Report(t.Context(), ann()); err != nil || got.Total.Spent.Calls != 2 || got.User.Spent.Input != 17 {
			t.Errorf("%+v, %v", got, err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		closeStore(t, b)
	})
}
