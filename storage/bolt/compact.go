package bolt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"

	"oneclaw/storage/folder"
)

// compactBytes is about how many bytes one transaction of a compaction writes.
const compactBytes = 16 << 20

// Compact rewrites a file that no process has open, without its unused space, and returns the size of
// that space. It does so if more than half of the file is unused, or, if always is true, in any case,
// because unused space may hold deleted data. Otherwise it changes nothing and returns 0. The new file is
// complete, checked and on disk before it atomically replaces the old one: after a crash, one of the two
// is there.
func Compact(ctx context.Context, cfg Config, always bool) (freed int64, err error) {
	if freed, err = compact(ctx, cfg, always, func() {}); err != nil {
		return 0, fmt.Errorf("bolt: compact %s: %w", cfg.Path, err)
	}
	return freed, nil
}

// compact calls step between its steps, for tests.
func compact(ctx context.Context, cfg Config, always bool, step func()) (freed int64, err error) {
	counting := cfg
	counting.countFree = true
	src, err := openDB(counting, false)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, src.Close()) }() // other processes are locked out until src is closed
	size, free, err := measureFree(src)
	if err != nil || free <= size/2 && !always {
		return 0, err
	}
	next := cfg
	next.Path = cfg.Path + ".compact"
	if err := os.Remove(next.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("remove the file of an earlier attempt: %w", err)
	}
	step()
	if err = compactInto(next, src, step); err == nil {
		step()
		err = verify(ctx, next)
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return 0, errors.Join(err, os.Remove(next.Path))
	}
	step()
	if err := os.Rename(next.Path, cfg.Path); err != nil {
		return 0, err
	}
	step()
	if cfg.NoSync {
		return free, nil
	}
	return free, folder.Sync(filepath.Dir(cfg.Path))
}

func measureFree(db *bbolt.DB) (size, free int64, err error) {
	err = recoverFaults(func() error {
		if err := checkSize(db); err != nil {
			return err
		}
		// The end of a write transaction counts the free pages.
		tx, err := db.Begin(true)
		if err != nil {
			return err
		}
		size = tx.Size()
		return tx.Rollback()
	})
	return size, int64(db.Stats().FreePageN) * int64(db.Info().PageSize), err
}

func compactInto(next Config, src *bbolt.DB, step func()) (err error) {
	dst, err := openDB(next, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	dst.NoSync = true // one sync at the end is enough
	if err := recoverFaults(func() error { return bbolt.Compact(dst, src, compactBytes) }); err != nil {
		return err
	}
	step()
	return dst.Sync()
}
