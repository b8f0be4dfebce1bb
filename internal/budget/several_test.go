package budget_test

import (
	"fmt"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"oneclaw/agent"
	"oneclaw/internal/budget"
)

// Processes that make calls at the same time exceed a limit by what these calls cost at most, and nothing is
// lost of what was used.
func TestSeveralProcessesOvershootByTheirRunningCalls(t *testing.T) {
	t.Parallel()
	b := newBench(t, budget.Limits{})
	ledgers := []*budget.Ledger{b.Ledger, b.another(), b.another()}
	day := noon()
	rapid.Check(t, func(rt *rapid.T) {
		day = day.AddDate(0, 1, 3)
		b.clock.set(day)
		n := rapid.Int64Range(1, 2000)
		*b.limits = budget.Limits{User: budget.Limit{Tokens: n.Draw(rt, "user")}, Total: budget.Limit{Tokens: n.Draw(rt, "total")}}
		input := rapid.IntRange(1, 300).Draw(rt, "input")
		m := &fake{usage: agent.Usage{Input: input}}
		var mu sync.Mutex
		var calls int64
		var wait sync.WaitGroup
		workers := rapid.IntRange(3, 7).Draw(rt, "workers")
		for w := range workers {
			payer := budget.Payer{User: fmt.Sprintf("x:%d", w%2), Chat: fmt.Sprintf("x:%d", w)}
			wait.Go(func() {
				for range 10 {
					if ask(t, ledgers[w%3], payer, m, request(input)) != nil {
						return
					}
					mu.Lock()
					calls++
					mu.Unlock()
				}
			})
		}
		wait.Wait()
		for _, l := range ledgers {
			report(t, l, ann()) // so that all is written
		}
		r := report(t, ledgers[0], budget.Payer{User: "x:0", Chat: "x:0"})
		running := int64(workers * input)
		if got := r.User.Spent.Tokens(); got >= b.limits.User.Tokens+running {
			rt.Fatalf("a user spent %d of %d, in calls that run at the same time %d", got, b.limits.User.Tokens, running)
		}
		if got := r.Total.Spent; got.Tokens() >= b.limits.Total.Tokens+running || got.Calls != calls {
			rt.Fatalf("all spent %d of %d in %d calls, of %d that were made", got.Tokens(), b.limits.Total.Tokens, got.Calls, calls)
		}
	})
}

// What another process has changed counts at once, also where nothing would be written.
func TestARaiseInOneProcessCountsInTheOthers(t *testing.T) {
	b := newBench(t, budget.Limits{User: budget.Limit{Tokens: 500}})
	other := b.another()
	m := &fake{usage: agent.Usage{Input: 500}}
	if err := ask(t, b.Ledger, ann(), m, request(1)); err != nil {
		t.Fatal(err)
	}
	r := refusal(t, ask(t, b.Ledger, ann(), m, request(1)))
	if _, err := other.Raise(t.Context(), budget.Raise{Account: r.Account, Amount: r.SuggestedRaise(), Key: "card-1"}, r.Base); err != nil {
		t.Fatal(err)
	}
	if got := report(t, b.Ledger, ann()).User.Limit.Tokens; got <= 500 {
		t.Errorf("the limit is %d after the raise", got)
	}
	if err := ask(t, b.Ledger, ann(), m, request(1)); err != nil {
		t.Errorf("after the raise: %v", err)
	}
	report(t, b.Ledger, ann()) // so that all is written
	if got := report(t, other, ann()).User.Spent.Tokens(); got != 1000 {
		t.Errorf("the other process says that %d were spent", got)
	}
}
