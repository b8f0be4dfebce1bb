package main

import (
	"errors"
	"log/slog"

	"oneclaw/cmd/oneclaw/config"
	"oneclaw/internal/record"
)

// recorded does something with what is exchanged kept in a file, if one is named.
func recorded(path string, cfg config.Config, log *slog.Logger, do func(config.Config) error) error {
	if path == "" {
		return do(cfg)
	}
	file, err := record.Create(path, record.MaxFile, log)
	if err != nil {
		return err
	}
	log.Warn("what people write and the bot answers is recorded", "file", path, "at_most", bytesInWords(record.MaxFile))
	cfg.Taps = &record.Recorder{Keep: file.Keep, Redact: cfg.Redact.Text, Now: cfg.Outside.Now}
	return errors.Join(do(cfg), file.Close())
}
