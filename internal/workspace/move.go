package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"oneclaw/storage"
)

// MoveFolder moves a folder to another place. If there are files, it becomes a folder among them, with the
// given name or a number behind that if it is taken. If the first folder is missing, MoveFolder does nothing.
func MoveFolder(from, to, name string) error {
	if _, err := os.Stat(from); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	// Remove the target if it is an empty folder, so that the files need no folder of their own.
	_ = os.Remove(to)
	if _, err := os.Stat(to); err == nil {
		folder := filepath.Join(to, name)
		to = folder
		for n := 2; ; n++ {
			if _, err := os.Lstat(to); err != nil {
				break
			}
			to = fmt.Sprintf("%s-%d", folder, n)
		}
	}
	if err := os.Rename(from, to); err != nil {
		return fmt.Errorf("workspace: move: %w", Cause(err))
	}
	return nil
}

// Move moves the files of one owner to another as [MoveFolder] does, in one write. If the first owner has
// no files, Move does nothing. Two moves in opposite directions must not run at the same time.
func (s *Store) Move(ctx context.Context, from, to, name string) error {
	source, target := s.owner(from), s.owner(to)
	ctx = context.WithoutCancel(ctx)
	for _, f := range []*localFolder{source, target} {
		f.mu.Lock()
		defer f.mu.Unlock()
		err := s.prepare(ctx, f)
		if err == nil {
			err = s.keep(ctx, f, nil) // local files that are not stored yet
		}
		if err != nil {
			return err
		}
	}
	manifest, err := s.load(ctx, source)
	if err != nil {
		return err
	}
	stored, err := decodeTree(manifest.Value)
	if err != nil || len(stored) == 0 {
		return err
	}
	empty, err := tree{}.encode()
	if err != nil {
		return err
	}
	ops := []storage.Op{storage.Put(source.key, empty, source.revision)}
	for hash := range stored.chunkHashes() {
		ops = append(ops, storage.Delete(source.chunkKey(hash), storage.Any))
	}
	if err = MoveFolder(source.dir, target.dir, name); err == nil {
		err = os.Mkdir(source.dir, dirMode)
	}
	if err == nil {
		err = s.keep(ctx, target, ops)
	}
	if err != nil { // the next Prepare undoes what was done here
		source.checkedOut, target.checkedOut = false, false
		return err
	}
	s.setDetails(source, target.revision, folderDetails{tree: tree{}})
	return nil
}
