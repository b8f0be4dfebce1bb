package telegram

import (
	"context"
	"errors"
	"fmt"
)

// Bot describes the bot of a token.
type Bot struct {
	// Username is the name of the bot, without an @.
	Username string
	// WebhookURL is the address of the current webhook; empty if there is none.
	WebhookURL string
	// PostError is why Telegram's last post failed, if updates are waiting.
	PostError string
	// PrivacyMode is set if, in groups, the bot only receives messages that address it.
	PrivacyMode bool
}

// StartLink returns the address of a page on which one press sends the bot /start with this word.
func (b Bot) StartLink(word string) string { return "https://t.me/" + b.Username + "?start=" + word }

// Check asks Telegram once for the identity and the webhook of the bot. Its errors tell the operator what
// to do.
func Check(ctx context.Context, cfg Config) (Bot, error) {
	p, err := New(cfg)
	if err != nil {
		return Bot{}, err
	}
	defer p.api.Close()
	self, err := p.api.whoAmI(ctx)
	if err != nil {
		return Bot{}, err
	}
	hook, err := p.api.getWebhook(ctx)
	if err != nil {
		return Bot{}, fmt.Errorf("telegram: get the webhook: %w", err)
	}
	return Bot{Username: self.Username, WebhookURL: hook.URL, PostError: hook.postError(), PrivacyMode: !self.ReadsAll}, nil
}

// whoAmI asks Telegram for the identity of the bot. The text of an error tells the operator what to do.
func (c *client) whoAmI(ctx context.Context) (self user, err error) {
	err = c.call(ctx, "getMe", nil, &self)
	switch {
	case isTokenError(err):
		err = fmt.Errorf("telegram: the token is refused: check TELEGRAM_BOT_TOKEN: %w", err)
	case err != nil:
		err = fmt.Errorf("telegram cannot be reached: check TELEGRAM_API_URL and the network: %w", err)
	case self.ID == 0 || self.Username == "":
		err = errors.New("telegram: getMe: the answer names no bot: check TELEGRAM_API_URL")
	}
	return self, err
}

// webhookInfo describes a webhook.
type webhookInfo struct {
	URL       string `json:"url"`
	Pending   int    `json:"pending_update_count"`
	LastError string `json:"last_error_message"`
	ErrorDate int64  `json:"last_error_date"`
}

// postError returns why updates wait, if they do.
func (w webhookInfo) postError() string {
	if w.Pending == 0 {
		return ""
	}
	return w.LastError
}

// getWebhook returns the current webhook of the bot.
func (c *client) getWebhook(ctx context.Context) (info webhookInfo, err error) {
	err = c.call(ctx, "getWebhookInfo", nil, &info)
	return info, err
}
