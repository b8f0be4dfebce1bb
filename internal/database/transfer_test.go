package database

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"oneclaw/storage"
	"oneclaw/storage/bolt"
)

func open(t must, dir, name string) *bolt.Store {
	s, err := bolt.Open(bolt.Config{Path: filepath.Join(dir, name), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// must ends a test that cannot go on; both kinds of tests have one.
type must interface {
	Fatal(args ...any)
	Cleanup(f func())
}

func fill(t must, s storage.Store, keys map[string]string, logs map[string][]string) {
	for key, value := range keys {
		if _, err := s.Put(context.Background(), key, []byte(value), storage.Any); err != nil {
			t.Fatal(err)
		}
	}
	for name, records := range logs {
		var batch []storage.Record
		for i, data := range records {
			batch = append(batch, storage.Record{Label: strings.Repeat("l", i%3), Data: []byte(data)})
		}
		if len(batch) == 0 {
			continue
		}
		if _, err := s.Append(context.Background(), name, 0, batch...); err != nil {
			t.Fatal(err)
		}
	}
}

// breaking is a store whose n-th write and all after it fail.
type breaking struct {
	fillable
	left int
}

var errBroken = errors.New("the line is cut")

func (b *breaking) Write(ctx context.Context, ops ...storage.Op) (storage.Revision, error) {
	if b.left--; b.left < 0 {
		return 0, errBroken
	}
	return b.fillable.Write(ctx, ops...)
}

// Whatever a store holds and wherever moves break off: at the end the target holds the same, and until then
// it says that it is not whole.
func TestMoveIsWholeWhereverItBreaksOff(t *testing.T) {
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		from, to := open(t, dir, fmt.Sprint("from", n)), open(t, dir, fmt.Sprint("to", n))
		text, name := rapid.StringN(0, 20, -1), rapid.StringN(1, 8, 100)
		keys, logs := rapid.MapOfN(name, text, 0, 500).Draw(t, "keys"), rapid.MapOfN(name, rapid.SliceOfN(text, 1, 10), 0, 5).Draw(t, "logs")
		fill(t, from, keys, logs)
		moved := false
		for _, writes := range rapid.SliceOfN(rapid.IntRange(0, 5), 0, 4).Draw(t, "writes until it breaks") {
			_, err := replaceStore(t.Context(), from, &breaking{to, writes}, nil)
			if moved = err == nil; moved {
				break
			}
			if !errors.Is(err, errBroken) || !errors.Is(checkFinished(t.Context(), to), errUnfinished) {
				t.Fatalf("half of a store passes as a whole one: %v", err)
			}
			// Between two tries the source may go on.
			fill(t, from, map[string]string{"changed": "now"}, nil)
			for log := range logs {
				if err := from.Erase(t.Context(), log, storage.Record{Pos: 1}); err != nil {
					t.Fatal(err)
				}
			}
		}
		if !moved {
			if _, err := replaceStore(t.Context(), from, to, nil); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := compareStores(t.Context(), from, to); err != nil || checkFinished(t.Context(), to) != nil {
			t.Fatalf("moved, but %v", err)
		}
	})
}

// Large records and many of them are moved in writes that an engine takes.
func TestMoveBoundsItsWrites(t *testing.T) {
	from, to := open(t, t.TempDir(), "from"), open(t, t.TempDir(), "to")
	keys, records := map[string]string{}, make([]string, 500)
	for i := range 5 {
		keys[fmt.Sprint("large", i)] = strings.Repeat("x", 2<<20)
		records[i] = strings.Repeat("y", 2<<20)
	}
	for i := range 500 {
		keys[fmt.Sprint("small", i)] = "x"
	}
	fill(t, from, keys, map[string][]string{"log": records})
	largest, told := 0, 0
	count, err := replaceStore(t.Context(), from, &watched{to, &largest}, func(RecordCount) { told++ })
	if err != nil {
		t.Fatal(err)
	}
	if count.Keys != 505 || count.Logs != 1 || count.Records != 500 {
		t.Errorf("moved %+v", count)
	}
	if largest > 6<<20 || told < 8 {
		t.Errorf("the largest write has %d bytes, and there was word of %d", largest, told)
	}
}

// watched notes the size of the largest write.
type watched struct {
	fillable
	largest *int
}

func (w *watched) Write(ctx context.Context, ops ...storage.Op) (storage.Revision, error) {
	n := 0
	for _, op := range ops {
		n += len(op.Value)
		for _, r := range op.Records {
			n += len(r.Data)
		}
	}
	*w.largest = max(*w.largest, n)
	return w.fillable.Write(ctx, ops...)
}

// A store goes on above the revisions of the one it was filled from, also those of keys that
// were deleted.
func TestMoveRaisesRevisions(t *testing.T) {
	from, to := open(t, t.TempDir(), "from"), open(t, t.TempDir(), "to")
	for range 9 {
		fill(t, from, map[string]string{"gone": "x"}, nil)
	}
	if err := from.Delete(t.Context(), "gone", storage.Any); err != nil {
		t.Fatal(err)
	}
	if _, err := replaceStore(t.Context(), from, to, nil); err != nil {
		t.Fatal(err)
	}
	if rev, err := to.Put(t.Context(), "k", nil, storage.Absent); err != nil || rev <= 10 {
		t.Errorf("revision %d (%v), want more than 10", rev, err)
	}
}

// Compare finds each kind of difference.
func TestCompareFindsDifferences(t *testing.T) {
	for name, change := range map[string]func(storage.Store) error{
		"a key more":    func(s storage.Store) error { return put(s, "more", "") },
		"a value":       func(s storage.Store) error { return put(s, "key", "other") },
		"a key less":    func(s storage.Store) error { return s.Delete(context.Background(), "key", storage.Any) },
		"a log more":    func(s storage.Store) error { return add(s, "zlog", 0, "", "a") },
		"a log less":    func(s storage.Store) error { return s.Drop(context.Background(), "log") },
		"a record more": func(s storage.Store) error { return add(s, "log", 2, "", "c") },
		"another label": func(s storage.Store) error {
			return errors.Join(s.Drop(context.Background(), "log"), add(s, "log", 0, "other", "a"), add(s, "log", 1, "l", "b"))
		},
		"another record": func(s storage.Store) error {
			return errors.Join(s.Drop(context.Background(), "log"), add(s, "log", 0, "", "x"), add(s, "log", 1, "l", "b"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			a, b := open(t, dir, "a"), open(t, dir, "b")
			for _, s := range []storage.Store{a, b} {
				fill(t, s, map[string]string{"key": "value"}, map[string][]string{"log": {"a", "b"}})
			}
			if _, err := compareStores(t.Context(), a, b); err != nil {
				t.Fatal(err)
			}
			if err := change(b); err != nil {
				t.Fatal(err)
			}
			if _, err := compareStores(t.Context(), a, b); err == nil {
				t.Error("not found")
			}
			if _, err := compareStores(t.Context(), b, a); err == nil {
				t.Error("not found the other way round")
			}
		})
	}
}

func put(s storage.Store, key, value string) error {
	_, err := s.Put(context.Background(), key, []byte(value), storage.Any)
	return err
}

func add(s storage.Store, log string, after storage.Position, label, data string) error {
	_, err := s.Append(context.Background(), log, after, storage.Record{Label: label, Data: []byte(data)})
	return err
}
