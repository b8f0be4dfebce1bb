package bolt

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"go.etcd.io/bbolt"

	"oneclaw/storage"
)

// TestWaitingWritesShareADiskWrite stands in for the writer.
func TestWaitingWritesShareADiskWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const writes = 50
		db, err := openFile(Config{Path: filepath.Join(t.TempDir(), "store.db"), NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = db.Close() }()
		if err := createBuckets(db); err != nil {
			t.Fatal(err)
		}
		s := &Store{db: db, log: slog.New(slog.DiscardHandler), writes: make(chan *write)}
		var conflicts atomic.Int32
		for i := range writes {
			go func() {
				key := fmt.Sprint(i / 2) // the second writer of a key is in conflict
				_, err := s.Write(t.Context(), storage.Put(key, nil, storage.Absent), storage.Append(fmt.Sprint(i), 0, storage.Record{}))
				if errors.Is(err, storage.ErrConflict) {
					conflicts.Add(1)
				} else if err != nil {
					t.Error(err)
				}
			}()
		}
		synctest.Wait()
		before := transaction(t, db)
		s.commit(s.gather([]*write{<-s.writes}))
		synctest.Wait()
		if after := transaction(t, db); after != before+1 || conflicts.Load() != writes/2 {
			t.Errorf("%d writes took %d transactions and %d conflicts, want 1 and %d", writes, after-before, conflicts.Load(), writes/2)
		}
	})
}

// TestADeferredWriteJoinsTheNext: it costs no transaction of its own unless none comes before it is
// due, or the store is closed.
func TestADeferredWriteJoinsTheNext(t *testing.T) {
	put := func(key string) storage.Op { return storage.Put(key, nil, storage.Absent) }
	for _, c := range []struct {
		name  string
		then  func(ctx context.Context, s *Store, due func()) error
		costs int
	}{
		{"a write comes", func(ctx context.Context, s *Store, _ func()) error { _, err := s.Write(ctx, put("other")); return err }, 1},
		{"it is due", func(_ context.Context, _ *Store, due func()) error { due(); return nil }, 1},
		{"the store is closed", func(_ context.Context, s *Store, _ func()) error { return s.Close() }, 1},
		{"nothing comes", func(context.Context, *Store, func()) error { return nil }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "store.db")
				s, err := Open(Config{Path: path, NoSync: true})
				if err != nil {
					t.Fatal(err)
				}
				before := transaction(t, s.db)
				due := make(chan struct{})
				done := make(chan error, 1)
				go func() {
					_, err := s.WriteDeferred(t.Context(), due, put("deferred"))
					done <- err
				}()
				synctest.Wait()
				if err := c.then(t.Context(), s, func() { close(due) }); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if len(done) != c.costs {
					t.Errorf("returned %d times, want %d", len(done), c.costs)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				if err := <-done; err != nil {
					t.Error(err)
				}
				again, err := Open(Config{Path: path, NoSync: true})
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = again.Close() }()
				if _, err := again.Get(t.Context(), "deferred"); err != nil {
					t.Error(err)
				}
				if after := transaction(t, again.db); after != before+1 {
					t.Errorf("%d transactions, want 1", after-before)
				}
			})
		})
	}
}

// transaction returns the number of the newest transaction.
func transaction(t *testing.T, db *bbolt.DB) (id int) {
	t.Helper()
	if err := db.View(func(tx *bbolt.Tx) error { id = tx.ID(); return nil }); err != nil {
		t.Fatal(err)
	}
	return id
}

// A write that cannot be applied fails, and none of those that share its transaction does.
func TestAWriteThatCannotBeAppliedFailsNoOther(t *testing.T) {
	s := opened(t)
	broken := errors.New("it cannot be applied")
	var group []*write
	for i := range 5 {
		group = append(group, &write{done: make(chan error, 1), apply: func(b *batch) error {
			if _, err := b.apply([]storage.Op{storage.Put(fmt.Sprint(i), nil, storage.Absent)}); err != nil || i != 2 {
				return err
			}
			return broken
		}})
	}
	s.commit(group)
	for i, w := range group {
		err := <-w.done
		_, missing := s.Get(t.Context(), fmt.Sprint(i))
		if want := i == 2; errors.Is(err, broken) != want || (missing != nil) != want {
			t.Errorf("write %d: %v, then %v", i, err, missing)
		}
	}
}

// Whether a commit that failed has happened is not known: who watches has to look again.
func TestWatchersLookAgainAfterACommitThatFailed(t *testing.T) {
	s := opened(t)
	changes := s.Watch(t.Context(), "")
	w := &write{done: make(chan error, 1), apply: func(b *batch) error {
		_, err := b.apply([]storage.Op{storage.Put("k", nil, storage.Absent)})
		b.tx.OnCommit(func() { panic("after the commit") })
		return err
	}}
	s.commit([]*write{w})
	if err := <-w.done; err == nil {
		t.Fatal("the commit did not fail")
	}
	if _, err := s.Put(t.Context(), "next", nil, storage.Absent); err != nil {
		t.Fatal(err)
	}
	for e, err := range changes {
		if !errors.Is(err, storage.ErrLagged) {
			t.Errorf("the watch goes on with %q (%v)", e.Key, err)
		}
		break
	}
}

func opened(t *testing.T) *Store {
	t.Helper()
	s, err := Open(Config{Path: filepath.Join(t.TempDir(), "store.db"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
