package search_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"oneclaw/storage"
	"oneclaw/storage/bolt"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/search"
)

func uses(t *testing.T) *search.Uses {
	t.Helper()
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "db"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return search.NewUses(store)
}

// searched is a search whose result names tools.
func searched(query, result string) toolgroups.PastCall {
	return toolgroups.PastCall{Tool: search.ToolSearch, Arguments: fmt.Sprintf(`{"query":%q}`, query), Result: result, OK: true}
}

func called(tool string, ok bool) toolgroups.PastCall {
	return toolgroups.PastCall{Tool: search.ToolCall, Arguments: fmt.Sprintf(`{"name":%q,"arguments":{}}`, tool), OK: ok}
}

const (
	foundNothing = `{"matches":[]}`
	foundIssues  = `{"matches":[{"name":"github_create_issue"}],"others":{"github":["github_list_issues"]}}`
)

func TestWhatATurnTeaches(t *testing.T) {
	batch := toolgroups.PastCall{
		Tool: search.ToolSearch, Arguments: `{"queries":["bug","events"]}`, OK: true,
		Result: `{"results":[{"matches":[{"name":"github_create_issue"}]},{"matches":[{"name":"calendar_list_events"}]}]}`,
	}
	for _, tt := range []struct {
		name string
		turn []toolgroups.PastCall
		want []search.Use
	}{
		{"a search and a call", []toolgroups.PastCall{searched("bug", foundIssues), called("github_create_issue", true)}, []search.Use{{Tool: "github_create_issue", Queries: []string{"bug"}}}},
		{
			"two searches, the first in vain",
			[]toolgroups.PastCall{searched("zettel", foundNothing), searched("bug", foundIssues), called("github_create_issue", true)},
			[]search.Use{{Tool: "github_create_issue", Queries: []string{"zettel", "bug"}}},
		},
		{"a name beside the hits", []toolgroups.PastCall{searched("bug", foundIssues), called("github_list_issues", true)}, []search.Use{{Tool: "github_list_issues", Queries: []string{"bug"}}}},
		{"a direct call", []toolgroups.PastCall{searched("bug", foundIssues), {Tool: "github_create_issue", OK: true}}, []search.Use{{Tool: "github_create_issue", Queries: []string{"bug"}}}},
		{"one tool called twice", []toolgroups.PastCall{searched("bug", foundIssues), called("github_create_issue", true), called("github_create_issue", true)}, []search.Use{{Tool: "github_create_issue", Queries: []string{"bug"}}}},
		{"a search after the call", []toolgroups.PastCall{searched("bug", foundIssues), called("github_create_issue", true), searched("star", foundNothing)}, []search.Use{{Tool: "github_create_issue", Queries: []string{"bug"}}}},
		{"two tools", []toolgroups.PastCall{searched("bug", foundIssues), called("github_create_issue", true), called("github_list_issues", true)}, nil},
		{"several queries", []toolgroups.PastCall{batch, called("github_create_issue", true)}, nil},
		{"a failed call", []toolgroups.PastCall{searched("bug", foundIssues), called("github_create_issue", false)}, nil},
		{"a tool that was not found", []toolgroups.PastCall{searched("bug", foundIssues), {Tool: "exec", OK: true}}, nil},
		{"no search", []toolgroups.PastCall{called("github_create_issue", true)}, nil},
		{"a result that was shortened", []toolgroups.PastCall{searched("bug", `{"matches":[{"name":"github_cre`), called("github_create_issue", true)}, nil},
	} {
		u := uses(t)
		if err := u.Learn(t.Context(), "telegram:1", tt.turn); err != nil {
			t.Fatal(err)
		}
		got, err := u.List(t.Context(), "telegram:1")
		if err != nil || fmt.Sprint(got) != fmt.Sprint(tt.want) {
			t.Errorf("%s: learned %v, %v, want %v", tt.name, got, err, tt.want)
		}
	}
}

// lost is a store that cannot be read.
type lost struct{ storage.KV }

func (lost) Get(context.Context, string) (storage.Entry, error) {
	return storage.Entry{}, errors.New("no such host db.internal")
}

func TestASearchGoesOnWithoutWhatCannotBeRead(t *testing.T) {
	ask := func(u *search.Uses) string {
		got, fault := use(t, bridge(t, func(c *search.BridgeConfig) { c.Uses = u }), search.ToolSearch, `{"query":"create issue"}`)
		if fault != nil {
			t.Fatal(fault)
		}
		return got
	}
	if got, want := ask(search.NewUses(lost{})), ask(nil); got != want {
		t.Errorf("found %s, want %s", got, want)
	}
}

