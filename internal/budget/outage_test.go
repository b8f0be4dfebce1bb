package budget_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/agent"
	"oneclaw/internal/budget"
	"oneclaw/storage"
	"oneclaw/storage/bolt"
)

// unsure is a store that does what it is told and says that it did not, so many times.
type unsure struct {
	storage.Store
	times int
	after func() // what happens between such a write and its answer
}

func (u *unsure) Write(ctx context.Context, ops ...storage.Op) (storage.Revision, error) {
	rev, err := u.Store.Write(ctx, ops...)
	if err == nil && u.times > 0 {
		u.times--
		if u.after != nil {
			u.after()
		}
		return 0, errors.New("the connection was lost")
	}
	return rev, err
}

// TestWhatWasUsedIsKeptUntilTheStoreTakesIt lets the store fail for an hour.
func TestWhatWasUsedIsKeptUntilTheStoreTakesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, budget.Limits{})
		store := &stumbling{Store: b.store}
		b.cfg.Store = store
		l := b.another()
		b.spendOn(l, 1)
		store.failures.Store(1 << 20)
		for range 8 {
			b.spendOn(l, 10)
			time.Sleep(7 * time.Minute) //nolint:forbidigo // of the bubble
		}
		store.failures.Store(0)
		if got := report(t, l, ann()).User.Spent; got.Calls != 9 || got.Input != 81 {
			t.Errorf("counted %+v", got)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		closeStore(t, b)
	})
}

// TestALedgerThatClosesWhileTheStoreFailsSaysWhatIsLost ends although nothing can be written.
func TestALedgerThatClosesWhileTheStoreFailsSaysWhatIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, budget.Limits{})
		store, log := &stumbling{Store: b.store}, &bytes.Buffer{}
		store.failures.Store(1 << 20)
		b.cfg.Store, b.cfg.Logger = store, slog.New(slog.NewTextHandler(log, nil))
		l := b.another()
		b.spendOn(l, 10)
		synctest.Wait()
		b.spendOn(l, 10)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		lost := 0
		for line := range strings.Lines(log.String()) {
			if strings.Contains(line, "is lost") {
				lost += strings.Count(line, "calls=1 ") + 2*strings.Count(line, "calls=2 ")
			}
		}
		if lost != 2 {
			t.Errorf("the log says %s", log)
		}
		closeStore(t, b)
	})
}

func (b *bench) spendOn(l *budget.Ledger, n int) {
	b.t.Helper()
	if err := ask(b.t, l, ann(), &fake{usage: agent.Usage{Input: n}}, request(n)); err != nil {
		b.t.Fatal(err)
	}
}

func closeStore(t *testing.T, b *bench) {
	t.Helper()
	if err := errors.Join(b.Close(), b.store.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestAWriteOfUnknownOutcomeIsChargedOnce has the store take what a call used and report an error, also
// where another process adds that to the accounts before it is tried again, or where the day ends.
func TestAWriteOfUnknownOutcomeIsChargedOnce(t *testing.T) {
	for _, between := range []string{"nothing", "another process adds it", "the day ends"} {
		for _, withMessage := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, with a message: %v", between, withMessage), func(t *testing.T) {
				b := newBench(t, budget.Limits{})
				store := &unsure{Store: b.store, times: 1}
				b.cfg.Store = store
				l := b.another()
				switch between {
				case "another process adds it":
					store.after = func() {
						b.clock.set(noon().Add(time.Hour)) // it takes the first for dead
						report(t, b.Ledger, ann())
					}
				case "the day ends":
					store.after = func() { b.clock.set(noon().AddDate(0, 0, 1)) }
				}
				if turn := l.NewTurn(); withMessage {
					if _, err := turn.Model(&fake{usage: agent.Usage{Input: 10}}, ann(), "OPENAI", "m").Complete(t.Context(), request(1), nil); err != nil {
						t.Fatal(err)
					}
					write(t, store, turn)
				} else {
					b.spendOn(l, 10)
				}
				if got := report(t, l, ann()).Month.Spent.Input; got != 10 {
					t.Errorf("before it is written again, %d are spent", got)
				}
				for _, l := range []*budget.Ledger{l, b.another()} {
					if err := l.Close(); err != nil { // nothing is owed
						t.Fatal(err)
					}
				}
				b.clock.set(noon().AddDate(0, 0, 2))
				report(t, b.another(), ann()) // what is left of it is pruned
				if got := b.kept("2026-11-21/user/telegram:1").Input; got != 10 {
					t.Errorf("charged %d today", got)
				}
				if entry, err := b.store.Get(t.Context(), "account/2026-11-22/user/telegram:1"); err == nil {
					t.Errorf("charged on the next day, too: %s", entry.Value)
				}
				for e, err := range b.store.List(t.Context(), storage.Range{Prefix: "account/charges/"}) {
					t.Errorf("%s is left, %v", e.Key, err)
				}
			})
		}
	}
}

