package app

import (
	"context"
	"errors"
	"log/slog"

	"oneclaw/bridge"
	"oneclaw/internal/config"
	"oneclaw/internal/hooks"
	"oneclaw/storage"
)

// openHooks creates the webhooks of chats, which submit their deliveries to the bridge as tasks.
func (b *Bot) openHooks(cfg config.Config, store storage.KV, log *slog.Logger) error {
	key, err := cfg.Place().SecretKey(context.Background(), store)
	if err != nil {
		return err
	}
	b.hooks, err = hooks.New(hooks.Config{
		Store: store, SecretKey: key, PublicURL: cfg.PublicURL, ApprovalHosts: cfg.ApprovalHosts, Redact: cfg.Redact.Text, Now: cfg.Runtime.Now, Logger: log,
		ForgetFiles: func(ctx context.Context, owner string) error { return b.forgetFiles(ctx, cfg, owner) },
		Submit:      func(ctx context.Context, s bridge.Submission) error { return b.bridge.Submit(ctx, s) },
	})
	return err
}

// callBoth returns a function that calls both functions, the second even if the first fails.
func callBoth(one, other func(context.Context, bridge.TaskResult) error) func(context.Context, bridge.TaskResult) error {
	return func(ctx context.Context, r bridge.TaskResult) error { return errors.Join(one(ctx, r), other(ctx, r)) }
}
