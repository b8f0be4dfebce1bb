package telegram

import (
	"context"
	"errors"
	"fmt"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"
)

// Bot is what Telegram says about a token.
type Bot struct {
	// Username is the name of the bot, without an @.
	Username string
	// Webhook says that a webhook is set; Run takes it away.
	Webhook bool
}

// Link returns the page that opens a chat with the bot in which one press sends /start
// with this word.
func (b Bot) Link(word string) string { return "https://t.me/" + b.Username + "?start=" + word }

// Check asks Telegram once who the bot is. The text of an error says what to do and holds
// no secret.
func Check(ctx context.Context, cfg Config) (Bot, error) {
	p, err := New(cfg)
	if err != nil {
		return Bot{}, err
	}
	defer p.api.close()
	var self user
	err = p.api.call(ctx, "getMe", nil, &self)
	switch {
	case wrongToken(err):
		return Bot{}, fmt.Errorf("telegram: the token is refused: check TELEGRAM_BOT_TOKEN: %w", err)
	case err != nil:
		return Bot{}, fmt.Errorf("telegram cannot be reached: check TELEGRAM_API_URL and the network: %w", err)
	case self.Username == "":
		return Bot{}, errors.New("telegram: getMe: the answer names no bot: check TELEGRAM_API_URL")
	}
	var hook struct {
		URL string `json:"url"`
	}
	if err := p.api.call(ctx, "getWebhookInfo", tgbotapi.Params{}, &hook); err != nil {
		return Bot{}, fmt.Errorf("telegram: ask for a webhook: %w", err)
	}
	return Bot{Username: self.Username, Webhook: hook.URL != ""}, nil
}
