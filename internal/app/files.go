package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"oneclaw/bridge/queue"
	"oneclaw/internal/config"
	"oneclaw/internal/database"
	"oneclaw/internal/workspace"
	"oneclaw/storage"
)

// storedFiles are workspaces, skills and user tools that are kept in the store.
type storedFiles struct {
	*workspace.Store
	skills, tools *workspace.SharedFolder
}

// openFiles checks out skills and user tools, and imports older files from the disk into the store. It
// returns nil if files are not kept in the store.
func openFiles(ctx context.Context, cfg config.Config, store storage.Store, log *slog.Logger) (*storedFiles, error) {
	if !cfg.FilesInStore() {
		if err := workspace.ForgetImport(cfg.FilesDir()); err != nil {
			return nil, err
		}
		if unused, err := workspace.HasFiles(ctx, store); err != nil {
			return nil, err
		} else if unused {
			log.Warn("files in the database are not used: set tools.files (ONECLAW_TOOLS_FILES) to store")
		}
		return nil, nil //nolint:nilnil // no files are kept in the store
	}
	kept := workspace.NewStore(workspace.StoreConfig{
		Store: store, Dir: cfg.FilesDir(), Quota: cfg.Tools.WorkspaceMiB << 20, Reserve: cfg.Tools.DiskReserveMiB << 20, Logger: log,
	})
	files := &storedFiles{kept, kept.SharedFolder("skills"), kept.SharedFolder("tools")}
	if err := kept.Import(ctx); err != nil {
		return nil, fmt.Errorf("import files into the store: %w", err)
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

// StoreFiles imports the workspaces, skills and user tools of this disk into the database, which no bot
// serves meanwhile.
func StoreFiles(ctx context.Context, cfg config.Config, log *slog.Logger) error {
	return WithStore(ctx, cfg, log, func(store *database.Store) error {
		return store.RunAlone(ctx, func(ctx context.Context) error {
			if err := workspace.ForgetImport(cfg.FilesDir()); err != nil { // an earlier import may have been into another database
				return err
			}
			_, err := openFiles(ctx, cfg, store, log)
			return err
		})
	})
}

// bridgeFiles returns the files for the bridge; nil if they are only on this disk.
func (f *storedFiles) bridgeFiles() queue.FileStore {
	if f == nil {
		return nil
	}
	return f
}

// run keeps skills and user tools in sync with the store until ctx ends.
func (f *storedFiles) run(ctx context.Context) error {
	if f != nil {
		f.Follow(ctx, 0, f.skills, f.tools)
	}
	return nil
}

// toolSync returns the function that user tools call before and after a change; nil if they are not kept
// in the store.
func (f *storedFiles) toolSync() func(context.Context) error {
	if f == nil {
		return nil
	}
	return f.tools.Sync
}
