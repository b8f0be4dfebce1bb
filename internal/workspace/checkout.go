package workspace

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"time"

	"oneclaw/storage"
)

// errChunkDeleted is returned for a chunk that a sweep has deleted because no manifest refers to it
// any more.
var errChunkDeleted = errors.New("workspace: a chunk of a file is missing from the store")

// Prepare checks out the stored files of an owner to the owner's folder, and creates the folder if
// missing. Local changes that were not stored survive if the stored files are still those that this
// process checked out or stored. Otherwise they are dropped. If no files are stored for the owner
// yet, the folder stays unchanged, for the next Keep.
func (s *Store) Prepare(ctx context.Context, owner string) error {
	f := s.owner(owner)
	f.mu.Lock()
	defer f.mu.Unlock()
	return s.prepare(ctx, f)
}

func (s *Store) prepare(ctx context.Context, f *localFolder) error {
	for range maxAttempts {
		stored, err := s.getEntry(ctx, f.key)
		if err != nil {
			return err
		}
		if f.checkedOut && f.revision == stored.Revision {
			return nil
		}
		if err := os.MkdirAll(f.dir, dirMode); err != nil {
			return fmt.Errorf("workspace: make the folder: %w", err)
		}
		if err := os.Chmod(f.dir, dirMode); err != nil { // a tool may have closed it
			return fmt.Errorf("workspace: open the folder: %w", err)
		}
		want, err := decodeTree(stored.Value)
		if err != nil {
			return err
		}
		switch {
		case stored.Revision == storage.Absent:
			s.setDetails(f, storage.Absent, folderDetails{tree: tree{}})
			return nil
		case f.checkedOut && f.triedHashes[sha256.Sum256(stored.Value)]:
			// An earlier write has succeeded although it returned an error.
			s.setDetails(f, stored.Revision, folderDetails{tree: want})
			return nil
		}
		err = s.replaceContent(ctx, f, want)
		if err == nil {
			f.checkedOut, f.revision = true, stored.Revision
			return nil
		}
		if !errors.Is(err, errChunkDeleted) {
			return err
		}
		// Either another version has replaced this one meanwhile, or the chunk is lost.
		if now, err := s.getEntry(ctx, f.key); err != nil || now.Revision == stored.Revision {
			return errors.Join(err, fmt.Errorf("%w: %s", errChunkDeleted, filepath.Base(f.key)))
		}
	}
	return fmt.Errorf("workspace: the files change too fast: %w", storage.ErrConflict)
}

// replaceContent replaces the content of a folder by a tree.
func (s *Store) replaceContent(ctx context.Context, f *localFolder, want tree) (err error) {
	before, _ := s.details.Get(f.key)
	f.checkedOut = false
	s.details.Forget(f.key)
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return fmt.Errorf("workspace: %w", Cause(err))
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	here, err := s.scan(root, true)
	if err == nil {
		// Do not read files of another size: they are replaced in any case.
		maps.DeleteFunc(here.stamps, func(path string, st fileStamp) bool { return st.size != want[path].Size && st != before.stamps[path] })
		err = here.readChunks(ctx, root, before, ignoreChunk)
	}
	if errors.Is(err, ErrUncounted) || errors.Is(err, ErrTooMany) {
		if err = s.moveUnreadable(f); err == nil {
			return s.replaceContent(ctx, f, want)
		}
	}
	if err != nil {
		return err
	}
	if before.tree != nil && !here.tree.equal(before.tree) {
		s.log.Warn("dropping local changes: another process has changed the stored files", "folder", filepath.Base(f.dir))
	}
	if err := s.applyTree(ctx, root, f.dir, here, want); err != nil {
		return err
	}
	// The next Keep reads the files written here, and finds by their hashes that they are stored.
	s.details.Put(f.key, folderDetails{want, here.stamps}, 0)
	return nil
}

// ignoreChunk does nothing with a chunk. It is passed if only the hashes are needed.
func ignoreChunk(context.Context, [sha256.Size]byte, []byte) error { return nil }

// moveUnreadable moves an unreadable folder away, deletes it if possible, and creates an empty one.
func (s *Store) moveUnreadable(f *localFolder) error {
	folder, err := os.MkdirTemp(s.cfg.Dir, "unreadable-")
	if err != nil {
		return fmt.Errorf("workspace: %w", err)
	}
	if err := os.Rename(f.dir, filepath.Join(folder, "files")); err != nil {
		return fmt.Errorf("workspace: %w", err)
	}
	if err := RemoveAll(folder); err != nil {
		s.log.Warn("cannot delete an unreadable folder", "folder", folder, "err", err)
	}
	return os.Mkdir(f.dir, dirMode)
}

