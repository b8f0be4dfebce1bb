package bolt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"
)

// compactBytes is about how much one transaction of a compaction writes.
const compactBytes = 16 << 20

// Waste returns how large a file is that nobody has open, and how much of it is not
// used.
func Waste(cfg Config) (size, free int64, err error) {
	db, err := openDB(cfg, true)
	if err != nil {
		return 0, 0, fmt.Errorf("bolt: look at %s: %w", cfg.Path, err)
	}
	err = guard(func() error {
		return db.View(func(tx *bbolt.Tx) error {
			used := int64(0)
			for _, name := range [][]byte{bucketMeta, bucketKV, bucketLogs} {
				if b := tx.Bucket(name); b != nil {
					s := b.Stats()
					used += int64(s.BranchAlloc) + int64(s.LeafAlloc)
				}
			}
			info, err := os.Stat(cfg.Path)
			if err != nil {
				return err
			}
			size, free = info.Size(), max(info.Size()-used, 0)
			return nil
		})
	})
	if err = errors.Join(err, db.Close()); err != nil {
		return 0, 0, fmt.Errorf("bolt: look at %s: %w", cfg.Path, err)
	}
	return size, free, nil
}

// Compact writes a file that nobody has open anew, without the space that it does not
// use. The new file is whole, checked and on disk before it takes the place of the old
// one in one step: a crash leaves either.
func Compact(ctx context.Context, cfg Config) error {
	if err := compact(ctx, cfg, func() {}); err != nil {
		return fmt.Errorf("bolt: compact %s: %w", cfg.Path, err)
	}
	return nil
}

// compact calls step between its steps.
func compact(ctx context.Context, cfg Config, step func()) (err error) {
	src, err := openDB(cfg, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }() // nobody else writes until then
	if err := guard(func() error { return checkSize(src) }); err != nil {
		return err
	}
	next := cfg
	next.Path = cfg.Path + ".compact"
	if err := os.Remove(next.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove what an earlier try left: %w", err)
	}
	step()
	if err = copyTo(next, src, step); err == nil {
		step()
		err = verify(ctx, next)
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return errors.Join(err, os.Remove(next.Path))
	}
	step()
	if err := os.Rename(next.Path, cfg.Path); err != nil {
		return err
	}
	step()
	if cfg.NoSync {
		return nil
	}
	return syncDir(filepath.Dir(cfg.Path))
}

// copyTo writes what is in src into a new file.
func copyTo(next Config, src *bbolt.DB, step func()) (err error) {
	dst, err := openDB(next, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	dst.NoSync = true // once at the end is enough
	if err := guard(func() error { return bbolt.Compact(dst, src, compactBytes) }); err != nil {
		return err
	}
	step()
	return dst.Sync()
}
