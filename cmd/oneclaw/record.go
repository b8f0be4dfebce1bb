package main

import (
	"errors"
	"log/slog"
	"net/http"

	"oneclaw/internal/caller"
	"oneclaw/internal/models"
	"oneclaw/internal/record"
)

// taps see what is exchanged with each service.
type taps interface {
	Tap(service string) caller.Tap
}

// tapPlatforms lets the taps see what platforms exchange.
func (c *Config) tapPlatforms() {
	for name, one := range c.all {
		if p, ok := one.(interface{ Tap(tap caller.Tap) }); ok && c.taps != nil {
			p.Tap(c.taps.Tap(name))
		}
	}
}

// modelClient carries the requests to models.
func (c Config) modelClient() *http.Client {
	client := &http.Client{Transport: models.Transport()}
	if c.taps != nil {
		client.Transport = c.taps.Tap(record.Model).Transport(client.Transport)
	}
	return client
}

// recorded does something with what is exchanged kept in a file, if one is named.
func recorded(path string, cfg Config, log *slog.Logger, do func(Config) error) error {
	if path == "" {
		return do(cfg)
	}
	file, err := record.Create(path, record.MaxFile, log)
	if err != nil {
		return err
	}
	log.Warn("what people write and the bot answers is recorded", "file", path, "at_most", bytesInWords(record.MaxFile))
	cfg.taps = &record.Recorder{Keep: file.Keep, Redact: cfg.redact.Text, Now: cfg.outside.now}
	return errors.Join(do(cfg), file.Close())
}
