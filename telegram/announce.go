package telegram

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"oneclaw/bridge/chats"
	"oneclaw/internal/wording"
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

// ListCommands shows the commands in Telegram's menu, and to administrators, in their chats with the
// bot, also those for administrators. From now on these commands need no bot name after them in groups,
// even if the menu cannot be changed.
func (p *platform) ListCommands(ctx context.Context, commands []chats.CommandInfo, admins []string) error {
	names := map[string]bool{}
	all, open := make([]botCommand, 0, len(commands)), make([]botCommand, 0, len(commands))
	for _, c := range commands {
		if !commandName.MatchString(c.Name) {
			return fmt.Errorf("telegram: command %q: want 1 to 32 of a-z, 0-9 and _", c.Name)
		}
		names[c.Name] = true
		all = append(all, botCommand{c.Name, wording.Clip(cmp.Or(strings.TrimSpace(c.Description), c.Name), maxDescription)})
		if !c.Admin {
			open = append(open, all[len(all)-1])
		}
	}
	if len(all) > maxCommands {
		return fmt.Errorf("telegram: %d commands: telegram lists at most %d", len(all), maxCommands)
	}
	p.commands.Store(&names)
	if err := p.setMenu(ctx, open, nil); err != nil {
		return err
	}
	for _, id := range admins {
		chat, err := strconv.ParseInt(id, 10, 64)
		if err != nil {
			continue // an entry that allows all users names no chat
		}
		// An administrator who never wrote to the bot has no chat with it.
		if err := p.setMenu(ctx, all, map[string]any{"type": "chat", "chat_id": chat}); err != nil {
			p.log.Debug("an administrator sees the menu of other users", "user", id, "err", err)
		}
	}
	return nil
}

// setMenu shows a list of commands in a scope, unless it is already shown there.
func (p *platform) setMenu(ctx context.Context, list []botCommand, scope map[string]any) error {
	where := tgbotapi.Params{}
	if scope != nil {
		text, err := json.Marshal(scope)
		if err != nil {
			return fmt.Errorf("telegram: scope of commands: %w", err)
		}
		where["scope"] = string(text)
	}
	var shown []botCommand
	if err := p.api.call(ctx, "getMyCommands", where, &shown); err != nil {
		return err
	}
	if slices.Equal(shown, list) {
		return nil
	}
	body, err := json.Marshal(list)
	if err != nil {
		return fmt.Errorf("telegram: list of commands: %w", err)
	}
	where["commands"] = string(body)
	return p.api.call(ctx, "setMyCommands", where, nil)
}
