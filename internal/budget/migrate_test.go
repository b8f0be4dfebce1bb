package budget_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneclaw/internal/budget"
	"oneclaw/storage"
)

// TestMigrateTakesTheJournalOver reads what a program of format 1 has written: a day that
// is over, and today's whole state with a raise and events behind it. A crash may have it
// run again at any point.
func TestMigrateTakesTheJournalOver(t *testing.T) {
	data, err := os.ReadFile("testdata/format1.json")
	if err != nil {
		t.Fatal(err)
	}
	var former struct {
		Keys    map[string]json.RawMessage
		Records []json.RawMessage
	}
	if err := json.Unmarshal(data, &former); err != nil {
		t.Fatal(err)
	}
	b := newBench(t, budget.Limits{User: budget.Limit{Tokens: 1000}})
	var today string
	if err := json.Unmarshal(former.Keys["budget/today"], &today); err != nil {
		t.Fatal(err)
	}
	former.Keys["budget/today"] = json.RawMessage(today)
	for range 2 {
		for key, value := range former.Keys {
			if _, err := b.store.Put(t.Context(), key, value, storage.Any); err != nil {
				t.Fatal(err)
			}
		}
		for i, record := range former.Records {
			if _, err := b.store.Append(t.Context(), "budget/"+today, storage.Position(i), storage.Record{Data: record}); err != nil {
				t.Fatal(err)
			}
		}
		if err := budget.Migrate(t.Context(), b.store); err != nil {
			t.Fatal(err)
		}
	}
	b.clock.set(noon().AddDate(0, 0, 1))
	got := report(t, b.Ledger, ann())
	type line struct{ user, limit, chat, ever, total, month int64 }
	if diff := cmp.Diff(line{10, 1005, 10, 17, 1036, 1043}, line{
		got.User.Spent.Input, got.User.Limit.Tokens, got.Chat.Spent.Input, got.ChatEver.Input, got.Total.Spent.Input, got.Month.Spent.Input,
	}, cmp.AllowUnexported(line{})); diff != "" {
		t.Errorf("accounts (-want +got):\n%s", diff)
	}
	if got := report(t, b.Ledger, budget.Payer{User: "x:4", Chat: "x:4"}).User.Spent.Input; got != 3 {
		t.Errorf("what only an event tells is %d tokens, want 3", got)
	}
	if got := b.kept("2026-11-21/user/telegram:1").Input; got != 7 {
		t.Errorf("yesterday has %d tokens, want 7", got)
	}
	for entry, err := range b.store.List(t.Context(), storage.Range{Prefix: "budget/"}) {
		t.Errorf("%s is left (%v)", entry.Key, err)
	}
}
