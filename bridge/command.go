package bridge

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge/cards"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
	"oneclaw/bridge/sessions"
	"oneclaw/bridge/wording"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// command is something that a person asks of the bot itself, not of the model.
type command struct {
	chats.CommandInfo
	// hidden ones are understood and not listed.
	hidden bool
	run    func(ctx context.Context, b *Bridge, l *lane, j *jobs.Job, args string) (string, error)
}

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
func bring(c Command) command {
	return command{CommandInfo: c.CommandInfo, run: func(ctx context.Context, b *Bridge, _ *lane, j *jobs.Job, args string) (string, error) {
		session, err := sessions.Current(ctx, b.store, j.Message.Chat)
		if err != nil {
			return "", err
		}
		scope, err := b.scope(j, session)
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

func info(name, description string) chats.CommandInfo {
	return chats.CommandInfo{Name: name, Description: description}
}

func commandTable(more []Command) []command {
	table := []command{
		{CommandInfo: info("help", "What I can do and which commands there are"), run: help},
		{CommandInfo: info("clear", "Close this conversation and unload its tools; I can still find it when I search"), run: clearChat},
		{CommandInfo: info("new", "Begin a new conversation; does the same as clear"), run: clearChat},
		{CommandInfo: info(stopName, "Stop what I am doing and drop waiting messages"), run: stop},
		{CommandInfo: info("status", "What is going on in this chat"), run: status},
		{CommandInfo: info("tools", "Tool groups, and which are loaded here"), run: tools},
		{CommandInfo: info("whoami", "Your id and what you may do"), run: whoami},
		{CommandInfo: info("why", "What became of the last message here, and why"), run: whyCommand},
		{CommandInfo: info("people", "Who may talk to me: list and remove (administrators)"), run: peopleCommand},
		{CommandInfo: info("start", "Hello"), hidden: true, run: help},
		{CommandInfo: info(claimName, "Make me yours"), hidden: true, run: claimBot},
	}
	for _, c := range more {
		table = append(table, bring(c))
	}
	return table
}

func (b *Bridge) commandInfos() []chats.CommandInfo {
	var infos []chats.CommandInfo
	for _, c := range b.commands {
		if !c.hidden {
			infos = append(infos, c.CommandInfo)
		}
	}
	return infos
}

var commandPattern = regexp.MustCompile(`^/([a-z_]{1,32})(?:\s+([\s\S]*))?$`)

// commandOf returns the command of a job. A job with a notice has none, and neither
// has a text that only looks like one.
func (b *Bridge) commandOf(j *jobs.Job) (command, string, bool) {
	match := commandPattern.FindStringSubmatch(strings.TrimSpace(j.Message.Text))
	if match == nil || j.Notice != "" || j.Message.Kind != chats.KindText {
		return command{}, "", false
	}
	i := slices.IndexFunc(b.commands, func(c command) bool { return c.Name == match[1] })
	if i < 0 {
		return command{}, "", false
	}
	return b.commands[i], match[2], true
}

func (b *Bridge) isCommand(j *jobs.Job) bool {
	_, _, is := b.commandOf(j)
	return is
}

func help(_ context.Context, b *Bridge, _ *lane, j *jobs.Job, _ string) (string, error) {
	var text strings.Builder
	text.WriteString("I answer what you write to me, and I have tools to get things done. " +
		"I load the ones I need as we go.\n\n")
	if !j.Message.Direct {
		text.WriteString("Here I answer when I am mentioned or replied to.\n\n")
	}
	for _, c := range b.commandInfos() {
		fmt.Fprintf(&text, "- /%s – %s\n", c.Name, c.Description)
	}
	return text.String(), nil
}

const clearedText = "Conversation cleared: it is closed, and its tools are unloaded. We begin anew. " +
	"Nothing is deleted: your files are kept, and I can still find what was said when I search."

func clearChat(ctx context.Context, b *Bridge, l *lane, j *jobs.Job, _ string) (string, error) {
	if !b.mayClear(ctx, j.Message) {
		return "Sorry, only an administrator or whoever began this thread can clear it.", nil
	}
	session, err := sessions.Current(ctx, b.store, j.Message.Chat)
	if err != nil {
		return "", err
	}
	// A message that waits or is being answered may write its question to the log between
	// the look below and its end.
	empty := !l.pending(session.ClearedAt, j.Seq)
	// A record that can not be read is one more reason to begin anew.
	for _, err := range sessions.Read(ctx, b.store, session.Log(), storage.Query{Limit: 1}) {
		if err != nil {
			b.log.Warn("cleared a conversation that can not be read", "log", session.Log(), "err", err)
		}
		empty = false
	}
	// First the new session, then the end of what belongs to the old one: a crash in
	// between leaves jobs that are older than the session, and those are closed.
	if _, err := session.Clear(ctx, b.store, j.Seq, empty); err != nil {
		return "", err
	}
	interrupted, waiting := b.interrupt(l, j.Seq, sessions.ErrCleared)
	b.settleAll(waiting, jobs.StateCleared)
	return clearedText + ended(interrupted, len(waiting)), nil
}

// settleAll closes jobs that were taken out of their queue, later where that fails now.
func (b *Bridge) settleAll(jobs []*jobs.Job, state jobs.State) {
	for _, j := range jobs {
		if b.settle(j, state) != nil {
			b.closeLater(j, state)
		}
	}
}

// ended says what a command has cut short.
func ended(running bool, waiting int) string {
	var text string
	if running {
		text += " I stopped what I was doing."
	}
	switch waiting {
	case 0:
	case 1:
		text += " One waiting message was dropped."
	default:
		text += fmt.Sprintf(" %d waiting messages were dropped.", waiting)
	}
	return text
}

func status(ctx context.Context, b *Bridge, l *lane, j *jobs.Job, _ string) (string, error) {
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
	waiting, running := l.load()
	state := "I am idle here."
	if held := l.waits(); held != nil {
		state = fmt.Sprintf("I wait for a decision about %s%s: see the buttons above. /stop ends that.",
			wording.ListOr(held.tools, "a tool"), behind(waiting))
	} else if running {
		state = "I am working on an answer" + behind(waiting) + "."
	} else if l.queues() {
		state = "I am busy in other chats: " + wording.Count(waiting, "message waits here for its turn", "messages wait here for their turn") + "."
	}
	text := fmt.Sprintf("%s\n\n- Messages in this conversation: %s\n- Tool groups loaded: %s\n- Running since: %s",
		state, said, wording.ListOr(groups, "none"), b.begun.UTC().Format(time.RFC1123))
	if err := b.Health(); err != nil && b.role(j.Message) >= toolgroups.RoleAdmin {
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

// recordedRouting is the mode that the newest reply of a conversation was made in; empty
// where it has none.
func (b *Bridge) recordedRouting(ctx context.Context, log string) string {
	for m, err := range sessions.RecentMessages(ctx, b.store, log) {
		if err == nil && (m.Routing != "" || m.Usage != nil) {
			return m.Routing // as the agent reads it
		}
	}
	return ""
}
