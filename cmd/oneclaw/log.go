package main

import (
	"io"
	"log/slog"
	"os"

	"golang.org/x/term"
)

// newLogger logs text on a terminal and JSON elsewhere. Secrets are masked in the
// finished line, wherever in it they stand.
func newLogger(w io.Writer, cfg Config) *slog.Logger {
	var at slog.Leveler = level(cfg.Log.Level)
	if cfg.logLevel != nil {
		at = cfg.logLevel
	}
	options := &slog.HandlerOptions{Level: at}
	format := cfg.Log.Format
	if format == "" {
		format = "json"
		if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
			format = "text"
		}
	}
	w = cfg.redact.Writer(w)
	if format == "text" {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}

func level(name string) slog.Level {
	var l slog.Level
	_ = l.UnmarshalText([]byte(name)) // checked with the settings
	return l
}
