package config

import "oneclaw/internal/models"

// AnswerConfig says what is heard and seen, and how answers are sent.
type AnswerConfig struct {
	// MaxParts bounds the messages of one answer; a longer one goes as a file.
	MaxParts int `yaml:"max_parts" env:"ONECLAW_MAX_PARTS"`
	// Previews has answers shown while they are made.
	Previews bool `yaml:"previews" env:"ONECLAW_PREVIEWS"`
	// PictureTokens bounds the pictures that are sent again with each request.
	PictureTokens int `yaml:"picture_tokens" env:"ONECLAW_PICTURE_TOKENS"`
	// Voice names the model that listens.
	Voice models.VoiceSettings `yaml:"voice"`
	// Steering has what a user writes while the bot is at work on their message reach that
	// work, and be answered with it.
	Steering bool `yaml:"steering" env:"ONECLAW_STEERING"`
	// Reactions has messages that wait for their turn bear the reaction 👀.
	Reactions bool `yaml:"reactions" env:"ONECLAW_REACTIONS"`
}

// Growing masks secrets in an answer that is shown while it is made; nil where none is.
func (c Config) Growing() func(text string) string {
	if !c.Previews {
		return nil
	}
	return c.Redact.Unfinished
}
