// Package workspace confines the paths that the model names to the folder of one owner's files.
//
// A path cannot leave the folder: not with "..", not through a symbolic link, and not through a link
// that replaces a file between check and use, because every file is opened through an [os.Root].
//
// A workspace has a quota, and leaves a reserve of the disk for the bot itself. Concurrent writes
// can exceed both by the size of the writes.
//
// If several replicas share a store, a [Store] keeps workspaces, skills and user tools in it. Then a person
// may rely on this:
//   - A turn finds the files as the last turn left them, on whichever replica it runs: the folder is checked
//     out before it is used.
//   - What a result says was done to files is stored before the result, in a write that fails if the job
//     has been taken over. A crash undoes only changes of which no result is stored.
//   - Files are stored whole or not at all. Of two replicas that change the files of one owner, the first
//     counts, and the other starts over from its files.
//   - The quota holds for what is stored, and what a file had is gone from the store with it.
//   - Skills and user tools are the same on all replicas within seconds. If a file was changed on two, the
//     first change counts, and a line in the log names the file.
package workspace

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"oneclaw/storage/folder"
)

// Errors that callers distinguish, in addition to [fs.ErrNotExist] and [fs.ErrPermission].
var (
	// ErrOutside is returned for a path that leaves the workspace.
	ErrOutside = errors.New("path is outside the workspace")
	// ErrNotFile is returned if a regular file is required but the path names a directory, a pipe or
	// a device.
	ErrNotFile = errors.New("not a regular file")
	// ErrTooLarge is returned by [Root.ReadFile] for a file above the limit.
	ErrTooLarge = errors.New("file is too large")
	// ErrEmptyPath is returned for an empty path.
	ErrEmptyPath = errors.New("path is empty")
)

// Permissions of new files: only for the bot's user.
const (
	dirMode  fs.FileMode = 0o700
	fileMode fs.FileMode = 0o600
)

// Root is an open workspace. It must be closed. It can be used concurrently.
type Root struct {
	dir            string
	root           *os.Root
	quota, reserve int64

	mu        sync.Mutex // guards the fields below
	used      int64      // upper bound of the size, valid if isCounted is set
	isCounted bool
}

// Open opens the workspace in dir, which must exist, with the default limits.
func Open(dir string) (*Root, error) { return OpenWithin(dir, 0, 0) }

// OpenWithin opens the workspace in dir, which must exist. The workspace may have quota bytes, and
// writes leave reserve bytes of the disk free. 0 means [DefaultQuota] and [DefaultReserve].
func OpenWithin(dir string, quota, reserve int64) (*Root, error) {
	if dir == "" {
		return nil, fmt.Errorf("workspace: %w", ErrEmptyPath)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("workspace: %w", err)
	}
	root, err := os.OpenRoot(abs)
	if errors.Is(err, fs.ErrPermission) && os.Chmod(abs, dirMode) == nil { // a tool has closed it
		root, err = os.OpenRoot(abs)
	}
	if err != nil {
		return nil, fmt.Errorf("workspace: %w", err)
	}
	return &Root{dir: abs, root: root, quota: cmp.Or(quota, DefaultQuota), reserve: cmp.Or(reserve, DefaultReserve)}, nil
}

// Close closes the folder.
func (r *Root) Close() error { return r.root.Close() }

// Dir returns the absolute path of the folder.
func (r *Root) Dir() string { return r.dir }

// Rel returns path relative to the workspace. It does not resolve symbolic links; these are checked
// when the path is opened.
func (r *Root) Rel(path string) (string, error) {
	if path == "" {
		return "", ErrEmptyPath
	}
	if strings.ContainsRune(path, 0) {
		return "", ErrOutside
	}
	if filepath.IsAbs(path) {
		rel, ok := r.relInside(path)
		if !ok {
			return "", ErrOutside
		}
		path = rel
	}
	path = filepath.Clean(path)
	if !filepath.IsLocal(path) {
		return "", ErrOutside
	}
	return path, nil
}

// relInside returns an absolute path relative to the folder, whose own links may be resolved in path.
func (r *Root) relInside(path string) (string, bool) {
	dirs := []string{r.dir}
	if real, err := filepath.EvalSymlinks(r.dir); err == nil && real != r.dir {
		dirs = append(dirs, real)
	}
	for _, dir := range dirs {
		if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
			return rel, true
		}
	}
	return "", false
}

// Open opens a regular file for reading.
func (r *Root) Open(path string) (*os.File, error) {
	return r.open(path, os.O_RDONLY)
}

// open opens a regular file, without blocking on a pipe.
func (r *Root) open(path string, flag int) (*os.File, error) {
	rel, err := r.Rel(path)
	if err != nil {
		return nil, err
	}
	f, err := r.root.OpenFile(rel, flag|syscall.O_NONBLOCK, fileMode)
	if err != nil {
		return nil, mapError(err)
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		err = errors.Join(err, f.Close())
		if err == nil {
			err = ErrNotFile
		}
		return nil, err
	}
	return f, nil
}

