package app

import (
	"context"
	"errors"
	"log/slog"

	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/internal/config"
	"oneclaw/internal/hooks"
	"oneclaw/storage"
)

// openHooks makes the webhooks of chats, whose deliveries are tasks of the bot's bridge.
func (b *Bot) openHooks(cfg config.Config, store storage.KV, log *slog.Logger) error {
	key, err := cfg.Place().SecretKey(context.Background(), store)
	if err != nil {
		return err
	}
	b.hooks, err = hooks.New(hooks.Config{
		Store: store, SecretKey: key, PublicURL: cfg.PublicURL, Redact: cfg.Redact.Text, Now: cfg.Outside.Now, Logger: log,
		Submit: func(ctx context.Context, s bridge.Submission) error { return b.bridge.Submit(ctx, s) },
	})
	return err
}

// both does one thing after the other about what became of a task, also if one fails.
func both(one, other func(context.Context, bridge.TaskResult) error) func(context.Context, bridge.TaskResult) error {
	return func(ctx context.Context, r bridge.TaskResult) error { return errors.Join(one(ctx, r), other(ctx, r)) }
}

// hooksToo moves the webhooks of a chat, too.
func (b *Bot) hooksToo(move func(ctx context.Context, from, to chats.Chat) error) func(ctx context.Context, from, to chats.Chat) error {
	return func(ctx context.Context, from, to chats.Chat) error {
		before, after := chats.Message{Chat: from}.Owner(), chats.Message{Chat: to}.Owner()
		return errors.Join(move(ctx, from, to), b.hooks.Move(ctx, before, after, to))
	}
}
