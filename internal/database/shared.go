package database

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"

	"oneclaw/internal/transfer"
	"oneclaw/storage/bolt"
	"oneclaw/storage/postgres"
)

// connect opens the tables of a server.
func (p Place) connect(ctx context.Context, log *slog.Logger) (*postgres.Store, error) {
	return postgres.Open(ctx, postgres.Config{URL: string(p.Address), Password: p.Password, PasswordFile: p.PasswordFile, Logger: log})
}

// openShared opens the database of a server. Of those that start together one brings it to
// the newest format.
func openShared(ctx context.Context, cfg Config) (*Store, error) {
	store, err := cfg.connect(ctx, cfg.Logger)
	if err != nil {
		return nil, err
	}
	err = transfer.Check(ctx, store)
	if err == nil {
		err = store.Alone(ctx, func(ctx context.Context) error {
			backup := func() (string, error) { return keepShared(ctx, store, filepath.Join(cfg.Dir, Name)) }
			return upgrade(ctx, store, cfg.Migrations, backup, cfg.Logger)
		})
	}
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return &Store{store}, nil
}

// keepShared backs the database of a server up that is about to get a new format.
func keepShared(ctx context.Context, store *postgres.Store, path string) (string, error) {
	return keepAs(path, "before-update", func(name string) error {
		file, err := bolt.Open(bolt.Config{Path: name})
		if err != nil {
			return err
		}
		_, err = transfer.Move(ctx, store, file, nil)
		return errors.Join(err, file.Close())
	})
}
