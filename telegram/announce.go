package telegram

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"oneclaw/bridge/chats"
	"oneclaw/internal/runes"
)

// Limits of setMyCommands (core.telegram.org/bots/api#botcommand).
const (
	maxCommands    = 100
	maxDescription = 256
)

var commandName = regexp.MustCompile(`^[a-z0-9_]{1,32}$`)

type botCommand struct {
	Command     string `json:"command"`
	Description string `json:"description"`
}

// ListCommands shows the commands in Telegram's menu. From now on they count as the bot's in
// groups without its name behind them, also where the menu cannot be changed.
func (p *Platform) ListCommands(ctx context.Context, commands []chats.CommandInfo) error {
	names := map[string]bool{}
	list := make([]botCommand, 0, len(commands))
	for _, c := range commands {
		if !commandName.MatchString(c.Name) {
			return fmt.Errorf("telegram: command %q: want 1 to 32 of a-z, 0-9 and _", c.Name)
		}
		names[c.Name] = true
		list = append(list, botCommand{c.Name, runes.Clip(cmp.Or(strings.TrimSpace(c.Description), c.Name), maxDescription)})
	}
	if len(list) > maxCommands {
		return fmt.Errorf("telegram: %d commands: telegram lists at most %d", len(list), maxCommands)
	}
	p.commands.Store(&names)
	var shown []botCommand
	if err := p.api.call(ctx, "getMyCommands", nil, &shown); err != nil {
		return err
	}
	if slices.Equal(shown, list) {
		return nil
	}
	body, err := json.Marshal(list)
	if err != nil {
		return fmt.Errorf("telegram: list of commands: %w", err)
	}
	return p.api.call(ctx, "setMyCommands", tgbotapi.Params{"commands": string(body)}, nil)
}
