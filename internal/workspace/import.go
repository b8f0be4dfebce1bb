package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"oneclaw/storage"
	"oneclaw/storage/folder"
)

const (
	// importMarker is the file that marks a disk whose files have been imported.
	importMarker = ".files.stored"
	// notStoredFolder is the folder for files that could not be stored.
	notStoredFolder = "workspaces-not-stored"
)

// Import stores the files on this disk that are not in the store yet. It does so once per disk until
// [ForgetImport], and must be called before any other use of s. If an owner already has other files in
// the store, or more than the limits allow, the local files are moved beside the workspaces, for the
// operator.
func (s *Store) Import(ctx context.Context) error {
	done := filepath.Join(s.cfg.Dir, importMarker)
	if _, err := os.Stat(done); err == nil {
		return nil
	}
	names, err := os.ReadDir(filepath.Dir(OwnerDir(s.cfg.Dir, "any")))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("workspace: import: %w", err)
	}
	if len(names) > 0 {
		s.log.Info("importing the files of all owners into the store", "owners", len(names))
	}
	for _, name := range names {
		owner, err := url.PathUnescape(name.Name())
		if err != nil || OwnerDir(s.cfg.Dir, owner) != filepath.Join(s.cfg.Dir, "workspaces", name.Name()) || !name.IsDir() {
			continue // not a workspace
		}
		if err := s.importOwner(ctx, owner); err != nil {
			return err
		}
	}
	if err := folder.Replace(done, nil); err != nil {
		return fmt.Errorf("workspace: import: %w", err)
	}
	return nil
}

// ForgetImport makes the next [Store.Import] look at the files in a folder again. The program calls it
// when it keeps files on disk alone, because no store then has their changes.
func ForgetImport(dir string) error {
	if err := os.Remove(filepath.Join(dir, importMarker)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("workspace: forget the import: %w", err)
	}
	return nil
}

// HasFiles reports whether a store has files.
func HasFiles(ctx context.Context, kv storage.KV) (bool, error) {
	for _, err := range kv.List(ctx, storage.Range{Prefix: prefix, Limit: 1}) {
		return err == nil, err
	}
	return false, nil
}

// ForgetNotStored deletes the files of an owner that an import has moved aside in a data directory.
func ForgetNotStored(dataDir, owner string) error {
	parent, name := filepath.Join(dataDir, notStoredFolder), filepath.Base(OwnerDir(dataDir, owner))
	all, err := os.ReadDir(parent)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("workspace: %w", err)
	}
	for _, one := range all {
		// The name may be followed by a hyphen and a number; see importOwner.
		number, ok := strings.CutPrefix(one.Name(), name)
		if ok && (number == "" || number[0] == '-' && strings.Trim(number[1:], "0123456789") == "") {
			err = errors.Join(err, RemoveAll(filepath.Join(parent, one.Name())))
		}
	}
	return err
}

// ForgetStored deletes the stored files of an owner. It must not be called while s keeps files: the next
// Keep would store the local files again.
func (s *Store) ForgetStored(ctx context.Context, owner string) error {
	if err := s.cfg.Store.Delete(ctx, ownerPrefix+owner, storage.Any); err != nil {
		return fmt.Errorf("workspace: delete the stored files: %w", err)
	}
	return s.SweepAll(ctx)
}

func (s *Store) importOwner(ctx context.Context, owner string) error {
	f := s.owner(owner)
	stored, err := s.getEntry(ctx, f.key)
	if err != nil {
		return err
	}
	if len(stored.Value) == 0 {
		if err = s.Prepare(ctx, owner); err == nil {
			err = s.Keep(ctx, owner)
		}
		if !IsFull(err) {
			return err
		}
	} else if same, err := s.isStored(ctx, f, stored.Value); same || err != nil {
		return err
	}
	parent := filepath.Join(s.cfg.Dir, notStoredFolder)
	if err := os.MkdirAll(parent, dirMode); err != nil {
		return fmt.Errorf("workspace: import: %w", err)
	}
	folder := filepath.Join(parent, filepath.Base(f.dir))
	if _, err := os.Lstat(folder); err == nil { // left by an earlier import
		if parent, err = os.MkdirTemp(parent, filepath.Base(f.dir)+"-"); err != nil {
			return fmt.Errorf("workspace: import: %w", err)
		}
		folder = filepath.Join(parent, "files")
	}
	s.log.Error("files of an owner were not imported: the owner has other files in the store, or too many", "owner", owner, "folder", folder, "err", err)
	if err := os.Rename(f.dir, folder); err != nil {
		return fmt.Errorf("workspace: import: %w", err)
	}
	return nil
}

// isStored reports whether a manifest has all that is in a folder.
func (s *Store) isStored(ctx context.Context, f *localFolder, manifest []byte) (_ bool, err error) {
	stored, err := decodeTree(manifest)
	if err != nil {
		return false, err
	}
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return false, fmt.Errorf("workspace: import: %w", err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	here, err := s.scan(root, true)
	if err == nil {
		err = here.readChunks(ctx, root, folderDetails{}, ignoreChunk)
	}
	if errors.Is(err, ErrUncounted) || errors.Is(err, ErrTooMany) {
		return false, nil
	}
	for path, e := range here.tree {
		if !e.equalIgnoringTime(stored[path]) {
			return false, err
		}
	}
	return err == nil, err
}
