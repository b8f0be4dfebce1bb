package config

import (
	"net/http"

	"oneclaw/internal/models"
	"oneclaw/internal/record"
	"oneclaw/internal/retry"
)

// taps record the requests to each service.
type taps interface {
	Tap(service string) retry.Tap
}

// TapPlatforms connects the taps with the platforms.
func (c *Config) TapPlatforms() {
	for name, one := range c.All {
		if p, ok := one.(interface{ Tap(tap retry.Tap) }); ok && c.Taps != nil {
			p.Tap(c.Taps.Tap(name))
		}
	}
}

// ModelClient returns the client for requests to models.
func (c Config) ModelClient() *http.Client {
	client := &http.Client{Transport: models.Transport()}
	if c.Taps != nil {
		client.Transport = c.Taps.Tap(record.Model).Transport(client.Transport)
	}
	return client
}
