package budget_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"oneclaw/agent"
	"oneclaw/internal/budget"
	"oneclaw/storage"
	"oneclaw/storage/bolt"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func prices() budget.PriceTable {
	return budget.PriceTable{"m": {Input: 1000, CachedInput: 100, CacheWrite: 1250, Output: 10_000}}
}

// fake is a model that reports a usage.
type fake struct {
	usage agent.Usage
	calls []agent.Call
	err   error
	began chan struct{} // if not nil, told when a call begins
	goOn  chan struct{} // if not nil, waited for in a call
}

func (f *fake) Complete(ctx context.Context, _ agent.Request, _ func(agent.Delta)) (agent.Reply, error) {
	if f.began != nil {
		f.began <- struct{}{}
	}
	if f.goOn != nil {
		select {
		case <-f.goOn:
		case <-ctx.Done():
			return agent.Reply{}, ctx.Err()
		}
	}
	if f.err != nil {
		return agent.Reply{Usage: f.usage}, f.err
	}
	return agent.Reply{Text: "ok", Usage: f.usage, Calls: f.calls}, nil
}

func (f *fake) Profile() agent.Profile { return agent.Profile{ContextTokens: 1234} }

// clock is a time that a test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}

func noon() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

// bench is a ledger with what it stands on.
type bench struct {
	*budget.Ledger
	t      testing.TB
	store  storage.Store
	clock  *clock
	limits *budget.Limits
	cfg    budget.Config
}

func newBench(t testing.TB, limits budget.Limits) *bench {
	t.Helper()
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "test.db"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	b := &bench{t: t, store: store, clock: &clock{now: noon()}, limits: &limits}
	b.cfg = budget.Config{
		Store: store, Prices: prices(), Now: b.clock.Now, ReplyTokens: 100,
		Limits: func(context.Context) (budget.Limits, error) { return *b.limits, nil },
	}
	b.Ledger = b.another()
	return b
}

// another opens a ledger on the same store, as another process or after a restart.
func (b *bench) another() *budget.Ledger {
	b.t.Helper()
	l, err := budget.Open(b.cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = l.Close() })
	return l
}

func ann() budget.Payer { return budget.Payer{User: "telegram:1", Chat: "telegram:1"} }

// request is taken to have n tokens of input.
func request(n int) agent.Request { return agent.Request{ToolTokens: n, AllTokens: 10 * n} }

func ask(t testing.TB, l *budget.Ledger, p budget.Payer, m agent.Model, req agent.Request) error {
	t.Helper()
	_, err := l.Model(m, p, "OPENAI", "m").Complete(t.Context(), req, nil)
	return err
}

func refusal(t testing.TB, err error) *budget.Refusal {
	t.Helper()
	var failure *agent.ModelError
	var r *budget.Refusal
	if !errors.As(err, &failure) || failure.Kind != agent.KindBudget || !errors.As(err, &r) || failure.Notice != r.UserText() {
		t.Fatalf("not a refusal: %v", err)
	}
	return r
}

