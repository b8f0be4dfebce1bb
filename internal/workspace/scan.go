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

// clockTick is longer than the resolution of a disk's clock.
const clockTick = time.Second

// fileStamp identifies the version of a file without reading it. No program can set the time of a
// file's last status change.
type fileStamp struct {
	size, changedAt int64
	inode           uint64
}

// scanResult is the result of scanning a folder. Files have no chunks until readChunks.
type scanResult struct {
	tree      tree
	stamps    map[string]fileStamp
	usedBytes int64 // counted as in folderSize

	includeHidden bool
	maxEntries    int // bound of the entries
}

// scan scans a folder. It leaves out pipes, sockets, devices, files that vanish meanwhile and, unless
// hidden is set, names that begin with a dot.
func (s *Store) scan(root *os.Root, hidden bool) (scanResult, error) {
	f := scanResult{tree: tree{}, stamps: make(map[string]fileStamp), includeHidden: hidden, maxEntries: s.cfg.MaxEntries}
	return f, f.scanDir(root, "", 0)
}

func (f *scanResult) scanDir(dir *os.Root, path string, depth int) (err error) {
	if depth > maxDepth {
		return ErrUncounted
	}
	list, err := dir.Open(".")
	if err != nil {
		return scanError(err)
	}
	defer func() { err = errors.Join(err, list.Close()) }()
	for {
		names, err := list.Readdirnames(namesPerRead)
		for _, name := range names {
			if name[0] == '.' && !f.includeHidden {
				continue
			}
			if err := f.addEntry(dir, name, filepath.Join(path, name), depth); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return scanError(err)
		}
	}
}

func (f *scanResult) addEntry(dir *os.Root, name, path string, depth int) error {
	info, err := dir.Lstat(name)
	if err != nil {
		return scanError(err)
	}
	if len(f.tree) >= f.maxEntries {
		return ErrTooMany
	}
	switch info.Mode().Type() {
	case fs.ModeDir:
		below, err := dir.OpenRoot(name)
		if err != nil {
			return scanError(err)
		}
		f.tree[path] = entry{Dir: true}
		f.usedBytes += minEntrySize
		return errors.Join(f.scanDir(below, path, depth+1), below.Close())
	case fs.ModeSymlink:
		to, err := dir.Readlink(name)
		if err != nil || to == "" {
			return scanError(err)
		}
		f.tree[path] = entry{Link: []byte(to)}
		f.usedBytes += minEntrySize
	case 0:
		// Make the file readable and writable for the bot.
		f.tree[path] = entry{Mode: info.Mode().Perm() | 0o600, ModTime: info.ModTime().UnixNano(), Size: info.Size()}
		f.stamps[path] = stampOf(info)
		f.usedBytes += max(info.Size(), minEntrySize)
	}
	return nil
}

func stampOf(info fs.FileInfo) fileStamp {
	s := fileStamp{size: info.Size()}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		s.changedAt, s.inode = changeTime(sys), sys.Ino
	}
	return s
}

// scanError converts an error. It returns nil for a file that vanished or changed its type meanwhile.
func scanError(err error) error {
	switch {
	case err == nil, errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EINVAL):
		return nil
	case errors.Is(err, fs.ErrPermission):
		return ErrUncounted
	}
	return fmt.Errorf("workspace: scan the files: %w", Cause(err))
}

// readChunks completes the files of a scan. Unchanged files keep their chunks from before; the others
// are read, up to the scanned length, and put is called with each chunk. A file that may still be
// changing is read again the next time.
func (f *scanResult) readChunks(ctx context.Context, root *os.Root, before folderDetails, put func(ctx context.Context, hash [sha256.Size]byte, data []byte) error) error {
	var buffer []byte // only as large as needed, because many folders may be read at once
	for path, look := range f.stamps {
		e := f.tree[path]
		if old, ok := before.tree[path]; ok && before.stamps[path] == look && old.Size == e.Size {
			e.Chunks = old.Chunks
			f.tree[path] = e
			continue
		}
		// The clock of the disk may not distinguish a change made now from the last one.
		if time.Since(time.Unix(0, look.changedAt)) < clockTick {
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

// readFile reads a file up to most bytes. For a file whose type has changed it returns fs.ErrNotExist.
func readFile(ctx context.Context, root *os.Root, path string, most int64, buffer []byte, put func(context.Context, [sha256.Size]byte, []byte) error) (size int64, chunks []byte, err error) {
	file, err := root.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		if scanError(err) == nil || errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENXIO) {
			return 0, nil, fs.ErrNotExist
		}
		return 0, nil, scanError(err)
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
