package bridge

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"oneclaw/agent"
	"oneclaw/bridge/audit"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/privacy"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/bridge/why"
	"oneclaw/internal/wording"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// Command is a command that another part of the program defines.
type Command struct {
	chats.CommandInfo
	// Role is the lowest role that may use it. The zero value allows every role.
	Role toolgroups.Role
	// Hidden and Message are as in [queue.Command].
	Hidden, Message bool
	// Alone says that only the user sees the answer, on platforms that can show a message to one user.
	Alone bool
	// Secret, if set, replaces [queue.SecretPlaceholder] in the answer when it is sent: no record holds
	// the secret, and each attempt makes another one.
	Secret func(ctx context.Context, call CommandCall) (string, error)
	// Ask, if set, is called instead of Run: the answer is a card. On a platform without buttons only
	// its text is sent.
	Ask func(ctx context.Context, call CommandCall) (interact.Card, error)
	// Files says that Run works with the files of its user.
	Files bool
	// Run returns the answer in Markdown. An error is retried; a mistake of the user is explained in
	// the answer.
	Run func(ctx context.Context, call CommandCall) (string, error)
}

// CommandCall is a use of a command.
type CommandCall struct {
	toolgroups.Scope
	// Author is the user, for the audit.
	Author audit.Author
	// UserName is the platform's name of the user.
	UserName string
	// Args is the text after the command.
	Args string
	// Attach sends a file of the workspace with the answer. It is set for commands with Files.
	Attach func(toolgroups.File)
}

// wrap converts a command that another part of the program defines.
func (c *commands) wrap(brought Command) queue.Command {
	secret := func(ctx context.Context, j *queue.Run) (string, error) {
		scope, err := c.scopes.current(ctx, j)
		if err != nil || scope.Role < brought.Role {
			return "", err
		}
		return brought.Secret(ctx, CommandCall{Scope: scope, Author: j.Author(c.store), UserName: j.Message.UserName})
	}
	if brought.Secret == nil {
		secret = nil
	}
	brought.Admin = brought.Role >= toolgroups.RoleAdmin
	return queue.Command{CommandInfo: brought.CommandInfo, Hidden: brought.Hidden, Message: brought.Message, Alone: brought.Alone, Secret: secret, Run: func(ctx context.Context, j *queue.Run, args string) (string, error) {
		scope, err := c.scopes.current(ctx, j)
		if err != nil {
			return "", err
		}
		if scope.Role < brought.Role {
			outbox.MakeEphemeral(j)
			return fmt.Sprintf("Sorry, /%s is for my administrators.", brought.Name), nil
		}
		call := CommandCall{Scope: scope, Author: j.Author(c.store), UserName: j.Message.UserName, Args: args}
		if brought.Files {
			return c.withFiles(ctx, j, call, brought.Run)
		}
		if brought.Ask == nil {
			return brought.Run(ctx, call)
		}
		card, err := brought.Ask(ctx, call)
		if err != nil {
			return "", err
		}
		return c.cards.Answer(ctx, j, card)
	}}
}

// withFiles runs a command that works with the files of its user.
func (c *commands) withFiles(ctx context.Context, j *queue.Run, call CommandCall, run func(context.Context, CommandCall) (string, error)) (string, error) {
	if err := queue.CheckOut(ctx, c.files, j); err != nil {
		return "", err
	}
	d := outbox.Of(j)
	d.Files = nil // of an earlier attempt
	call.Attach = func(f toolgroups.File) { d.Files = append(d.Files, f) }
	text, err := run(ctx, call)
	if err != nil {
		return "", err
	}
	return text, c.jobs.KeepFiles(ctx, c.files, j)
}

// DeepCommand asks the strong model: a message begins with it, or with an exclamation mark in place of
// the slash.
const DeepCommand = "deep"

// deepQuestion returns what a message asks the strong model; false if it does not ask that.
func (c *commands) deepQuestion(m chats.Message) (string, bool) {
	text := strings.TrimSpace(m.Text)
	if !strings.HasPrefix(text, "/"+DeepCommand) && !strings.HasPrefix(text, "!"+DeepCommand) {
		return "", false
	}
	m.Text = "/" + text[1:]
	one, question, _ := c.named(m)
	return question, one.Message && (question != "" || len(m.Files)+len(m.Quoted) > 0)
}

// startName is the command with which the clients of Telegram begin a chat.
const startName = "start"

// Command implements [chats.CommandInbox].
func (b *Bridge) Command(name string) (chats.CommandInfo, bool) {
	one, known := b.commands.find(name)
	return one.CommandInfo, known && name != startName
}

