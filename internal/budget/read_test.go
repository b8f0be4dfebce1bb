package budget_test

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"oneclaw/agent"
	"oneclaw/internal/budget"
	"oneclaw/storage"
	"oneclaw/storage/bolt"
	"oneclaw/toolgroups"
)

// What a call used stands with its model, and with the groups of the tools that it was sent and
// that it called, in the write that charges its payer.
func TestSharesOfModelsAndGroups(t *testing.T) {
	b := newBench(t, budget.Limits{})
	b.cfg.GroupOf = func(tool string) string {
		group, _, _ := strings.Cut(tool, "_")
		return strings.TrimSuffix(group, "gone")
	}
	b.Ledger = b.another()
	req := request(100)
	req.Tools = []toolgroups.Tool{{Name: "mail_send", Description: strings.Repeat("x", 91)}, {Name: "pdf_read", Description: strings.Repeat("x", 192)}}
	req.ToolTokens = 60
	model := &fake{usage: agent.Usage{Input: 100, Output: 7}, calls: []agent.Call{{Name: "pdf_read"}, {Name: "call_tool", Tool: "mail_send"}, {Name: "pdf_read"}, {Name: "gone"}}}
	for range 2 {
		if err := ask(t, b.Ledger, ann(), model, req); err != nil {
			t.Fatal(err)
		}
	}
	report(t, b.Ledger, ann()) // what was used before is written
	got := map[string]budget.Usage{}
	for _, kind := range []budget.Kind{budget.KindModel, budget.KindGroup, budget.KindUser} {
		for line, err := range budget.ListAccounts(t.Context(), b.store, noon().Format(time.DateOnly), kind, "") {
			if err != nil {
				t.Fatal(err)
			}
			got[line.Account.Name] = line.Spent
		}
	}
	if len(got) != 4 || got["m"].Input != 200 || got["m"].Calls != 2 || got["mail"] != (budget.Usage{Calls: 2, ToolTokens: 40}) || got["pdf"] != (budget.Usage{Calls: 4, ToolTokens: 80}) {
		t.Errorf("accounts %+v", got)
	}
	days, err := budget.Days(t.Context(), b.store, noon(), 3)
	if err != nil || len(days) != 3 || days[2].Input != 200 || days[1].Calls != 0 {
		t.Errorf("days %+v, %v", days, err)
	}
}

func TestUsedTellsWhatAPersonHasUsed(t *testing.T) {
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "test.db"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	for key, value := range map[string]string{
		"account/2026-03-01/user/telegram:7": `{"calls":2,"input":10}`, "account/2026-02-27/user/telegram:7": `{"calls":1}`,
		"account/2026-03-01/user/telegram:70": `{"calls":5}`, "account/2025-03-01/user/telegram:7": `{"calls":9}`,
	} {
		if _, err := store.Put(t.Context(), key, []byte(value), storage.Absent); err != nil {
			t.Fatal(err)
		}
	}
	zone := time.FixedZone("ahead", 9*60*60) // where it is March already
	l, err := budget.Open(budget.Config{
		Store: store, Location: func() *time.Location { return zone }, Now: func() time.Time { return time.Date(2026, 2, 28, 20, 0, 0, 0, time.UTC) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	got, err := l.UserUsage(t.Context(), "telegram:7")
	want := map[string]budget.Usage{"2026-03-01": {Calls: 2, Input: 10}, "2026-02-27": {Calls: 1}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("used %v, %v", got, err)
	}
}
