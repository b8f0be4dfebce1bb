package bridge

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/queue"
	"oneclaw/internal/wording"
	"oneclaw/toolgroups"
)

// Bounds of a [chats.Welcome].
const (
	maxPrompts  = 4
	maxApproved = 10 // listed calls
)

// strangerWelcome is the text for users who may not talk to the bot.
const strangerWelcome = "I do not know you yet. Write to me under Messages, and I will ask whether I may talk to you."

// Welcome implements [chats.Welcomer]. It shows the answers of some commands.
func (b *Bridge) Welcome(ctx context.Context, m chats.Message) (chats.Welcome, error) {
	if err := b.AwaitReady(ctx); err != nil {
		return chats.Welcome{}, fmt.Errorf("welcome: %w", err)
	}
	role := b.people.Role(m.SenderID())
	if role == toolgroups.RoleStranger {
		return chats.Welcome{Sections: []chats.Section{{Title: "Hello", Text: strangerWelcome}}}, nil
	}
	var w chats.Welcome
	groups := slices.DeleteFunc(b.cfg.Turns.Tools().Groups(), func(g toolgroups.Group) bool { return len(g.Tools) == 0 || role < g.Role })
	var can strings.Builder
	for _, g := range groups {
		fmt.Fprintf(&can, "- **%s** – %s\n", wording.EscapeMarkdown(interact.GroupLabel(g)), interact.DescribeGroup(g))
		if len(w.Prompts) < maxPrompts {
			named := interact.GroupLabel(g)
			if g.Source != toolgroups.SourceBuiltin {
				named = g.Name // a server may have worded the label, and the message is a person's own
			}
			w.Prompts = append(w.Prompts, chats.Prompt{Title: interact.GroupLabel(g), Message: "What can you do for me with " + named + "?"})
		}
	}
	if can.Len() > 0 {
		w.Sections = append(w.Sections, chats.Section{Title: "What I can do for you", Text: can.String()})
	}
	j := &queue.Run{Job: queue.Job{Message: m}}
	for _, s := range []struct{ title, command string }{{"Your accounts", "connect"}, {"Usage and budget", "usage"}} {
		at := slices.IndexFunc(b.cfg.Commands, func(c Command) bool { return c.Name == s.command && c.Run != nil })
		if at < 0 {
			continue
		}
		text, err := b.commands.wrap(b.cfg.Commands[at]).Run(ctx, j, "")
		if err != nil {
			return chats.Welcome{}, fmt.Errorf("welcome: /%s: %w", s.command, err)
		}
		w.Sections = append(w.Sections, chats.Section{Title: s.title, Text: b.commands.formatCommands(m.Chat.Platform, text)})
	}
	waiting, err := b.waitingApprovals(ctx, m.SenderID())
	if err != nil {
		return chats.Welcome{}, err
	}
	w.Sections = append(w.Sections, chats.Section{Title: "Waiting for your decision", Text: waiting})
	if b.cfg.Redact != nil {
		for i := range w.Sections {
			w.Sections[i].Text = b.cfg.Redact(w.Sections[i].Text)
		}
	}
	return w, nil
}

// waitingApprovals returns a list of a user's calls that wait for approval.
func (b *Bridge) waitingApprovals(ctx context.Context, user string) (string, error) {
	var list []string
	for kept, err := range b.cards.AllOpen(ctx) {
		if err != nil {
			return "", fmt.Errorf("welcome: %w", err)
		}
		if line, ok := interact.WaitingLine(kept, user); ok && len(list) < maxApproved {
			list = append(list, line)
		}
	}
	if len(list) == 0 {
		return "Nothing waits.", nil
	}
	return strings.Join(list, "\n"), nil
}

var _ chats.Welcomer = (*Bridge)(nil)
