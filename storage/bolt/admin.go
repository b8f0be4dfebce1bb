package bolt

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"

	"go.etcd.io/bbolt"

	"oneclaw/storage"
)

// Backup writes a snapshot of the whole store to w. Writes continue in the meantime, but the file cannot
// reuse space, and a write that must enlarge the memory map waits: pass a file or a buffer rather than a
// slow connection.
func (s *Store) Backup(ctx context.Context, w io.Writer) error {
	if err := s.enter(ctx); err != nil {
		return fmt.Errorf("bolt: back up: %w", err)
	}
	defer s.leave()
	out := &cancelWriter{ctx: ctx, w: w}
	err := s.db.View(func(tx *bbolt.Tx) error {
		_, err := tx.WriteTo(out)
		return err
	})
	if err != nil {
		// bbolt keeps only the text of some errors of the writer.
		return fmt.Errorf("bolt: back up: %w", cmp.Or(out.err, err))
	}
	return nil
}

// NewestRevision returns a revision that is at least as high as all revisions in the store.
func (s *Store) NewestRevision(ctx context.Context) (rev storage.Revision, err error) {
	if err = s.enter(ctx); err == nil {
		defer s.leave()
		err = s.db.View(func(tx *bbolt.Tx) error {
			rev = storage.Revision(tx.Bucket(bucketKV).Sequence())
			return nil
		})
	}
	if err != nil {
		return 0, fmt.Errorf("bolt: read the newest revision: %w", err)
	}
	return rev, nil
}

// RaiseRevisions makes all later revisions higher than rev.
func (s *Store) RaiseRevisions(ctx context.Context, rev storage.Revision) error {
	err := s.submit(ctx, 0, func(b *batch) error {
		kv := b.tx.Bucket(bucketKV)
		b.dirty = true
		return kv.SetSequence(max(kv.Sequence(), uint64(rev)))
	})
	if err != nil {
		return fmt.Errorf("bolt: raise the revisions: %w", err)
	}
	return nil
}

// cancelWriter stops a copy when its context ends. It holds that context because io.Writer takes none,
// and it lives no longer than the call.
type cancelWriter struct {
	ctx context.Context //nolint:containedctx // see above
	w   io.Writer
	err error // first error of w or ctx
}

func (c *cancelWriter) Write(p []byte) (int, error) {
	n, err := 0, c.ctx.Err()
	if err == nil {
		n, err = c.w.Write(p)
	}
	c.err = cmp.Or(c.err, err)
	return n, err
}

// Verify reads a whole file that no process has open and checks it: the pages with their references, the
// positions of each log, the label index against the records, and the values. It returns the first fault
// that it finds and does not change the file. An error that wraps [ErrDamaged] is returned if the store
// is damaged.
func Verify(ctx context.Context, path string) error {
	if err := verify(ctx, Config{Path: path}); err != nil {
		return fmt.Errorf("bolt: check %s: %w", path, err)
	}
	return nil
}

func verify(ctx context.Context, cfg Config) error {
	info, err := os.Stat(cfg.Path)
	switch {
	case err != nil:
		return explainOpen(err)
	case !info.Mode().IsRegular():
		return damagef("not a regular file")
	case info.Size() == 0:
		return damagef("the file is empty")
	}
	return inspect(cfg, func(db *bbolt.DB) error {
		if fresh, err := checkLayout(db); fresh || err != nil {
			return cmp.Or(err, damagef("the file contains no store"))
		}
		return db.View(func(tx *bbolt.Tx) error { return checkAll(ctx, tx) })
	})
}

func checkAll(ctx context.Context, tx *bbolt.Tx) error {
	var fault error
	for err := range tx.Check() { // drain the channel, because a goroutine sends to it
		if fault == nil {
			fault = err
		}
	}
	if fault != nil {
		return damageError{fault}
	}
	return checkContent(tx, func(int) error { return ctx.Err() })
}

// checkContent checks the values and the logs. It calls read with the length of each value and record,
// and stops at an error from read.
func checkContent(tx *bbolt.Tx, read func(n int) error) error {
	err := tx.Bucket(bucketKV).ForEach(func(_, b []byte) error {
		_, _, err := decodeValue(b)
		return cmp.Or(err, read(len(b)))
	})
	if err != nil {
		return err
	}
	return tx.Bucket(bucketLogs).ForEachBucket(func(name []byte) error {
		if err := checkLog(tx.Bucket(bucketLogs).Bucket(name), read); err != nil {
			return fmt.Errorf("log %q: %w", name, err)
		}
		return nil
	})
}

// checkLog checks the records of a log against its label index.
func checkLog(bucket *bbolt.Bucket, read func(n int) error) error {
	if _, err := lastPosition(bucket); err != nil {
		return err
	}
	labels := bucket.Bucket(bucketLabels)
	var pos storage.Position
	labelled := 0
	err := bucket.Bucket(bucketRecords).ForEach(func(key, b []byte) error {
		pos++
		if at, err := decodePosition(key, 0); err != nil || at != pos {
			return damagef("no record at position %d", pos)
		}
		r, err := decodeRecord(b)
		if err != nil {
			return err
		}
		if r.Label != "" {
			labelled++
			if labels.Get(labelKey(r.Label, pos)) == nil {
				return damagef("the label at position %d is not in the index", pos)
			}
		}
		return read(len(b))
	})
	if err != nil {
		return err
	}
	n := 0
	err = labels.ForEach(func(_, _ []byte) error { n++; return nil })
	if err == nil && n != labelled {
		return damagef("%d labels in the index, %d in the records", n, labelled)
	}
	return err
}
