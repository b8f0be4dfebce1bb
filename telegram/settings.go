package telegram

import (
	"context"
	"log/slog"

	"oneclaw/bridge/chats"
	"oneclaw/internal/doctor"
	"oneclaw/internal/redact"
	"oneclaw/storage"
)

// Settings connect a Telegram bot, and are all that the program knows about Telegram.
type Settings struct {
	// Token is the bot's token from BotFather. It is required.
	Token redact.Secret `yaml:"token" env:"TELEGRAM_BOT_TOKEN"`
	// APIURL is the address of the Bot API server: methods are at
	// <url>/bot<token>/<method>, files at <url>/file/bot<token>/<path>. Empty means
	// [DefaultAPIURL].
	APIURL string `yaml:"api_url" env:"TELEGRAM_API_URL"`
}

// Default sets what has a default.
func (s *Settings) Default() { s.APIURL = DefaultAPIURL }

// Missing says what to set for Telegram; it is empty where the bot serves Telegram.
func (s *Settings) Missing() string {
	if s.Token != "" {
		return ""
	}
	return "set TELEGRAM_BOT_TOKEN to the token that @BotFather gave you"
}

// Validate refuses settings that do not fit together: there are none.
func (s *Settings) Validate() error { return nil }

// Open makes the platform. It keeps nothing.
func (s *Settings) Open(_ storage.KV, log *slog.Logger) (chats.Platform, error) {
	return New(Config{Settings: *s, Logger: log})
}

// Doctor asks Telegram who the bot is.
func (s *Settings) Doctor(ctx context.Context) *doctor.Finding {
	self, err := Check(ctx, Config{Settings: *s})
	switch {
	case err != nil:
		return doctor.Fail("%v", err)
	case self.Webhook:
		return doctor.Warn("@%s has a webhook, which oneclaw run removes: stop what set it, or give the bot a token of its own", self.Username)
	}
	if self.Private {
		return doctor.OK("@%s, with privacy mode: in groups it gets mentions, replies and commands alone, unless it is an administrator", self.Username)
	}
	return doctor.OK("@%s", self.Username)
}

// Link returns what makes links that claim the bot; nil where nobody says who it is.
func (s *Settings) Link(ctx context.Context, log *slog.Logger) func(code string) string {
	self, err := Check(ctx, Config{Settings: *s, Logger: log})
	if err != nil {
		return nil // the platform says so itself
	}
	return self.Link
}

// Question is what setup asks: an explanation, what to enter, and the key of the answer.
func (s *Settings) Question() (explanation, what, key string) {
	return "Write to @BotFather in Telegram, send /newbot, and copy the token that it gives you.", "Telegram token", "token"
}

// Answer takes a token that Telegram accepts, and says whose it is.
func (s *Settings) Answer(ctx context.Context, token string) (string, error) {
	s.Token = redact.Secret(token)
	self, err := Check(ctx, Config{Settings: *s})
	return "This is @" + self.Username + ".", err
}
