package budget_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oneclaw/agent"
	"oneclaw/internal/budget"
	"oneclaw/storage"
)

func (b *bench) spend(n int, p budget.Payer) {
	b.t.Helper()
	if err := ask(b.t, b.Ledger, p, &fake{usage: agent.Usage{Input: n}}, request(n)); err != nil {
		b.t.Fatal(err)
	}
}

// A day ends at midnight where the accounts are kept, a month with its last day.
func TestDayAndMonthBegin(t *testing.T) {
	b := newBench(t, budget.Limits{})
	zone := time.FixedZone("CET", 3600)
	b.cfg.Location = func() *time.Location { return zone }
	*b.limits = budget.Limits{User: budget.Limit{Tokens: 100}, Month: budget.Limit{Tokens: 250}}
	b.Ledger = b.another()
	b.clock.set(time.Date(2026, 11, 29, 22, 59, 0, 0, time.UTC))
	b.spend(100, ann())
	if r := refusal(t, ask(t, b.Ledger, ann(), &fake{}, request(1))); !strings.HasSuffix(r.UserText(), "free again at 00:00 (CET).") ||
		!r.Until.Equal(time.Date(2026, 11, 29, 23, 0, 0, 0, time.UTC)) {
		t.Errorf("told %q, until %v", r.UserText(), r.Until)
	}
	b.clock.set(time.Date(2026, 11, 29, 23, 0, 0, 0, time.UTC))
	b.spend(100, ann())
	b.spend(60, budget.Payer{User: "x:2", Chat: "x:2"})
	if r := refusal(t, ask(t, b.Ledger, budget.Payer{User: "x:3", Chat: "x:3"}, &fake{}, request(1))); r.Account.Kind != budget.KindMonth {
		t.Errorf("refused for %v", r.Account)
	}
	b.clock.set(time.Date(2026, 11, 30, 23, 0, 0, 0, time.UTC))
	b.spend(10, ann())
	got := report(t, b.Ledger, ann())
	if got.Until.Format(time.DateOnly) != "2026-12-02" || got.User.Spent.Input != 10 || got.Month.Spent.Input != 10 || got.ChatTotal.Input != 210 {
		t.Errorf("report %+v", got)
	}
	for key, want := range map[string]int64{"2026-11-30/total/": 160, "2026-11-30/user/x:2": 60, "2026-11-29/chat/telegram:1": 100, "2026-11/month": 260} {
		if got := b.kept(key).Input; got != want {
			t.Errorf("%s is kept with %d tokens, want %d", key, got, want)
		}
	}
}

