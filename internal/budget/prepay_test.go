package budget_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"oneclaw/internal/budget"
)

// prepay charges a call of the model m that is expected to use n output tokens.
func (b *bench) prepay(l *budget.Ledger, n int64) (func(budget.Usage), error) {
	return l.Prepay(b.t.Context(), ann(), "m", b.UsageOf("openai", "m", budget.Tokens{Output: n}))
}

// A call that is paid before it is made stays paid if the program is killed during it, and otherwise
// costs what it used, or nothing.
func TestPrepaidCallsArePaidThroughKills(t *testing.T) {
	b := newBench(t, budget.Limits{})
	settle, err := b.prepay(b.Ledger, 100)
	if err != nil {
		t.Fatal(err)
	}
	killed := b.another() // the first never settles
	if r := report(t, killed, ann()); r.User.Spent != (budget.Usage{Calls: 1, Output: 100, Money: budget.Dollar}) || r.Month.Spent != r.User.Spent || r.ChatTotal != r.User.Spent {
		t.Errorf("after a kill %+v is spent", r)
	}
	after := func() budget.Usage { return report(t, b.another(), ann()).User.Spent }
	settle(b.UsageOf("openai", "m", budget.Tokens{Input: 10, Output: 30}))
	report(t, b.Ledger, ann()) // so that it is written
	if got, want := after(), (budget.Usage{Calls: 1, Input: 10, Output: 30, Money: budget.Dollars(0.31)}); got != want {
		t.Errorf("after the call %+v is spent, want %+v", got, want)
	}
	refund, err := b.prepay(b.Ledger, 5000)
	if err != nil {
		t.Fatal(err)
	}
	refund(budget.Usage{})
	report(t, b.Ledger, ann())
	if got := after(); got.Calls != 1 || got.Output != 30 {
		t.Errorf("after a refund %+v is spent", got)
	}
}

func TestPrepaidCallsNeedABudget(t *testing.T) {
	b := newBench(t, budget.Limits{User: budget.Limit{Money: budget.Dollar}})
	settle, err := b.prepay(b.Ledger, 100)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.prepay(b.Ledger, 1); refusal(t, err).Account.Kind != budget.KindUser {
		t.Errorf("refused with %v", err)
	}
	settle(b.UsageOf("openai", "m", budget.Tokens{Output: 99}))
	if _, err := b.prepay(b.Ledger, 100); err != nil {
		t.Errorf("although something is left: %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newBench(t, budget.Limits{}).Prepay(gone, ann(), "m", budget.Usage{Calls: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled call: %v", err)
	}
}

// A call that begins on one day and ends on the next is charged to the first, and takes nothing from the new
// day.
func TestAPrepaidCallOverMidnight(t *testing.T) {
	b := newBench(t, budget.Limits{})
	settle, err := b.prepay(b.Ledger, 100)
	if err != nil {
		t.Fatal(err)
	}
	b.clock.set(noon().AddDate(0, 0, 1))
	settle(b.UsageOf("openai", "m", budget.Tokens{Output: 30}))
	if r := report(t, b.Ledger, ann()); r.User.Spent != (budget.Usage{}) || r.Month.Spent.Output != 30 {
		t.Errorf("the new day has %+v, the month %+v", r.User.Spent, r.Month.Spent)
	}
}

// A refund after which nothing is spent is made once, also where the store takes it and says that it did
// not.
func TestARefundOfUnknownOutcomeIsMadeOnce(t *testing.T) {
	b := newBench(t, budget.Limits{})
	store := &unsure{Store: b.store}
	b.cfg.Store = store
	l := b.another()
	refund, err := b.prepay(l, 100)
	if err != nil {
		t.Fatal(err)
	}
	store.times = 1
	refund(budget.Usage{})
	if err := l.Close(); err != nil { // nothing is owed
		t.Fatal(err)
	}
	if got := report(t, b.another(), ann()); got.Total.Spent != (budget.Usage{}) || got.User.Spent != (budget.Usage{}) {
		t.Errorf("after a refund %+v is spent", got.Total.Spent)
	}
}

// Whatever calls of several processes cost in the end is what the accounts say.
func TestPrepaidCallsAddUp(t *testing.T) {
	b := newBench(t, budget.Limits{})
	ledgers := []*budget.Ledger{b.Ledger, b.another()}
	day := noon()
	rapid.Check(t, func(rt *rapid.T) {
		day = day.AddDate(0, 0, 1)
		b.clock.set(day)
		want := budget.Usage{}
		for range rapid.IntRange(1, 10).Draw(rt, "calls") {
			l := ledgers[rapid.IntRange(0, 1).Draw(rt, "process")]
			expected := rapid.Int64Range(0, 100).Draw(rt, "expected")
			settle, err := b.prepay(l, expected)
			if err != nil {
				rt.Fatal(err)
			}
			switch rapid.SampledFrom([]string{"killed", "answered", "refused"}).Draw(rt, "outcome") {
			case "killed":
				want.Calls, want.Output = want.Calls+1, want.Output+expected
			case "answered":
				n := rapid.Int64Range(0, 200).Draw(rt, "used")
				want.Calls, want.Output = want.Calls+1, want.Output+n
				settle(b.UsageOf("openai", "m", budget.Tokens{Output: n}))
			default:
				settle(budget.Usage{})
			}
		}
		want.Money = budget.Dollars(float64(want.Output) / 100)
		for _, l := range ledgers {
			report(t, l, ann()) // so that all is written
		}
		if got := report(t, b.another(), ann()).User.Spent; got != want {
			rt.Fatalf("%+v is spent on %s, want %+v", got, day.Format(time.DateOnly), want)
		}
	})
}
