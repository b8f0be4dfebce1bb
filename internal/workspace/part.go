package workspace

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
)

// partNamePattern matches the names of files that are still being written.
var partNamePattern = regexp.MustCompile(`^\.part-[A-Z2-7]{26}$`)

// CreatePart creates a temporary file in a folder of the workspace, and returns its path in the
// workspace. The caller renames it while it is open, and closes it. It is locked while it is open. If
// the process ends early, the file is deleted when files are counted, or by [Root.Sweep].
func (r *Root) CreatePart(folder string) (*os.File, string, error) {
	rel, err := r.Rel(folder)
	if err != nil {
		return nil, "", err
	}
	f, part, err := createPartIn(r.root, rel)
	if err != nil {
		return nil, "", mapError(err)
	}
	return f, part, nil
}

// createPartIn is like [Root.CreatePart], but for any root.
func createPartIn(root *os.Root, folder string) (*os.File, string, error) {
	for {
		part := filepath.Join(folder, ".part-"+rand.Text())
		f, err := root.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
		if err != nil {
			return nil, "", err
		}
		// If the file system does not support locks, removeAbandoned deletes no file either.
		_ = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		here, err := f.Stat()
		if err == nil {
			there, gone := root.Lstat(part)
			if gone == nil && os.SameFile(here, there) {
				return f, part, nil
			}
		}
		if err := errors.Join(err, f.Close()); err != nil { // if nil, the file was deleted before it was locked
			return nil, "", err
		}
	}
}

// Sweep deletes the partial files that ended processes have left in a folder of the workspace.
func (r *Root) Sweep(folder string) error {
	return eachEntry(r.root, folder, func(dir *os.Root, name string) error {
		removeAbandoned(dir, name)
		return nil
	})
}

// removeAbandoned deletes a partial file that no process writes to, and reports whether it did.
func removeAbandoned(dir *os.Root, name string) bool {
	if !partNamePattern.MatchString(name) {
		return false
	}
	f, err := dir.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil && dir.Remove(name) == nil
}
