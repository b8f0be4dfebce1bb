package app

import (
	"context"
	"log/slog"
	"time"

	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/turn"
	"oneclaw/internal/config"
	"oneclaw/internal/learning"
	"oneclaw/storage"
)

// Exporter returns the exporter of conversations with feedback.
func Exporter(cfg config.Config, store storage.Store, log *slog.Logger) learning.Exporter {
	return learning.Exporter{Store: store, Redact: cfg.Redact.Text, Price: cfg.PriceLookup(), WindowTokens: turn.DefaultWindowTokens, Log: log, Now: cfg.Runtime.Now}
}

// consentHooks returns the notice about exports and the commands for it; nil if exports are not allowed.
func (b *Bot) consentHooks(cfg config.Config, log *slog.Logger) (judged func(context.Context, chats.Chat, time.Time) (string, func(context.Context) error, error), commands []bridge.Command) {
	if !cfg.ExportJudged {
		return nil, nil
	}
	b.exporter = Exporter(cfg, b.store, log)
	consent := learning.Consent{Store: b.store, Now: cfg.Runtime.Now}
	return consent.FeedbackNotice, consent.Commands()
}
