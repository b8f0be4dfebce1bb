package main

import (
	"context"
	"errors"
	"log/slog"

	"oneclaw/internal/budget"
	"oneclaw/internal/database"
	"oneclaw/storage"
)

// openStore opens the database of the data directory, in the newest format.
func openStore(cfg Config, log *slog.Logger) (*database.Store, error) {
	return database.Open(database.Config{Dir: cfg.DataDir, Migrations: cfg.outside.migrations, Logger: log})
}

// withStore opens it for as long as do takes.
func withStore(cfg Config, log *slog.Logger, do func(*database.Store) error) error {
	store, err := openStore(cfg, log)
	if err != nil {
		return err
	}
	return errors.Join(do(store), store.Close())
}

// migrations are all steps, from format n to n+1. They are only ever added to.
func migrations() []database.Migration {
	return []database.Migration{
		// Format 0 has no record of its format; nothing else is different.
		func(context.Context, storage.Store) error { return nil },
		// Format 1 kept the accounts of a day in a journal, format 2 each under a key.
		budget.Migrate,
	}
}
