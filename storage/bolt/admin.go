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

// Backup writes a snapshot of the whole store to w. Writes continue meanwhile, but the file cannot
// reuse space and a write that must enlarge its map waits: give it a file or a buffer rather than a
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

// Newest returns a revision that is at least as high as all in the store.
func (s *Store) Newest(ctx context.Context) (rev storage.Revision, err error) {
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

// Raise makes all later revisions higher than rev.
func (s *Store) Raise(ctx context.Context, rev storage.Revision) error {
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

// cancelWriter ends a copy when its context ends. It lives no longer than the call whose context it
// holds, because io.Writer takes none.
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

// Verify reads a whole file that no process has open and checks it: the pages with their references,
// the positions of each log, the index of labels against the records, the values. It returns the first
// fault it finds and does not change the file. An error that wraps [ErrDamaged] says that the store is
// damaged.
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
		return openError(err)
	case !info.Mode().IsRegular():
		return damaged("not a regular file")
	case info.Size() == 0:
		return damaged("the file is empty")
	}
	return inspect(cfg, func(db *bbolt.DB) error {
		if fresh, err := checkLayout(db); fresh || err != nil {
			return cmp.Or(err, damaged("there is nothing in the file"))
		}
		return db.View(func(tx *bbolt.Tx) error { return checkAll(ctx, tx) })
	})
}

func checkAll(ctx context.Context, tx *bbolt.Tx) error {
	var fault error
	for err := range tx.Check() { // to its end, because it has a goroutine
		if fault == nil {
			fault = err
		}
	}
	if fault != nil {
		return damage{fault}
	}
	return checkContent(tx, func(int) error { return ctx.Err() })
}

// checkContent checks the values and the logs. It calls read with the length of each value and record,
// and returns its error.
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

// checkLog checks the records of a log against its index of labels.
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
			return damaged("no record at position %d", pos)
		}
		r, err := decodeRecord(b)
		if err != nil {
			return err
		}
		if r.Label != "" {
			labelled++
			if labels.Get(labelKey(r.Label, pos)) == nil {
				return damaged("the label at position %d is not in the index", pos)
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
		return damaged("%d labels in the index, %d in the records", n, labelled)
	}
	return err
}