// What a user's searches led to is found by their words from then on: by this user alone, until /forget.
func TestLearnedWordsFindTheTool(t *testing.T) {
	u := uses(t)
	ask := func(user string) []string {
		b := bridge(t, func(c *search.BridgeConfig) { c.Uses = u })
		result, fault := toolgroups.Run(t.Context(), nil, b.Tools()[0], toolgroups.Call{
			ID: "1", Name: search.ToolSearch, Arguments: []byte(`{"query":"zettel"}`), Scope: toolgroups.Scope{User: user},
		})
		if fault != nil {
			t.Fatal(fault)
		}
		return decode[found](t, result.Text).names()
	}
	if got := ask("telegram:1"); len(got) > 0 {
		t.Fatalf("found %v before anything was learned", got)
	}
	if err := u.Learn(t.Context(), "telegram:1", []toolgroups.PastCall{searched("zettel", foundNothing), searched("bug", foundIssues), called("github_create_issue", true)}); err != nil {
		t.Fatal(err)
	}
	if got := ask("telegram:1"); !slices.Equal(got, []string{"github_create_issue"}) {
		t.Errorf("found %v", got)
	}
	if got := ask("telegram:2"); len(got) > 0 {
		t.Errorf("another user found %v", got)
	}
	if err := u.Forget(t.Context(), "telegram:1"); err != nil {
		t.Fatal(err)
	}
	if got := ask("telegram:1"); len(got) > 0 {
		t.Errorf("found %v after everything was forgotten", got)
	}
}

// forgetful is a store from which a record is deleted before it is written.
type forgetful struct{ storage.KV }

func (s forgetful) Put(ctx context.Context, key string, value []byte, rev storage.Revision) (storage.Revision, error) {
	if rev != storage.Absent {
		if err := s.Delete(ctx, key, storage.Any); err != nil {
			return 0, err
		}
	}
	return s.KV.Put(ctx, key, value, rev)
}

func TestATurnTeachesNothingAboutSomebodyWhoWasForgottenMeanwhile(t *testing.T) {
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "db"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	u, turn := search.NewUses(forgetful{store}), []toolgroups.PastCall{searched("bug", foundIssues), called("github_create_issue", true)}
	for range 2 {
		if err := u.Learn(t.Context(), "telegram:1", turn); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := u.List(t.Context(), "telegram:1"); err != nil || len(got) > 0 {
		t.Errorf("learned %v, %v", got, err)
	}
}

func TestTheLastSearchesAreKept(t *testing.T) {
	u := uses(t)
	learn := func(query, tool string) {
		t.Helper()
		if err := u.Learn(t.Context(), "telegram:1", []toolgroups.PastCall{searched(query, `{"matches":[{"name":"`+tool+`"}]}`), called(tool, true)}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 12 {
		learn(fmt.Sprint("query ", i), "first")
	}
	learn("query 5", "first")
	got, err := u.List(t.Context(), "telegram:1")
	if want := "[{first [query 4 query 6 query 7 query 8 query 9 query 10 query 11 query 5]}]"; err != nil || fmt.Sprint(got) != want {
		t.Errorf("kept %v, %v, want %s", got, err, want)
	}
	for i := range 200 {
		learn("query", fmt.Sprint("tool_", i))
	}
	if got, err := u.List(t.Context(), "telegram:1"); err != nil || len(got) != 200 || got[0].Tool != "tool_0" {
		t.Errorf("kept %d tools from %v on, %v", len(got), got[0], err)
	}
}

// A half of the queries teaches the words that the tools' own texts lack, and so the other half finds more.
func TestEvalWithLearning(t *testing.T) {
	const set = `{"tools":[{"name":"issue_create","desc":"Create an issue."},{"name":"star_add","desc":"Star a repository."}],
		"queries":[{"q":"zettel new","gold":["issue_create"]},{"q":"make a zettel","gold":["issue_create"]},{"q":"zettel","gold":["issue_create"]},
			{"q":"zettel please","gold":["issue_create"]},{"q":"one more zettel","gold":["issue_create"]}]}`
	recall := func(half search.Half, learn bool) float64 {
		reports, err := search.Eval(t.Context(), search.WordRanker{}, strings.NewReader(set), "set", half, search.QuerySourceFile, learn)
		if err != nil {
			t.Fatal(err)
		}
		return reports[0].RecallAt1
	}
	for _, half := range []search.Half{search.HalfTuned, search.HalfHeld} {
		if before, after := recall(half, false), recall(half, true); before == 1 || after < 1 {
			t.Errorf("%s: recall@1 is %.2f, with learning %.2f", half, before, after)
		}
	}
}
