// Package folder makes the names in a folder durable.
package folder

import (
	"errors"
	"os"
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
