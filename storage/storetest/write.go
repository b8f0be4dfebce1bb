package storetest

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

	"oneclaw/storage"
)

func writeProperties() []property {
	return []property{
		{name: "WriteAtomic", sentence: "Write applies all its operations with one revision, or none if one of them is in conflict or invalid.", check: testWriteAtomic, reopened: testWriteAtomicReopened},
		{name: "WriteConcurrently", sentence: "Concurrent writes of several keys and a log with compare-and-set never interleave.", check: testWriteConcurrently, shared: true},
		{name: "CheckConflicts", sentence: "A check is a conflict unless the key has the revision, and writes nothing.", check: testCheckConflicts},
		{name: "ChecksExclude", sentence: "Of two concurrent writes that each check the key that the other one writes, at most one succeeds.", check: testChecksExclude, shared: true},
		{name: "RevisionsOrderAcrossKeys", sentence: "A write that begins after another has returned has the higher revision, whichever keys they name.", check: testRevisionsOrderAcrossKeys, shared: true},
	}
}

func mustWrite(t testing.TB, s storage.Store, ops ...storage.Op) storage.Revision {
	t.Helper()
	rev, err := s.Write(t.Context(), ops...)
	if err != nil {
		t.Fatalf("Write of %d operations: %v", len(ops), err)
	}
	return rev
}

// readContent returns all keys and records.
func readContent(t testing.TB, s storage.Store) (entries []storage.Entry, logs map[string][]storage.Record) {
	t.Helper()
	logs = map[string][]storage.Record{}
	for name, err := range s.Logs(t.Context(), storage.Range{}) {
		if err != nil {
			t.Fatalf("Logs: %v", err)
		}
		logs[name] = readRecords(t, s, name, storage.Query{})
	}
	return listEntries(t, s, storage.Range{}), logs
}

func testWriteAtomic(t testing.TB, s storage.Store) {
	kept, gone := mustPut(t, s, "kept", "1", storage.Absent), mustPut(t, s, "gone", "1", storage.Absent)
	mustAppend(t, s, "log", 0, record("l", "1"))
	rev := mustWrite(t, s,
		storage.Append("log", 1, record("l", "2"), record("", "3")),
		storage.Put("new", []byte("1"), storage.Absent),
		storage.Check("kept", kept),
		storage.Delete("gone", gone),
		storage.Delete("never was", storage.Any),
		storage.Append("new", 0, record("l", "a log may have the name of a key")),
		storage.Put("any", []byte("1"), storage.Any))
	testWriteAtomicReopened(t, s)
	for _, key := range []string{"new", "any"} {
		if e, err := s.Get(t.Context(), key); err != nil || e.Revision != rev {
			t.Fatalf("%s has the revision %d (%v), the write returned %d", key, e.Revision, err, rev)
		}
	}
	for _, ops := range [][]storage.Op{
		{storage.Check("kept", kept)}, {storage.Delete("never was", storage.Any)}, {storage.Append("log", 3, record("", "4"))},
	} {
		if rev := mustWrite(t, s, ops...); rev != 0 {
			t.Errorf("a write that changes no key returns the revision %d, want 0", rev)
		}
	}
	wantAllOrNothing(t, s, kept)
	mustPut(t, s, "gone", "", storage.Absent)
	mustDelete(t, s, "gone", storage.Any)
	mustWrite(t, s, storage.Append("log", 4, record("", "5")), storage.Put("new", []byte("2"), rev))
}

// testWriteAtomicReopened checks the state after the first write of testWriteAtomic.
func testWriteAtomicReopened(t testing.TB, s storage.Store) {
	entries, logs := readContent(t, s)
	wantEqual(t, "keys", keysOf(entries), []string{"any", "kept", "new"})
	wantEqual(t, "records of new", logs["new"], []storage.Record{{Pos: 1, Label: "l", Data: []byte("a log may have the name of a key")}})
	for i, r := range logs["log"] {
		if string(r.Data) != fmt.Sprint(i+1) {
			t.Fatalf("record %d is %q", i+1, r.Data)
		}
	}
	if n := len(readRecords(t, s, "log", storage.Query{Label: "l"})); n != 2 {
		t.Fatalf("%d records have the label, want 2", n)
	}
}

// wantAllOrNothing puts a failing operation before, between and after others, and checks that none is
// applied.
func wantAllOrNothing(t testing.TB, s storage.Store, kept storage.Revision) {
	entries, logs := readContent(t, s)
	good := []storage.Op{
		storage.Append("log", 4, record("l", "no")), storage.Append("other log", 0, record("l", "no")),
		storage.Put("kept", []byte("no"), kept), storage.Put("other", nil, storage.Absent), storage.Delete("any", storage.Any),
	}
	for _, c := range []struct {
		bad  storage.Op
		want error
	}{
		{storage.Put("new", []byte("no"), storage.Absent), storage.ErrConflict},
		{storage.Delete("new", kept), storage.ErrConflict},
		{storage.Check("new", kept), storage.ErrConflict},
		{storage.Append("new", 0, record("", "no")), storage.ErrConflict},
		{storage.Put("", nil, storage.Any), storage.ErrInvalid},
		{storage.Append("new", 1), storage.ErrInvalid},
		{storage.Put("kept", []byte("again"), kept), storage.ErrInvalid},
		{storage.Append("log", 4, record("", "again")), storage.ErrInvalid},
		{storage.Op{}, storage.ErrInvalid},
	} {
		for at := range len(good) + 1 {
			ops := append(append(good[:at:at], c.bad), good[at:]...)
			_, err := s.Write(t.Context(), ops...)
			wantError(t, fmt.Sprintf("Write with %+v at %d", c.bad, at), err, c.want)
		}
	}
	_, err := s.Write(t.Context())
	wantError(t, "Write of nothing", err, storage.ErrInvalid)
	nowEntries, nowLogs := readContent(t, s)
	wantEqual(t, "keys after writes that failed", nowEntries, entries)
	wantEqual(t, "logs after writes that failed", nowLogs, logs)
}

