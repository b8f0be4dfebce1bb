package storetest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"oneclaw/storage"
)

func kvProperties() []property {
	return []property{
		{name: "PutGet", sentence: "Get returns the value that Put wrote, with the revision that Put returned, including empty values.", check: testPutGet, reopened: testPutGetReopened},
		{name: "GetMany", sentence: "GetMany returns those of the keys that exist, each as Get does.", check: testGetMany},
		{name: "PutCompares", sentence: "Put writes only over the revision that it names.", check: testPutCompares},
		{name: "DeleteCompares", sentence: "Delete removes only the revision that it names.", check: testDeleteCompares},
		{name: "RevisionsGrow", sentence: "The revisions of a key increase with each write, also across a deletion.", check: testRevisionsGrow, reopened: testRevisionsGrowReopened},
		{name: "KVModel", sentence: "Any sequence of Put, Delete, Get and List behaves like a sorted map with revisions.", check: testKVModel},
		{name: "ListRanges", sentence: "List yields the keys of a range in byte order.", check: testListRanges},
		{name: "ListManyWhileWriting", sentence: "List yields in order, exactly once, each key that is not changed during the iteration, even if the consumer writes.", check: testListManyWhileWriting},
		{name: "ValuesOwnBytes", sentence: "No value shares memory with the store.", check: testValuesOwnBytes},
	}
}

func testPutGet(t testing.TB, s storage.Store) {
	_, err := s.Get(t.Context(), "a")
	wantError(t, "Get of a missing key", err, storage.ErrNotFound)
	for _, key := range []string{"a", "a\x00", "\xff", "ä/ö", " ", "a.*.>", strings.Repeat("k", storage.MaxKey)} {
		for _, value := range []string{"", "v", "\x00\xff"} {
			rev := mustPut(t, s, key, value, storage.Any)
			got, err := s.Get(t.Context(), key)
			if err != nil {
				t.Fatalf("Get(%q): %v", key, err)
			}
			wantEqual(t, "entry", got, storage.Entry{Key: key, Value: []byte(value), Revision: rev})
		}
	}
	mustPut(t, s, "large", strings.Repeat("v", storage.MaxValue), storage.Absent)
}

func testGetMany(t testing.TB, s storage.Store) {
	keys, want := []string{"missing", "a", "a"}, make(map[string]storage.Entry)
	for i := range 600 {
		key := fmt.Sprint("k", i)
		keys = append(keys, key)
		if i%7 == 0 {
			continue
		}
		mustPut(t, s, key, "old", storage.Absent)
		rev := mustPut(t, s, key, strings.Repeat("v", i%3), storage.Any)
		if i%5 == 0 {
			if err := s.Delete(t.Context(), key, rev); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want[key] = storage.Entry{Key: key, Value: []byte(strings.Repeat("v", i%3)), Revision: rev}
	}
	want["a"] = storage.Entry{Key: "a", Value: []byte("v"), Revision: mustPut(t, s, "a", "v", storage.Absent)}
	got, err := storage.GetMany(t.Context(), s, keys)
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "entries", got, want)
	if got, err = storage.GetMany(t.Context(), s, nil); err != nil || len(got) != 0 {
		t.Errorf("of no keys: %v, %v", got, err)
	}
	_, err = storage.GetMany(t.Context(), s, []string{"a", ""})
	wantError(t, "GetMany of an empty key", err, storage.ErrInvalid)
}

func testPutGetReopened(t testing.TB, s storage.Store) {
	got, err := s.Get(t.Context(), "ä/ö")
	if err != nil || string(got.Value) != "\x00\xff" {
		t.Fatalf("Get after reopening = %q, %v", got.Value, err)
	}
	large, err := s.Get(t.Context(), "large")
	if err != nil || len(large.Value) != storage.MaxValue {
		t.Fatalf("Get of a large value after reopening: %d bytes, %v", len(large.Value), err)
	}
	mustPut(t, s, "ä/ö", "on", got.Revision)
}

func testPutCompares(t testing.TB, s storage.Store) {
	conflict := func(rev storage.Revision, when string) {
		t.Helper()
		_, err := s.Put(t.Context(), "k", []byte("no"), rev)
		wantError(t, fmt.Sprintf("Put over %d %s", rev, when), err, storage.ErrConflict)
	}
	conflict(1, "where there is nothing")
	conflict(7, "where there is nothing")
	first := mustPut(t, s, "k", "1", storage.Absent)
	conflict(storage.Absent, "where there is a version")
	conflict(first+1, "which is to come")
	second := mustPut(t, s, "k", "2", first)
	conflict(first, "which is past")
	conflict(storage.Absent, "where there are versions")
	other := mustPut(t, s, "other", "3", storage.Absent)
	if other != second {
		conflict(other, "of another key")
	}
	got, err := s.Get(t.Context(), "k")
	if err != nil || string(got.Value) != "2" || got.Revision != second {
		t.Errorf("Get after conflicts = %+v, %v; want the value 2 of revision %d", got, err, second)
	}
	mustPut(t, s, "k", "4", second)
}

