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

// ErrDamaged is wrapped by the error for a file that is damaged or not a database: only a backup helps.
var ErrDamaged = errors.New("bolt: damaged")

// damageError is an error that matches ErrDamaged, without the text of ErrDamaged.
type damageError struct{ error }

// Is implements errors.Is.
func (damageError) Is(target error) bool { return target == ErrDamaged }

// Unwrap implements errors.Unwrap.
func (d damageError) Unwrap() error { return d.error }

func damagef(format string, args ...any) error { return damageError{fmt.Errorf(format, args...)} }

// openDB opens the file with bbolt. If bbolt panics on a damaged page, the file stays mapped, and so it
// stays locked until the process ends.
func openDB(cfg Config, readOnly bool) (db *bbolt.DB, err error) {
	var file *os.File
	err = recoverFaults(func() (err error) {
		db, err = bbolt.Open(cfg.Path, 0o600, &bbolt.Options{
			Timeout:      lockTimeout,
			FreelistType: bbolt.FreelistMapType,
			NoSync:       cfg.NoSync,
			NoStatistics: !cfg.countFree,
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
		return nil, explainOpen(err)
	}
	if isReplaced(file, cfg.Path) {
		return nil, errors.Join(storage.ErrLocked, db.Close())
	}
	return db, nil
}

// isReplaced reports whether a path no longer names the file that was opened and locked, because the
// previous holder of the lock has replaced the file.
func isReplaced(f *os.File, path string) bool {
	ours, err := f.Stat()
	if err != nil {
		return true
	}
	present, err := os.Stat(path)
	return err != nil || !os.SameFile(ours, present)
}

func explainOpen(err error) error {
	var pathErr *fs.PathError
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return storage.ErrLocked
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrChecksum), errors.Is(err, berrors.ErrVersionMismatch):
		return damagef("not a database or damaged (%w): restore a backup or move the file away", err)
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
			err = damagef("the file is damaged: %v", p)
		}
	}()
	return f()
}

// errTimeUp ends a check whose time is up.
var errTimeUp = errors.New("bolt: time for the check is up")

// quickCheck checks the values and the logs, as [Verify] does, for a limited time. It keeps at most
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
