package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"oneclaw/storage"
	"oneclaw/storage/folder"
)

// DefaultFollowInterval is the default interval of [Store.Follow].
const DefaultFollowInterval = 2 * time.Second

// SharedFolder is a folder without an owner that people edit on any replica: skills or user
// tools. Names that begin with a dot are ignored. Local changes are stored and stored changes
// are checked out, file by file. If a file has changed in both places, the stored version wins. A
// file beside the folder records the last synchronized state, so that changes made while no
// replica runs are found.
type SharedFolder struct {
	store *Store
	local *localFolder
}

// SharedFolder returns a shared folder by its name. The name on disk is the same.
func (s *Store) SharedFolder(name string) *SharedFolder {
	return &SharedFolder{s, s.folderAt(folderPrefix+name, filepath.Join(s.cfg.Dir, name))}
}

// LostError lists files that were changed here and elsewhere, and whose local changes are lost.
type LostError struct{ Paths []string }

// Error implements error.
func (e *LostError) Error() string {
	return "changed elsewhere at the same time: " + strings.Join(e.Paths, ", ")
}

// Sync synchronizes the folder with the store. A [LostError] means that it succeeded, but that local
// changes were lost.
func (d *SharedFolder) Sync(ctx context.Context) (err error) {
	d.local.mu.Lock()
	defer d.local.mu.Unlock()
	if err := os.MkdirAll(d.local.dir, dirMode); err != nil {
		return fmt.Errorf("workspace: make the folder: %w", err)
	}
	root, err := os.OpenRoot(d.local.dir)
	if err != nil {
		return fmt.Errorf("workspace: %w", err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for range maxAttempts {
		again, err := d.trySync(ctx, root)
		if !again {
			return err
		}
	}
	return fmt.Errorf("workspace: the folder changes too fast: %w", storage.ErrConflict)
}

func (d *SharedFolder) trySync(ctx context.Context, root *os.Root) (again bool, err error) {
	s, f := d.store, d.local
	base, err := d.lastSynced()
	if err != nil {
		return false, err
	}
	synced := base.tree
	value, err := s.getEntry(ctx, f.key)
	if err != nil {
		return false, err
	}
	if value.Revision == storage.Absent {
		base = folderDetails{} // of another store: nothing was deleted in this one
	}
	stored, err := decodeTree(value.Value)
	if err != nil {
		return false, err
	}
	f.revision = value.Revision
	u := s.newUpload(f, stored)
	here, err := s.read(ctx, root, false, base, u.put)
	if err != nil {
		return errors.Is(err, storage.ErrConflict), err
	}
	merged, lost := mergeTrees(base.tree, here.tree, stored)
	if !merged.equal(u.stored) {
		if err := u.write(ctx, merged, nil); err != nil {
			return errors.Is(err, storage.ErrConflict), err
		}
	}
	if !merged.equal(here.tree) {
		if err := s.applyTree(ctx, root, f, here, merged); err != nil {
			return errors.Is(err, errChunkDeleted), err
		}
	}
	if err := d.recordSynced(synced, merged); err != nil {
		return false, err
	}
	s.setDetails(f, f.revision, folderDetails{merged, here.stamps})
	if len(lost) > 0 {
		return false, &LostError{lost}
	}
	return false, nil
}

// markerPath returns the path of the file that records the last synchronized state.
func (d *SharedFolder) markerPath() string {
	return filepath.Join(filepath.Dir(d.local.dir), "."+filepath.Base(d.local.dir)+".stored")
}

// lastSynced returns the last synchronized state.
func (d *SharedFolder) lastSynced() (folderDetails, error) {
	if known, ok := d.store.details.Get(d.local.key); ok {
		return known, nil
	}
	data, err := os.ReadFile(d.markerPath())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return folderDetails{}, fmt.Errorf("workspace: %w", err)
	}
	t, err := decodeTree(data)
	if err != nil {
		d.store.log.Warn("cannot decode the last synchronized state: where files differ, the stored version wins", "file", d.markerPath(), "err", err)
	}
	return folderDetails{tree: t}, nil
}

func (d *SharedFolder) recordSynced(base, now tree) error {
	if now.equal(base) {
		return nil
	}
	value, err := now.encode()
	if err != nil {
		return err
	}
	return folder.Replace(d.markerPath(), value)
}

// Follow keeps folders in sync with the store until ctx ends. It synchronizes them at an interval of
// every. 0 means [DefaultFollowInterval].
func (s *Store) Follow(ctx context.Context, every time.Duration, folders ...*SharedFolder) {
	if every == 0 {
		every = DefaultFollowInterval
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	last := make(map[*SharedFolder]string) // last errors, so that a lasting error is logged once
	for {
		for _, d := range folders {
			text := ""
			if err := d.Sync(ctx); err != nil && ctx.Err() == nil {
				text = err.Error()
			}
			if text != "" && text != last[d] {
				s.log.Warn("cannot synchronize a folder with the store", "folder", d.local.dir, "err", text)
			}
			last[d] = text
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
