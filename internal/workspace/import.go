package workspace

import (
	"context"
	"encoding/hex"
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
	return RemoveAll(filepath.Join(dataDir, notStoredFolder, filepath.Base(OwnerDir(dataDir, owner))))
}

// ForgetStored deletes the stored files of an owner. It must not be called while s keeps files: the next
// Keep would store the local files again.
func (s *Store) ForgetStored(ctx context.Context, owner string) error {
	key := s.owner(owner).key
	keys := []string{key}
	for entry, err := range s.cfg.Store.List(ctx, storage.Range{Prefix: chunksOf(key)}) {
		if err != nil {
			return fmt.Errorf("workspace: list the stored files: %w", err)
		}
		keys = append(keys, entry.Key)
	}
	for _, key := range keys {
		if err := s.cfg.Store.Delete(ctx, key, storage.Any); err != nil {
			return fmt.Errorf("workspace: delete the stored files: %w", err)
		}
	}
	return nil
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
	s.log.Error("files of an owner were not imported: the owner has other files in the store, or too many", "owner", owner, "folder", folder, "err", err)
	return MoveFolder(f.dir, folder, "files")
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
	here, err := s.read(ctx, root, true, folderDetails{}, ignoreChunk)
	if IsFull(err) {
		return false, nil
	}
	for path, e := range here.tree {
		if !e.equal(stored[path]) {
			return false, err
		}
	}
	return err == nil, err
}

// CopySharedChunks gives each folder copies of its chunks where all folders share them, as format 4 of the
// database has them. The caller deletes the shared ones, those under blob/data/.
func CopySharedChunks(ctx context.Context, store storage.Store) error {
	for entry, err := range store.List(ctx, storage.Range{Prefix: prefix}) {
		if err != nil {
			return fmt.Errorf("workspace: list the folders: %w", err)
		}
		t, err := decodeTree(entry.Value)
		if err != nil {
			continue // its owner is told at the next checkout
		}
		f := localFolder{key: entry.Key}
		for hash := range t.chunkHashes() {
			chunk, err := store.Get(ctx, chunkPrefix+"data/"+hex.EncodeToString([]byte(hash)))
			if errors.Is(err, storage.ErrNotFound) {
				continue // an earlier attempt has copied it
			}
			if err == nil {
				_, err = store.Put(ctx, f.chunkKey(hash), chunk.Value, storage.Any)
			}
			if err != nil {
				return fmt.Errorf("workspace: copy the chunks of files: %w", err)
			}
		}
	}
	return nil
}
