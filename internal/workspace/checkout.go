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

// errGone is for a chunk that a sweep has removed: nothing names it any more.
var errGone = errors.New("workspace: a part of a file is not stored")

// Prepare makes the folder of an owner hold what is stored, and makes it where it does not
// exist. What was changed here and not kept stays where the store is as this process left
// it, and is dropped where another has changed that, or where the process is a new one. An
// owner of whom nothing is stored yet keeps what is there, for the next Keep.
func (s *Store) Prepare(ctx context.Context, owner string) error {
	f := s.owner(owner)
	f.mu.Lock()
	defer f.mu.Unlock()
	return s.prepare(ctx, f)
}

func (s *Store) prepare(ctx context.Context, f *place) error {
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
			s.know(f, storage.Absent, details{tree: tree{}})
			return nil
		case f.ready && f.tried[sha256.Sum256(stored.Value)]:
			// A write has happened although it reported an error.
			s.know(f, stored.Revision, details{tree: want})
			return nil
		}
		err = s.replace(ctx, f, want)
		if err == nil {
			f.ready, f.rev = true, stored.Revision
			return nil
		}
		if !errors.Is(err, errGone) {
			return err
		}
		// Another version has taken its place meanwhile, or is lost.
		if now, err := s.get(ctx, f.key); err != nil || now.Revision == stored.Revision {
			return errors.Join(err, fmt.Errorf("%w: %s", errGone, filepath.Base(f.key)))
		}
	}
	return fmt.Errorf("workspace: the files change too fast: %w", storage.ErrConflict)
}

// replace makes a folder hold a tree, whatever it holds.
func (s *Store) replace(ctx context.Context, f *place, want tree) (err error) {
	before, _ := s.details.Get(f.key)
	f.ready = false
	s.details.Forget(f.key)
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return fmt.Errorf("workspace: %w", Cause(err))
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	here, err := s.look(root, true)
	if err == nil {
		// What has another size is replaced in any case, however large it is.
		maps.DeleteFunc(here.stamps, func(path string, st stamp) bool { return st.size != want[path].Size && st != before.seen[path] })
		err = here.read(ctx, root, before, unstored)
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
	if err := s.change(ctx, root, f.dir, here, want); err != nil {
		return err
	}
	// What was written now is read again by the next Keep, which knows it from its hash.
	s.details.Put(f.key, details{want, here.stamps}, 0)
	return nil
}

// unstored takes a chunk of which only the name is needed.
func unstored(context.Context, [sha256.Size]byte, []byte) error { return nil }

// setAside puts a folder that cannot be looked through out of the way and makes an empty one.
func (s *Store) setAside(f *place) error {
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

// change makes a folder with one tree hold another. It touches only what differs.
func (s *Store) change(ctx context.Context, root *os.Root, dir string, here found, want tree) error {
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

// put makes a path what it should be, where it is not.
func (s *Store) put(ctx context.Context, root *os.Root, path string, here found, e entry) error {
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
		return dress(root, path, e)
	}
	return s.fetch(ctx, root, path, e)
}

// room refuses what would take the reserve of the disk.
func (s *Store) room(dir string, here, want tree) error {
	var more int64
	for path, e := range want {
		if !e.same(here[path]) {
			more += max(e.Size, leastEntry)
		}
	}
	spare, err := Spare(dir, s.cfg.Reserve)
	if err == nil && more > 0 && spare < more {
		return ErrDiskFull
	}
	return err
}

// remove takes away what is below a folder and a tree does not have, or has as something else.
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
			err = remove(root, path, nil, true) // also what is in folders that cannot be written to
		}
		if err = errors.Join(err, root.Remove(path)); err != nil {
			return false, fmt.Errorf("workspace: remove a file: %w", Cause(err))
		}
		return false, nil
	})
}

// walk visits what a folder holds, also what no tree has.
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

// fetch writes a file from its chunks. It has its old content until all of the new is there.
func (s *Store) fetch(ctx context.Context, root *os.Root, path string, e entry) (err error) {
	file, part, err := NewPart(root, filepath.Dir(path))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	err = s.copyChunks(ctx, file, e)
	if err == nil {
		err = dress(root, part, e)
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
			return errGone
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

// dress gives a file its permissions and time.
func dress(root *os.Root, path string, e entry) error {
	return errors.Join(root.Chmod(path, e.Mode|0o600), root.Chtimes(path, time.Time{}, time.Unix(0, e.Time)))
}