// write stores a message of a turn with the charges for it.
func write(t *testing.T, store storage.Store, turn *budget.TurnCharges, others ...storage.Op) {
	t.Helper()
	ops, done := turn.Take()
	_, err := store.Write(t.Context(), append(append(ops, others...), storage.Append("talk", 0, storage.Record{Data: []byte("hi")}))...)
	done(err)
}

// TestTheChargeForAMessageIsWrittenWithIt: what a reply cost is in the store if and only if the reply is. A
// reply that no message can be made of is charged all the same, when the turn ends.
func TestTheChargeForAMessageIsWrittenWithIt(t *testing.T) {
	b := newBench(t, budget.Limits{User: budget.Limit{Tokens: 10}})
	turn := b.NewTurn()
	m := turn.Model(&fake{usage: agent.Usage{Input: 10}}, ann(), "OPENAI", "m")
	if _, err := m.Complete(t.Context(), request(1), nil); err != nil {
		t.Fatal(err)
	}
	_ = refusal(t, ask(t, b.Ledger, ann(), &fake{}, request(1))) // it counts here already
	if got := report(t, b.another(), ann()).User.Spent; got != (budget.Usage{}) {
		t.Errorf("without a message, after a kill %+v is charged", got)
	}
	write(t, b.store, turn, storage.Check("job", 7)) // another process has taken the job over
	if got := report(t, b.another(), ann()).User.Spent; got != (budget.Usage{}) {
		t.Errorf("after a conflict, %+v is charged", got)
	}
	write(t, b.store, turn)
	if got := report(t, b.another(), ann()).User.Spent; got.Calls != 1 || got.Input != 10 {
		t.Errorf("with a message, %+v is charged", got)
	}
	*b.limits = budget.Limits{}
	if _, err := m.Complete(t.Context(), request(1), nil); err != nil {
		t.Fatal(err)
	}
	turn.Flush()
	if got := report(t, b.another(), ann()).User.Spent; got.Calls != 2 || got.Input != 20 {
		t.Errorf("at the end of the turn, %+v is charged", got)
	}
}

// TestAClockThatWasAheadOnceShutsAndDeletesNothing has one call made by a clock that is wrong.
func TestAClockThatWasAheadOnceShutsAndDeletesNothing(t *testing.T) {
	for _, ahead := range []int{3, 20, 365, 3650} {
		b := newBench(t, budget.Limits{User: budget.Limit{Tokens: 100}})
		for day := range 3 {
			b.clock.set(noon().AddDate(0, 0, day))
			b.spend(100, ann())
			report(t, b.Ledger, ann()) // so that all is written
		}
		b.clock.set(noon().AddDate(0, 0, 2+ahead))
		b.spend(100, ann())
		report(t, b.Ledger, ann())
		b.clock.set(noon().AddDate(0, 0, 2))
		r := refusal(t, ask(t, b.another(), ann(), &fake{}, request(1)))
		if r.Until.Format(time.DateOnly) != "2026-11-24" {
			t.Errorf("%d days: refused until %v", ahead, r.Until)
		}
		b.clock.set(noon().AddDate(0, 0, 3))
		b.Ledger = b.another()
		b.spend(100, ann())
		report(t, b.Ledger, ann())
		for _, day := range []string{"2026-11-21", "2026-11-22", "2026-11-23", "2026-11-24"} {
			if got := b.kept(day + "/user/telegram:1").Input; got != 100 {
				t.Errorf("%d days: on %s there are %d", ahead, day, got)
			}
		}
	}
}

// TestNoModelIsAskedBeyondWhatCanBeKept has more calls than may be owed to the store.
func TestNoModelIsAskedBeyondWhatCanBeKept(t *testing.T) {
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "test.db"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	failing := &stumbling{Store: store}
	failing.failures.Store(1 << 30)
	l, err := budget.Open(budget.Config{Now: time.Now, Store: failing})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	asked := 0
	for ; asked < 2000; asked++ {
		if ask(t, l, ann(), &fake{usage: agent.Usage{Input: 1}}, request(1)) != nil {
			break
		}
	}
	if asked != 1000 {
		t.Errorf("asked %d times", asked)
	}
	failing.failures.Store(0)
	if got := report(t, l, ann()).User.Spent.Calls; got != int64(asked) {
		t.Errorf("%d of %d are counted", got, asked)
	}
}
