package workspace

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Limits of [Open], and of [OpenWithin] where it is given 0.
const (
	// DefaultQuota is how many bytes a workspace may hold.
	DefaultQuota int64 = 1 << 30
	// DefaultReserve is how many bytes of the disk stay free for the bot itself.
	DefaultReserve int64 = 256 << 20
)

const (
	// leastEntry is what a file or folder counts at least, in bytes: empty ones fill a
	// disk as well.
	leastEntry = 4 << 10
	// maxDepth is how deep folders may be nested for their files to be counted.
	maxDepth = 64
	// stride is how many bytes of a stream are written between two looks at the room.
	stride = 16 << 20
	// batch is how many names of a folder are read at once.
	batch = 256
)

var (
	// ErrFull is returned for a write that a workspace has no room for.
	ErrFull = errors.New("the workspace is full; delete files that are not needed")
	// ErrDiskFull is returned for a write that would take what is reserved for the bot.
	ErrDiskFull = errors.New("the disk of the bot is nearly full; its operator has to make room")
	// ErrTooMany is returned where a workspace has more files than can be kept.
	ErrTooMany = errors.New("the workspace has too many files and folders; delete some, or pack them into one")
	// ErrUncounted is returned for a write to a workspace with folders that cannot be
	// looked into, or are nested too deeply: what they hold is not known.
	ErrUncounted = errors.New("a folder of the workspace is unreadable or too deeply nested; delete it or make it readable")
)

// NoRoom reports whether an error says that a workspace cannot take more as it is.
func NoRoom(err error) bool {
	for _, full := range []error{ErrFull, ErrDiskFull, ErrTooMany, ErrUncounted} {
		if errors.Is(err, full) {
			return true
		}
	}
	return false
}

// FreeBytes returns how many bytes may still be written, or why there are none.
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

// Used returns how many bytes the workspace holds. A file counts with its length also
// where it has holes, and every file and folder counts with 4 KiB at least.
func (r *Root) Used() (int64, error) { return usage(r.root, 0) }

// Spare returns how many bytes are free beyond the reserve; negative where it is touched.
func (r *Root) Spare() (int64, error) { return Spare(r.dir, r.reserve) }

// Spare returns how many bytes of the disk of dir are free beyond a reserve.
func Spare(dir string, reserve int64) (int64, error) {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		return 0, fmt.Errorf("look at the disk: %w", err)
	}
	return int64(disk.Bavail)*int64(disk.Bsize) - reserve, nil
}

// take sets room aside: most bytes, or what there is of them if that is not below least.
// The files are counted once for each Root, and again where that estimate says that there
// is no room.
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

// Bound returns a writer for a file of the workspace that passes on what there is room
// for, and fails with [ErrFull] or [ErrDiskFull] where there is none.
func (r *Root) Bound(w io.Writer) io.Writer { return &bound{root: r, to: w} }

type bound struct {
	root *Root
	to   io.Writer
	left int64 // that was set aside and not yet written
}

// Write implements [io.Writer].
func (b *bound) Write(p []byte) (int, error) {
	if need := int64(len(p)); need > b.left {
		var err error // What is left is not written, so a new count does not know of it.
		if b.left, err = b.root.take(need, max(need, stride)); err != nil {
			return 0, err
		}
	}
	n, err := b.to.Write(p)
	b.left -= int64(n)
	return n, err
}

// usage counts a folder and all below it. Files that vanish meanwhile do not count, and what a
// process that died was writing goes.
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

// entrySize counts a file, or a folder with all below it. A link counts as itself.
func entrySize(dir *os.Root, name string, depth int) (int64, error) {
	info, err := dir.Lstat(name)
	if err != nil {
		return 0, countError(err)
	}
	if info.Mode().IsRegular() && abandoned(dir, name) {
		return 0, nil
	}
	if !info.IsDir() {
		return max(info.Size(), leastEntry), nil
	}
	below, err := dir.OpenRoot(name)
	if err != nil {
		return 0, countError(err)
	}
	sum, err := usage(below, depth+1)
	return leastEntry + sum, errors.Join(err, below.Close())
}

// countError is an error in words for people; none for what went away or turned into
// something else while it was counted.
func countError(err error) error {
	switch err = mapError(err); {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, ErrNotFile), errors.Is(err, ErrOutside):
		return nil
	case errors.Is(err, fs.ErrPermission):
		return ErrUncounted
	}
	return fmt.Errorf("count the files of the workspace: %w", err)
}
