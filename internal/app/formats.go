package app

import (
	"context"
	"fmt"
	"log/slog"

	"oneclaw/internal/config"
	"oneclaw/internal/database"
	"oneclaw/internal/workspace"
	"oneclaw/storage"
)

// Migrations returns the steps that lead from [database.LowestFormat] to the format of this program.
func Migrations(cfg config.Config) []database.Migration {
	return append([]database.Migration{upgradeTo5}, cfg.Runtime.Migrations...)
}

// dropped are the records of what is gone: all keys under a prefix.
var dropped = []struct{ prefix, what string }{
	{"searches/", "searches that led to tools"},
	{"learning/", "who was told of exports of rated conversations, or said no to them"},
	{"blob/data/", "chunks of files that all folders shared; each has its own"},
	{"blob/name/", "the list of these chunks"},
	{"blob/sweep", "the last sweep of these chunks"},
}

// upgradeTo5 converts what is stored in another form, and deletes the records of what is gone.
func upgradeTo5(ctx context.Context, store storage.Store, log *slog.Logger) error {
	if err := workspace.CopySharedChunks(ctx, store); err != nil {
		return err
	}
	for _, d := range dropped {
		count, err := deleteUnder(ctx, store, d.prefix)
		if err != nil {
			return err
		}
		if count > 0 {
			log.Info("records of what is gone are deleted", "what", d.what, "records", count)
		}
	}
	return nil
}

// deleteUnder deletes all keys under prefix and returns their count.
func deleteUnder(ctx context.Context, store storage.Store, prefix string) (int, error) {
	var keys []string
	for entry, err := range store.List(ctx, storage.Range{Prefix: prefix}) {
		if err != nil {
			return 0, fmt.Errorf("list %s: %w", prefix, err)
		}
		keys = append(keys, entry.Key)
	}
	for _, key := range keys {
		if err := store.Delete(ctx, key, storage.Any); err != nil {
			return 0, fmt.Errorf("delete %s: %w", key, err)
		}
	}
	return len(keys), nil
}
