package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"oneclaw/storage"
)

// ErrDamaged is what the errors for a file wrap that is damaged, or no database at all:
// only a backup helps.
var ErrDamaged = errors.New("bolt: damaged")

// damage is an error that says by itself what is wrong.
type damage struct{ error }

// Is implements errors.Is.
func (damage) Is(target error) bool { return target == ErrDamaged }

// Unwrap implements errors.Unwrap.
func (d damage) Unwrap() error { return d.error }

func damaged(format string, args ...any) error { return damage{fmt.Errorf(format, args...)} }

// openDB opens the file with bbolt. If bbolt panics over a damaged page, the file
// stays locked until the process ends, because it stays mapped.
func openDB(cfg Config, readOnly bool) (db *bbolt.DB, err error) {
	var file *os.File
	err = guard(func() (err error) {
		db, err = bbolt.Open(cfg.Path, 0o600, &bbolt.Options{
			Timeout:      lockTimeout,
			FreelistType: bbolt.FreelistMapType,
			NoSync:       cfg.NoSync,
			NoStatistics: !cfg.counted,
			ReadOnly:     readOnly,
			OpenFile: func(name string, flag int, mode fs.FileMode) (f *os.File, err error) {
				f, err = os.OpenFile(name, flag, mode)
				file = f
				return f, err
			},
		})
		return err
	})
	if err != nil {
		return nil, openError(err)
	}
	if replaced(file, cfg.Path) {
		return nil, errors.Join(storage.ErrLocked, db.Close())
	}
	return db, nil
}

// replaced reports whether a path names another file than the one that was opened and
// locked: the previous holder of the lock has put it there.
func replaced(f *os.File, path string) bool {
	ours, err := f.Stat()
	if err != nil {
		return true
	}
	present, err := os.Stat(path)
	return err != nil || !os.SameFile(ours, present)
}

func openError(err error) error {
	var pathErr *fs.PathError
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return storage.ErrLocked
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrChecksum), errors.Is(err, berrors.ErrVersionMismatch):
		return damaged("not a database or damaged (%w): restore a backup or move the file away", err)
	case errors.As(err, &pathErr):
		return pathErr.Err // the path is named by the caller
	}
	return err
}

// guard turns a panic of bbolt over a damaged page, and a fault in the mapped
// file, into an error.
func guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = damaged("the file is damaged: %v", p)
		}
	}()
	return f()
}

// errEnough ends a look through the file whose time is over.
var errEnough = errors.New("bolt: looked long enough")

// skim reads the values and the logs as far as it comes in a time, and compares them as
// [Verify] does. It keeps no more of the file in memory than resident.
func skim(db *bbolt.DB, limit time.Duration, resident int64) error {
	if limit <= 0 {
		return nil
	}
	end := time.Now().Add(limit)
	err := db.View(func(tx *bbolt.Tx) error {
		defer release(tx)
		touched := int64(0)
		return checkContent(tx, func(n int) error {
			if touched += int64(max(n, os.Getpagesize())); touched >= resident {
				touched = 0
				release(tx)
			}
			if time.Now().After(end) {
				return errEnough
			}
			return nil
		})
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}
