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
	// Webhook is the address of the present webhook; empty if there is none.
	Webhook string
	// Undelivered is why Telegram's last post failed, while updates wait.
	Undelivered string
	// Private says that privacy mode is on: in groups the bot only receives what is addressed to it.
	Private bool
}

// Link returns a page on which one press sends the bot /start with this word.
func (b Bot) Link(word string) string { return "https://t.me/" + b.Username + "?start=" + word }

// Check asks Telegram once who the bot is. The text of an error says what to do.
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
	hook, err := p.api.webhook(ctx)
	if err != nil {
		return Bot{}, fmt.Errorf("telegram: ask for a webhook: %w", err)
	}
	return Bot{Username: self.Username, Webhook: hook.URL, Undelivered: hook.undelivered(), Private: !self.ReadsAll}, nil
}

// whoAmI asks Telegram who the bot is. The text of an error says what to do.
func (c *client) whoAmI(ctx context.Context) (self user, err error) {
	err = c.call(ctx, "getMe", nil, &self)
	switch {
	case wrongToken(err):
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
	Error     string `json:"last_error_message"`
	ErrorDate int64  `json:"last_error_date"`
}

// undelivered returns why updates wait, if they do.
func (w webhookInfo) undelivered() string {
	if w.Pending == 0 {
		return ""
	}
	return w.Error
}

// webhook returns the present webhook of this bot.
func (c *client) webhook(ctx context.Context) (info webhookInfo, err error) {
	err = c.call(ctx, "getWebhookInfo", nil, &info)
	return info, err
}
