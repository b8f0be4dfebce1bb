// Package bolt keeps a [storage.Store] in one bbolt file.
//
// One goroutine writes. It takes all writes that wait at that moment, applies
// them in one transaction, and answers each by itself: a conflict of one does not
// touch the others, and a write that comes alone waits for no other. Reads copy
// pages of a bounded size out of short transactions, so that no consumer, however
// slow, keeps the file from reusing its space or blocks a writer.
//
// The file has three buckets: meta (the version of this layout), kv (key to
// revision and value) and logs (name to a bucket of records by position and a
// bucket of label and position).
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

// lockTimeout is how long Open waits for another process to let go.
const lockTimeout = 250 * time.Millisecond

// formatVersion is the layout that this package reads and writes.
const formatVersion = 1

var (
	bucketMeta = []byte("meta")
	bucketKV   = []byte("kv")
	bucketLogs = []byte("logs")
	keyVersion = []byte("version")
)

// Config says where and how to open a store.
type Config struct {
	// Path names the file. It is made if it does not exist; its directory is not.
	Path string
	// CheckTime bounds a look through the file before it is used, which finds most
	// damage. What it did not come to is found when it is read. 0 means none.
	CheckTime time.Duration
	// NoSync leaves out the wait for the disk. A crash of the machine may then
	// destroy the file: for tests, and for one that is synced as a whole afterwards.
	NoSync bool
	// counted has the free pages be counted.
	counted bool
	// resident is how much of the file may stay in memory; 0 means maxResident.
	resident int64
	// Logger gets what an administrator must know; nil discards it.
	Logger *slog.Logger
}

// Store is an open file. It has one goroutine, the writer, which Close ends.
type Store struct {
	db     *bbolt.DB
	path   string
	log    *slog.Logger
	close  func() error
	writes chan *write
	// deferred are writes that wait for others, until closing is closed.
	deferred chan *write
	closing  chan struct{}
	writer   sync.WaitGroup
	hub      hub

	// touched is about how much of the mapped file was read since it was let go, which
	// happens beyond resident.
	touched  atomic.Int64
	resident int64

	mu      sync.Mutex // guards closed, and running against an Add after closed
	closed  bool
	running sync.WaitGroup
}

// Open opens the file of cfg and makes it if there is none. Where another process
// has it open the error is storage.ErrLocked. A file that is damaged, made by a
// newer version of the program, or no store at all, is refused.
func Open(cfg Config) (*Store, error) {
	if cfg.Path == "" {
		return nil, errors.New("bolt: open: no path")
	}
	db, err := openFile(cfg)
	if err != nil {
		return nil, fmt.Errorf("bolt: open %s: %w", cfg.Path, err)
	}
	resident := cmp.Or(cfg.resident, maxResident)
	err = guard(func() error {
		if err := prepare(db); err != nil {
			return err
		}
		return skim(db, cfg.CheckTime, resident)
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
		hub: hub{watchers: map[*watcher]struct{}{}},

		resident: resident,
	}
	s.close = sync.OnceValue(s.shutdown)
	s.writer.Go(s.writeAll)
	return s, nil
}

// openFile opens the database and names what is wrong in words of our own.
func openFile(cfg Config) (*bbolt.DB, error) {
	info, err := os.Stat(cfg.Path)
	fresh := errors.Is(err, fs.ErrNotExist)
	if err == nil && !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	// A file is inspected before it is opened for writing: one that is refused is
	// not touched, and one that is cut off is found before bbolt faults over it.
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

// inspect opens a file to be read alone, and not before it is whole.
func inspect(cfg Config, read func(*bbolt.DB) error) error {
	db, err := openDB(cfg, true)
	if err != nil {
		return err
	}
	err = guard(func() error {
		if err := checkSize(db); err != nil {
			return err
		}
		return read(db)
	})
	return cmp.Or(err, db.Close())
}

func prepare(db *bbolt.DB) error {
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

// checkLayout refuses a layout that this package does not know. It reports whether
// the file has none yet.
func checkLayout(db *bbolt.DB) (fresh bool, err error) {
	err = db.View(func(tx *bbolt.Tx) error {
		meta := tx.Bucket(bucketMeta)
		if meta == nil {
			if name, _ := tx.Cursor().First(); name != nil {
				return damaged("a bbolt database, but not one of this program")
			}
			fresh = true
			return nil
		}
		v := meta.Get(keyVersion)
		if len(v) != 8 {
			return damaged("the version of the layout cannot be read: the file is damaged")
		}
		if n := binary.BigEndian.Uint64(v); n > formatVersion {
			return fmt.Errorf("made by a newer version of the program (layout %d, this one knows %d): update the program", n, formatVersion)
		}
		if tx.Bucket(bucketKV) == nil || tx.Bucket(bucketLogs) == nil {
			return damaged("a bucket is missing: the file is damaged")
		}
		return nil
	})
	return fresh, err
}

// checkSize finds a file that was cut off: bbolt would only notice, by a fault,
// once it reads a missing page.
func checkSize(db *bbolt.DB) error {
	info, err := os.Stat(db.Path())
	if err != nil {
		return err
	}
	return db.View(func(tx *bbolt.Tx) error {
		if tx.Size() > info.Size() {
			return damaged("the file is cut off: %d of %d bytes are there; restore a backup", info.Size(), tx.Size())
		}
		return nil
	})
}

// Path returns the name of the file.
func (s *Store) Path() string { return s.path }

// Close implements storage.Store. An iteration between two pages is not a running call:
// it ends with storage.ErrClosed.
func (s *Store) Close() error { return s.close() }

func (s *Store) shutdown() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	close(s.closing)
	s.running.Wait()
	close(s.writes)
	s.writer.Wait()
	s.hub.end(storage.ErrClosed)
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("bolt: close: %w", err)
	}
	return nil
}

// enter begins a call, which ends with leave.
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
	return guard(func() error {
		return s.db.View(func(tx *bbolt.Tx) error {
			defer s.touch(tx, readAround)
			return f(tx)
		})
	})
}