// kept is a record of a day or month, as the store has it.
func (b *bench) kept(key string) (kept struct {
	budget.Usage
	Raises []budget.Raise
},
) {
	b.t.Helper()
	entry, err := b.store.Get(b.t.Context(), "account/"+key)
	if err == nil {
		err = json.Unmarshal(entry.Value, &kept)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return kept
}

// Records are kept for so many days; those of users and chats not as long as those of all
// together.
func TestDaysAreForgotten(t *testing.T) {
	b := newBench(t, budget.Limits{})
	for _, day := range []int{0, 330, 380, 410, 411} { // the age is counted from the day that has ended
		b.clock.set(noon().AddDate(0, 0, day))
		b.spend(1, ann())
		report(t, b.Ledger, ann())
	}
	var got []string
	for entry, err := range b.store.List(t.Context(), storage.Range{Prefix: "account/2"}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.TrimPrefix(entry.Key, "account/"))
	}
	want := []string{
		"2027-10-17/model/m", "2027-10-17/total/", "2027-10/month", "2027-12-06/chat/telegram:1", "2027-12-06/model/m", "2027-12-06/total/", "2027-12-06/user/telegram:1", "2027-12/month",
		"2028-01-05/chat/telegram:1", "2028-01-05/model/m", "2028-01-05/total/", "2028-01-05/user/telegram:1",
		"2028-01-06/chat/telegram:1", "2028-01-06/model/m", "2028-01-06/total/", "2028-01-06/user/telegram:1", "2028-01/month",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	if got := report(t, b.Ledger, ann()).ChatTotal.Input; got != 5 {
		t.Errorf("the chat has used %d since it began, want 5", got)
	}
}

// What was written is what is read after a restart.
func TestAnAccountOutlivesARestart(t *testing.T) {
	t.Parallel()
	b := newBench(t, budget.Limits{User: budget.Limit{Tokens: 1 << 40}})
	for range 1100 {
		b.spend(3, ann())
	}
	before := report(t, b.Ledger, ann())
	after := report(t, b.another(), ann())
	if before != after || after.User.Spent.Calls != 1100 {
		t.Errorf("before %+v, after %+v", before, after)
	}
}

// A raise counts for one account until its day is over, once, and is on record.
func TestARaisedBudgetHolds(t *testing.T) {
	b := newBench(t, budget.Limits{User: budget.Limit{Money: budget.Dollars(0.5)}})
	dear := &fake{usage: agent.Usage{Input: 500}}
	if err := ask(t, b.Ledger, ann(), dear, request(1)); err != nil {
		t.Fatal(err)
	}
	r := refusal(t, ask(t, b.Ledger, ann(), dear, request(1)))
	for range 2 {
		limit, err := b.Raise(t.Context(), budget.Raise{Account: r.Account, Amount: r.SuggestedRaise(), User: "telegram:9", Key: "card-1"}, r.Base)
		if err != nil || limit.Money != budget.Dollar {
			t.Fatalf("raised to %v, %v", limit, err)
		}
	}
	b.Ledger = b.another()
	if err := ask(t, b.Ledger, ann(), dear, request(1)); err != nil {
		t.Fatalf("after the raise: %v", err)
	}
	if r := refusal(t, ask(t, b.Ledger, ann(), dear, request(1))); r.SuggestedRaise().Money != budget.Dollars(0.5) || r.Limit.Money != budget.Dollar {
		t.Errorf("refused again: %+v", r)
	}
	b.clock.set(noon().AddDate(0, 0, 1))
	if err := ask(t, b.Ledger, ann(), dear, request(1)); err != nil {
		t.Fatal(err)
	}
	if r := refusal(t, ask(t, b.Ledger, ann(), dear, request(1))); r.Limit.Money != budget.Dollars(0.5) {
		t.Errorf("the next day: %+v", r)
	}
	if raises := b.kept("2026-11-21/user/telegram:1").Raises; len(raises) != 1 || raises[0].User != "telegram:9" {
		t.Errorf("on record: %+v", raises)
	}
}

// A model without a price counts in tokens, and a budget of money that cannot bound it
// is told to the operator once.
func TestUnknownPrice(t *testing.T) {
	b := newBench(t, budget.Limits{User: budget.Limit{Money: 1}})
	var log bytes.Buffer
	b.cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	l := b.another()
	for range 3 {
		if _, err := l.Model(&fake{usage: agent.Usage{Input: 5}}, ann(), "OPENAI", "nobody-knows").Complete(t.Context(), request(1), nil); err != nil {
			t.Fatal(err)
		}
	}
	if got := report(t, l, ann()).User.Spent; got.Input != 15 || got.Money != 0 || got.Unpriced != 3 {
		t.Errorf("%+v", got)
	}
	if strings.Count(log.String(), "nobody-knows") != 1 {
		t.Errorf("log %s", log.String())
	}
}

// A provider that reports no usage is taken at the estimate, of what it answered too.
func TestNoUsage(t *testing.T) {
	b := newBench(t, budget.Limits{})
	if err := ask(t, b.Ledger, ann(), silent{}, request(77)); err != nil {
		t.Fatal(err)
	}
	if got := report(t, b.Ledger, ann()).User.Spent; got.Input != 77 || got.Output < 110 || got.Output > 130 {
		t.Errorf("%+v", got)
	}
}

// silent answers and calls a tool, and says nothing of what that took.
type silent struct{}

func (silent) Complete(context.Context, agent.Request, func(agent.Delta)) (agent.Reply, error) {
	return agent.Reply{Text: strings.Repeat("word ", 80), Calls: []agent.Call{{Arguments: strings.Repeat("a", 40)}}}, nil
}

// What was broken off is billed by the provider, and is charged at an estimate: else
// whoever stops each answer would use models for nothing. What never began costs nothing.
func TestACallThatIsBrokenOffIsCharged(t *testing.T) {
	b := newBench(t, budget.Limits{User: budget.Limit{Tokens: 1000}})
	broken := errors.New("connection reset")
	if err := ask(t, b.Ledger, ann(), &fake{err: broken}, request(100)); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	if got := report(t, b.Ledger, ann()).User.Spent; got != (budget.Usage{}) {
		t.Errorf("for nothing: %+v", got)
	}
	if err := ask(t, b.Ledger, ann(), &fake{err: broken, usage: agent.Usage{Input: 100, Output: 100}}, request(100)); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	if got := report(t, b.Ledger, ann()).User.Spent; got.Input != 100 || got.Output != 100 || got.Calls != 1 {
		t.Errorf("for a stream that broke: %+v", got)
	}
	stopped := &fake{began: make(chan struct{}), goOn: make(chan struct{})}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := b.Model(stopped, ann(), "OPENAI", "m").Complete(ctx, request(100), nil)
		done <- err
	}()
	<-stopped.began
	stop()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if got := report(t, b.Ledger, ann()).User.Spent; got.Input != 200 || got.Calls != 2 {
		t.Errorf("for a call that was stopped: %+v", got)
	}
}