func testDeleteCompares(t testing.TB, s storage.Store) {
	conflict := func(rev storage.Revision, when string) {
		t.Helper()
		wantError(t, fmt.Sprintf("Delete of %d %s", rev, when), s.Delete(t.Context(), "k", rev), storage.ErrConflict)
	}
	conflict(1, "where there is nothing")
	conflict(storage.Absent, "where there is nothing")
	mustDelete(t, s, "k", storage.Any)
	first := mustPut(t, s, "k", "1", storage.Absent)
	second := mustPut(t, s, "k", "2", first)
	conflict(first, "which is past")
	conflict(storage.Absent, "where there is a version")
	conflict(second+1, "which is to come")
	if got, err := s.Get(t.Context(), "k"); err != nil || string(got.Value) != "2" {
		t.Fatalf("Get after conflicts = %+v, %v", got, err)
	}
	mustDelete(t, s, "k", second)
	_, err := s.Get(t.Context(), "k")
	wantError(t, "Get of a deleted key", err, storage.ErrNotFound)
	conflict(second, "which is deleted")
	if got := listEntries(t, s, storage.Range{}); len(got) != 0 {
		t.Errorf("List after the deletion yields %q", keysOf(got))
	}
	mustPut(t, s, "k", "3", storage.Absent)
	mustDelete(t, s, "k", storage.Any)
}

func testRevisionsGrow(t testing.TB, s storage.Store) {
	var last storage.Revision
	for round := range 4 {
		for _, put := range []string{"1", "2"} {
			rev := mustPut(t, s, "k", put, storage.Any)
			if rev <= last || rev == storage.Any {
				t.Fatalf("round %d: revision %d follows %d", round, rev, last)
			}
			last = rev
		}
		mustDelete(t, s, "k", last)
		_, err := s.Put(t.Context(), "k", nil, last)
		wantError(t, "Put over the deleted revision", err, storage.ErrConflict)
	}
	mustPut(t, s, "highest", fmt.Sprint(last), storage.Any)
}

func testRevisionsGrowReopened(t testing.TB, s storage.Store) {
	highest, err := s.Get(t.Context(), "highest")
	if err != nil {
		t.Fatalf("Get: %v", err)
	}
	rev := mustPut(t, s, "k", "again", storage.Absent)
	var last storage.Revision
	if _, err := fmt.Sscan(string(highest.Value), &last); err != nil || rev <= last {
		t.Fatalf("revision %d after reopening follows %d (%v)", rev, last, err)
	}
}

var someKeys = []string{"a", "a/", "a/b", "a/\xff", "a0", "b", "\xff", "\xff\xff"}

func testKVModel(t testing.TB, s storage.Store) {
	model := map[string]storage.Entry{}
	rapid.Check(t, func(rt *rapid.T) {
		for range rapid.IntRange(1, 10).Draw(rt, "steps") {
			key := rapid.SampledFrom(someKeys).Draw(rt, "key")
			rev := drawRevision(rt, model[key].Revision)
			if rapid.IntRange(0, 2).Draw(rt, "delete") == 0 {
				stepDelete(t, s, model, key, rev)
			} else {
				stepPut(t, s, model, key, rapid.SampledFrom([]string{"", "x", "y"}).Draw(rt, "value"), rev)
			}
		}
		r := storage.Range{
			Prefix: rapid.SampledFrom(append(someKeys, "")).Draw(rt, "prefix"),
			After:  rapid.SampledFrom(append(someKeys, "")).Draw(rt, "after"),
			Limit:  rapid.IntRange(0, len(someKeys)).Draw(rt, "limit"),
		}
		wantEqual(t, fmt.Sprintf("List(%+v)", r), listEntries(t, s, r), listModel(model, r))
	})
}

func drawRevision(rt *rapid.T, present storage.Revision) storage.Revision {
	return rapid.SampledFrom([]storage.Revision{present, present, storage.Any, storage.Absent, present + 1}).Draw(rt, "revision")
}

func stepPut(t testing.TB, s storage.Store, model map[string]storage.Entry, key, value string, rev storage.Revision) {
	t.Helper()
	present, exists := model[key]
	got, err := s.Put(t.Context(), key, []byte(value), rev)
	if rev != storage.Any && rev != present.Revision {
		wantError(t, "Put", err, storage.ErrConflict)
		return
	}
	if err != nil || (exists && got <= present.Revision) {
		t.Fatalf("Put(%q, %d) = %d, %v over %d", key, rev, got, err, present.Revision)
	}
	model[key] = storage.Entry{Key: key, Value: []byte(value), Revision: got}
	e, err := s.Get(t.Context(), key)
	if err != nil {
		t.Fatalf("Get(%q): %v", key, err)
	}
	wantEqual(t, "entry", e, model[key])
}

