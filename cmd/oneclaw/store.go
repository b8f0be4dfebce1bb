package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"

	"oneclaw/bridge/owners"
	"oneclaw/internal/budget"
	"oneclaw/internal/database"
	"oneclaw/internal/settings"
	"oneclaw/storage"
)

// place is where the database is.
func (c DataConfig) place() database.Place {
	return database.Place{Dir: c.DataDir, Address: c.Store, Password: string(c.StorePassword), PasswordFile: c.StorePasswordFile, Secret: string(c.SecretKey)}
}

// openStore opens the database in the newest format.
func openStore(cfg Config, log *slog.Logger) (*database.Store, error) {
	store, err := database.Open(context.Background(), database.Config{Place: cfg.place(), Migrations: cfg.outside.migrations, TTL: cfg.outside.ttl, Logger: log})
	if err == nil && cfg.outside.engine != nil {
		store.Store = cfg.outside.engine(store.Store)
	}
	return store, err
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
		// Format 2 numbered jobs by the clock, format 3 by revisions: whoever reads the records
		// of new jobs has to know that.
		func(context.Context, storage.Store) error { return nil },
	}
}

// sharing is how the bridge shares a store with other replicas; not at all where it is a file.
func sharing(cfg Config, store *database.Store) owners.Sharing {
	if !store.Shared() {
		return owners.Sharing{}
	}
	return owners.Sharing{On: true, Host: hostname(), Version: version, Format: store.Known(), Check: store.Check, TTL: cfg.outside.ttl}
}

// hostname is where this process runs, for people, who do without it where it has no name.
func hostname() string {
	host, _ := os.Hostname()
	return host
}

// openSettings opens what administrators change at run time.
func openSettings(cfg Config, kv storage.KV, log *slog.Logger) (*settings.Settings, *settings.Vault, error) {
	key, err := cfg.place().SecretKey(context.Background(), kv)
	if err != nil {
		return nil, nil, err
	}
	changing, vault, err := settings.Open(settings.Config{
		KV: kv, SecretKey: key, Revealed: func(secret string) { cfg.redact.Add(secret) }, Routings: routings(), Now: cfg.outside.now, Logger: log,
		Agents: []settings.Agent{{ID: "general", Name: "General", Description: "The assistant that everybody starts with", Prompt: prompt}},
		Defaults: map[string]string{
			settings.SettingTimeZone: cmp.Or(cfg.Timezone, hostZone()),
			settings.SettingRouting:  cfg.Tools.Routing,
			settings.SettingLogLevel: cfg.Log.Level,

			settings.SettingUserBudget:  strconv.FormatInt(cfg.Budget.UserTokens, 10),
			settings.SettingTotalBudget: strconv.FormatInt(cfg.Budget.TotalTokens, 10),
		},
		Preset: settings.Preset{
			Type: settings.TypeOpenAI, BaseURL: cfg.Model.BaseURL, Key: string(cfg.Model.APIKey), Model: cfg.Model.Name,
		},
	})
	if err == nil {
		err = vault.Reveal(context.Background())
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read the stored settings: %w", err)
	}
	return changing, vault, nil
}
