package workspace

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Default limits of [Open] and [OpenWithin].
const (
	// DefaultQuota bounds the bytes of a workspace.
	DefaultQuota int64 = 1 << 30
	// DefaultReserve is the number of bytes that stay free on the disk for the bot itself.
	DefaultReserve int64 = 256 << 20
)

const (
	// minEntrySize is the minimum size with which a file or folder is counted, in bytes, because
	// empty files fill a disk as well.
	minEntrySize = 4 << 10
	// maxDepth bounds the nesting of folders whose files are counted.
	maxDepth = 64
	// reserveStep is the number of bytes of a stream that are reserved at once.
	reserveStep = 16 << 20
	// namesPerRead is the number of names that are read from a folder at once.
	namesPerRead = 256
)

var (
	// ErrFull is returned for a write that exceeds the quota.
	ErrFull = errors.New("the workspace is full; delete files that are not needed")
	// ErrDiskFull is returned for a write that would use the bot's reserve.
	ErrDiskFull = errors.New("the disk of the bot is nearly full; its operator has to make room")
	// ErrTooMany is returned if a workspace has more files than can be stored.
	ErrTooMany = errors.New("the workspace has too many files and folders; delete some, or pack them into one")
	// ErrUncounted is returned for a write to a workspace with folders that are unreadable or
	// nested too deeply, so that their size is unknown.
	ErrUncounted = errors.New("a folder of the workspace is unreadable or too deeply nested; delete it or make it readable")
)

// IsFull reports whether an error means that a workspace is full.
func IsFull(err error) bool {
	for _, full := range []error{ErrFull, ErrDiskFull, ErrTooMany, ErrUncounted} {
		if errors.Is(err, full) {
			return true
		}
	}
	return false
}

// FreeBytes returns the number of bytes that may still be written, or an error if there are none.
func (r *Root) FreeBytes() (int64, error) {
	used, err := folderSize(r.root)
	if err != nil {
		return 0, err
	}
	free, err := r.SpareBytes()
	if err != nil {
		return 0, err
	}
	switch left := r.quota - used; {
	case left <= 0:
		return 0, ErrFull
	case free <= 0:
		return 0, ErrDiskFull
	default:
		return min(left, free), nil
	}
}

// UsedBytes returns the size of the workspace in bytes. A sparse file counts with its full length,
// and every file and folder with at least 4 KiB.
func (r *Root) UsedBytes() (int64, error) { return folderSize(r.root) }

// SpareBytes returns the number of free bytes beyond the reserve. It is negative if less than the reserve is free.
func (r *Root) SpareBytes() (int64, error) { return SpareBytes(r.dir, r.reserve) }

// SpareBytes returns the number of bytes beyond a reserve that are free on the disk of dir.
func SpareBytes(dir string, reserve int64) (int64, error) {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		return 0, fmt.Errorf("read the free space of the disk: %w", err)
	}
	return int64(disk.Bavail)*int64(disk.Bsize) - reserve, nil
}

// reserveRoom reserves up to most bytes, and returns their number. It fails if fewer than least are
// left. Files are counted once per Root, and again when the estimate exceeds the quota.
func (r *Root) reserveRoom(least, most int64) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	spare, err := r.SpareBytes()
	if err != nil {
		return 0, err
	}
	if spare < least {
		return 0, ErrDiskFull
	}
	most = min(most, spare)
	if !r.isCounted || r.used+most > r.quota {
		if r.used, err = folderSize(r.root); err != nil {
			return 0, err
		}
		r.isCounted = true
	}
	left := r.quota - r.used
	if left < least {
		return 0, ErrFull
	}
	most = min(most, left)
	r.used += most
	return most, nil
}

// BoundedWriter returns a writer for a file in the workspace. When there is no room left, it fails
// with [ErrFull] or [ErrDiskFull].
func (r *Root) BoundedWriter(w io.Writer) io.Writer { return &boundedWriter{root: r, to: w} }

type boundedWriter struct {
	root         *Root
	to           io.Writer
	reservedLeft int64 // reserved and not yet written
}

// Write implements [io.Writer].
func (b *boundedWriter) Write(p []byte) (int, error) {
	if need := int64(len(p)); need > b.reservedLeft {
		var err error // unused room need not be returned: a new count does not include it
		if b.reservedLeft, err = b.root.reserveRoom(need, max(need, reserveStep)); err != nil {
			return 0, err
		}
	}
	n, err := b.to.Write(p)
	b.reservedLeft -= int64(n)
	return n, err
}

// folderSize returns the size of a folder with all files below it. A symbolic link counts as itself, not as
// its target, and files that vanish meanwhile do not count. It deletes partial files left by processes that
// have ended.
func folderSize(root *os.Root) (sum int64, err error) {
	err = walk(root, ".", func(dir *os.Root, path string, info fs.FileInfo) (below bool, err error) {
		switch {
		case info.IsDir():
			sum += minEntrySize
			return true, checkDepth(path)
		case !info.Mode().IsRegular() || !removeAbandoned(dir, info.Name()):
			sum += max(info.Size(), minEntrySize)
		}
		return false, nil
	})
	return sum, err
}

// checkDepth refuses a folder that is nested too deeply for its files to be counted.
func checkDepth(path string) error {
	if strings.Count(path, string(filepath.Separator)) >= maxDepth {
		return ErrUncounted
	}
	return nil
}

// walk visits everything below a folder, folders before what is in them if visit returns true for them. It
// leaves out what vanishes meanwhile, and keeps at most two folders open.
func walk(root *os.Root, from string, visit func(dir *os.Root, path string, info fs.FileInfo) (below bool, err error)) error {
	for left := []string{from}; len(left) > 0; {
		at := left[len(left)-1]
		left = left[:len(left)-1]
		err := eachEntry(root, at, func(dir *os.Root, name string) error {
			info, err := dir.Lstat(name)
			if err != nil {
				return countError(err)
			}
			path := filepath.Join(at, name)
			below, err := visit(dir, path, info)
			if below {
				left = append(left, path)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// eachEntry calls do with each name in a folder, which it does not read at once, because a tool may have
// filled it.
func eachEntry(root *os.Root, path string, do func(dir *os.Root, name string) error) (err error) {
	dir, err := root.OpenRoot(path)
	if err != nil {
		return countError(err)
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	list, err := dir.Open(".")
	if err != nil {
		return countError(err)
	}
	defer func() { err = errors.Join(err, list.Close()) }()
	for {
		names, err := list.Readdirnames(namesPerRead)
		for _, name := range names {
			if err := do(dir, name); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return countError(err)
		}
	}
}

// countError converts an error of counting files into one for people. It returns nil for a file that
// vanished or changed its type meanwhile.
func countError(err error) error {
	switch err = mapError(err); {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, ErrNotFile), errors.Is(err, ErrOutside):
		return nil
	case errors.Is(err, fs.ErrPermission):
		return ErrUncounted
	}
	return fmt.Errorf("count the files of the workspace: %w", err)
}
