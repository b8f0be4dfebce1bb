package config

import (
	"log/slog"
	"net/http"

	"oneclaw/agent"
	"oneclaw/internal/voice"
	"oneclaw/toolgroups"
)

// Listener listens for a bot with these settings.
func (c Config) Listener(through *http.Client, charge func(toolgroups.Scope, agent.Model, string) agent.Model, log *slog.Logger) (*voice.Listener, error) {
	return voice.New(voice.Config{
		Settings: c.Voice, BaseURL: c.Model.BaseURL, APIKey: string(c.Model.APIKey), HTTP: through, Charge: charge, Logger: log,
	})
}