func report(t testing.TB, l *budget.Ledger, p budget.Payer) budget.Report {
	t.Helper()
	r, err := l.Report(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The budget is reserved before a call and settled after it; a loop of tool calls ends
// when it is used up, and other users go on.
func TestReserveCallSettle(t *testing.T) {
	t.Parallel()
	b := newBench(t, budget.Limits{User: budget.Limit{Tokens: 1000}})
	m := &fake{usage: agent.Usage{Input: 300, Cached: 200, CacheWritten: 50, CacheWrittenHour: 20, Output: 50}}
	var err error
	calls := 0
	for ; err == nil && calls < 10; calls++ {
		err = ask(t, b.Ledger, ann(), m, request(300))
	}
	r := refusal(t, err)
	if calls != 4 || r.Spent.Tokens() != 1050 || r.PartlyReserved || r.IsMoney {
		t.Errorf("after %d calls: %+v", calls, r)
	}
	if want := "Today's budget is used up: you have used 1,050 of 1,000 tokens. It is free again at 00:00 (UTC)."; r.UserText() != want {
		t.Errorf("told %q", r.UserText())
	}
	if err := ask(t, b.Ledger, budget.Payer{User: "slack:U2", Chat: "slack:C"}, m, request(300)); err != nil {
		t.Errorf("another user: %v", err)
	}
	got := report(t, b.Ledger, ann())
	cost := prices()["m"].Cost(budget.Tokens{Input: 900, Cached: 600, Written: 150, WrittenForHour: 60, Output: 150})
	want := budget.Usage{Calls: 3, Input: 900, Cached: 600, Written: 150, Output: 150, ToolTokens: 900, AllToolTokens: 9000, Money: cost}
	if got.User.Spent != want || got.Chat.Spent != want || got.ChatTotal != want || want.SavedTokens() != 8100 {
		t.Errorf("report %+v, want %+v", got, want)
	}
	if got.Total.Spent.Calls != 4 || got.Month.Spent.Calls != 4 || got.User.Limit.Tokens != 1000 {
		t.Errorf("report %+v", got)
	}
}

// Each account bounds, in tokens and in money.
func TestEveryAccountBounds(t *testing.T) {
	tokens, money := budget.Limit{Tokens: 500}, budget.Limit{Money: budget.Dollars(0.5)}
	m := &fake{usage: agent.Usage{Input: 400, Output: 100}} // $1.40
	for name, c := range map[string]struct {
		limits   budget.Limits
		stranger bool // refused as well
		want     string
	}{
		"user tokens":  {budget.Limits{User: tokens}, false, "Today's budget is used up: you have used 500 of 500 tokens. It is free again at 00:00 (UTC)."},
		"user money":   {budget.Limits{User: money}, false, "Today's budget is used up: you have used $1.40 of $0.50. It is free again at 00:00 (UTC)."},
		"chat tokens":  {budget.Limits{Chat: tokens}, false, "Today's budget is used up: this chat has used 500 of 500 tokens. It is free again at 00:00 (UTC)."},
		"total money":  {budget.Limits{Total: money}, true, "Today's budget is used up: everybody together has used $1.40 of $0.50. It is free again at 00:00 (UTC)."},
		"month tokens": {budget.Limits{Month: tokens}, true, "This month's budget is used up: everybody together has used 500 of 500 tokens. It is free again on 1 December."},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, c.limits)
			if err := ask(t, b.Ledger, ann(), m, request(1)); err != nil {
				t.Fatal(err)
			}
			if got := refusal(t, ask(t, b.Ledger, ann(), m, request(1))).UserText(); got != c.want {
				t.Errorf("told %q", got)
			}
			err := ask(t, b.Ledger, budget.Payer{User: "x:2", Chat: "x:2"}, m, request(1))
			if (err != nil) != c.stranger {
				t.Errorf("somebody else: %v", err)
			}
		})
	}
}

// However many calls are made at the same time, what is spent exceeds a limit by less
// than one reservation.
func TestConcurrentCallsOvershootByOneReservation(t *testing.T) {
	t.Parallel()
	b := newBench(t, budget.Limits{})
	day := noon()
	rapid.Check(t, func(rt *rapid.T) {
		day = day.AddDate(0, 1, 3)
		b.clock.set(day)
		n := rapid.Int64Range(1, 3000)
		*b.limits = budget.Limits{
			User: budget.Limit{Tokens: n.Draw(rt, "user")}, Total: budget.Limit{Tokens: n.Draw(rt, "total")},
			Chat: budget.Limit{Money: budget.Dollars(float64(n.Draw(rt, "chat")) / 1000)},
		}
		workers := rapid.IntRange(2, 8).Draw(rt, "workers")
		input := rapid.IntRange(1, 300).Draw(rt, "input")
		output := rapid.IntRange(0, 100).Draw(rt, "output")
		m := &fake{usage: agent.Usage{Input: input, Output: output}}
		var wait sync.WaitGroup
		for w := range workers {
			payer := budget.Payer{User: fmt.Sprintf("x:%d", w%2), Chat: "x:c"}
			wait.Go(func() {
				for range 20 {
					if ask(t, b.Ledger, payer, m, request(input)) != nil {
						return
					}
				}
			})
		}
		wait.Wait()
		reserved := int64(input + 100)
		cost := prices()["m"].Cost(budget.Tokens{Input: int64(input), Output: 100})
		r := report(t, b.Ledger, budget.Payer{User: "x:0", Chat: "x:c"})
		if got := r.User.Spent.Tokens(); got >= b.limits.User.Tokens+reserved {
			rt.Fatalf("user spent %d of %d, a call reserves %d", got, b.limits.User.Tokens, reserved)
		}
		if got := r.Total.Spent.Tokens(); got >= b.limits.Total.Tokens+reserved {
			rt.Fatalf("all spent %d of %d", got, b.limits.Total.Tokens)
		}
		if got := r.Chat.Spent.Money; got >= b.limits.Chat.Money+cost {
			rt.Fatalf("chat spent %s of %s, a call reserves %s", got, b.limits.Chat.Money, cost)
		}
	})
}

