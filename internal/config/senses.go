package config

import (
	"log/slog"
	"net/http"

	"oneclaw/agent"
	"oneclaw/internal/models"
	"oneclaw/toolgroups"
)

// Transcriber returns the client that transcribes recordings, or nil if no model is set.
func (c Config) Transcriber(through *http.Client, charge func(toolgroups.Scope, agent.Model, string) agent.Model, log *slog.Logger) (*models.Transcriber, error) {
	return models.NewTranscriber(c.Voice, models.MediaConfig{BaseURL: c.Model.BaseURL, APIKey: string(c.Model.APIKey), HTTPClient: through, Logger: log}, charge)
}

// ImageMaker returns the maker of pictures, or nil if no model is set.
func (c Config) ImageMaker(found *models.Models, log *slog.Logger) (*models.ImageMaker, error) {
	return models.NewImageMaker(c.Images, c.media(found, log))
}

// Speaker returns the speaker of answers, which is silent if no model is set.
func (c Config) Speaker(found *models.Models, log *slog.Logger) (*models.Speaker, error) {
	return models.NewSpeaker(c.Speech, c.media(found, log), found.Settings.Chats)
}

func (c Config) media(found *models.Models, log *slog.Logger) models.MediaConfig {
	return models.MediaConfig{BaseURL: c.Model.BaseURL, APIKey: string(c.Model.APIKey), HTTPClient: found.HTTPClient, Ledger: found.Ledger, Payer: found.Payer, Logger: log}
}
