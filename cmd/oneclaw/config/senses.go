package config

import (
	"log/slog"
	"net/http"

	"oneclaw/agent"
	"oneclaw/internal/voice"
	"oneclaw/toolgroups"
)

// ChatConfig says what is heard, seen and shown in chats.
type ChatConfig struct {
	// MaxParts bounds the messages of one answer; a longer one goes as a file.
	MaxParts int `yaml:"max_parts" env:"ONECLAW_MAX_PARTS"`
	// PictureTokens bounds the pictures that are sent again with each request.
	PictureTokens int `yaml:"picture_tokens" env:"ONECLAW_PICTURE_TOKENS"`
	// Voice names the model that listens.
	Voice voice.Settings `yaml:"voice"`
}

// Listener listens for a bot with these settings.
func (c Config) Listener(through *http.Client, charge func(toolgroups.Scope, agent.Model, string) agent.Model, log *slog.Logger) (*voice.Listener, error) {
	return voice.New(voice.Config{
		Settings: c.Voice, BaseURL: c.Model.BaseURL, APIKey: string(c.Model.APIKey), HTTP: through, Charge: charge, Logger: log,
	})
}
