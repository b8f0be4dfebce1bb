package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"oneclaw/bridge/jobs"
	"oneclaw/internal/blobs"
	"oneclaw/storage"
)

// The values of tools.files, besides a folder.
const (
	filesLocal = "local"
	filesStore = "store"
)

// filesDir holds the workspaces, skills and user tools.
func (c Config) filesDir() string {
	if filepath.IsAbs(c.Tools.Files) {
		return c.Tools.Files
	}
	return c.DataDir
}

// filesStored reports whether what is there is only checked out, and kept in the store.
func (c Config) filesStored() bool {
	return c.Tools.Files == filesStore || c.Tools.Files == "" && c.Store.Shared()
}

// checkFiles refuses what is no place for files.
func (c Config) checkFiles() error {
	if f := c.Tools.Files; f != "" && f != filesLocal && f != filesStore && !filepath.IsAbs(f) {
		return fmt.Errorf("setting tools.files (ONECLAW_TOOLS_FILES): %q is neither %q, %q nor the absolute path of a folder", f, filesLocal, filesStore)
	}
	return nil
}

// keptFiles are the files that are kept in the store.
type keptFiles struct {
	*blobs.Store
	skills, tools *blobs.Folder
}

// openFiles brings skills and user tools to this disk, and into the store what the disk has of
// former times. It returns nil where files are not kept in the store.
func openFiles(ctx context.Context, cfg Config, store storage.Store, log *slog.Logger) (*keptFiles, error) {
	if !cfg.filesStored() {
		if unused, err := blobs.Any(ctx, store); err != nil {
			return nil, err
		} else if unused {
			log.Warn("there are files in the database that nobody gets: set tools.files (ONECLAW_TOOLS_FILES) to store")
		}
		return nil, nil //nolint:nilnil // there are none
	}
	kept := blobs.New(blobs.Config{
		Store: store, Dir: cfg.filesDir(), Quota: cfg.Tools.WorkspaceMiB << 20, Reserve: cfg.Tools.DiskReserveMiB << 20, Logger: log,
	})
	files := &keptFiles{kept, kept.Folder("skills"), kept.Folder("tools")}
	if err := kept.Import(ctx); err != nil {
		return nil, fmt.Errorf("store files: %w", err)
	}
	for _, folder := range []*blobs.Folder{files.skills, files.tools} {
		err := folder.Sync(ctx)
		if lost, ok := errors.AsType[*blobs.LostError](err); ok {
			log.Warn("files of skills or user tools were replaced", "err", lost)
		} else if err != nil {
			return nil, fmt.Errorf("skills and user tools: %w", err)
		}
	}
	return files, nil
}

// hook is what the bridge uses; nil where files are on this disk alone.
func (f *keptFiles) hook() jobs.Files {
	if f == nil {
		return nil
	}
	return f
}

// run keeps skills and user tools as the store has them until ctx ends.
func (f *keptFiles) run(ctx context.Context) error {
	if f != nil {
		f.Follow(ctx, 0, f.skills, f.tools)
	}
	return nil
}

// syncTools is what user tools call around a change; nil where nobody else has them.
func (f *keptFiles) syncTools() func(context.Context) error {
	if f == nil {
		return nil
	}
	return f.tools.Sync
}
