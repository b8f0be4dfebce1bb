package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"

	"oneclaw/bridge/queue"
	"oneclaw/internal/config"
	"oneclaw/internal/database"
	"oneclaw/internal/settings"
	"oneclaw/storage"
)

// OpenStore opens the database and upgrades it to the newest format. The end of ctx interrupts that.
func OpenStore(ctx context.Context, cfg config.Config, log *slog.Logger) (*database.Store, error) {
	store, err := database.Open(ctx, database.Config{Place: cfg.Place(), Migrations: Migrations(cfg), TTL: cfg.Runtime.ReplicaTTL, Logger: log})
	if err == nil && cfg.Runtime.WrapStore != nil {
		store.Store = cfg.Runtime.WrapStore(store.Store)
	}
	return store, err
}

// WithStore opens the database for the duration of do.
func WithStore(ctx context.Context, cfg config.Config, log *slog.Logger, do func(*database.Store) error) error {
	store, err := OpenStore(ctx, cfg, log)
	if err != nil {
		return err
	}
	return errors.Join(do(store), store.Close())
}

// sharingConfig configures how the bridge shares a store with other replicas; zero for a file.
func sharingConfig(cfg config.Config, store *database.Store) queue.Sharing {
	if !store.Shared() {
		return queue.Sharing{}
	}
	return queue.Sharing{Enabled: true, Host: Hostname(), Version: cfg.Runtime.Version, Format: store.NewestKnown(), Check: store.CheckFormat, TTL: cfg.Runtime.ReplicaTTL}
}

// Hostname returns the host's name for display, or "" if it is unknown.
func Hostname() string {
	host, _ := os.Hostname()
	return host
}

// OpenSettings opens the settings that administrators change at run time.
func OpenSettings(cfg config.Config, kv storage.KV, log *slog.Logger) (*settings.Settings, *settings.Vault, error) {
	key, err := cfg.Place().SecretKey(context.Background(), kv)
	if err != nil {
		return nil, nil, err
	}
	return openSettings(cfg, kv, key, log)
}

// openSettings is OpenSettings with a key.
func openSettings(cfg config.Config, kv storage.KV, key []byte, log *slog.Logger) (*settings.Settings, *settings.Vault, error) {
	changing, vault, err := settings.Open(settings.Config{
		KV: kv, SecretKey: key, OnSecret: func(secret string) { cfg.Redact.Add(secret) }, Routings: config.Routings(), Now: cfg.Runtime.Now, Logger: log,
		Agents: []settings.Agent{{ID: "general", Name: "General", Description: "The assistant that everybody starts with", Prompt: prompt}},
		Defaults: map[string]string{
			settings.SettingTimeZone: cmp.Or(cfg.Timezone, HostZone()),
			settings.SettingRouting:  cfg.Tools.Routing,
			settings.SettingLogLevel: cfg.Log.Level,

			settings.SettingUserBudget:  strconv.FormatInt(cfg.Budget.UserTokens, 10),
			settings.SettingTotalBudget: strconv.FormatInt(cfg.Budget.TotalTokens, 10),
		},
		Preset: settings.Preset{
			Type: settings.TypeOpenAI, BaseURL: cfg.Model.BaseURL, Key: string(cfg.Model.APIKey), LacksKey: cfg.Model.LacksKey(), Model: cfg.Model.Name,
		},
	})
	if err == nil {
		err = vault.ReportSecrets(context.Background())
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read the stored settings: %w", err)
	}
	return changing, vault, nil
}
