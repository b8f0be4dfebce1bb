// Package folder makes the names in a folder durable, and changes of files whole.
package folder

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
)

// Sync makes the names in a folder survive a crash of the machine.
func Sync(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // folders cannot be synced there
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Replace writes a file so that it has its old content or the new one, whatever happens.
// Only the owner may read it.
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