// commandTable lists the commands in the order in which platforms show them.
func (b *Bridge) commandTable() []queue.Command {
	row := func(name, description string, run func(context.Context, *queue.Run, string) (string, error)) queue.Command {
		return queue.Command{CommandInfo: chats.CommandInfo{Name: name, Description: description}, Run: run}
	}
	start := row(startName, "Hello", b.commands.start)
	start.Hidden = true
	ofThread := func(c queue.Command) queue.Command {
		c.OfThread = true
		return c
	}
	alone := func(c queue.Command) queue.Command {
		c.Alone = true
		return c
	}
	table := []queue.Command{
		row("help", "What I can do and which commands there are", b.commands.help),
		ofThread(row("clear", "Close this conversation and unload its tools; I can still find it when I search", b.stops.clear)),
		ofThread(row("new", "Start a new conversation; the same as clear", b.stops.clear)),
		ofThread(row(undoKind, "Undo a /clear of the last ten minutes", b.stops.undo)),
		ofThread(row(stopName, "Stop what I am doing and drop waiting messages", b.stops.stop)),
		row("status", "What I am doing in this chat", b.status),
		row("observe", "Listen along in this group: on or off", b.observe),
		alone(row("tools", "The tool groups, and those loaded here", b.panel.Command)),
		alone(row("why", "What happened to the last message here, and why", func(ctx context.Context, j *queue.Run, args string) (string, error) {
			return explainer(b).Explain(ctx, j, args) // the zone may have changed
		})),
		row(privacy.ForgetCommand, "Delete your data, after a confirmation", b.eraser.Ask),
		start,
	}
	table = append(table, b.people.Commands()...)
	for _, c := range b.cfg.Commands {
		table = append(table, b.commands.wrap(c))
	}
	return table
}

func explainer(b *Bridge) why.Explainer {
	return why.Explainer{
		Store: b.store, Jobs: b.jobs, Zone: b.cfg.Zone(), Explains: func(r *receipts.Receipt) bool { return b.workers.ofReceipt(r).declares().explained }, Admin: b.admins.isBotAdmin, Answering: b.queue.IsAnswering,
	}
}

// Tell explains to an administrator how the message with a key was handled; nil if there is none.
func (b *Bridge) Tell(ctx context.Context, key string) (*why.Explanation, error) {
	return explainer(b).Tell(ctx, key)
}

