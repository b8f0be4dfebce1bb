package workspace

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// tick is more than the clock of a disk needs to show that a file was changed again.
const tick = time.Second

// stamp is what a file looks like without being read. No program can set the time of its last
// change of any kind.
type stamp struct {
	size, changed int64
	inode         uint64
}

// found is what a look at the names of a folder brings. Files have no chunks yet.
type found struct {
	tree   tree
	stamps map[string]stamp
	used   int64 // as internal/workspace counts

	hidden bool
	most   int // so many entries
}

// look walks through a folder. Pipes, sockets and devices are left out, and unless hidden is
// set whatever has a name that begins with a dot; what vanishes meanwhile does not count.
func (s *Store) look(root *os.Root, hidden bool) (found, error) {
	f := found{tree: tree{}, stamps: make(map[string]stamp), hidden: hidden, most: s.cfg.MaxEntries}
	return f, f.walk(root, "", 0)
}

func (f *found) walk(dir *os.Root, path string, depth int) (err error) {
	if depth > maxDepth {
		return ErrUncounted
	}
	list, err := dir.Open(".")
	if err != nil {
		return lookError(err)
	}
	defer func() { err = errors.Join(err, list.Close()) }()
	for {
		names, err := list.Readdirnames(batch)
		for _, name := range names {
			if name[0] == '.' && !f.hidden {
				continue
			}
			if err := f.add(dir, name, filepath.Join(path, name), depth); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return lookError(err)
		}
	}
}

func (f *found) add(dir *os.Root, name, path string, depth int) error {
	info, err := dir.Lstat(name)
	if err != nil {
		return lookError(err)
	}
	if len(f.tree) >= f.most {
		return ErrTooMany
	}
	switch info.Mode().Type() {
	case fs.ModeDir:
		below, err := dir.OpenRoot(name)
		if err != nil {
			return lookError(err)
		}
		f.tree[path] = entry{Dir: true}
		f.used += leastEntry
		return errors.Join(f.walk(below, path, depth+1), below.Close())
	case fs.ModeSymlink:
		to, err := dir.Readlink(name)
		if err != nil || to == "" {
			return lookError(err)
		}
		f.tree[path] = entry{Link: []byte(to)}
		f.used += leastEntry
	case 0:
		// What the owner cannot read or write cannot be used either.
		f.tree[path] = entry{Mode: info.Mode().Perm() | 0o600, Time: info.ModTime().UnixNano(), Size: info.Size()}
		f.stamps[path] = stampOf(info)
		f.used += max(info.Size(), leastEntry)
	}
	return nil
}

func stampOf(info fs.FileInfo) stamp {
	s := stamp{size: info.Size()}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		s.changed, s.inode = changed(sys), sys.Ino
	}
	return s
}

// lookError is nil for what went away or turned into something else meanwhile.
func lookError(err error) error {
	switch {
	case err == nil, errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EINVAL):
		return nil
	case errors.Is(err, fs.ErrPermission):
		return ErrUncounted
	}
	return fmt.Errorf("workspace: look through the files: %w", Cause(err))
}

// read completes what was found: files that look as they did keep the chunks they had, the
// others are read, no further than to the length that was found. put is given each chunk. A
// file that a process goes on writing is kept as it was read, and read again the next time.
func (f *found) read(ctx context.Context, root *os.Root, before details, put func(ctx context.Context, hash [sha256.Size]byte, data []byte) error) error {
	var buffer []byte // no larger than needed: there may be many folders at once
	for path, look := range f.stamps {
		e := f.tree[path]
		if old, ok := before.tree[path]; ok && before.seen[path] == look && old.Size == e.Size {
			e.Chunks = old.Chunks
			f.tree[path] = e
			continue
		}
		// The clock of the disk may not tell a change that comes now from the last one.
		if time.Since(time.Unix(0, look.changed)) < tick {
			delete(f.stamps, path)
		}
		if need := min(e.Size, ChunkSize); int64(len(buffer)) < need {
			buffer = make([]byte, need)
		}
		size, chunks, err := readFile(ctx, root, path, e.Size, buffer, put)
		if errors.Is(err, fs.ErrNotExist) {
			delete(f.tree, path)
			continue
		}
		if err != nil {
			return err
		}
		e.Size, e.Chunks = size, chunks
		f.tree[path] = e
	}
	return nil
}

// readFile reads at most so many bytes of a file. What has turned into something else is
// not there.
func readFile(ctx context.Context, root *os.Root, path string, most int64, buffer []byte, put func(context.Context, [sha256.Size]byte, []byte) error) (size int64, chunks []byte, err error) {
	file, err := root.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		if lookError(err) == nil || errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENXIO) {
			return 0, nil, fs.ErrNotExist
		}
		return 0, nil, lookError(err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return 0, nil, errors.Join(err, fs.ErrNotExist)
	}
	from := io.LimitReader(file, most)
	for most > 0 {
		n, err := io.ReadFull(from, buffer)
		if n > 0 {
			hash := sha256.Sum256(buffer[:n])
			if err := put(ctx, hash, buffer[:n]); err != nil {
				return 0, nil, err
			}
			size, chunks = size+int64(n), append(chunks, hash[:]...)
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return size, chunks, nil
		case err != nil:
			return 0, nil, fmt.Errorf("workspace: read a file: %w", Cause(err))
		}
	}
	return 0, nil, nil
}