// ReadFile returns the content of a regular file of at most limit bytes.
func (r *Root) ReadFile(path string, limit int64) (data []byte, err error) {
	f, err := r.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	data, err = io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, mapError(err)
	}
	if int64(len(data)) > limit {
		return nil, ErrTooLarge
	}
	return data, nil
}

// WriteFile replaces or extends a file and creates the folders above it. It fails with [ErrFull]
// or [ErrDiskFull] if there is no room.
func (r *Root) WriteFile(path string, data []byte, extend bool) (err error) {
	flag := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	if extend {
		flag = os.O_WRONLY | os.O_CREATE | os.O_APPEND
	}
	rel, err := r.Rel(path)
	if err != nil {
		return err
	}
	need := max(int64(len(data)), minEntrySize)
	if _, err := r.reserveRoom(need, need); err != nil {
		return err
	}
	if err := r.root.MkdirAll(filepath.Dir(rel), dirMode); err != nil {
		return mapError(err)
	}
	f, err := r.open(rel, flag)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(data); err != nil {
		return mapError(err)
	}
	return nil
}

// PrepareFile prepares path for writing a file, and returns it relative to the workspace. It creates
// the folders above it, and returns an error if path names anything but a regular file.
func (r *Root) PrepareFile(path string) (string, error) {
	rel, err := r.Rel(path)
	if err != nil {
		return "", err
	}
	switch info, err := r.Stat(rel); {
	case err == nil && !info.Mode().IsRegular():
		return "", ErrNotFile
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	if err := r.root.MkdirAll(filepath.Dir(rel), dirMode); err != nil {
		return "", mapError(err)
	}
	return rel, nil
}

// WriteFrom atomically replaces a file by the content of a stream: after a crash of the machine, the file
// has the old or the new content, and the new once WriteFrom has returned. It returns an error from the
// stream unchanged.
func (r *Root) WriteFrom(path string, from io.Reader) (size int64, err error) {
	rel, err := r.PrepareFile(path)
	if err != nil {
		return 0, err
	}
	f, part, err := r.CreatePart(filepath.Dir(rel))
	if err != nil {
		return 0, err
	}
	if size, err = io.Copy(r.BoundedWriter(f), from); err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = r.root.Rename(part, rel)
	}
	if err != nil {
		return 0, errors.Join(mapError(err), f.Close(), r.root.Remove(part))
	}
	if err = f.Close(); err == nil {
		err = folder.Sync(filepath.Join(r.dir, filepath.Dir(rel)))
	}
	if err != nil {
		return 0, mapError(err)
	}
	return size, nil
}

// Stat describes the file at path. It follows symbolic links inside the workspace.
func (r *Root) Stat(path string) (fs.FileInfo, error) {
	rel, err := r.Rel(path)
	if err != nil {
		return nil, err
	}
	info, err := r.root.Stat(rel)
	if err != nil {
		return nil, mapError(err)
	}
	return info, nil
}

// Cause returns the cause of an error, without the host's path.
func Cause(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	if at, ok := errors.AsType[*os.LinkError](err); ok {
		return at.Err
	}
	return err
}

// mapError removes the host's path from an error and maps it to one of the errors above, if possible.
func mapError(err error) error {
	err = Cause(err)
	switch {
	case errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ENXIO):
		return ErrNotFile
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EEXIST):
		return fmt.Errorf("a part of the path is a file, not a folder: %w", ErrNotFile)
	case errors.Is(err, syscall.ELOOP), isEscapeError(err):
		return ErrOutside
	}
	return err
}

// isEscapeError reports whether os.Root has refused a path. That error is not exported.
func isEscapeError(err error) bool {
	return strings.Contains(err.Error(), "path escapes from parent")
}

// RemoveAll deletes a folder with all its files. Unlike [os.RemoveAll], it also deletes those in folders
// that a tool has closed to the bot's user.
func RemoveAll(dir string) error {
	root, err := os.OpenRoot(filepath.Dir(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(remove(root, filepath.Base(dir)), root.Close())
}

// remove deletes a file, or a folder with all its files, as [RemoveAll] does.
func remove(root *os.Root, path string) error {
	err := root.RemoveAll(path)
	if errors.Is(err, fs.ErrPermission) {
		if err = root.Chmod(path, dirMode); err == nil {
			err = openFolders(root, path)
		}
		if err == nil {
			err = root.RemoveAll(path)
		}
	}
	return err
}

// openFolders opens all folders below one to the bot's user.
func openFolders(root *os.Root, path string) error {
	return walk(root, path, func(dir *os.Root, _ string, info fs.FileInfo) (bool, error) {
		if !info.IsDir() {
			return false, nil
		}
		return true, dir.Chmod(info.Name(), dirMode)
	})
}

// OwnerDir returns the folder with the files of an owner in a data directory.
func OwnerDir(dataDir, owner string) string {
	return filepath.Join(dataDir, "workspaces", url.PathEscape(owner))
}
