package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"oneclaw/bridge/queue"
	"oneclaw/internal/config"
	"oneclaw/internal/workspace"
	"oneclaw/storage"
)

// keptFiles are files that are kept in the store.
type keptFiles struct {
	*workspace.Store
	skills, tools *workspace.SharedFolder
}

// openFiles checks out skills and user tools, and imports into the store what the disk has from
// earlier. It returns nil if files are not kept in the store.
func openFiles(ctx context.Context, cfg config.Config, store storage.Store, log *slog.Logger) (*keptFiles, error) {
	if !cfg.FilesStored() {
		if unused, err := workspace.Any(ctx, store); err != nil {
			return nil, err
		} else if unused {
			log.Warn("files in the database are not used: set tools.files (ONECLAW_TOOLS_FILES) to store")
		}
		return nil, nil //nolint:nilnil // there are none
	}
	kept := workspace.NewStore(workspace.StoreConfig{
		Store: store, Dir: cfg.FilesDir(), Quota: cfg.Tools.WorkspaceMiB << 20, Reserve: cfg.Tools.DiskReserveMiB << 20, Logger: log,
	})
	files := &keptFiles{kept, kept.Folder("skills"), kept.Folder("tools")}
	if err := kept.Import(ctx); err != nil {
		return nil, fmt.Errorf("store files: %w", err)
	}
	for _, folder := range []*workspace.SharedFolder{files.skills, files.tools} {
		err := folder.Sync(ctx)
		if lost, ok := errors.AsType[*workspace.LostError](err); ok {
			log.Warn("files of skills or user tools were replaced", "err", lost)
		} else if err != nil {
			return nil, fmt.Errorf("skills and user tools: %w", err)
		}
	}
	return files, nil
}

// hook returns the files for the bridge; nil if they are only on this disk.
func (f *keptFiles) hook() queue.Files {
	if f == nil {
		return nil
	}
	return f
}

// run keeps skills and user tools in sync with the store until ctx ends.
func (f *keptFiles) run(ctx context.Context) error {
	if f != nil {
		f.Follow(ctx, 0, f.skills, f.tools)
	}
	return nil
}

// syncTools returns the function for user tools to call around a change; nil if no other process
// has them.
func (f *keptFiles) syncTools() func(context.Context) error {
	if f == nil {
		return nil
	}
	return f.tools.Sync
}
