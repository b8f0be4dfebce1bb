package workspace

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"oneclaw/storage"
)

// Move moves the files of one owner to another, atomically. If the other owner has files, the moved
// files go into the named folder, with a number behind the name if that is taken. If the first owner has
// no files, Move does nothing.
func (s *Store) Move(ctx context.Context, from, to, folder string) error {
	for _, owner := range []string{from, to} {
		// Include local files that are not stored yet.
		if err := s.Prepare(ctx, owner); err != nil {
			return err
		}
		if err := s.Keep(ctx, owner); err != nil {
			return err
		}
	}
	for range maxAttempts {
		again, err := s.tryMove(ctx, ownerPrefix+from, ownerPrefix+to, folder)
		if !again {
			return errors.Join(err, s.Prepare(ctx, from))
		}
	}
	return fmt.Errorf("workspace: the files change too fast: %w", storage.ErrConflict)
}

func (s *Store) tryMove(ctx context.Context, from, to, folder string) (again bool, err error) {
	source, err := s.getEntry(ctx, from)
	if err != nil {
		return false, err
	}
	target, err := s.getEntry(ctx, to)
	if err != nil {
		return false, err
	}
	moving, err := decodeTree(source.Value)
	if err != nil || len(moving) == 0 {
		return false, err
	}
	merged, err := decodeTree(target.Value)
	if err != nil {
		return false, err
	}
	free := folder
	for n := 2; merged.has(free); n++ {
		free = fmt.Sprintf("%s-%d", folder, n)
	}
	if folder = free; len(merged) == 0 {
		folder = ""
	}
	for _, path := range moving.paths() {
		merged.add(filepath.Join(folder, path), moving[path])
	}
	value, err := merged.encode()
	if err != nil {
		return false, err
	}
	empty, err := tree{}.encode()
	if err != nil {
		return false, err
	}
	// A running sweep may read the manifest of to before this write and that of from after it.
	if err := s.protectChunks(ctx, moving); err != nil {
		return false, err
	}
	_, err = s.writeOps(ctx, storage.Put(to, value, target.Revision), storage.Put(from, empty, source.Revision))
	if errors.Is(err, storage.ErrConflict) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("workspace: move %s: %w", strings.TrimPrefix(from, ownerPrefix), err)
	}
	return false, nil
}

func (t tree) has(path string) bool {
	_, ok := t[path]
	return ok
}

// protectChunks gives the chunks of a tree a new revision, so that a running sweep keeps them.
func (s *Store) protectChunks(ctx context.Context, t tree) error {
	var ops []storage.Op
	for name := range t.chunkHashes() {
		ops = append(ops, storage.Put(namePrefix+name, nil, storage.Any))
		if len(ops) == maxBatchChunks {
			if _, err := s.writeOps(ctx, ops...); err != nil {
				return fmt.Errorf("workspace: %w", err)
			}
			ops = nil
		}
	}
	if len(ops) == 0 {
		return nil
	}
	_, err := s.writeOps(ctx, ops...)
	return err
}
