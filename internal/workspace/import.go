package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"oneclaw/storage"
	"oneclaw/storage/folder"
)

const (
	// importMarker marks a disk whose old files are stored.
	importMarker = ".files.stored"
	// notStoredFolder is the folder for files that could not be stored.
	notStoredFolder = "workspaces-not-stored"
)

// Import stores the files on this disk from a time before files were kept in the store. It does
// so once per disk, before any other use of s. If an owner already has other files in the store,
// or more than the limits allow, the files are moved beside the workspaces, for the operator.
func (s *Store) Import(ctx context.Context) error {
	done := filepath.Join(s.cfg.Dir, importMarker)
	if _, err := os.Stat(done); err == nil {
		return nil
	}
	names, err := os.ReadDir(filepath.Dir(Folder(s.cfg.Dir, "any")))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("workspace: import: %w", err)
	}
	if len(names) > 0 {
		s.log.Info("the files of all owners are put into the store", "owners", len(names))
	}
	for _, name := range names {
		owner, err := url.PathUnescape(name.Name())
		if err != nil || Folder(s.cfg.Dir, owner) != filepath.Join(s.cfg.Dir, "workspaces", name.Name()) || !name.IsDir() {
			continue // not ours
		}
		if err := s.importOne(ctx, owner); err != nil {
			return err
		}
	}
	if err := folder.Replace(done, nil); err != nil {
		return fmt.Errorf("workspace: import: %w", err)
	}
	return nil
}

// Any reports whether a store has files.
func Any(ctx context.Context, kv storage.KV) (bool, error) {
	for _, err := range kv.List(ctx, storage.Range{Prefix: prefix, Limit: 1}) {
		return err == nil, err
	}
	return false, nil
}

func (s *Store) importOne(ctx context.Context, owner string) error {
	f := s.owner(owner)
	stored, err := s.get(ctx, f.key)
	if err != nil {
		return err
	}
	if len(stored.Value) == 0 {
		if err = s.Prepare(ctx, owner); err == nil {
			err = s.Keep(ctx, owner)
		}
		if !NoRoom(err) {
			return err
		}
	}
	folder := filepath.Join(s.cfg.Dir, notStoredFolder)
	if err := os.MkdirAll(folder, dirMode); err != nil {
		return fmt.Errorf("workspace: import: %w", err)
	}
	folder = filepath.Join(folder, filepath.Base(f.dir))
	s.log.Error("files of an owner are not stored: they have others in the store, or too many", "owner", owner, "folder", folder, "err", err)
	if err := os.Rename(f.dir, folder); err != nil {
		return fmt.Errorf("workspace: import: %w", err)
	}
	return nil
}
