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

// ErrDamaged is wrapped by errors for a file that is damaged, or not a database: only a backup helps.
var ErrDamaged = errors.New("bolt: damaged")

// damage is an ErrDamaged with a self-contained text.
type damage struct{ error }

// Is implements errors.Is.
func (damage) Is(target error) bool { return target == ErrDamaged }

// Unwrap implements errors.Unwrap.
func (d damage) Unwrap() error { return d.error }

func damaged(format string, args ...any) error { return damage{fmt.Errorf(format, args...)} }

// openDB opens the file with bbolt. If bbolt panics on a damaged page, the file stays locked until the
// process ends, because it stays mapped.
func openDB(cfg Config, readOnly bool) (db *bbolt.DB, err error) {
	var file *os.File
	err = recoverFaults(func() (err error) {
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

// replaced reports whether a path names another file than the one that was opened and locked: the
// previous holder of the lock has replaced it.
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
		return pathErr.Err // the caller names the path
	}
	return err
}

// recoverFaults turns a panic of bbolt on a damaged page, and a fault in the mapped file, into an error.
func recoverFaults(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = damaged("the file is damaged: %v", p)
		}
	}()
	return f()
}

// errTimeUp ends a check whose time is over.
var errTimeUp = errors.New("bolt: looked long enough")

// quickCheck checks the values and the logs, as [Verify] does, for a limited time. It keeps no more than
// resident bytes of the file in memory.
func quickCheck(db *bbolt.DB, limit time.Duration, resident int64) error {
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
				return errTimeUp
			}
			return nil
		})
	})
	if errors.Is(err, errTimeUp) {
		return nil
	}
	return err
}