// A call that is being made holds its reservation; one that fails gives it back.
func TestHeldWhileRunning(t *testing.T) {
	b := newBench(t, budget.Limits{User: budget.Limit{Tokens: 150}})
	running := &fake{began: make(chan struct{}), goOn: make(chan struct{}), err: errors.New("broken")}
	done := make(chan error, 1)
	go func() { done <- ask(t, b.Ledger, ann(), running, request(100)) }()
	<-running.began
	if r := refusal(t, ask(t, b.Ledger, ann(), &fake{}, request(100))); !r.PartlyReserved || !strings.Contains(r.UserText(), "(you have used 0 of 150 tokens). Please send this again in a minute.") {
		t.Errorf("told %q", r.UserText())
	}
	close(running.goOn)
	if err := <-done; !errors.Is(err, running.err) {
		t.Errorf("the failure of the model: %v", err)
	}
	if err := ask(t, b.Ledger, ann(), &fake{}, request(100)); err != nil {
		t.Errorf("after a failed call: %v", err)
	}
}

// What a call holds ends with the process that makes it.
func TestAKilledCallHoldsNothing(t *testing.T) {
	b := newBench(t, budget.Limits{Total: budget.Limit{Tokens: 150}})
	killed := &fake{began: make(chan struct{}), goOn: make(chan struct{})}
	ctx, kill := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = b.Model(killed, ann(), "OPENAI", "m").Complete(ctx, request(100), nil)
	}()
	<-killed.began
	if err := ask(t, b.another(), ann(), &fake{usage: agent.Usage{Input: 7}}, request(1)); err != nil {
		t.Errorf("after a restart: %v", err)
	}
	kill()
	<-done
}

// Processes that share a store share the budget.
func TestTwoProcessesShareAnAccount(t *testing.T) {
	b := newBench(t, budget.Limits{Total: budget.Limit{Tokens: 1000}})
	both := []*budget.Ledger{b.Ledger, b.another()}
	m := &fake{usage: agent.Usage{Input: 10, Output: 90}}
	var wait sync.WaitGroup
	for _, l := range both {
		for range 3 {
			wait.Go(func() {
				for ask(t, l, ann(), m, request(10)) == nil {
				}
			})
		}
	}
	wait.Wait()
	for _, l := range both {
		report(t, l, ann()) // so that all is written
	}
	if got := report(t, b.another(), ann()).Total.Spent.Tokens(); got < 500 || got >= 1000+4*110 {
		t.Errorf("spent %d of 1000, a call reserves 110, and the other process makes three at the same time", got)
	}
}

// A payer may have a limit that is less than that of all: who was let in from a chat. An
// effort is reserved beside the reply.
func TestAPayerWithALimitOfItsOwn(t *testing.T) {
	b := newBench(t, budget.Limits{User: budget.Limit{Tokens: 100_000}})
	guest := ann()
	guest.Limit = budget.Limit{Tokens: 500}
	spend := func(p budget.Payer, effort string) error {
		req := request(400)
		req.Effort = effort
		return ask(t, b.Ledger, p, &fake{usage: agent.Usage{Input: 400, Output: 200}}, req)
	}
	if err := spend(guest, "high"); err != nil {
		t.Fatal(err)
	}
	if r := refusal(t, spend(guest, "")); r.Limit.Tokens != 500 {
		t.Errorf("%+v", r)
	}
	if err := spend(ann(), ""); err != nil {
		t.Errorf("without a limit of one's own: %v", err)
	}
}

// A search is held and paid like a call: it is refused where nothing is left, what was not
// had costs nothing, and /usage has the count.
func TestASearchIsBought(t *testing.T) {
	for _, limits := range []budget.Limits{{}, {User: budget.Limit{Money: budget.Dollars(0.01)}}} {
		b := newBench(t, limits)
		for _, had := range []bool{false, true, true} {
			settle, err := b.Buy(t.Context(), ann(), budget.Dollars(0.005))
			if err != nil {
				t.Fatal(err)
			}
			settle(had)
		}
		if spent := report(t, b.Ledger, ann()); spent.User.Spent.Searches != 2 || spent.User.Spent.Money != budget.Dollars(0.01) || spent.User.Spent.Calls != 0 {
			t.Errorf("spent %+v", spent.User.Spent)
		}
		settle, err := b.Buy(t.Context(), ann(), budget.Dollars(0.005))
		if limits == (budget.Limits{}) {
			settle(false)
			continue
		}
		if r := refusal(t, err); !r.IsMoney || r.Account.Kind != budget.KindUser {
			t.Errorf("refused %+v", r)
		}
	}
	b := newBench(t, budget.Limits{})
	guest := ann()
	guest.Limit = budget.Limit{Tokens: 10}
	b.spend(10, guest)
	if _, err := b.Buy(t.Context(), guest, 0); refusal(t, err).Account.Kind != budget.KindUser {
		t.Errorf("%v", err)
	}
}