// applyTree changes a folder with the tree here to the tree want. It changes only what differs.
func (s *Store) applyTree(ctx context.Context, root *os.Root, dir string, here scanResult, want tree) error {
	if err := s.checkRoom(dir, here.tree, want); err != nil {
		return err
	}
	if err := removeStale(root, "", want, here.includeHidden); err != nil {
		return err
	}
	for _, path := range want.paths() {
		if err := s.checkOutEntry(ctx, root, path, here, want[path]); err != nil {
			return fmt.Errorf("workspace: check a file out: %w", Cause(err))
		}
	}
	return nil
}

// checkOutEntry makes the file, folder or link at a path match an entry.
func (s *Store) checkOutEntry(ctx context.Context, root *os.Root, path string, here scanResult, e entry) error {
	old, kept := here.tree[path]
	kept = kept && old.fileType() == e.fileType()
	switch {
	case e.Dir && !kept:
		return root.Mkdir(path, dirMode)
	case e.Dir, kept && old.equalIgnoringTime(e) && old.ModTime == e.ModTime:
		return nil
	case len(e.Link) > 0:
		if kept {
			if err := root.Remove(path); err != nil {
				return err
			}
		}
		return root.Symlink(string(e.Link), path)
	}
	delete(here.stamps, path)
	if kept && bytes.Equal(old.Chunks, e.Chunks) && old.Size == e.Size {
		return setAttributes(root, path, e)
	}
	return s.writeFromChunks(ctx, root, path, e)
}

// checkRoom returns an error if a change would use the reserve of the disk.
func (s *Store) checkRoom(dir string, here, want tree) error {
	var more int64
	for path, e := range want {
		if !e.equalIgnoringTime(here[path]) {
			more += max(e.Size, minEntrySize)
		}
	}
	spare, err := SpareBytes(dir, s.cfg.Reserve)
	if err == nil && more > 0 && spare < more {
		return ErrDiskFull
	}
	return err
}

// removeStale deletes files and folders below a folder that are not in a tree or have another type. It
// ignores names that begin with a dot unless hidden is set.
func removeStale(root *os.Root, below string, want tree, hidden bool) error {
	return walk(root, below, func(path string, kind fs.FileMode) (deeper bool, err error) {
		if !hidden && filepath.Base(path)[0] == '.' {
			return false, nil
		}
		if kind == fs.ModeDir {
			if err := root.Chmod(path, dirMode); err != nil {
				return false, fmt.Errorf("workspace: %w", Cause(err))
			}
		}
		if e, ok := want[path]; ok && e.fileType() == kind {
			return e.Dir, nil
		}
		err = nil
		if kind == fs.ModeDir {
			err = removeStale(root, path, nil, true) // even in folders without write permission
		}
		if err = errors.Join(err, root.Remove(path)); err != nil {
			return false, fmt.Errorf("workspace: remove a file: %w", Cause(err))
		}
		return false, nil
	})
}

// walk visits all entries of a folder, including those that trees leave out.
func walk(root *os.Root, path string, visit func(path string, kind fs.FileMode) (below bool, err error)) error {
	dir, err := root.Open(filepath.Join(".", path))
	if err != nil {
		return fmt.Errorf("workspace: %w", Cause(err))
	}
	names, err := dir.Readdirnames(-1)
	if err = errors.Join(err, dir.Close()); err != nil {
		return fmt.Errorf("workspace: %w", Cause(err))
	}
	for _, name := range names {
		at := filepath.Join(path, name)
		info, err := root.Lstat(at)
		if err != nil {
			continue // deleted meanwhile
		}
		below, err := visit(at, info.Mode().Type())
		if err == nil && below {
			err = walk(root, at, visit)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// writeFromChunks writes a file from its chunks. It replaces the old file when the new one is complete.
func (s *Store) writeFromChunks(ctx context.Context, root *os.Root, path string, e entry) (err error) {
	file, part, err := CreatePartIn(root, filepath.Dir(path))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	err = s.copyChunks(ctx, file, e)
	if err == nil {
		err = setAttributes(root, part, e)
	}
	if err == nil {
		err = root.Rename(part, path)
	}
	if err != nil {
		return errors.Join(err, root.Remove(part))
	}
	return nil
}

func (s *Store) copyChunks(ctx context.Context, file *os.File, e entry) error {
	var size int64
	for name := range e.hashes() {
		chunk, err := s.getEntry(ctx, dataPrefix+name)
		if err != nil {
			return err
		}
		if chunk.Revision == storage.Absent {
			return errChunkDeleted
		}
		size += int64(len(chunk.Value))
		if _, err := file.Write(chunk.Value); err != nil {
			return err
		}
	}
	if size != e.Size {
		return fmt.Errorf("%w: the chunks of a file have %d bytes, not %d", errManifest, size, e.Size)
	}
	return nil
}

// setAttributes sets the permissions and time of a file.
func setAttributes(root *os.Root, path string, e entry) error {
	return errors.Join(root.Chmod(path, e.Mode|0o600), root.Chtimes(path, time.Time{}, time.Unix(0, e.ModTime)))
}
