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

// DefaultEvery is the default interval of [Store.Follow].
const DefaultEvery = 2 * time.Second

// SharedFolder is a folder without an owner that people edit on any replica: skills or user
// tools. Names that begin with a dot are ignored. Local changes are stored and stored changes
// are checked out, each file by itself; if both have changed a file, the stored version wins.
// The last stored state is recorded beside the folder, so that changes made while no replica ran
// are found.
type SharedFolder struct {
	s *Store
	f *localFolder
}

// Folder returns a folder by its name, which is also its name on the disk.
func (s *Store) Folder(name string) *SharedFolder {
	return &SharedFolder{s, s.place(folderPrefix+name, filepath.Join(s.cfg.Dir, name))}
}

// LostError names files that were changed here and elsewhere, and whose local changes are lost.
type LostError struct{ Paths []string }

// Error implements error.
func (e *LostError) Error() string {
	return "changed elsewhere at the same time: " + strings.Join(e.Paths, ", ")
}

// Sync makes folder and store equal. A [LostError] means that it succeeded, and which changes
// were lost.
func (d *SharedFolder) Sync(ctx context.Context) (err error) {
	d.f.mu.Lock()
	defer d.f.mu.Unlock()
	if err := os.MkdirAll(d.f.dir, dirMode); err != nil {
		return fmt.Errorf("workspace: make the folder: %w", err)
	}
	root, err := os.OpenRoot(d.f.dir)
	if err != nil {
		return fmt.Errorf("workspace: %w", err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for range maxTries {
		again, err := d.try(ctx, root)
		if !again {
			return err
		}
	}
	return fmt.Errorf("workspace: the folder changes too fast: %w", storage.ErrConflict)
}

func (d *SharedFolder) try(ctx context.Context, root *os.Root) (again bool, err error) {
	base, err := d.base()
	if err != nil {
		return false, err
	}
	value, err := d.s.get(ctx, d.f.key)
	if err != nil {
		return false, err
	}
	stored, err := decode(value.Value)
	if err != nil {
		return false, err
	}
	w, err := d.s.writer(ctx, stored)
	if err != nil {
		return false, err
	}
	here, err := d.read(ctx, root, base, w)
	if err != nil {
		return false, err
	}
	merged, lost := merge(base.tree, here.tree, stored)
	d.f.rev = value.Revision
	if !merged.sameAs(stored) {
		d.f.tried = nil // nothing here matches a tried write
		again, err := d.s.commit(ctx, d.f, w, merged, nil)
		if again || err != nil {
			return again || errors.Is(err, storage.ErrConflict), err
		}
	}
	if !merged.sameAs(here.tree) {
		if err := d.s.applyTree(ctx, root, d.f.dir, here, merged); err != nil {
			return errors.Is(err, errChunkDeleted), err
		}
	}
	if err := d.remember(base.tree, merged); err != nil {
		return false, err
	}
	d.s.know(d.f, d.f.rev, folderDetails{merged, here.stamps})
	if len(lost) > 0 {
		return false, &LostError{lost}
	}
	return false, nil
}

// read scans the folder, and passes new chunks on.
func (d *SharedFolder) read(ctx context.Context, root *os.Root, base folderDetails, w *writer) (scanResult, error) {
	here, err := d.s.scan(root, false)
	if err == nil && here.used > d.s.cfg.Quota {
		err = ErrFull
	}
	if err == nil {
		err = here.read(ctx, root, base, w.put)
	}
	return here, err
}

// marker returns the file that records the last stored state.
func (d *SharedFolder) marker() string {
	return filepath.Join(filepath.Dir(d.f.dir), "."+filepath.Base(d.f.dir)+".stored")
}

// base returns the state in which folder and store were last equal.
func (d *SharedFolder) base() (folderDetails, error) {
	if known, ok := d.s.details.Get(d.f.key); ok {
		return known, nil
	}
	data, err := os.ReadFile(d.marker())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return folderDetails{}, fmt.Errorf("workspace: %w", err)
	}
	t, err := decode(data)
	if err != nil {
		d.s.log.Warn("what was stored last cannot be read: where files differ, those of the store count", "file", d.marker(), "err", err)
	}
	return folderDetails{tree: t}, nil
}

func (d *SharedFolder) remember(base, now tree) error {
	if now.equal(base) {
		return nil
	}
	value, err := now.encode()
	if err != nil {
		return err
	}
	return folder.Replace(d.marker(), value)
}

// Follow keeps folders in sync with the store until ctx ends. It polls at the interval every; 0
// means [DefaultEvery].
func (s *Store) Follow(ctx context.Context, every time.Duration, folders ...*SharedFolder) {
	if every == 0 {
		every = DefaultEvery
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	last := make(map[*SharedFolder]string) // so that a lasting error is logged once
	for {
		for _, d := range folders {
			text := ""
			if err := d.Sync(ctx); err != nil && ctx.Err() == nil {
				text = err.Error()
			}
			if text != "" && text != last[d] {
				s.log.Warn("a folder is not as the store has it", "folder", d.f.dir, "err", text)
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
