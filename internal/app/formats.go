package app

import (
	"context"
	"fmt"
	"log/slog"

	"oneclaw/internal/config"
	"oneclaw/internal/database"
	"oneclaw/storage"
)

// Migrations returns the steps that lead from [database.LowestFormat] to the format of this program.
func Migrations(cfg config.Config) []database.Migration {
	return append([]database.Migration{dropLearned}, cfg.Runtime.Migrations...)
}

// dropLearned deletes the records of what is gone: searches that led to tools, and who was told of exports of
// rated conversations or said no to them.
func dropLearned(ctx context.Context, store storage.Store, log *slog.Logger) error {
	dropped := 0
	for _, prefix := range []string{"searches/", "learning/"} {
		var keys []string
		for entry, err := range store.List(ctx, storage.Range{Prefix: prefix}) {
			if err != nil {
				return fmt.Errorf("list %s: %w", prefix, err)
			}
			keys = append(keys, entry.Key)
		}
		for _, key := range keys {
			if err := store.Delete(ctx, key, storage.Any); err != nil {
				return fmt.Errorf("delete %s: %w", key, err)
			}
		}
		dropped += len(keys)
	}
	log.Info("records of learned searches and of exports are gone", "records", dropped)
	return nil
}
