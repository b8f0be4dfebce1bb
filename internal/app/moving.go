package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"oneclaw/internal/config"
	"oneclaw/internal/database"
	"oneclaw/internal/moving"
	"oneclaw/toolgroups/memory"
	"oneclaw/toolgroups/schedule"
)

// TakeOver takes over what another bot had, while no bot runs with the database, and returns a line for each
// thing. A dry run changes nothing, and needs no database. The caller sets For and DryRun of mover;
// TakeOver sets the other fields.
func TakeOver(ctx context.Context, cfg config.Config, mover moving.Mover, found *moving.Found) (lines []moving.Line, err error) {
	log := slog.New(slog.DiscardHandler)
	if process, yes := runningProcess(ctx, cfg); yes {
		return nil, fmt.Errorf("OneClaw runs with %s (process %d): stop it first", cfg.DataDir, process)
	}
	take := func(store *database.Store) error {
		return store.RunAlone(ctx, func(ctx context.Context) (err error) {
			lines, err = takeOver(ctx, cfg, store, mover, found, log)
			return err
		})
	}
	if !mover.DryRun {
		err = WithStore(ctx, cfg, log, take)
		return lines, err
	}
	exists := false
	err = database.View(ctx, cfg.Place(), func(store *database.Store) error {
		exists = true
		return take(store)
	})
	if err != nil || exists {
		return lines, err
	}
	empty, err := os.MkdirTemp("", "oneclaw-import-")
	if err != nil {
		return nil, fmt.Errorf("import: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(empty)) }()
	place := cfg
	place.DataDir, place.Store = empty, ""
	err = WithStore(ctx, place, log, take)
	return lines, err
}

// takeOver takes over what was found, into an open store.
func takeOver(ctx context.Context, cfg config.Config, store *database.Store, mover moving.Mover, found *moving.Found, log *slog.Logger) (_ []moving.Line, err error) {
	if !mover.DryRun {
		files, err := openFiles(ctx, cfg, store, log)
		if err != nil {
			return nil, err
		}
		if files != nil {
			defer func() { err = errors.Join(err, files.skills.Sync(ctx)) }()
		}
	}
	if mover.Settings, _, err = openSettings(cfg, store, make([]byte, 32), log); err != nil { // keys are neither read nor written
		return nil, err
	}
	mover.Store, mover.Now, mover.SkillsDir = store, cfg.Runtime.Now, filepath.Join(cfg.FilesDir(), "skills")
	if mover.Memory, err = memory.New(memory.Config{Store: store, Now: cfg.Runtime.Now, Logger: log}); err != nil {
		return nil, err
	}
	if mover.Schedule, err = schedule.New(schedule.Config{Store: store, Submit: submitNothing, Location: zoneOf(mover.Settings, cfg.Zone()), Now: cfg.Runtime.Now, Logger: log}); err != nil {
		return nil, err
	}
	return mover.Take(ctx, found)
}

// submitNothing refuses runs: no schedule runs during an import.
func submitNothing(context.Context, schedule.Run) error { return errors.New("an import runs nothing") }
