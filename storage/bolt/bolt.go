// Package bolt implements a [storage.Store] in one bbolt file.
//
// One goroutine writes. It takes all waiting writes, applies them in one transaction, and answers each
// separately: a conflict of one write does not affect the others, and a single write does not wait for
// more. Reads copy pages of a bounded size out of short transactions, so that no consumer, however slow,
// keeps the file from reusing its space or blocks a writer.
//
// The file has three buckets: meta (the version of this layout), kv (key to revision and value) and
// logs (name to a bucket of records by position and a bucket of label and position).
package bolt

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"oneclaw/storage"
	"oneclaw/storage/folder"
)

// lockTimeout is how long Open waits for another process to release the file.
const lockTimeout = 250 * time.Millisecond

// formatVersion is the layout that this package reads and writes.
const formatVersion = 1

var (
	bucketMeta = []byte("meta")
	bucketKV   = []byte("kv")
	bucketLogs = []byte("logs")
	keyVersion = []byte("version")
)

// Config configures a [Store].
type Config struct {
	// Path names the file. It is created if it does not exist; its directory is not.
	Path string
	// CheckTime bounds the check of the file on opening, which finds most damage. The rest is found when
	// the damaged part is read. 0 means no check.
	CheckTime time.Duration
	// NoSync does not wait for the disk. A crash of the machine may then destroy the file. It is meant
	// for tests, and for a file that is synced as a whole afterwards.
	NoSync bool
	// countFree makes bbolt count the free pages.
	countFree bool
	// residentLimit bounds how much of the file stays in memory, in bytes; 0 means maxResident.
	residentLimit int64
	// Logger receives messages for administrators; nil discards them.
	Logger *slog.Logger
}

// Store is an open file. Its only goroutine, the writer, ends with Close.
type Store struct {
	db     *bbolt.DB
	path   string
	log    *slog.Logger
	close  func() error
	writes chan *write
	// deferred receives writes that wait for others, until closing is closed.
	deferred chan *write
	closing  chan struct{}
	writer   sync.WaitGroup
	watchers storage.Watchers

	// touched estimates how many bytes of the mapped file were read since its pages were last released.
	// They are released when it exceeds residentLimit.
	touched       atomic.Int64
	residentLimit int64

	mu      sync.Mutex // guards closed, and running against an Add after closed
	closed  bool
	running sync.WaitGroup
}

// Open opens the file named by cfg, and creates it if it does not exist. If another process has it open,
// the error is storage.ErrLocked. Open rejects a file that is damaged, was made by a newer version of
// the program, or is not a store.
func Open(cfg Config) (*Store, error) {
	if cfg.Path == "" {
		return nil, errors.New("bolt: open: no path")
	}
	db, err := openFile(cfg)
	if err != nil {
		return nil, fmt.Errorf("bolt: open %s: %w", cfg.Path, err)
	}
	resident := cmp.Or(cfg.residentLimit, maxResident)
	err = recoverFaults(func() error {
		if err := createBuckets(db); err != nil {
			return err
		}
		return quickCheck(db, cfg.CheckTime, resident)
	})
	if err != nil {
		return nil, fmt.Errorf("bolt: open %s: %w", cfg.Path, cmp.Or(err, db.Close()))
	}
	s := &Store{
		db:       db,
		path:     cfg.Path,
		log:      cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler)),
		writes:   make(chan *write),
		deferred: make(chan *write), closing: make(chan struct{}),

		residentLimit: resident,
	}
	s.close = sync.OnceValue(s.shutdown)
	s.writer.Go(s.writeAll)
	return s, nil
}

// openFile opens the database. Its errors are meant for administrators.
func openFile(cfg Config) (*bbolt.DB, error) {
	info, err := os.Stat(cfg.Path)
	fresh := errors.Is(err, fs.ErrNotExist)
	if err == nil && !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	// A file is inspected before it is opened for writing, so that a rejected file is not changed, and a
	// truncated one is found before bbolt faults on it.
	if err == nil && info.Size() > 0 {
		err := inspect(cfg, func(db *bbolt.DB) error {
			_, err := checkLayout(db)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	db, err := openDB(cfg, false)
	if err != nil {
		return nil, err
	}
	if fresh && !cfg.NoSync {
		if err := folder.Sync(filepath.Dir(cfg.Path)); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	return db, nil
}

// inspect opens a file read-only, after checking its size.
func inspect(cfg Config, read func(*bbolt.DB) error) error {
	db, err := openDB(cfg, true)
	if err != nil {
		return err
	}
	err = recoverFaults(func() error {
		if err := checkSize(db); err != nil {
			return err
		}
		return read(db)
	})
	return cmp.Or(err, db.Close())
}

func createBuckets(db *bbolt.DB) error {
	fresh, err := checkLayout(db)
	if err != nil || !fresh {
		return err
	}
	return db.Update(func(tx *bbolt.Tx) error {
		for _, name := range [][]byte{bucketMeta, bucketKV, bucketLogs} {
			if _, err := tx.CreateBucket(name); err != nil {
				return err
			}
		}
		return tx.Bucket(bucketMeta).Put(keyVersion, binary.BigEndian.AppendUint64(nil, formatVersion))
	})
}

// checkLayout rejects an unknown layout. It reports whether the file has no layout yet.
func checkLayout(db *bbolt.DB) (fresh bool, err error) {
	err = db.View(func(tx *bbolt.Tx) error {
		meta := tx.Bucket(bucketMeta)
		if meta == nil {
			if name, _ := tx.Cursor().First(); name != nil {
				return damagef("a bbolt database, but not one of this program")
			}
			fresh = true
			return nil
		}
		v := meta.Get(keyVersion)
		if len(v) != 8 {
			return damagef("the version of the layout cannot be read: the file is damaged")
		}
		if n := binary.BigEndian.Uint64(v); n > formatVersion {
			return fmt.Errorf("made by a newer version of the program (layout %d, this one knows %d): update the program", n, formatVersion)
		}
		if tx.Bucket(bucketKV) == nil || tx.Bucket(bucketLogs) == nil {
			return damagef("a bucket is missing: the file is damaged")
		}
		return nil
	})
	return fresh, err
}

// checkSize finds a truncated file. Otherwise bbolt would fault when it reads a missing page.
func checkSize(db *bbolt.DB) error {
	info, err := os.Stat(db.Path())
	if err != nil {
		return err
	}
	return db.View(func(tx *bbolt.Tx) error {
		if tx.Size() > info.Size() {
			return damagef("the file is cut off after %d of %d bytes; restore a backup", info.Size(), tx.Size())
		}
		return nil
	})
}

// Path returns the name of the file.
func (s *Store) Path() string { return s.path }

// Close implements storage.Store. An iteration that is between two pages is not a running call: it ends
// with storage.ErrClosed.
func (s *Store) Close() error { return s.close() }

func (s *Store) shutdown() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	close(s.closing)
	s.running.Wait()
	close(s.writes)
	s.writer.Wait()
	s.watchers.End(storage.ErrClosed)
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("bolt: close: %w", err)
	}
	return nil
}

// enter begins a call, which the caller ends with leave.
func (s *Store) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return storage.ErrClosed
	}
	s.running.Add(1)
	return nil
}

func (s *Store) leave() { s.running.Done() }

// view runs f in a short read transaction.
func (s *Store) view(ctx context.Context, f func(*bbolt.Tx) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	return recoverFaults(func() error {
		return s.db.View(func(tx *bbolt.Tx) error {
			defer s.touch(tx, readAround)
			return f(tx)
		})
	})
}
