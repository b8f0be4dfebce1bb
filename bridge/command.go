package bridge

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge/cards"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
	"oneclaw/bridge/sessions"
	"oneclaw/bridge/why"
	"oneclaw/bridge/wording"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// Command is a command that another part of the program brings.
type Command struct {
	chats.CommandInfo
	// Role is the least role of who may give it. The zero value asks for nothing.
	Role toolgroups.Role
	// Ask, where it is set, is called instead of Run: the answer is a card. Where the
	// platform has no buttons its text goes out without them.
	Ask func(ctx context.Context, call CommandCall) (cards.Card, error)
	// Run answers in Markdown. An error is retried, for what the person did wrong the
	// answer says so.
	Run func(ctx context.Context, call CommandCall) (string, error)
}

// CommandCall is a command that somebody gave.
type CommandCall struct {
	toolgroups.Scope
	// UserName is what the platform calls who sent it.
	UserName string
	// Args is what stands behind the command.
	Args string
}

// bring makes a command of one that another part of the program brings.
func (b *Bridge) bring(c Command) jobs.Command {
	return jobs.Command{CommandInfo: c.CommandInfo, Run: func(ctx context.Context, j *jobs.Job, args string) (string, error) {
		scope, err := b.scopeOf(ctx, j)
		if err != nil {
			return "", err
		}
		if scope.Role < c.Role {
			return fmt.Sprintf("Sorry, /%s is for my administrators.", c.Name), nil
		}
		call := CommandCall{Scope: scope, UserName: j.Message.UserName, Args: args}
		if c.Ask == nil {
			return c.Run(ctx, call)
		}
		card, err := c.Ask(ctx, call)
		if err != nil {
			return "", err
		}
		return b.desk.Answer(ctx, j, card)
	}}
}

// commandTable lists the commands in the order in which platforms show them.
func (b *Bridge) commandTable() []jobs.Command {
	own := func(name, description string, run func(context.Context, *Bridge, *jobs.Job, string) (string, error)) jobs.Command {
		return jobs.Command{
			CommandInfo: chats.CommandInfo{Name: name, Description: description},
			Run:         func(ctx context.Context, j *jobs.Job, args string) (string, error) { return run(ctx, b, j, args) },
		}
	}
	table := []jobs.Command{
		own("help", "What I can do and which commands there are", help),
		{CommandInfo: chats.CommandInfo{Name: "clear", Description: "Close this conversation and unload its tools; I can still find it when I search"}, Run: b.stops.clear},
		{CommandInfo: chats.CommandInfo{Name: "new", Description: "Begin a new conversation; does the same as clear"}, Run: b.stops.clear},
		{CommandInfo: chats.CommandInfo{Name: stopName, Description: "Stop what I am doing and drop waiting messages"}, Run: b.stops.stop},
		own("status", "What is going on in this chat", status),
		{CommandInfo: chats.CommandInfo{Name: "tools", Description: "Tool groups, and which are loaded here"}, Run: b.panel.Command},
		{CommandInfo: chats.CommandInfo{Name: "why", Description: "What became of the last message here, and why"}, Run: why.Explainer{
			Store: b.store, Explains: func(j *jobs.Job) bool { return b.kinds.of(j).explained }, Admin: b.isAdmin,
			Answering: func(chat chats.Chat, key string) bool {
				l := b.lanes.Of(chat)
				defer b.lanes.Leave(l)
				return l.Answers(key)
			},
		}.Explain},
		own("start", "Hello", help),
	}
	table[len(table)-1].Hidden = true
	table = append(table, b.people.Commands()...)
	for _, c := range b.cfg.Commands {
		table = append(table, b.bring(c))
	}
	return table
}

func help(_ context.Context, b *Bridge, j *jobs.Job, _ string) (string, error) {
	var text strings.Builder
	text.WriteString("I answer what you write to me, and I have tools to get things done. " +
		"I load the ones I need as we go.\n\n")
	if !j.Message.Direct {
		text.WriteString("Here I answer when I am mentioned or replied to.\n\n")
	}
	for _, c := range b.commands.infos() {
		fmt.Fprintf(&text, "- /%s – %s\n", c.Name, c.Description)
	}
	return text.String(), nil
}

// isAdmin reports whether a message is of an administrator.
func (b *Bridge) isAdmin(m chats.Message) bool { return b.role(m) >= toolgroups.RoleAdmin }

func status(ctx context.Context, b *Bridge, j *jobs.Job, _ string) (string, error) {
	session, err := sessions.Current(ctx, b.store, j.Message.Chat)
	if err != nil {
		return "", err
	}
	groups, err := sessions.LoadedGroups(ctx, b.store, session.Log())
	if err != nil {
		return "", err
	}
	said, err := b.said(ctx, session.Log())
	if err != nil {
		return "", err
	}
	l := b.lanes.Of(j.Message.Chat)
	defer b.lanes.Leave(l)
	waiting, running := l.Load()
	state := "I am idle here."
	if held := l.Held(); held != nil {
		state = fmt.Sprintf("I wait for a decision about %s%s: see the buttons above. /stop ends that.",
			wording.ListOr(held.Tools, "a tool"), behind(waiting))
	} else if running {
		state = "I am working on an answer" + behind(waiting) + "."
	} else if l.Queues() {
		state = "I am busy in other chats: " + wording.Count(waiting, "message waits here for its turn", "messages wait here for their turn") + "."
	}
	text := fmt.Sprintf("%s\n\n- Messages in this conversation: %s\n- Tool groups loaded: %s\n- Running since: %s",
		state, said, wording.ListOr(groups, "none"), b.begun.UTC().Format(time.RFC1123))
	if err := b.Health(); err != nil && b.isAdmin(j.Message) {
		text += "\n- Trouble: " + strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	return text, nil
}

// maxCounted bounds the records of a conversation that are counted.
const maxCounted = 1000

// said says how many messages people wrote in a conversation, as far as they are counted.
func (b *Bridge) said(ctx context.Context, log string) (string, error) {
	n, oldest := 0, storage.Position(1)
	for record, err := range b.store.Records(ctx, log, storage.Query{Backward: true, Limit: maxCounted}) {
		if err != nil {
			return "", fmt.Errorf("read %s: %w", log, err)
		}
		oldest = record.Pos
		if m, err := sessions.Decode(log, record); err == nil && m.Role == agent.RoleUser {
			n++
		}
	}
	if oldest > 1 {
		return fmt.Sprintf("more than %d", n), nil
	}
	return strconv.Itoa(n), nil
}

// behind says how many messages wait for what is being done.
func behind(waiting int) string {
	if waiting == 0 {
		return ""
	}
	return ", and " + wording.Count(waiting, "more message waits", "more messages wait")
}
