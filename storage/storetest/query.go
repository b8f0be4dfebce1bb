package storetest

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"oneclaw/storage"
)

func queryProperties() []property {
	return []property{
		{name: "Queries", sentence: "Every combination of After, Before, Label, Limit and Backward yields the same records as a filter over all records.", check: testQueries},
		{name: "QueriesOverManyRecords", sentence: "Queries also yield the correct records if there are many of them.", check: testQueriesOverManyRecords},
		{name: "LabelIndex", sentence: "After any appends and drops, the label index equals the one that can be built from the records.", check: testLabelIndex},
	}
}

// filter is a model of Records.
func filter(all []storage.Record, q storage.Query) []storage.Record {
	all = slices.Clone(all)
	if q.Backward {
		slices.Reverse(all)
	}
	var out []storage.Record
	for _, r := range all {
		if r.Pos <= q.After || (q.Before != 0 && r.Pos >= q.Before) || (q.Label != "" && r.Label != q.Label) {
			continue
		}
		out = append(out, r)
		if q.Limit != 0 && len(out) == q.Limit {
			break
		}
	}
	return out
}

var someLabels = []string{"", "a", "b", "ab"}

func drawQuery(t *rapid.T, last int) storage.Query {
	return storage.Query{
		After:    storage.Position(rapid.IntRange(0, last+2).Draw(t, "after")),
		Before:   storage.Position(rapid.IntRange(0, last+2).Draw(t, "before")),
		Label:    rapid.SampledFrom(someLabels).Draw(t, "label"),
		Limit:    rapid.IntRange(0, last+1).Draw(t, "limit"),
		Backward: rapid.Bool().Draw(t, "backward"),
	}
}

func testQueries(t testing.TB, s storage.Store) {
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		log := fmt.Sprint("log ", run)
		all := drawLog(t, rt, s, log)
		for range 5 {
			q := drawQuery(rt, len(all))
			wantEqual(t, fmt.Sprintf("%d records, %+v", len(all), q), readRecords(t, s, log, q), filter(all, q))
		}
		end := storage.Query{After: ^storage.Position(0), Backward: run%2 == 0}
		wantEqual(t, "records behind the last possible position", readRecords(t, s, log, end), []storage.Record{})
	})
}

// drawLog appends a few random records and returns them with their positions.
func drawLog(t testing.TB, rt *rapid.T, s storage.Store, log string) []storage.Record {
	labels := rapid.SliceOfN(rapid.SampledFrom(someLabels), 0, 12).Draw(rt, "labels")
	var all []storage.Record
	for i, label := range labels {
		r := record(label, fmt.Sprint("data ", i))
		r.Pos = storage.Position(i + 1)
		all = append(all, r)
	}
	split := 0
	if len(all) > 0 {
		split = rapid.IntRange(0, len(all)).Draw(rt, "split")
	}
	for _, part := range [][]storage.Record{all[:split], all[split:]} {
		if len(part) > 0 {
			mustAppend(t, s, log, part[0].Pos-1, part...)
		}
	}
	return all
}

func testQueriesOverManyRecords(t testing.TB, s storage.Store) {
	var all []storage.Record
	for i := range 3 * manyItems {
		r := record(someLabels[i%len(someLabels)], fmt.Sprint("data ", i))
		r.Pos = storage.Position(i + 1)
		all = append(all, r)
	}
	mustAppend(t, s, "a", 0, all...)
	for _, q := range []storage.Query{
		{},
		{Backward: true},
		{Label: "a"},
		{Label: "ab", Backward: true},
		{Limit: manyItems},
		{Limit: manyItems, Backward: true},
		{After: 5, Before: 3*manyItems - 5},
		{After: 5, Before: 3*manyItems - 5, Backward: true, Label: "b", Limit: 300},
		{Limit: 256},
		{Limit: 257},
		{Limit: 1, Backward: true},
	} {
		wantEqual(t, fmt.Sprintf("%+v", q), readRecords(t, s, "a", q), filter(all, q))
	}
}

func testLabelIndex(t testing.TB, s storage.Store) {
	last := map[string]storage.Position{}
	rapid.Check(t, func(rt *rapid.T) {
		for range rapid.IntRange(1, 8).Draw(rt, "steps") {
			log := rapid.SampledFrom([]string{"a", "ab", "b"}).Draw(rt, "log")
			if rapid.IntRange(0, 9).Draw(rt, "drop") == 0 {
				if err := s.Drop(t.Context(), log); err != nil {
					t.Fatalf("Drop: %v", err)
				}
				last[log] = 0
				continue
			}
			records := []storage.Record{
				record(rapid.SampledFrom(someLabels).Draw(rt, "label"), "x"),
				record(rapid.SampledFrom(someLabels).Draw(rt, "label"), "y"),
			}
			mustAppend(t, s, log, last[log], records...)
			last[log] += 2
		}
		for log := range last {
			compareIndex(t, s, log)
		}
	})
}

// compareIndex compares the label index of a log with one that is built from its records.
func compareIndex(t testing.TB, s storage.Store, log string) {
	t.Helper()
	index := map[string][]storage.Record{}
	for _, r := range readRecords(t, s, log, storage.Query{}) {
		index[r.Label] = append(index[r.Label], r)
	}
	for _, label := range someLabels[1:] {
		wantEqual(t, fmt.Sprintf("label %q of log %q", label, log), readRecords(t, s, log, storage.Query{Label: label}), index[label])
	}
}
