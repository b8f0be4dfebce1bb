package workspace

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Default limits of [Open] and [OpenWithin].
const (
	// DefaultQuota bounds the bytes of a workspace.
	DefaultQuota int64 = 1 << 30
	// DefaultReserve is how many bytes of the disk stay free for the bot itself.
	DefaultReserve int64 = 256 << 20
)

const (
	// minEntrySize is the least size that a file or folder counts as, in bytes: empty ones fill a
	// disk as well.
	minEntrySize = 4 << 10
	// maxDepth bounds the nesting of folders whose files are counted.
	maxDepth = 64
	// stride is how many bytes of a stream are written between two checks of the room.
	stride = 16 << 20
	// batch is how many names of a folder are read at once.
	batch = 256
)

var (
	// ErrFull is returned for a write that exceeds the quota.
	ErrFull = errors.New("the workspace is full; delete files that are not needed")
	// ErrDiskFull is returned for a write that would use the bot's reserve.
	ErrDiskFull = errors.New("the disk of the bot is nearly full; its operator has to make room")
	// ErrTooMany is returned if a workspace has more files than can be kept.
	ErrTooMany = errors.New("the workspace has too many files and folders; delete some, or pack them into one")
	// ErrUncounted is returned for a write to a workspace with folders that are unreadable or
	// nested too deeply, so that their size is unknown.
	ErrUncounted = errors.New("a folder of the workspace is unreadable or too deeply nested; delete it or make it readable")
)

// NoRoom reports whether an error means that a workspace is full.
func NoRoom(err error) bool {
	for _, full := range []error{ErrFull, ErrDiskFull, ErrTooMany, ErrUncounted} {
		if errors.Is(err, full) {
			return true
		}
	}
	return false
}

// FreeBytes returns how many bytes may still be written, or why none.
func (r *Root) FreeBytes() (int64, error) {
	used, err := usage(r.root, 0)
	if err != nil {
		return 0, err
	}
	free, err := r.Spare()
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

// Used returns the size of the workspace in bytes. A sparse file counts with its full length,
// and every file and folder with at least 4 KiB.
func (r *Root) Used() (int64, error) { return usage(r.root, 0) }

// Spare returns how many bytes are free beyond the reserve; negative if it is used.
func (r *Root) Spare() (int64, error) { return Spare(r.dir, r.reserve) }

// Spare returns how many bytes of the disk of dir are free beyond a reserve.
func Spare(dir string, reserve int64) (int64, error) {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		return 0, fmt.Errorf("look at the disk: %w", err)
	}
	return int64(disk.Bavail)*int64(disk.Bsize) - reserve, nil
}

// take reserves room: most bytes, or what is left if that is at least least. Files are counted
// once per Root, and again when the estimate says that there is no room.
func (r *Root) take(least, most int64) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	spare, err := r.Spare()
	if err != nil {
		return 0, err
	}
	if spare < least {
		return 0, ErrDiskFull
	}
	most = min(most, spare)
	if !r.counted || r.used+most > r.quota {
		if r.used, err = usage(r.root, 0); err != nil {
			return 0, err
		}
		r.counted = true
	}
	left := r.quota - r.used
	if left < least {
		return 0, ErrFull
	}
	most = min(most, left)
	r.used += most
	return most, nil
}

// Bound returns a writer for a file of the workspace that writes what there is room for, and
// then fails with [ErrFull] or [ErrDiskFull].
func (r *Root) Bound(w io.Writer) io.Writer { return &boundWriter{root: r, to: w} }

type boundWriter struct {
	root *Root
	to   io.Writer
	left int64 // reserved and not yet written
}

// Write implements [io.Writer].
func (b *boundWriter) Write(p []byte) (int, error) {
	if need := int64(len(p)); need > b.left {
		var err error // unused room is not written, so a new count does not include it
		if b.left, err = b.root.take(need, max(need, stride)); err != nil {
			return 0, err
		}
	}
	n, err := b.to.Write(p)
	b.left -= int64(n)
	return n, err
}

// usage returns the size of a folder with everything below it. Files that vanish meanwhile do
// not count; it deletes partial files of dead processes.
func usage(dir *os.Root, depth int) (sum int64, err error) {
	if depth > maxDepth {
		return 0, ErrUncounted
	}
	list, err := dir.Open(".")
	if err != nil {
		return 0, countError(err)
	}
	defer func() { err = errors.Join(err, list.Close()) }()
	for {
		names, err := list.Readdirnames(batch)
		for _, name := range names {
			size, err := entrySize(dir, name, depth)
			if err != nil {
				return 0, err
			}
			sum += size
		}
		if errors.Is(err, io.EOF) {
			return sum, nil
		}
		if err != nil {
			return 0, countError(err)
		}
	}
}

// entrySize returns the size of a file, or of a folder with everything below it. A link counts
// as itself.
func entrySize(dir *os.Root, name string, depth int) (int64, error) {
	info, err := dir.Lstat(name)
	if err != nil {
		return 0, countError(err)
	}
	if info.Mode().IsRegular() && abandoned(dir, name) {
		return 0, nil
	}
	if !info.IsDir() {
		return max(info.Size(), minEntrySize), nil
	}
	below, err := dir.OpenRoot(name)
	if err != nil {
		return 0, countError(err)
	}
	sum, err := usage(below, depth+1)
	return minEntrySize + sum, errors.Join(err, below.Close())
}

// countError turns an error into one for people; nil for a file that vanished or changed its
// type meanwhile.
func countError(err error) error {
	switch err = mapError(err); {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, ErrNotFile), errors.Is(err, ErrOutside):
		return nil
	case errors.Is(err, fs.ErrPermission):
		return ErrUncounted
	}
	return fmt.Errorf("count the files of the workspace: %w", err)
}