func (b *Bridge) status(ctx context.Context, j *queue.Run, _ string) (string, error) {
	session, err := conversation.Current(ctx, b.store, j.Message.Chat)
	if err != nil {
		return "", err
	}
	groups, err := conversation.LoadedGroups(ctx, b.store, session.Log())
	if err != nil {
		return "", err
	}
	said, err := b.countMessages(ctx, session.Log())
	if err != nil {
		return "", err
	}
	here := b.queue.Status(j.Message.Chat)
	state := "I am idle here."
	if here.Held != nil {
		state = fmt.Sprintf("I am waiting for a decision about %s%s: see the buttons above. /stop ends that.",
			wording.ListOr(here.Held.Tools, "a tool"), waitingText(here.Waiting))
	} else if here.Running {
		state = "I am working on an answer" + waitingText(here.Waiting) + "."
		if here.Joined > 0 {
			state += " It also answers " + wording.Count(here.Joined, "more message", "more messages") + "."
		}
	} else if here.Queues {
		state = "I am busy in other chats: " + wording.Count(here.Waiting, "message waits here for its turn", "messages wait here for their turn") + "."
	}
	text := fmt.Sprintf("%s\n\n- Messages in this conversation: %s\n- Tool groups loaded: %s\n- Running since: %s",
		state, said, wording.ListOr(groups, "none"), b.begun.In(b.cfg.Zone()).Format("2 January 15:04 MST"))
	if b.cfg.Sharing.On {
		shared, err := b.replicas(ctx, b.admins.isBotAdmin(j.Message))
		if err != nil {
			return "", err
		}
		text += shared
	}
	if err := b.Health(); err != nil && b.admins.isBotAdmin(j.Message) {
		text += "\n- Trouble: " + strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	return text, nil
}

// maxCounted bounds how many records of a conversation are counted.
const maxCounted = 1000

// countMessages returns how many messages users wrote in a conversation, up to a bound.
func (b *Bridge) countMessages(ctx context.Context, log string) (string, error) {
	n, oldest := 0, storage.Position(1)
	for record, err := range b.store.Records(ctx, log, storage.Query{Backward: true, Limit: maxCounted}) {
		if err != nil {
			return "", fmt.Errorf("read %s: %w", log, err)
		}
		oldest = record.Pos
		if m, err := conversation.Decode(log, record); err == nil && m.Role == agent.RoleUser {
			n++
		}
	}
	if oldest > 1 {
		return fmt.Sprintf("more than %d", n), nil
	}
	return strconv.Itoa(n), nil
}

// waitingText returns how many messages wait, as text.
func waitingText(waiting int) string {
	if waiting == 0 {
		return ""
	}
	return ", and " + wording.Count(waiting, "more message waits", "more messages wait")
}

// commands are the bot's chat commands.
type commands struct {
	platforms map[string]chats.Platform
	store     storage.Store
	jobs      queue.Store
	scopes    *scopes
	admins    *admins
	cards     *interact.Cards
	files     queue.Files // nil for none

	list  []queue.Command
	names *regexp.Regexp // of the commands, as texts of ours name them
}

// add adds commands.
func (c *commands) add(list []queue.Command) {
	c.list = list
	var names []string
	for _, one := range list {
		names = append(names, regexp.QuoteMeta(one.Name))
	}
	c.names = regexp.MustCompile(`(^|[\s(` + "`" + `])/(` + strings.Join(names, "|") + `)\b`)
}

func (c *commands) infos() []chats.CommandInfo {
	var infos []chats.CommandInfo
	for _, one := range c.list {
		if !one.Hidden {
			infos = append(infos, one.CommandInfo)
		}
	}
	return infos
}

// maxCommandName bounds how much of a command is repeated, in characters.
const maxCommandName = 32

var commandPattern = regexp.MustCompile(`^/([a-z_]{1,32})(?:\s+([\s\S]*))?$`)

// of returns the command of a job. A job with a notice has none, nor has a text that only looks like a
// command.
func (c *commands) of(j *queue.Run) (queue.Command, string) {
	if j.Message.Kind != chats.KindText || outbox.Of(j).Notice != "" {
		return queue.Command{}, ""
	}
	one, args, _ := c.named(j.Message)
	return one, args
}

// named returns the command that a text gives.
func (c *commands) named(m chats.Message) (queue.Command, string, bool) {
	match := commandPattern.FindStringSubmatch(strings.TrimSpace(m.Text))
	if match == nil {
		return queue.Command{}, "", false
	}
	one, known := c.find(match[1])
	if !known {
		one = queue.Command{CommandInfo: chats.CommandInfo{Name: match[1]}, Alone: true, Run: c.unknown}
	}
	return one, match[2], true
}

// find returns the command with a name.
func (c *commands) find(name string) (queue.Command, bool) {
	i := slices.IndexFunc(c.list, func(one queue.Command) bool { return one.Name == name })
	if i < 0 {
		return queue.Command{}, false
	}
	return c.list[i], true
}

// unknown answers an unknown command, so that it costs no call of the model.
func (c *commands) unknown(_ context.Context, j *queue.Run, _ string) (string, error) {
	return c.nearest(commandPattern.FindStringSubmatch(strings.TrimSpace(j.Message.Text))[1]), nil
}

// nearest says that there is no such command, and names the nearest one.
func (c *commands) nearest(name string) string {
	var names []string
	for _, info := range c.infos() {
		names = append(names, info.Name)
	}
	if near := wording.Nearest(name, names); near != "" {
		return fmt.Sprintf("There is no /%s. Did you mean /%s?", name, near)
	}
	return fmt.Sprintf("There is no /%s. /help lists the commands.", name)
}

func (c *commands) run(ctx context.Context, j *queue.Run) (string, error) {
	one, args := c.of(j)
	if one.Alone {
		outbox.MakeEphemeral(j)
	}
	text, err := one.Run(ctx, j, args)
	outbox.Of(j).Ephemeral = outbox.Of(j).Ephemeral || one.Secret != nil
	return c.formatCommands(j.Message.Chat.Platform, text), err
}

// formatCommands returns a text of ours, in which commands have a slash, with the commands in the form of a
// platform.
func (c *commands) formatCommands(platform, text string) string {
	s, ok := c.platforms[platform].(chats.CommandPrefixer)
	if !ok {
		return text
	}
	return c.names.ReplaceAllString(text, "${1}"+strings.ReplaceAll(s.CommandPrefix(), "$", "$$")+"${2}")
}

// Lift replaces the placeholder in a part by the secret of its command.
func (c *commands) Lift(ctx context.Context, j *queue.Run, part chats.Part) (chats.Part, error) {
	one, _ := c.of(j)
	if one.Secret == nil || !strings.Contains(part.Text+part.Plain, queue.SecretPlaceholder) {
		return part, nil
	}
	secret, err := one.Secret(ctx, j)
	if err != nil {
		return part, fmt.Errorf("make the secret of /%s: %w", one.Name, err)
	}
	part.Text, part.Plain = strings.ReplaceAll(part.Text, queue.SecretPlaceholder, secret), strings.ReplaceAll(part.Plain, queue.SecretPlaceholder, secret)
	return part, nil
}

// start returns a one-line greeting: a new chat begins with it, and users repeat it in old ones.
func (c *commands) start(context.Context, *queue.Run, string) (string, error) {
	return "Hello! Write what you need, or send me a file. /help lists what I can do.", nil
}

func (c *commands) help(_ context.Context, j *queue.Run, args string) (string, error) {
	if name := strings.TrimLeft(strings.TrimSpace(args), "/!"); name != "" {
		one, known := c.find(strings.ToLower(name))
		if !known {
			return c.nearest(wording.OneLine(name, maxCommandName)), nil
		}
		return fmt.Sprintf("/%s – %s", one.Name, one.Description), nil
	}
	var text strings.Builder
	text.WriteString("I answer your messages, and I have tools to get things done. I load the ones I need as we go.\n\n")
	if !j.Message.Direct {
		text.WriteString("Here I answer when I am mentioned or replied to.\n\n")
	}
	admin := c.admins.isBotAdmin(j.Message)
	for _, info := range c.infos() {
		if !info.Admin || admin {
			fmt.Fprintf(&text, "- /%s – %s\n", info.Name, info.Description)
		}
	}
	return text.String(), nil
}
