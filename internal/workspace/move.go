package workspace

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"oneclaw/storage"
)

// Move moves the files of one owner to another atomically. If that one has files, it gets the
// new ones in a folder. Without files it does nothing.
func (s *Store) Move(ctx context.Context, from, to, folder string) error {
	for _, owner := range []string{from, to} {
		// Include files that are only here, from before they were stored.
		if err := s.Prepare(ctx, owner); err != nil {
			return err
		}
		if err := s.Keep(ctx, owner); err != nil {
			return err
		}
	}
	for range maxTries {
		again, err := s.tryMove(ctx, ownerPrefix+from, ownerPrefix+to, folder)
		if !again {
			return errors.Join(err, s.Prepare(ctx, from))
		}
	}
	return fmt.Errorf("workspace: the files change too fast: %w", storage.ErrConflict)
}

func (s *Store) tryMove(ctx context.Context, from, to, folder string) (again bool, err error) {
	source, err := s.get(ctx, from)
	if err != nil {
		return false, err
	}
	target, err := s.get(ctx, to)
	if err != nil {
		return false, err
	}
	moving, err := decode(source.Value)
	if err != nil || len(moving) == 0 {
		return false, err
	}
	merged, err := decode(target.Value)
	if err != nil {
		return false, err
	}
	if len(merged) == 0 {
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
	// A sweep may have read one manifest before this and read the other after it.
	if err := s.touch(ctx, moving); err != nil {
		return false, err
	}
	_, err = s.write(ctx, storage.Put(to, value, target.Revision), storage.Put(from, empty, source.Revision))
	if errors.Is(err, storage.ErrConflict) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("workspace: move %s: %w", strings.TrimPrefix(from, ownerPrefix), err)
	}
	return false, nil
}

// touch keeps a running sweep from deleting the chunks of a tree.
func (s *Store) touch(ctx context.Context, t tree) error {
	var ops []storage.Op
	for name := range t.chunks() {
		ops = append(ops, storage.Put(namePrefix+name, nil, storage.Any))
		if len(ops) == batchBlobs {
			if _, err := s.write(ctx, ops...); err != nil {
				return fmt.Errorf("workspace: %w", err)
			}
			ops = nil
		}
	}
	if len(ops) == 0 {
		return nil
	}
	_, err := s.write(ctx, ops...)
	return err
}
