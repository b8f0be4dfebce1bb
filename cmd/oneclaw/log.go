package main

import (
	"io"
	"log/slog"
	"os"
	"strings"

	"golang.org/x/term"
)

// newLogger logs text on a terminal and JSON elsewhere, and never a secret.
func newLogger(w io.Writer, cfg Config) *slog.Logger {
	var at slog.Leveler = level(cfg.Log.Level)
	if cfg.logLevel != nil {
		at = cfg.logLevel
	}
	options := &slog.HandlerOptions{Level: at, ReplaceAttr: redactor(cfg.secrets())}
	format := cfg.Log.Format
	if format == "" {
		format = "json"
		if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
			format = "text"
		}
	}
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

// redactor replaces the secrets in everything that is logged.
func redactor(secrets []string) func([]string, slog.Attr) slog.Attr {
	if len(secrets) == 0 {
		return nil
	}
	var pairs []string
	for _, s := range secrets {
		pairs = append(pairs, s, "••••")
	}
	replacer := strings.NewReplacer(pairs...)
	return func(_ []string, a slog.Attr) slog.Attr {
		switch a.Value.Kind() {
		case slog.KindString:
			a.Value = slog.StringValue(replacer.Replace(a.Value.String()))
		case slog.KindAny:
			if err, ok := a.Value.Any().(error); ok {
				a.Value = slog.StringValue(replacer.Replace(err.Error()))
			}
		}
		return a
	}
}
