package bolt

import (
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
		if err := prepare(db); err != nil {
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
		s.commit(s.gather(<-s.writes))
		synctest.Wait()
		if after := transaction(t, db); after != before+1 || conflicts.Load() != writes/2 {
			t.Errorf("%d writes took %d transactions and %d conflicts, want 1 and %d", writes, after-before, conflicts.Load(), writes/2)
		}
	})
}

// transaction returns the number of the newest transaction.
func transaction(t *testing.T, db *bbolt.DB) (id int) {
	t.Helper()
	if err := db.View(func(tx *bbolt.Tx) error { id = tx.ID(); return nil }); err != nil {
		t.Fatal(err)
	}
	return id
}
