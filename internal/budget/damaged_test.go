package budget_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"oneclaw/agent"
	"oneclaw/internal/budget"
	"oneclaw/storage"
)

// TestADamagedAccountBeginsAnewFromTheOthers damages each kind of record of the accounts, in a
// ledger that runs and before one is opened. Calls go on, what was damaged is set damaged once, and
// what the other accounts tell of it is not lost.
func TestADamagedAccountBeginsAnewFromTheOthers(t *testing.T) {
	t.Parallel()
	const day = "2026-11-21"
	bob := budget.Payer{User: "telegram:2", Chat: "telegram:-5"}
	for key, restored := range map[string]bool{
		"account/" + day + "/total/": true, "account/2026-11/month": true,
		"account/" + day + "/user/telegram:1": true, "account/" + day + "/chat/telegram:1": true, "account/ever/telegram:1": true,
		"account/" + day + "/model/m": false, "account/" + day + "/group/core": false,
	} {
		for _, running := range []bool{false, true} {
			t.Run(key+map[bool]string{false: " before the start", true: " while it runs"}[running], func(t *testing.T) {
				b := newBench(t, budget.Limits{User: budget.Limit{Tokens: 500}, Total: budget.Limit{Tokens: 5000}, Month: budget.Limit{Tokens: 50_000}})
				b.cfg.GroupOf = func(string) string { return "core" }
				var damaged []string
				b.cfg.OnDamaged = func(_ context.Context, e storage.Entry) error {
					damaged = append(damaged, e.Key)
					if string(e.Value) != "{" {
						t.Errorf("set damaged: %s", e.Value)
					}
					return nil
				}
				l := b.another()
				m := &fake{usage: agent.Usage{Input: 100}, calls: []agent.Call{{Name: "x"}}}
				for _, payer := range []budget.Payer{ann(), bob, ann()} {
					if err := ask(t, l, payer, m, request(1)); err != nil {
						t.Fatal(err)
					}
				}
				before := report(t, l, ann())
				if _, err := b.store.Put(t.Context(), key, []byte("{"), storage.Any); err != nil {
					t.Fatal(err)
				}
				if !running {
					l = b.another()
				}
				if err := ask(t, l, bob, m, request(1)); err != nil {
					t.Fatalf("somebody else: %v", err)
				}
				if err := ask(t, l, ann(), m, request(1)); err != nil {
					t.Fatalf("who it is about: %v", err)
				}
				if got := report(t, l, ann()); restored && (got.User.Spent.Calls != 3 || got.Chat.Spent.Calls != 3 || got.ChatTotal.Calls != 3 ||
					got.Total.Spent.Calls != 5 || got.Month.Spent.Calls != 5 || got.Until != before.Until) {
					t.Errorf("the accounts say %+v", got)
				}
				if err := l.Close(); err != nil || !slices.Equal(damaged, []string{key}) {
					t.Errorf("set damaged: %v, %v", damaged, err)
				}
				if entry, err := b.store.Get(t.Context(), key); string(entry.Value) == "{" {
					t.Errorf("it is still there: %s, %v", entry.Value, err)
				}
			})
		}
	}
}

// TestADamagedMonthCountsNoOtherMonth damages months that are shorter than the one before.
func TestADamagedMonthCountsNoOtherMonth(t *testing.T) {
	for month, first := range map[string]time.Time{
		"2026-11": time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC), "2027-02": time.Date(2027, 2, 1, 12, 0, 0, 0, time.UTC),
	} {
		b := newBench(t, budget.Limits{})
		for day, used := range []int{100, 200} {
			b.clock.set(first.AddDate(0, 0, day-1))
			b.spend(used, ann())
			report(t, b.Ledger, ann()) // so that all is written
		}
		if _, err := b.store.Put(t.Context(), "account/"+month+"/month", []byte("{"), storage.Any); err != nil {
			t.Fatal(err)
		}
		if got := report(t, b.another(), ann()).Month.Spent.Input; got != 200 {
			t.Errorf("%s has %d tokens, want 200", month, got)
		}
	}
}

// TestADamagedAccountHidesNoOther reads the accounts of days as pages and copies do.
func TestADamagedAccountHidesNoOther(t *testing.T) {
	b := newBench(t, budget.Limits{})
	b.spend(100, ann())
	report(t, b.Ledger, ann()) // so that all is written
	b.clock.set(noon().AddDate(0, 0, 1))
	b.spend(200, ann())
	report(t, b.Ledger, ann())
	for _, key := range []string{"account/2026-11-21/total/", "account/2026-11-22/user/telegram:1"} {
		if _, err := b.store.Put(t.Context(), key, []byte("{"), storage.Any); err != nil {
			t.Fatal(err)
		}
	}
	days, err := budget.Days(t.Context(), b.store, b.clock.Now(), 2)
	if err != nil || days[0].Input != 100 || days[1].Input != 200 {
		t.Errorf("days: %+v, %v", days, err)
	}
	used, err := b.UserUsage(t.Context(), ann().User)
	if err != nil || used["2026-11-21"].Input != 100 || used["2026-11-22"].Input != 200 {
		t.Errorf("used: %+v, %v", used, err)
	}
}