// A chat that goes on under another id takes its accounts along, with its threads.
func TestAChatMoves(t *testing.T) {
	b := newBench(t, budget.Limits{Chat: budget.Limit{Tokens: 10}})
	old := budget.Payer{User: "telegram:1", Chat: "telegram:-5"}
	thread := budget.Payer{User: "telegram:1", Chat: "telegram:-5:7"}
	other := budget.Payer{User: "telegram:1", Chat: "telegram:-55"}
	for _, p := range []budget.Payer{old, thread, other} {
		b.spend(10, p)
	}
	if _, err := b.Raise(t.Context(), budget.Raise{Account: budget.Account{Kind: budget.KindChat, Name: old.Chat}, Amount: budget.Limit{Tokens: 5}}, budget.Limit{Tokens: 10}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := b.Move(t.Context(), "telegram:-5", "telegram:-100"); err != nil {
			t.Fatal(err)
		}
	}
	for chat, want := range map[string]int64{"telegram:-5": 0, "telegram:-5:7": 0, "telegram:-55": 10, "telegram:-100": 10, "telegram:-100:7": 10} {
		r := report(t, b.another(), budget.Payer{User: "telegram:1", Chat: chat})
		if r.Chat.Spent.Input != want || r.ChatTotal.Input != want || r.User.Spent.Input != 30 || (chat == "telegram:-100") != (r.Chat.Limit.Tokens == 15) {
			t.Errorf("%s: %+v", chat, r)
		}
	}
}

// What is still to be written when the ledger is closed is written.
func TestClosingWritesWhatIsUnsettled(t *testing.T) {
	b := newBench(t, budget.Limits{})
	b.spend(5, ann())
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if got := report(t, b.another(), ann()).User.Spent; got.Input != 5 {
		t.Errorf("%+v", got)
	}
}

// The model that took over pays; a refusal is no reason to ask another.
func TestFailoverIsChargedToItsModel(t *testing.T) {
	b := newBench(t, budget.Limits{User: budget.Limit{Tokens: 100}})
	down := &fake{err: &agent.ModelError{Kind: agent.KindUnavailable, Err: errors.New("down")}}
	up := &fake{usage: agent.Usage{Input: 100}}
	chain, err := agent.NewFailover(agent.FailoverConfig{Candidates: []agent.Candidate{
		{Name: "a", Model: b.Model(down, ann(), "OPENAI", "a")}, {Name: "b", Model: b.Model(up, ann(), "OPENAI", "m")},
	}, Outages: agent.NewOutages()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := chain.Complete(t.Context(), request(1), nil); err != nil {
		t.Fatal(err)
	}
	if got := report(t, b.Ledger, ann()).User.Spent; got.Calls != 1 || got.Money == 0 {
		t.Errorf("%+v", got)
	}
	_, err = chain.Complete(t.Context(), request(1), nil)
	if r := refusal(t, err); r.Account.Name != ann().User {
		t.Errorf("refused for %v", r.Account)
	}
	if p := chain.Profile(); p.ContextTokens != 1234 || p.Name != "m" {
		t.Errorf("the wrapped model is %+v", p)
	}
}

// stumbling is a store whose next writes of several keys fail.
type stumbling struct {
	storage.Store
	failures atomic.Int32
}

func (s *stumbling) Write(ctx context.Context, ops ...storage.Op) (storage.Revision, error) {
	if s.failures.Add(-1) >= 0 {
		return 0, errors.New("the disk is full")
	}
	return s.Store.Write(ctx, ops...)
}

// What was used while the store fails is counted, and written later.
func TestAFailingStoreLosesNoCharge(t *testing.T) {
	t.Parallel()
	b := newBench(t, budget.Limits{User: budget.Limit{Tokens: 10}})
	store := &stumbling{Store: b.store}
	b.cfg.Store = store
	l := b.another()
	store.failures.Store(2)
	m := &fake{usage: agent.Usage{Input: 10}}
	if err := ask(t, l, ann(), m, request(1)); err != nil {
		t.Fatal(err)
	}
	_ = refusal(t, ask(t, l, ann(), m, request(1)))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if got := report(t, b.Ledger, ann()).User.Spent; got.Input != 10 || got.Calls != 1 {
		t.Errorf("spent %+v", got)
	}
	*b.limits = budget.Limits{}
	if err := ask(t, l, ann(), m, request(1)); err == nil {
		t.Error("a closed ledger takes a call")
	}
}

func TestOpenChecks(t *testing.T) {
	b := newBench(t, budget.Limits{})
	for name, cfg := range map[string]budget.Config{
		"no store": {Now: time.Now},
		"no clock": {Store: b.store},
		"reply":    {Store: b.store, Now: time.Now, ReplyTokens: -1},
		"prices":   {Store: b.store, Now: time.Now, Prices: budget.PriceTable{"x": {Input: -1}}},
	} {
		if _, err := budget.Open(cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
