package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"oneclaw/storage"
)

// errChunkDeleted is returned for a chunk that another version of the folder no longer has.
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
	if f.checkedOut {
		if _, err := s.load(ctx, f); !errors.Is(err, storage.ErrConflict) {
			return err
		}
	}
	if err := os.MkdirAll(f.dir, dirMode); err != nil {
		return fmt.Errorf("workspace: make the folder: %w", err)
	}
	if err := os.Chmod(f.dir, dirMode); err != nil { // a tool may have closed it
		return fmt.Errorf("workspace: open the folder: %w", err)
	}
	last := storage.Absent
	for {
		stored, err := s.getEntry(ctx, f.key)
		if err != nil {
			return err
		}
		if stored.Revision == storage.Absent {
			s.setDetails(f, storage.Absent, folderDetails{tree: tree{}})
			return nil
		}
		if stored.Revision == last { // otherwise another version has replaced the one that lacks a chunk
			return fmt.Errorf("%w: %s", errChunkDeleted, filepath.Base(f.key))
		}
		last = stored.Revision
		want, err := decodeTree(stored.Value)
		if err != nil {
			return err
		}
		details, err := s.replaceContent(ctx, f, want)
		if err == nil {
			s.setDetails(f, stored.Revision, details)
		}
		if !errors.Is(err, errChunkDeleted) {
			return err
		}
	}
}

// replaceContent replaces the content of a folder by a tree.
func (s *Store) replaceContent(ctx context.Context, f *localFolder, want tree) (_ folderDetails, err error) {
	before, _ := s.details.Get(f.key)
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return before, fmt.Errorf("workspace: %w", Cause(err))
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	here, err := s.read(ctx, root, true, before, ignoreChunk)
	if IsFull(err) { // what is here was never stored
		if err = errors.Join(RemoveAll(f.dir), os.Mkdir(f.dir, dirMode)); err == nil {
			return s.replaceContent(ctx, f, want)
		}
	}
	if err == nil {
		err = s.applyTree(ctx, root, f, here, want)
	}
	// The next Keep reads the files written here, and finds by their hashes that they are stored.
	return folderDetails{want, here.stamps}, err
}

// ignoreChunk does nothing with a chunk. It is passed if only the hashes are needed.
func ignoreChunk(context.Context, string, []byte) error { return nil }

// applyTree changes a folder to the tree want. It changes only what differs.
func (s *Store) applyTree(ctx context.Context, root *os.Root, f *localFolder, here scanResult, want tree) error {
	if err := s.checkRoom(f.dir, here.tree, want); err != nil {
		return err
	}
	for _, path := range append(here.tree.paths(), here.special...) {
		var err error
		old, storable := here.tree[path]
		switch e, wanted := want[path]; {
		case !storable || !wanted || old.fileType() != e.fileType():
			err = remove(root, path)
		case old.Dir:
			err = root.Chmod(path, dirMode) // a tool may have closed it
		}
		if err != nil {
			return fmt.Errorf("workspace: remove a file: %w", Cause(err))
		}
	}
	for _, path := range want.paths() {
		if err := s.checkOutEntry(ctx, root, f, path, here, want[path]); err != nil {
			return fmt.Errorf("workspace: check a file out: %w", Cause(err))
		}
	}
	return nil
}

// checkOutEntry makes the file, folder or link at a path match an entry.
func (s *Store) checkOutEntry(ctx context.Context, root *os.Root, f *localFolder, path string, here scanResult, e entry) error {
	old, kept := here.tree[path]
	kept = kept && old.fileType() == e.fileType()
	switch {
	case path == looseChunks, kept && old.equal(e) && old.ModTime == e.ModTime:
		return nil
	case e.Dir:
		return root.Mkdir(path, dirMode)
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
	return s.writeFromChunks(ctx, root, f, path, e)
}

// checkRoom returns an error if a change would use the reserve of the disk.
func (s *Store) checkRoom(dir string, here, want tree) error {
	var more int64
	for path, e := range want {
		if !e.equal(here[path]) {
			more += max(e.Size, minEntrySize)
		}
	}
	spare, err := SpareBytes(dir, s.cfg.Reserve)
	if err == nil && more > 0 && spare < more {
		return ErrDiskFull
	}
	return err
}

// writeFromChunks writes a file from its chunks. It replaces the old file when the new one is complete.
func (s *Store) writeFromChunks(ctx context.Context, root *os.Root, f *localFolder, path string, e entry) (err error) {
	file, part, err := createPartIn(root, filepath.Dir(path))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	err = s.copyChunks(ctx, file, f, e)
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

func (s *Store) copyChunks(ctx context.Context, file *os.File, f *localFolder, e entry) error {
	var size int64
	for hash := range e.hashes() {
		chunk, err := s.getEntry(ctx, f.chunkKey(hash))
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
