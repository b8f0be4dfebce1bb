package config

import (
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/turn"
	"oneclaw/internal/models"
)

// AnswerConfig says what is heard and seen, and how answers are sent.
type AnswerConfig struct {
	outbox.Sizes `yaml:",inline"`
	// Previews has answers shown while they are made.
	Previews     bool `yaml:"previews" env:"ONECLAW_PREVIEWS"`
	turn.Manners `yaml:",inline"`
	// Voice names the model that listens.
	Voice models.VoiceSettings `yaml:"voice"`
	// Steering has what a user writes while the bot is at work on their message reach that
	// work, and be answered with it.
	Steering bool `yaml:"steering" env:"ONECLAW_STEERING"`
}

// Growing masks secrets in an answer that is shown while it is made; nil where none is.
func (c Config) Growing() func(text string) string {
	if !c.Previews {
		return nil
	}
	return c.Redact.Unfinished
}
