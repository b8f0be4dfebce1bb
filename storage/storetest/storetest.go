// Package storetest is the test suite that every implementation of [storage.Store] passes.
//
// The suite is a table of properties. Each has a sentence that states the property, and a function that
// checks it on a new, empty store. The suite itself is tested: it passes for a simple engine in memory
// and fails for each of many mutants of it.
package storetest

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"oneclaw/storage"
)

// Config provides the stores for the suite.
type Config struct {
	// Open returns a new, empty store. The suite closes the store; Open leaves any other clean-up to
	// t.Cleanup.
	Open func(t testing.TB) storage.Store
	// Reopen returns a store with the data of s, which the suite has closed. If Reopen is nil,
	// durability is not tested.
	Reopen func(t testing.TB, s storage.Store) storage.Store
	// Second returns another handle on the data of s, as a second process would have. An engine for a
	// single process returns s. The suite closes the second handle before s.
	Second func(t testing.TB, s storage.Store) storage.Store
}

// Run runs all properties as subtests of t.
func Run(t *testing.T, cfg Config) {
	t.Helper()
	for _, p := range properties() {
		t.Run(p.name, func(t *testing.T) {
			runProperty(t, cfg, p)
		})
	}
}

// property is one statement of the contract.
type property struct {
	name     string
	sentence string
	check    func(t testing.TB, s storage.Store)
	// reopened, if set, is called after check, once the store was closed and opened again with the same
	// data.
	reopened func(t testing.TB, s storage.Store)
	// shared is set if the property is also checked with two handles on one store.
	shared bool
	// twoHandles makes the calls alternate between two handles.
	twoHandles bool
}

// properties returns the table.
func properties() []property {
	all := slices.Concat(logProperties(), queryProperties(), kvProperties(), writeProperties(), watchProperties(), commonProperties())
	for _, p := range all {
		if p.shared {
			p.name, p.twoHandles = "TwoHandles/"+p.name, true
			all = append(all, p)
		}
	}
	return all
}

func runProperty(t testing.TB, cfg Config, p property) {
	t.Helper()
	s := cfg.Open(t)
	if p.twoHandles {
		s = &alternatingStore{handles: [2]storage.Store{s, cfg.Second(t, s)}}
	}
	defer func() { closeStore(t, s) }()
	p.check(t, s)
	if !t.Failed() && p.reopened != nil && cfg.Reopen != nil {
		closeStore(t, s)
		s = cfg.Reopen(t, s)
		p.reopened(t, s)
	}
	if t.Failed() {
		t.Logf("violated property: %s", p.sentence)
	}
}

func closeStore(t testing.TB, s storage.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// patience bounds a wait; only a failing test waits that long.
const patience = 2 * time.Minute

func withPatience(t testing.TB) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), patience)
}

// record returns a record with the given label and data.
func record(label, data string) storage.Record {
	return storage.Record{Label: label, Data: []byte(data)}
}

// mustAppend appends records and fails the test on an error or a wrong position.
func mustAppend(t testing.TB, s storage.Store, log string, after storage.Position, records ...storage.Record) {
	t.Helper()
	got, err := s.Append(t.Context(), log, after, records...)
	if err != nil {
		t.Fatalf("Append(%q, %d, %d records): %v", log, after, len(records), err)
	}
	if want := after + storage.Position(len(records)); got != want {
		t.Fatalf("Append(%q, %d, %d records) = %d, want %d", log, after, len(records), got, want)
	}
}

func mustPut(t testing.TB, s storage.Store, key, value string, rev storage.Revision) storage.Revision {
	t.Helper()
	got, err := s.Put(t.Context(), key, []byte(value), rev)
	if err != nil {
		t.Fatalf("Put(%q, %d bytes, %d): %v", key, len(value), rev, err)
	}
	return got
}

func mustDelete(t testing.TB, s storage.Store, key string, rev storage.Revision) {
	t.Helper()
	if err := s.Delete(t.Context(), key, rev); err != nil {
		t.Fatalf("Delete(%q, %d): %v", key, rev, err)
	}
}

// readRecords returns the records that a query finds.
func readRecords(t testing.TB, s storage.Store, log string, q storage.Query) []storage.Record {
	t.Helper()
	var records []storage.Record
	for r, err := range s.Records(t.Context(), log, q) {
		if err != nil {
			t.Fatalf("Records(%q, %+v) after %d records: %v", log, q, len(records), err)
		}
		records = append(records, r)
	}
	return records
}

func listEntries(t testing.TB, s storage.Store, r storage.Range) []storage.Entry {
	t.Helper()
	var entries []storage.Entry
	for e, err := range s.List(t.Context(), r) {
		if err != nil {
			t.Fatalf("List(%+v) after %d entries: %v", r, len(entries), err)
		}
		entries = append(entries, e)
	}
	return entries
}

func keysOf(entries []storage.Entry) []string {
	var names []string
	for _, e := range entries {
		names = append(names, e.Key)
	}
	return names
}

// wantEqual fails the test if got is not want; nil and empty slices count as equal.
func wantEqual(t testing.TB, what string, got, want any) {
	t.Helper()
	if reflect.DeepEqual(got, want) {
		return // the usual case, and much faster
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

func wantError(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%s: error %v, want %v", what, err, want)
	}
}
