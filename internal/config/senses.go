package config

import (
	"log/slog"
	"net/http"

	"oneclaw/agent"
	"oneclaw/internal/models"
	"oneclaw/toolgroups"
)

// Listener listens for a bot with these settings.
func (c Config) Listener(through *http.Client, charge func(toolgroups.Scope, agent.Model, string) agent.Model, log *slog.Logger) (*models.Listener, error) {
	return models.NewListener(models.ListenerConfig{
		Settings: c.Voice, BaseURL: c.Model.BaseURL, APIKey: string(c.Model.APIKey), HTTP: through, Charge: charge, Logger: log,
	})
}
