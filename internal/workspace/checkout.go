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

// errChunkDeleted is returned for a chunk that a sweep has deleted because nothing refers to it any
// more.
var errChunkDeleted = errors.New("workspace: a part of a file is not stored")

// Prepare makes the folder of an owner hold the stored files, and creates it if missing. Local
// changes that were not kept survive if the store is as this process left it, and are dropped if
// another process has changed it or this process is new. If nothing is stored for the owner yet,
// the folder stays as it is, for the next Keep.
func (s *Store) Prepare(ctx context.Context, owner string) error {
	f := s.owner(owner)
	f.mu.Lock()
	defer f.mu.Unlock()
	return s.prepare(ctx, f)
}

func (s *Store) prepare(ctx context.Context, f *localFolder) error {
	for range maxTries {
		stored, err := s.get(ctx, f.key)
		if err != nil {
			return err
		}
		if f.ready && f.rev == stored.Revision {
			return nil
		}
		if err := os.MkdirAll(f.dir, dirMode); err != nil {
			return fmt.Errorf("workspace: make the folder: %w", err)
		}
		want, err := decode(stored.Value)
		if err != nil {
			return err
		}
		switch {
		case stored.Revision == storage.Absent:
			s.know(f, storage.Absent, folderDetails{tree: tree{}})
			return nil
		case f.ready && f.tried[sha256.Sum256(stored.Value)]:
			// A write has succeeded although it returned an error.
			s.know(f, stored.Revision, folderDetails{tree: want})
			return nil
		}
		err = s.replace(ctx, f, want)
		if err == nil {
			f.ready, f.rev = true, stored.Revision
			return nil
		}
		if !errors.Is(err, errChunkDeleted) {
			return err
		}
		// Another version has replaced it meanwhile, or is lost.
		if now, err := s.get(ctx, f.key); err != nil || now.Revision == stored.Revision {
			return errors.Join(err, fmt.Errorf("%w: %s", errChunkDeleted, filepath.Base(f.key)))
		}
	}
	return fmt.Errorf("workspace: the files change too fast: %w", storage.ErrConflict)
}

// replace makes a folder hold a tree, whatever it holds.
func (s *Store) replace(ctx context.Context, f *localFolder, want tree) (err error) {
	before, _ := s.details.Get(f.key)
	f.ready = false
	s.details.Forget(f.key)
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return fmt.Errorf("workspace: %w", Cause(err))
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	here, err := s.scan(root, true)
	if err == nil {
		// Files of another size are replaced in any case, however large.
		maps.DeleteFunc(here.stamps, func(path string, st fileStamp) bool { return st.size != want[path].Size && st != before.seen[path] })
		err = here.read(ctx, root, before, ignoreChunk)
	}
	if errors.Is(err, ErrUncounted) || errors.Is(err, ErrTooMany) {
		if err = s.setAside(f); err == nil {
			return s.replace(ctx, f, want)
		}
	}
	if err != nil {
		return err
	}
	if before.tree != nil && !here.tree.equal(before.tree) {
		s.log.Warn("files that were not stored are dropped: another process has changed them", "folder", filepath.Base(f.dir))
	}
	if err := s.applyTree(ctx, root, f.dir, here, want); err != nil {
		return err
	}
	// The next Keep reads the files written now, and recognises them by their hashes.
	s.details.Put(f.key, folderDetails{want, here.stamps}, 0)
	return nil
}

// ignoreChunk ignores a chunk, of which only the hash is needed.
func ignoreChunk(context.Context, [sha256.Size]byte, []byte) error { return nil }

// setAside moves an unreadable folder away and creates an empty one.
func (s *Store) setAside(f *localFolder) error {
	folder, err := os.MkdirTemp(s.cfg.Dir, "unreadable-")
	if err != nil {
		return fmt.Errorf("workspace: %w", err)
	}
	if err := os.Rename(f.dir, filepath.Join(folder, "files")); err != nil {
		return fmt.Errorf("workspace: %w", err)
	}
	if err := os.RemoveAll(folder); err != nil {
		s.log.Warn("a folder that could not be read stays beside the others", "folder", folder, "err", err)
	}
	return os.Mkdir(f.dir, dirMode)
}

// applyTree turns a folder with one tree into another, touching only differences.
func (s *Store) applyTree(ctx context.Context, root *os.Root, dir string, here scanResult, want tree) error {
	if err := s.room(dir, here.tree, want); err != nil {
		return err
	}
	if err := remove(root, "", want, here.hidden); err != nil {
		return err
	}
	for _, path := range want.paths() {
		if err := s.put(ctx, root, path, here, want[path]); err != nil {
			return fmt.Errorf("workspace: check a file out: %w", Cause(err))
		}
	}
	return nil
}

// put makes a path match its entry.
func (s *Store) put(ctx context.Context, root *os.Root, path string, here scanResult, e entry) error {
	old, kept := here.tree[path]
	kept = kept && old.kind() == e.kind()
	switch {
	case e.Dir && !kept:
		return root.Mkdir(path, dirMode)
	case e.Dir, kept && old.same(e) && old.Time == e.Time:
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
	return s.fetch(ctx, root, path, e)
}

// room refuses a change that would use the reserve of the disk.
func (s *Store) room(dir string, here, want tree) error {
	var more int64
	for path, e := range want {
		if !e.same(here[path]) {
			more += max(e.Size, minEntrySize)
		}
	}
	spare, err := Spare(dir, s.cfg.Reserve)
	if err == nil && more > 0 && spare < more {
		return ErrDiskFull
	}
	return err
}

// remove deletes what is below a folder and missing or different in a tree.
func remove(root *os.Root, below string, want tree, hidden bool) error {
	return walk(root, below, func(path string, kind fs.FileMode) (deeper bool, err error) {
		if !hidden && filepath.Base(path)[0] == '.' {
			return false, nil
		}
		if kind == fs.ModeDir {
			if err := root.Chmod(path, dirMode); err != nil {
				return false, fmt.Errorf("workspace: %w", Cause(err))
			}
		}
		if e, ok := want[path]; ok && e.kind() == kind {
			return e.Dir, nil
		}
		err = nil
		if kind == fs.ModeDir {
			err = remove(root, path, nil, true) // even in folders without write permission
		}
		if err = errors.Join(err, root.Remove(path)); err != nil {
			return false, fmt.Errorf("workspace: remove a file: %w", Cause(err))
		}
		return false, nil
	})
}

// walk visits everything in a folder, even what trees leave out.
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
			continue // it is gone
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

// fetch writes a file from its chunks. The old content stays until the new is complete.
func (s *Store) fetch(ctx context.Context, root *os.Root, path string, e entry) (err error) {
	file, part, err := NewPart(root, filepath.Dir(path))
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
		chunk, err := s.get(ctx, dataPrefix+name)
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
		return fmt.Errorf("%w: its parts have %d bytes, not %d", errManifest, size, e.Size)
	}
	return nil
}

// setAttributes sets the permissions and time of a file.
func setAttributes(root *os.Root, path string, e entry) error {
	return errors.Join(root.Chmod(path, e.Mode|0o600), root.Chtimes(path, time.Time{}, time.Unix(0, e.Time)))
}
