// Package folder makes directory entries durable and file changes atomic.
package folder

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
)

// Sync makes the directory entries of a folder survive a crash of the machine.
func Sync(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // folders cannot be synced on this system
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Replace atomically replaces the content of a file: after a crash the file has the old or the new
// content. Only the owner of the file may read it.
func Replace(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return Sync(filepath.Dir(path))
}