func stepDelete(t testing.TB, s storage.Store, model map[string]storage.Entry, key string, rev storage.Revision) {
	t.Helper()
	present, exists := model[key]
	err := s.Delete(t.Context(), key, rev)
	if rev != storage.Any && (!exists || rev != present.Revision) {
		wantError(t, "Delete", err, storage.ErrConflict)
		return
	}
	if err != nil {
		t.Fatalf("Delete(%q, %d) over %d: %v", key, rev, present.Revision, err)
	}
	delete(model, key)
}

func listModel(model map[string]storage.Entry, r storage.Range) []storage.Entry {
	var out []storage.Entry
	for key, e := range model {
		if strings.HasPrefix(key, r.Prefix) && key > r.After {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b storage.Entry) int { return strings.Compare(a.Key, b.Key) })
	if r.Limit != 0 && len(out) > r.Limit {
		out = out[:r.Limit]
	}
	return out
}

func testListRanges(t testing.TB, s storage.Store) {
	for _, i := range []int{3, 0, 7, 5, 1, 6, 2, 4} {
		mustPut(t, s, someKeys[i], "v", storage.Absent)
	}
	for _, c := range rangeCases() {
		wantEqual(t, fmt.Sprintf("List(%+v)", c.r), keysOf(listEntries(t, s, c.r)), c.want)
	}
}

// rangeCase is a range, and the keys of someKeys in it.
type rangeCase struct {
	r    storage.Range
	want []string
}

func rangeCases() []rangeCase {
	return []rangeCase{
		{storage.Range{}, someKeys},
		{storage.Range{Prefix: "a"}, someKeys[:5]},
		{storage.Range{Prefix: "a/"}, someKeys[1:4]},
		{storage.Range{Prefix: "\xff"}, someKeys[6:]},
		{storage.Range{Prefix: "\xff\xff\xff"}, nil},
		{storage.Range{Prefix: "c"}, nil},
		{storage.Range{After: "a/b"}, someKeys[3:]},
		{storage.Range{After: "a/a"}, someKeys[2:]},
		{storage.Range{After: "\xff\xff"}, nil},
		{storage.Range{Prefix: "a/", After: "a/b"}, someKeys[3:4]},
		{storage.Range{Prefix: "a/", After: "A"}, someKeys[1:4]},
		{storage.Range{Prefix: "a/", After: "b"}, nil},
		{storage.Range{Prefix: "a/", After: "a/"}, someKeys[2:4]},
		{storage.Range{Prefix: "a", After: "a", Limit: 2}, someKeys[1:3]},
		{storage.Range{Limit: 1}, someKeys[:1]},
		{storage.Range{Limit: 100}, someKeys},
	}
}

func testListManyWhileWriting(t testing.TB, s storage.Store) {
	for i := range manyItems {
		mustPut(t, s, fmt.Sprintf("k%04d", i), "old", storage.Absent)
	}
	var seen []string
	for e, err := range s.List(t.Context(), storage.Range{Prefix: "k"}) {
		if err != nil {
			t.Fatalf("List: %v", err)
		}
		if n := len(seen); n > 0 && e.Key <= seen[n-1] {
			t.Fatalf("%q follows %q", e.Key, seen[n-1])
		}
		seen = append(seen, e.Key)
		switch len(seen) {
		case 1:
			mustDelete(t, s, "k0650", storage.Any)
			mustPut(t, s, "k0660", "new", storage.Any)
			mustPut(t, s, "k0010x", "new", storage.Absent)
		case 600:
			mustPut(t, s, "k0000x", "new", storage.Absent)
			mustPut(t, s, "l", "new", storage.Absent)
		}
	}
	for i := range manyItems {
		key := fmt.Sprintf("k%04d", i)
		if key != "k0650" && key != "k0660" && !slices.Contains(seen, key) {
			t.Fatalf("%s is missing although it was not changed", key)
		}
	}
	if slices.Contains(seen, "k0000x") || slices.Contains(seen, "l") {
		t.Errorf("List yields a key before the last or without the prefix")
	}
}

func testValuesOwnBytes(t testing.TB, s storage.Store) {
	value := []byte("data")
	if _, err := s.Put(t.Context(), "k", value, storage.Absent); err != nil {
		t.Fatalf("Put: %v", err)
	}
	copy(value, "XXXX")
	for range 2 {
		e, err := s.Get(t.Context(), "k")
		if err != nil || !bytes.Equal(e.Value, []byte("data")) {
			t.Fatalf("Get = %q, %v", e.Value, err)
		}
		copy(e.Value, "YYYY")
		list := listEntries(t, s, storage.Range{})
		if len(list) != 1 || string(list[0].Value) != "data" {
			t.Fatalf("List = %+v", list)
		}
		copy(list[0].Value, "ZZZZ")
	}
}
