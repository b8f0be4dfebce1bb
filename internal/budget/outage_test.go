package budget_test

import (
	"bytes"
	"context"
	"errors"
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

// TestAWriteOfUnknownOutcomeIsChargedOnce has the store take what a call used and report an error,
// also where another process changes the same accounts before it is tried again, or where the day
// ends.
func TestAWriteOfUnknownOutcomeIsChargedOnce(t *testing.T) {
	for name, limits := range map[string]budget.Limits{"with limits": {User: budget.Limit{Tokens: 1 << 40}}, "without limits": {}} {
		for _, between := range []string{"nothing", "another process writes", "the day ends"} {
			t.Run(name+", and then "+between, func(t *testing.T) {
				b := newBench(t, limits)
				other := b.another()
				store := &unsure{Store: b.store}
				b.cfg.Store = store
				l := b.another()
				b.spendOn(l, 1)
				report(t, l, ann()) // so that all is written
				m := &fake{usage: agent.Usage{Input: 10}, began: make(chan struct{}), goOn: make(chan struct{})}
				done := make(chan error, 1)
				go func() { done <- ask(t, l, ann(), m, request(1)) }()
				<-m.began
				store.times = 2
				want := int64(11)
				switch between {
				case "another process writes":
					want += 50
					store.after = func() { b.spendOn(other, 50); report(t, other, ann()) }
				case "the day ends":
					store.after = func() { b.clock.set(noon().AddDate(0, 0, 1)) }
				}
				close(m.goOn)
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				for range 3 {
					_, _ = l.Report(t.Context(), ann()) // until nothing is owed
				}
				got := b.kept("2026-11-21/user/telegram:1").Input
				if entry, err := b.store.Get(t.Context(), "account/2026-11-22/user/telegram:1"); err == nil {
					t.Errorf("charged on the next day, too: %s", entry.Value)
				}
				if ever := report(t, b.another(), ann()).ChatTotal; got != want || ever.Input != want {
					t.Errorf("charged %d today and %d ever, want %d", got, ever.Input, want)
				}
			})
		}
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
		if r.Until.Format(time.DateOnly) != "2026-11-24" || r.BeyondDay {
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

// TestAReservationOfAClockThatWasAheadEnds kills a process that reserved with a wrong clock.
func TestAReservationOfAClockThatWasAheadEnds(t *testing.T) {
	b := newBench(t, budget.Limits{User: budget.Limit{Tokens: 150}})
	m := &fake{began: make(chan struct{}), goOn: make(chan struct{})}
	b.clock.set(noon().AddDate(1, 0, 0))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := b.Model(m, ann(), "OPENAI", "m").Complete(ctx, request(100), nil)
		done <- err
	}()
	<-m.began
	b.clock.set(noon())
	later := b.another()
	if err := ask(t, later, ann(), &fake{usage: agent.Usage{Input: 1}}, request(1)); err != nil {
		t.Errorf("held by what was reserved: %v", err)
	}
	cancel()
	<-done //nolint:errcheck // What a call that was cancelled ends with is another test.
}

// TestARefusalOfAnotherDayNamesTheDay goes back for some days in which everything was used.
func TestARefusalOfAnotherDayNamesTheDay(t *testing.T) {
	b := newBench(t, budget.Limits{User: budget.Limit{Tokens: 100}})
	for day := range 7 {
		b.clock.set(noon().AddDate(0, 0, day))
		b.spend(100, ann())
		report(t, b.Ledger, ann()) // so that all is written
	}
	b.clock.set(noon())
	if r := refusal(t, ask(t, b.Ledger, ann(), &fake{}, request(1))); !strings.Contains(r.UserText(), "00:00 (UTC) on 28 November 2026.") {
		t.Errorf("told %q", r.UserText())
	}
}

// TestNoModelIsAskedBeyondWhatCanBeKept has more calls than may be owed to the store.
func TestNoModelIsAskedBeyondWhatCanBeKept(t *testing.T) {
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "test.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	failing := &stumbling{Store: store}
	failing.failures.Store(1 << 30)
	l, err := budget.Open(budget.Config{Store: failing})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	asked := 0
	for ; asked < 20_000; asked++ {
		if ask(t, l, ann(), &fake{usage: agent.Usage{Input: 1}}, request(1)) != nil {
			break
		}
	}
	if asked != 10_000 {
		t.Errorf("asked %d times", asked)
	}
	failing.failures.Store(0)
	if got := report(t, l, ann()).User.Spent.Calls; got != int64(asked) {
		t.Errorf("%d of %d are counted", got, asked)
	}
}

// slow is a store whose writes wait until they are let through.
type slow struct {
	storage.Store
	arrived chan struct{}
	through chan struct{}
}

func (s *slow) Write(ctx context.Context, ops ...storage.Op) (storage.Revision, error) {
	select {
	case s.arrived <- struct{}{}:
	default:
	}
	<-s.through
	return s.Store.Write(ctx, ops...)
}

// TestACallThatIsCancelledWhileItReservesHoldsNothing has the write of the reservation come late.
func TestACallThatIsCancelledWhileItReservesHoldsNothing(t *testing.T) {
	b := newBench(t, budget.Limits{User: budget.Limit{Tokens: 1000}})
	store := &slow{Store: b.store, arrived: make(chan struct{}, 1), through: make(chan struct{})}
	b.cfg.Store = store
	l := b.another()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := l.Model(&fake{}, ann(), "OPENAI", "m").Complete(ctx, request(900), nil)
		done <- err
	}()
	<-store.arrived
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("the call ended with %v", err)
	}
	close(store.through)
	if err := ask(t, l, ann(), &fake{usage: agent.Usage{Input: 900}}, request(900)); err != nil {
		t.Errorf("the next call: %v", err)
	}
}
