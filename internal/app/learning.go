package app

import (
	"context"
	"log/slog"

	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/turn"
	"oneclaw/internal/config"
	"oneclaw/internal/learning"
	"oneclaw/storage"
)

// Exporter returns the exporter of conversations with feedback.
func Exporter(cfg config.Config, store storage.Store, log *slog.Logger) learning.Exporter {
	return learning.Exporter{Store: store, Redact: cfg.Redact.Text, Money: cfg.Money(), WindowTokens: turn.DefaultWindowTokens, Log: log, Now: cfg.Outside.Now}
}

// learns returns the functions that tell users about exports, if the settings allow exports.
func (b *Bot) learns(cfg config.Config, log *slog.Logger) (judged func(context.Context, chats.Chat) (string, func(context.Context) error, error), commands []bridge.Command) {
	if !cfg.ExportJudged {
		return nil, nil
	}
	b.cases = Exporter(cfg, b.store, log)
	consent := learning.Consent{Store: b.store, Now: cfg.Outside.Now}
	return consent.Judged, consent.Commands()
}
