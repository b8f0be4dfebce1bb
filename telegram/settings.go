package telegram

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"

	"oneclaw/bridge/chats"
	"oneclaw/internal/doctor"
	"oneclaw/internal/redact"
	"oneclaw/internal/retry"
	"oneclaw/storage"
)

// Settings connect a Telegram bot. The rest of the program knows nothing else about Telegram.
type Settings struct {
	// Token is the bot's token from BotFather. It is required.
	Token redact.Secret `yaml:"token" env:"TELEGRAM_BOT_TOKEN"`
	// APIURL is the address of the Bot API server: methods are at
	// <url>/bot<token>/<method>, files at <url>/file/bot<token>/<path>. Empty means
	// [defaultAPIURL].
	APIURL string `yaml:"api_url" env:"TELEGRAM_API_URL"`
	// Webhook makes Telegram post the updates to [platform.Events] instead of being polled, so that any
	// number of processes can receive. It needs a public address.
	Webhook bool `yaml:"webhook" env:"ONECLAW_TELEGRAM_WEBHOOK"`

	tap    retry.Tap
	public string
}

// Publish sets the public address of the bot; empty for none.
func (s *Settings) Publish(address string) { s.public = strings.TrimRight(address, "/") }

// Tap sets a tap on the traffic with Telegram.
func (s *Settings) Tap(tap retry.Tap) { s.tap = tap }

// Default sets the defaults.
func (s *Settings) Default() { s.APIURL = defaultAPIURL }

// Missing returns what to set so that the bot serves Telegram; empty if the token is set.
func (s *Settings) Missing() string {
	if s.Token != "" {
		return ""
	}
	return "set TELEGRAM_BOT_TOKEN to the token that @BotFather gave you"
}

// Validate rejects a webhook address that Telegram does not post to. A self-hosted Bot API server may
// do without TLS.
func (s *Settings) Validate() error {
	secure := strings.HasPrefix(s.public, "https://")
	if s.Webhook && !secure && (s.public == "" || cmp.Or(s.APIURL, defaultAPIURL) == defaultAPIURL) {
		return errors.New("setting telegram.webhook (ONECLAW_TELEGRAM_WEBHOOK): Telegram posts to https addresses alone: set public_url (ONECLAW_PUBLIC_URL) to where the bot is reached, such as https://bot.example.com")
	}
	return nil
}

// Open returns the platform. It stores in kv which albums and long texts are for the bot.
func (s *Settings) Open(kv storage.KV, log *slog.Logger) (chats.Platform, error) {
	return newPlatform(config{Settings: *s, kv: kv, logger: log})
}

// Doctor asks Telegram for the identity and the webhook of the bot.
func (s *Settings) Doctor(ctx context.Context) *doctor.Finding {
	self, err := check(ctx, config{Settings: *s})
	switch {
	case err != nil:
		return doctor.FailError(err)
	case s.Webhook:
		return s.doctorWebhook(self)
	case self.webhookURL != "":
		return doctor.Warn("@%s has a webhook, which oneclaw run removes: stop what set it, or give the bot a token of its own", self.username)
	}
	if self.privacyMode {
		return doctor.OK("@%s, with privacy mode: in groups it gets mentions, replies and commands alone, unless it is an administrator", self.username)
	}
	return doctor.OK("@%s", self.username)
}

// doctorWebhook reports whether Telegram posts the updates here, and delivers them.
func (s *Settings) doctorWebhook(self bot) *doctor.Finding {
	switch {
	case self.webhookURL == "":
		return doctor.OK("@%s: its webhook is set when oneclaw run starts", self.username)
	case self.webhookURL != s.public+hookPath:
		return doctor.Warn("@%s has another webhook, which oneclaw run replaces: stop what set it, or give the bot a token of its own", self.username)
	case self.postError != "":
		return doctor.Warn("Telegram could not post the last time to %s: %s. Look at what stands in front of the bot there", s.public+hookPath, self.postError)
	}
	return doctor.OK("@%s: Telegram posts to %s", self.username, s.public+hookPath)
}

// Link returns a function that makes links to claim the bot; nil if its name is not known.
func (s *Settings) Link(ctx context.Context, log *slog.Logger) func(code string) string {
	self, err := check(ctx, config{Settings: *s, logger: log})
	if err != nil {
		return nil // the platform reports the error itself
	}
	return self.startLink
}

// Questions returns the question for the token of a bot.
func (s *Settings) Questions() []doctor.Question {
	return []doctor.Question{{
		Explanation: "Write to @BotFather in Telegram, send /newbot, and copy the token that it gives you.",
		Prompt:      "Telegram token", Key: "token",
		Check: func(ctx context.Context, token string) (string, error) {
			s.Token = redact.Secret(token)
			self, err := check(ctx, config{Settings: *s})
			switch {
			case !tokenPattern.MatchString(token):
				err = errors.New("that is not a token: want digits, a colon, and letters, as @BotFather shows it")
			case isTokenError(err):
				err = errors.New("Telegram does not know this token: copy the whole line from @BotFather, who shows it again after /token") //nolint:staticcheck // It begins with a name.
			}
			return "This is @" + self.username + ".", err
		},
	}}
}
