package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"oneclaw/toolgroups"
	"oneclaw/toolgroups/core"
)

// records is a history in memory.
type records map[string][]core.Passage

func (r records) Passages(_ context.Context, owner string, q core.HistoryQuery) iter.Seq2[core.Passage, error] {
	return func(yield func(core.Passage, error) bool) {
		if owner == "" {
			yield(core.Passage{}, errors.New("no owner"))
			return
		}
		for _, p := range r[owner] {
			early := !q.From.IsZero() && p.Time.Before(q.From)
			late := !q.Until.IsZero() && !p.Time.Before(q.Until)
			if slices.Contains(q.Kinds, p.Kind) && !early && !late && !yield(p, nil) {
				return
			}
		}
	}
}

// broken is a history that cannot be read.
type broken struct{}

func (broken) Passages(context.Context, string, core.HistoryQuery) iter.Seq2[core.Passage, error] {
	return func(yield func(core.Passage, error) bool) { yield(core.Passage{}, errors.New("disk: secret detail")) }
}

func now() time.Time { return time.Date(2026, 6, 30, 12, 0, 0, 0, time.UTC) }

func library() records {
	day := func(d int) time.Time { return time.Date(2026, 6, d, 10, 0, 0, 0, time.UTC) }
	return records{
		"telegram:1": {
			{Kind: core.KindMessage, Time: now().Add(-time.Second), Message: "telegram:1/7/text", Text: "where was my green umbrella?"},
			{Kind: core.KindMessage, Time: day(29), Title: "Lost things", Text: "You left the Green Umbrella at the library."},
			{Kind: core.KindMessage, Time: day(28), Title: "Lost things", Text: "you left the green umbrella at the library"},
			{Kind: core.KindSession, Time: day(29), Title: "Lost things", Text: "About a green umbrella."},
			{Kind: core.KindDailyLog, Time: day(20), Text: "Bought an umbrella, green, 12 euros."},
			{Kind: core.KindMemory, Text: "The user's favourite colour is green."},
			{Kind: core.KindMessage, Time: day(1), Text: "Something else entirely."},
		},
		"telegram:2": {{Kind: core.KindMessage, Time: day(29), Text: "the green umbrella of another"}},
	}
}

func TestSearchHistory(t *testing.T) {
	d := newDesk(t, core.Config{History: library(), Now: now, Location: utc})
	for _, tc := range []struct {
		name string
		args args
		want []string // rule lines, in order
	}{
		{"all", args{"query": "green umbrella"}, []string{
			"--- 1 | 0.80 | daily_log | 2026-06-20 ---",
			"--- 2 | 0.60 | message | 2026-06-29 | Lost things ---",
			"--- 3 | 0.50 | session | 2026-06-29 | Lost things ---",
			"--- 4 | 0.40 | memory | no date ---",
		}},
		{"memory and daily log", args{"query": "umbrella", "scope": "memory"}, []string{"--- 1 | 1.00 | daily_log | 2026-06-20 ---"}},
		{"daily log", args{"query": "green", "scope": "daily_log"}, []string{"--- 1 | 1.00 | daily_log | 2026-06-20 ---"}},
		{
			"sessions",
			args{"query": "GREEN  Umbrella", "scope": "sessions", "max_results": 1},
			[]string{"--- 1 | 0.60 | message | 2026-06-29 | Lost things ---"},
		},
		{
			"a day",
			args{"query": "green umbrella", "date_from": "2026-06-28", "date_to": "2026-06-28"},
			[]string{"--- 1 | 0.60 | message | 2026-06-28 | Lost things ---"},
		},
		{"long-term notes have no date", args{"query": "colour", "date_from": "2026-01-01"}, nil},
		{"title of a session", args{"query": "lost things"}, []string{"--- 1 | 0.50 | session | 2026-06-29 | Lost things ---"}},
		{"nothing", args{"query": "zebra"}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			text := d.must(t, "search_history", tc.args)
			var rules []string
			for line := range strings.Lines(text) {
				if strings.HasPrefix(line, "--- ") {
					rules = append(rules, strings.TrimSpace(line))
				}
			}
			if !slices.Equal(rules, tc.want) || !strings.Contains(text, fmt.Sprintf(": %d found", len(tc.want))) {
				t.Errorf("got\n%s\nwant\n%s", text, strings.Join(tc.want, "\n"))
			}
			if strings.Contains(text, "of another") {
				t.Error("another owner's messages were found")
			}
			if len(tc.want) == 0 && !strings.Contains(text, "Nothing matches") {
				t.Errorf("no hint: %s", text)
			}
		})
	}
}

