package workspace

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"
)

// clockTick is longer than the resolution of a disk's clock.
const clockTick = time.Second

// fileStamp identifies the version of a file without reading it. No program can set the time of a
// file's last status change.
type fileStamp struct {
	size, changedAt int64
	inode           uint64
}

// scanResult is what is in a folder.
type scanResult struct {
	tree   tree
	stamps map[string]fileStamp
	// special are the paths of pipes, sockets and devices, which are not stored.
	special []string
}

// putFunc takes a chunk of a file, which it must not keep.
type putFunc func(ctx context.Context, hash string, data []byte) error

// read reads a folder, without what vanishes meanwhile and, unless hidden is set, names that begin with a
// dot. Files that have not changed since before keep their chunks from then; the others are read up to
// their length, and put is called with each chunk.
func (s *Store) read(ctx context.Context, root *os.Root, hidden bool, before folderDetails, put putFunc) (scanResult, error) {
	r := scanResult{tree: tree{}, stamps: make(map[string]fileStamp)}
	var used int64 // counted as in folderSize
	err := walk(root, ".", func(dir *os.Root, path string, info fs.FileInfo) (below bool, err error) {
		if !hidden && strings.HasPrefix(info.Name(), ".") {
			return false, nil
		}
		if len(r.tree)+len(r.special) >= s.cfg.MaxEntries {
			return false, ErrTooMany
		}
		used += minEntrySize
		switch info.Mode().Type() {
		case fs.ModeDir:
			r.tree[path] = entry{Dir: true}
			return true, checkDepth(path)
		case fs.ModeSymlink:
			if to, err := dir.Readlink(info.Name()); err == nil && to != "" {
				r.tree[path] = entry{Link: []byte(to)}
			}
		case 0:
			// Make the file readable and writable for the bot.
			r.tree[path] = entry{Mode: info.Mode().Perm() | 0o600, ModTime: info.ModTime().UnixNano(), Size: info.Size()}
			r.stamps[path] = stampOf(info)
			used += max(info.Size()-minEntrySize, 0)
		default:
			r.special = append(r.special, path)
		}
		return false, nil
	})
	if err == nil && used > s.cfg.Quota {
		err = ErrFull
	}
	if err == nil {
		err = r.readChunks(ctx, root, before, put)
	}
	return r, err
}

func stampOf(info fs.FileInfo) fileStamp {
	s := fileStamp{size: info.Size()}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		s.changedAt, s.inode = changeTime(sys), sys.Ino
	}
	return s
}

// readChunks completes the files. One that may still be changing is read again the next time.
func (r *scanResult) readChunks(ctx context.Context, root *os.Root, before folderDetails, put putFunc) error {
	var buffer []byte // only as large as needed, because many folders may be read at once
	for path, look := range r.stamps {
		e := r.tree[path]
		if old, ok := before.tree[path]; ok && before.stamps[path] == look && old.Size == e.Size {
			e.Chunks = old.Chunks
			r.tree[path] = e
			continue
		}
		// The clock of the disk may not distinguish a change made now from the last one.
		if time.Since(time.Unix(0, look.changedAt)) < clockTick {
			delete(r.stamps, path)
		}
		if need := min(e.Size, ChunkSize); int64(len(buffer)) < need {
			buffer = make([]byte, need)
		}
		err := e.readFile(ctx, root, path, buffer, put)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			delete(r.tree, path)
		case err != nil:
			return err
		default:
			r.tree[path] = e
		}
	}
	return nil
}

// readFile reads a file up to its size, and sets the size and the chunks to what it has read. For a file
// whose type has changed it returns fs.ErrNotExist.
func (e *entry) readFile(ctx context.Context, root *os.Root, path string, buffer []byte, put putFunc) (err error) {
	file, err := root.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return cmp.Or(countError(err), fs.ErrNotExist)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return errors.Join(err, fs.ErrNotExist)
	}
	from := io.LimitReader(file, e.Size)
	e.Size, e.Chunks = 0, nil
	for err == nil {
		var n int
		if n, err = io.ReadFull(from, buffer); n == 0 {
			break
		}
		hash := sha256.Sum256(buffer[:n])
		e.Size, e.Chunks = e.Size+int64(n), append(e.Chunks, hash[:]...)
		if err := put(ctx, string(hash[:]), buffer[:n]); err != nil {
			return err
		}
	}
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("workspace: read a file: %w", Cause(err))
	}
	return nil
}
