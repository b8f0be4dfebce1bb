package bolt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"

	"oneclaw/internal/folder"
)

// compactBytes is about how much one transaction of a compaction writes.
const compactBytes = 16 << 20

// Waste returns how large a file is that nobody has open, and how much of that is free.
// It does not look at the content.
func Waste(cfg Config) (size, free int64, err error) {
	cfg.counted = true
	db, err := openDB(cfg, false)
	if err != nil {
		return 0, 0, fmt.Errorf("bolt: look at %s: %w", cfg.Path, err)
	}
	err = guard(func() error {
		// The end of a write transaction counts the free pages.
		tx, err := db.Begin(true)
		if err != nil {
			return err
		}
		size = tx.Size()
		return tx.Rollback()
	})
	stats := db.Stats()
	free = int64(stats.FreePageN) * int64(db.Info().PageSize)
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
	return folder.Sync(filepath.Dir(cfg.Path))
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
