package config

import (
	"net/http"

	"oneclaw/internal/models"
	"oneclaw/internal/record"
	"oneclaw/internal/retry"
)

// tapper returns a tap for each service, which records the requests to that service.
type tapper interface {
	Tap(service string) retry.Tap
}

// TapPlatforms gives each platform its tap, if requests are recorded.
func (c *Config) TapPlatforms() {
	for name, one := range c.All {
		if p, ok := one.(interface{ Tap(tap retry.Tap) }); ok && c.Taps != nil {
			p.Tap(c.Taps.Tap(name))
		}
	}
}

// ModelClient returns the HTTP client for requests to models.
func (c Config) ModelClient() *http.Client {
	// A recording has no headers of the settings, which may be secrets.
	client := &http.Client{Transport: c.Model.Headers.Transport(c.Model.BaseURL, models.NewTransport())}
	if c.Taps != nil {
		client.Transport = c.Taps.Tap(record.ModelService).Transport(client.Transport)
	}
	return client
}
