package config

import (
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/turn"
	"oneclaw/internal/models"
)

// AnswerConfig configures what the bot reads, and how answers are sent.
type AnswerConfig struct {
	outbox.AnswerLimits `yaml:",inline"`
	// Previews shows answers while they are being generated.
	Previews     bool `yaml:"previews" env:"ONECLAW_PREVIEWS"`
	turn.Options `yaml:",inline"`
	// Voice names the transcription model.
	Voice models.VoiceSettings `yaml:"voice"`
	// Steering passes messages that a user writes during a turn on to it; they are answered
	// together.
	Steering bool `yaml:"steering" env:"ONECLAW_STEERING"`
}

// Growing returns the function that masks secrets in previews; nil without previews.
func (c Config) Growing() func(text string) string {
	if !c.Previews {
		return nil
	}
	return c.Redact.Unfinished
}
