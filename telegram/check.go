package telegram

import (
	"context"
	"errors"
	"fmt"
)

// bot describes the bot of a token.
type bot struct {
	// username is the name of the bot, without an @.
	username string
	// webhookURL is the address of the current webhook; empty if there is none.
	webhookURL string
	// postError is why Telegram's last post failed, if updates are waiting.
	postError string
	// privacyMode is set if, in groups, the bot only receives messages that address it.
	privacyMode bool
}

// startLink returns the address of a page on which one press sends the bot /start with this word.
func (b bot) startLink(word string) string { return "https://t.me/" + b.username + "?start=" + word }

// check asks Telegram once for the identity and the webhook of the bot. Its errors tell the operator what
// to do.
func check(ctx context.Context, cfg config) (bot, error) {
	p, err := newPlatform(cfg)
	if err != nil {
		return bot{}, err
	}
	defer p.api.Close()
	self, err := p.api.whoAmI(ctx)
	if err != nil {
		return bot{}, err
	}
	hook, err := p.api.getWebhook(ctx)
	if err != nil {
		return bot{}, fmt.Errorf("telegram: get the webhook: %w", err)
	}
	return bot{username: self.Username, webhookURL: hook.URL, postError: hook.postError(), privacyMode: !self.ReadsAll}, nil
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
