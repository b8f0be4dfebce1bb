package cli

import (
	"io"
	"log/slog"
	"os"
	"time"

	"golang.org/x/term"

	"oneclaw/internal/config"
)

// NewLogger returns a logger that by default writes text to a terminal and JSON elsewhere. Secrets are
// masked anywhere in the finished line.
func NewLogger(w io.Writer, cfg config.Config) *slog.Logger {
	var at slog.Leveler = config.ParseLevel(cfg.Log.Level)
	if cfg.LogLevel != nil {
		at = cfg.LogLevel
	}
	options := &slog.HandlerOptions{Level: at}
	format := cfg.Log.Format
	if format == "" {
		format = "json"
		if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
			format = "text"
		}
	}
	w = cfg.Redact.Writer(w)
	if format == "text" {
		return slog.New(cfg.Errors.WrapHandler(slog.NewTextHandler(w, options)))
	}
	options.ReplaceAttr = readableDuration
	return slog.New(cfg.Errors.WrapHandler(slog.NewJSONHandler(w, options)))
}

// readableDuration formats durations as text (1.5s) instead of nanoseconds.
func readableDuration(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().Round(time.Millisecond).String())
	}
	return a
}
