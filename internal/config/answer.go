package config

import (
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/turn"
	"oneclaw/internal/models"
)

// AnswerConfig configures which messages the bot reads, and how answers are sent.
type AnswerConfig struct {
	outbox.AnswerLimits `yaml:",inline"`
	// Previews shows answers while they are being generated.
	Previews     bool `yaml:"previews" env:"ONECLAW_PREVIEWS"`
	turn.Options `yaml:",inline"`
	// Voice configures the transcription model.
	Voice models.VoiceSettings `yaml:"voice"`
	// Speech configures the model that speaks answers.
	Speech models.SpeechSettings `yaml:"speech"`
	// Steering passes messages that a user sends during a turn to that turn, which answers all of them
	// together.
	Steering bool `yaml:"steering" env:"ONECLAW_STEERING"`
}

// PreviewRedactor returns the function that masks secrets in previews; nil if previews are disabled.
func (c Config) PreviewRedactor() func(text string) string {
	if !c.Previews {
		return nil
	}
	return c.Redact.MaskUnfinished
}