func testWriteConcurrently(t testing.TB, s storage.Store) {
	const writers, writes = 6, 10
	ctx, cancel := withPatience(t)
	defer cancel()
	one := mustWrite(t, s, storage.Put("a", []byte("0"), storage.Absent), storage.Put("b", []byte("0"), storage.Absent))
	if one == 0 {
		t.Fatal("Write returns no revision")
	}
	var g errgroup.Group
	for range writers {
		g.Go(func() error {
			for done := 0; done < writes; {
				e, err := s.Get(ctx, "a")
				if err != nil {
					return err
				}
				var n int
				if _, err := fmt.Sscan(string(e.Value), &n); err != nil {
					return err
				}
				next := []byte(fmt.Sprint(n + 1))
				_, err = s.Write(ctx,
					storage.Append("log", storage.Position(n), storage.Record{Data: next}),
					storage.Put("b", next, e.Revision), storage.Put("a", next, e.Revision))
				if err == nil {
					done++
				} else if !errors.Is(err, storage.ErrConflict) {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatalf("counting: %v", err)
	}
	entries, logs := readContent(t, s)
	want := fmt.Sprint(writers * writes)
	for _, e := range entries {
		if string(e.Value) != want {
			t.Errorf("%s is %s, want %s", e.Key, e.Value, want)
		}
	}
	if got := fmt.Sprint(len(logs["log"])); got != want {
		t.Errorf("%s records, want %s", got, want)
	}
}

func testCheckConflicts(t testing.TB, s storage.Store) {
	conflict := func(rev storage.Revision, when string) {
		t.Helper()
		_, err := s.Write(t.Context(), storage.Put("other", nil, storage.Any), storage.Check("k", rev))
		wantError(t, fmt.Sprintf("Check of %d %s", rev, when), err, storage.ErrConflict)
	}
	conflict(1, "where there is nothing")
	mustWrite(t, s, storage.Check("k", storage.Absent), storage.Put("first", nil, storage.Any))
	past := mustPut(t, s, "k", "1", storage.Absent)
	rev := mustPut(t, s, "k", "2", past)
	conflict(past, "which is past")
	conflict(rev+1, "which is to come")
	conflict(storage.Absent, "where there is a version")
	mustWrite(t, s, storage.Check("k", rev), storage.Put("second", nil, storage.Any))
	wantEqual(t, "keys", keysOf(listEntries(t, s, storage.Range{})), []string{"first", "k", "second"})
	if e, err := s.Get(t.Context(), "k"); err != nil || string(e.Value) != "2" || e.Revision != rev {
		t.Errorf("Get after checks = %+v, %v; want the value 2 of revision %d", e, err, rev)
	}
	mustDelete(t, s, "k", rev)
	conflict(rev, "which is deleted")
	mustWrite(t, s, storage.Check("k", storage.Absent))
}

func testChecksExclude(t testing.TB, s storage.Store) {
	ctx, cancel := withPatience(t)
	defer cancel()
	for round := range 30 {
		a, b := fmt.Sprint("a", round), fmt.Sprint("b", round)
		var won atomic.Int32
		var g errgroup.Group
		for _, c := range [][2]string{{a, b}, {b, a}} {
			g.Go(func() error {
				_, err := s.Write(ctx, storage.Check(c[0], storage.Absent), storage.Put(c[1], nil, storage.Absent))
				if err == nil {
					won.Add(1)
				} else if !errors.Is(err, storage.ErrConflict) {
					return err
				}
				return nil
			})
		}
		if err := g.Wait(); err != nil || won.Load() > 1 {
			t.Fatalf("%d of two writes succeeded (%v), each checked that the other had not", won.Load(), err)
		}
	}
}

func testRevisionsOrderAcrossKeys(t testing.TB, s storage.Store) {
	const writers, writes = 6, 20
	ctx, cancel := withPatience(t)
	defer cancel()
	var highest atomic.Uint64 // of the completed writes
	var g errgroup.Group
	for w := range writers {
		g.Go(func() error {
			key, log := fmt.Sprint("k", w), fmt.Sprint("log", w)
			for i := range writes {
				floor := highest.Load()
				ops := []storage.Op{storage.Put(key, nil, storage.Any), storage.Append(log, storage.Position(i), record("", "x"))}
				if i%4 == 3 {
					ops[0] = storage.Delete(key, storage.Any)
				}
				rev, err := s.Write(ctx, ops...)
				if err != nil {
					return err
				}
				if uint64(rev) <= floor {
					return fmt.Errorf("a write has the revision %d, one that returned before it began has %d", rev, floor)
				}
				for old := floor; old < uint64(rev) && !highest.CompareAndSwap(old, uint64(rev)); {
					old = highest.Load()
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
}
