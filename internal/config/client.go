package config

import (
	"net/http"

	"oneclaw/internal/models"
)

// ModelClient returns the HTTP client for requests to models, which sends the headers of the settings.
func (c Config) ModelClient() *http.Client {
	return &http.Client{Transport: c.Model.Headers.Transport(c.Model.BaseURL, models.NewTransport())}
}