// The question just asked is no answer, unless its day is asked for.
//
// Searching the history does not find the question itself.
func TestTheQuestionIsNotFound(t *testing.T) {
	d := newDesk(t, core.Config{History: library(), Now: now, Location: utc})
	if text := d.must(t, "search_history", args{"query": "where was my"}); strings.Contains(text, "umbrella?") {
		t.Errorf("found itself: %s", text)
	}
	old := newDesk(t, core.Config{History: library(), Now: func() time.Time { return now().Add(time.Hour) }, Location: utc})
	if text := old.must(t, "search_history", args{"query": "where was my"}); strings.Contains(text, "umbrella?") {
		t.Errorf("found itself after an hour: %s", text)
	}
	text := d.must(t, "search_history", args{"query": "where was my", "date_to": "2026-06-30"})
	if !strings.Contains(text, "umbrella?") {
		t.Errorf("not found: %s", text)
	}
}

// Which words are found depends on no part of a secret, which could be searched for letter by letter.
func TestASearchFindsNoPartOfASecret(t *testing.T) {
	t.Parallel()
	const secret = "correct-horse-battery"
	d := newDesk(t, core.Config{Now: now, Location: utc, History: records{"telegram:1": {
		{Kind: core.KindMessage, Time: now().Add(-time.Hour), Title: "About " + secret, Text: strings.Repeat("lorem ", 70) + secret + strings.Repeat(" ipsum", 70)},
		{Kind: core.KindSession, Time: now().Add(-time.Hour), Title: "About " + secret, Text: "About " + secret},
	}}})
	search := func(query string) string {
		arguments, err := json.Marshal(args{"query": query})
		if err != nil {
			t.Fatal(err)
		}
		scope := d.scope()
		scope.Redact = func(text string) string { return strings.ReplaceAll(text, secret, "••••") }
		res, fault := toolgroups.Run(t.Context(), nil, d.tools["search_history"], toolgroups.Call{Name: "search_history", Arguments: arguments, Scope: scope})
		if fault != nil {
			t.Fatal(fault)
		}
		return res.Text
	}
	for _, query := range []string{"c", "correct-h", "horse", "battery", secret} {
		if text := search(query); !strings.Contains(text, "Nothing matches") {
			t.Errorf("%s: %s", query, text)
		}
	}
	for _, query := range []string{"lorem", "ipsum", "about"} {
		_, text, _ := strings.Cut(search(query), "\n")
		if text == "" || strings.Contains(text, "horse") || strings.Contains(text, "correct") {
			t.Errorf("%s: %s", query, text)
		}
	}
}

func TestSearchHistoryErrors(t *testing.T) {
	d := newDesk(t, core.Config{History: broken{}})
	for _, tc := range []struct {
		args       args
		code, text string
	}{
		{args{}, "validation_error", "'query'"},
		{args{"query": " \n"}, "validation_error", "blank"},
		{args{"query": strings.Repeat("x", 2000)}, "validation_error", "longer"},
		{args{"query": "x", "scope": "everything"}, "validation_error", "'scope'"},
		{args{"query": "x", "date_from": "1.2.2026"}, "validation_error", "'date_from'"},
		{args{"query": "x", "date_to": "2026-02-30"}, "validation_error", "'date_to'"},
		{args{"query": "x", "date_from": "2026-02-02", "date_to": "2026-02-01"}, "validation_error", "before"},
		{args{"query": "x"}, "search_error", "could not be searched"},
	} {
		d.fails(t, "search_history", tc.args, tc.code, tc.text)
	}
	none := newDesk(t, core.Config{})
	if text := none.must(t, "search_history", args{"query": "x"}); !strings.Contains(text, "Nothing matches") {
		t.Errorf("without a history: %s", text)
	}
}

// The result is bounded, whatever is on record.
func TestSearchHistoryIsBounded(t *testing.T) {
	var all []core.Passage
	for i := range 500 {
		all = append(all, core.Passage{
			Kind: core.KindMessage, Time: now().AddDate(0, 0, -i-1), Title: strings.Repeat("t", 300),
			Text: fmt.Sprintf("%s needle %s", strings.Repeat(fmt.Sprintf("a%d ", i), 500), strings.Repeat(fmt.Sprintf("b%d ", i), 500)),
		})
	}
	d := newDesk(t, core.Config{History: records{"telegram:1": all}, Now: now, Location: utc})
	text := d.must(t, "search_history", args{"query": "needle", "max_results": 1000})
	if n := len([]rune(text)); n > 30_000 || !strings.Contains(text, ": 50 found") || !strings.Contains(text, "more are not shown") {
		t.Errorf("%d characters, begins %.100q", n, text)
	}
	for part := range strings.SplitSeq(text, "\n\n--- ") {
		if _, excerpt, ok := strings.Cut(part, "---\n"); ok && !strings.HasPrefix(part, "Search") {
			excerpt, _, _ = strings.Cut(excerpt, "\n\n[")
			if n := len([]rune(excerpt)); n > 500 || !strings.Contains(excerpt, "needle") {
				t.Fatalf("excerpt of %d characters: %q", n, excerpt)
			}
		}
	}
}

func utc(context.Context, toolgroups.Scope) *time.Location { return time.UTC }
