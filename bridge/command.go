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
	"oneclaw/bridge/turn"
	"oneclaw/bridge/why"
	"oneclaw/internal/wording"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// Command is a command that another part of the program defines.
type Command struct {
	chats.CommandInfo
	// Role is the lowest role that may use the command. The zero value allows every role.
	Role toolgroups.Role
	// Hidden and TakesMessage are as in [queue.Command].
	Hidden, TakesMessage bool
	// Ephemeral says that only the user sees the answer, on platforms with ephemeral messages.
	Ephemeral bool
	// Secret, if set, returns the secret that replaces [queue.SecretPlaceholder] in the sent answer.
	// No record contains the secret, and each attempt to send makes another one.
	Secret func(ctx context.Context, call CommandCall) (string, error)
	// RunCard, if set, is called instead of Run and answers with a card. On a platform without buttons
	// only the text of the card is sent.
	RunCard func(ctx context.Context, call CommandCall) (interact.Card, error)
	// UsesFiles says that Run reads or writes the workspace of its user.
	UsesFiles bool
	// Run returns the answer in Markdown. After an error it is called again, so a mistake by the user is
	// explained in the answer.
	Run func(ctx context.Context, call CommandCall) (string, error)
}

// CommandCall is a use of a command.
type CommandCall struct {
	toolgroups.Scope
	// Author is the user, for the audit.
	Author audit.Author
	// UserName is the user's name on the platform.
	UserName string
	// Args is the text after the command.
	Args string
	// BeginsThread is set if the command begins a thread: the thread has no other messages yet.
	BeginsThread bool
	// Attach sends a file from the workspace with the answer. It is set for commands with UsesFiles.
	Attach func(toolgroups.File)
	// ForgetAccounts is [interact.Gate.ForgetAccounts] for the user.
	ForgetAccounts func(context.Context) error
}

// AsCard turns [Command.Run] into [Command.RunCard], for answers in which people judge the words of others: a card hides known
// secrets alone, and any author can give a text the shape of one.
func AsCard(run func(context.Context, CommandCall) (string, error)) func(context.Context, CommandCall) (interact.Card, error) {
	return func(ctx context.Context, call CommandCall) (interact.Card, error) {
		text, err := run(ctx, call)
		return interact.Card{Text: text}, err
	}
}

// wrap converts a command that another part of the program defines.
func (c *commandRegistry) wrap(brought Command) queue.Command {
	secret := func(ctx context.Context, j *queue.Run) (string, error) {
		scope, err := c.scopeResolver.current(ctx, j)
		if err != nil || scope.Role < brought.Role {
			return "", err
		}
		return brought.Secret(ctx, CommandCall{Scope: scope, Author: j.Author(c.store), UserName: j.Message.UserName})
	}
	if brought.Secret == nil {
		secret = nil
	}
	brought.Admin = brought.Role >= toolgroups.RoleAdmin
	return queue.Command{CommandInfo: brought.CommandInfo, Hidden: brought.Hidden, TakesMessage: brought.TakesMessage, Ephemeral: brought.Ephemeral, Secret: secret, Run: func(ctx context.Context, j *queue.Run, args string) (string, error) {
		scope, err := c.scopeResolver.current(ctx, j)
		if err != nil {
			return "", err
		}
		if scope.Role < brought.Role {
			outbox.MakeEphemeral(j)
			return fmt.Sprintf("Sorry, /%s is for my administrators.", brought.Name), nil
		}
		call := CommandCall{Scope: scope, Author: j.Author(c.store), UserName: j.Message.UserName, Args: args, BeginsThread: j.Message.Chat.Thread == j.Message.ID}
		call.ForgetAccounts = func(ctx context.Context) error { return c.gate.ForgetAccounts(ctx, call.User) }
		if brought.UsesFiles {
			return c.runWithFiles(ctx, j, call, brought.Run)
		}
		if brought.RunCard == nil {
			return brought.Run(ctx, call)
		}
		card, err := brought.RunCard(ctx, call)
		if err != nil {
			return "", err
		}
		return c.cards.Answer(ctx, j, card)
	}}
}

// runWithFiles runs a command that reads or writes the workspace of its user.
func (c *commandRegistry) runWithFiles(ctx context.Context, j *queue.Run, call CommandCall, run func(context.Context, CommandCall) (string, error)) (string, error) {
	if err := queue.CheckOut(ctx, c.files, j); err != nil {
		return "", err
	}
	d := outbox.DeliveryOf(j)
	d.Files = nil // of an earlier attempt
	call.Attach = func(f toolgroups.File) { d.Files = append(d.Files, f) }
	text, err := run(ctx, call)
	if err != nil {
		return "", err
	}
	return text, c.jobs.KeepFiles(ctx, c.files, j)
}

// deepQuestion returns the question in a message for the strong model; false for other messages. The
// question is empty if it consists of files or quotes, or is still to come.
func (c *commandRegistry) deepQuestion(m chats.Message) (string, bool) {
	text := strings.TrimSpace(m.Text)
	if !strings.HasPrefix(text, "/"+turn.DeepCommand) && !strings.HasPrefix(text, "!"+turn.DeepCommand) {
		return "", false
	}
	m.Text = "/" + text[1:]
	one, question, _ := c.parseCommand(m)
	return question, one.TakesMessage
}

// explainDeep answers a message for the strong model without a question.
func (c *commandRegistry) explainDeep(ctx context.Context, j *queue.Run) (string, error) {
	one, _ := c.find(turn.DeepCommand)
	text, err := one.Run(ctx, j, "")
	return c.formatCommands(j.Message.Chat.Platform, text), err
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
	start.Hidden, start.Personal = true, true
	ofThread := func(c queue.Command) queue.Command {
		c.NeedsThread = true
		return c
	}
	alone := func(c queue.Command) queue.Command {
		c.Ephemeral = true
		return c
	}
	personal := func(c queue.Command) queue.Command {
		c.Personal = true
		return c
	}
	table := []queue.Command{
		personal(row("help", "What I can do and which commands there are", b.commands.help)),
		ofThread(row("clear", "Close this conversation and put its tools away; I can still find it when I search", b.interrupter.clear)),
		ofThread(row("new", "Start a new conversation; the same as clear", b.interrupter.clear)),
		ofThread(row(undoKind, "Undo a /clear of the last ten minutes", b.interrupter.undo)),
		ofThread(row(stopName, "Stop what I am doing and drop waiting messages", b.interrupter.stop)),
		ofThread(row("tasks", "The background tasks of this chat, and buttons to cancel them", b.background.command)),
		personal(row("status", "What I am doing in this chat", b.statusText)),
		row("observe", "Also read messages in this group that are not for me: on or off", b.observe),
		alone(row("tools", "My tools, and which of them are in use here", b.panel.HandleCommand)),
		ofThread(alone(row("approvals", "What I may do here without asking you again", b.lasting.HandleCommand))),
		alone(row("why", "What happened to the last message here, and why", func(ctx context.Context, j *queue.Run, args string) (string, error) {
			return explainer(b).Explain(ctx, j, args) // the zone may have changed
		})),
		personal(row(privacy.ForgetCommand, "Delete your data, after a confirmation", b.eraser.Ask)),
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
		Redact: b.cfg.Redact, Store: b.store, Jobs: b.jobs, Zone: b.cfg.Zone(), Explains: func(r *receipts.Receipt) bool { return b.workers.forReceipt(r).policy().explainable },
		Listening: b.commands.listeningText, IsAdmin: b.adminChecker.isBotAdmin, IsAnswering: b.queue.IsAnswering,
	}
}

// Explain explains to an administrator how the message with a key was handled; nil if there is none.
func (b *Bridge) Explain(ctx context.Context, key string) (*why.Explanation, error) {
	return explainer(b).ExplainJob(ctx, key)
}

func (b *Bridge) statusText(ctx context.Context, j *queue.Run, _ string) (string, error) {
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
	if awaitsTasks(here.Held) {
		state = "I am waiting for background tasks: see /tasks. A message of yours ends that" + waitingText(here.Waiting) + "."
	} else if here.Held != nil {
		state = fmt.Sprintf("I am waiting for a decision about %s%s: see the buttons above. /stop ends that.",
			wording.JoinOr(here.Held.Tools, "a tool"), waitingText(here.Waiting))
	} else if here.Running {
		state = "I am working on an answer" + waitingText(here.Waiting) + "."
		if here.Joined > 0 {
			state += " It also answers " + wording.Plural(here.Joined, "more message", "more messages") + "."
		}
	} else if here.AwaitsSlot {
		state = "I am busy in other chats: " + wording.Plural(here.Waiting, "message waits here for its turn", "messages wait here for their turn") + "."
	}
	text := fmt.Sprintf("%s\n\n- Messages in this conversation: %s\n- Tool groups loaded: %s\n- Running since: %s",
		state, said, wording.JoinOr(groups, "none"), b.startedAt.In(b.cfg.Zone()).Format("2 January 15:04 MST"))
	if scope, err := b.scopeResolver.forTurn(j, session.Log()); err == nil && !b.turns.TakesTools(ctx, scope) {
		text += "\n- Tools: none, because the model's server takes none. `oneclaw doctor` says what to change."
	}
	if b.cfg.Sharing.Enabled {
		shared, err := b.replicaLines(ctx, b.adminChecker.isBotAdmin(j.Message))
		if err != nil {
			return "", err
		}
		text += shared
	}
	if err := b.Health(); err != nil && b.adminChecker.isBotAdmin(j.Message) {
		text += "\n- Trouble: " + strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	return text, nil
}

// maxCounted bounds the records of a conversation that countMessages reads.
const maxCounted = 1000

// countMessages returns, as text, the number of users' messages in a conversation, up to a bound.
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

// waitingText returns the clause that tells how many messages wait, or "" for none.
func waitingText(waiting int) string {
	if waiting == 0 {
		return ""
	}
	return ", and " + wording.Plural(waiting, "more message waits", "more messages wait")
}

// commandRegistry holds the bot's chat commands and runs them.
type commandRegistry struct {
	platforms     map[string]chats.Platform
	store         storage.Store
	jobs          queue.Store
	scopeResolver *scopeResolver
	adminChecker  *adminChecker
	observer      *privacy.Observer
	cards         *interact.Cards
	gate          *interact.Gate
	files         queue.FileStore // nil for none

	list        []queue.Command
	namePattern *regexp.Regexp // matches the names of commands in the bot's texts
}

// setCommands sets the commands.
func (c *commandRegistry) setCommands(list []queue.Command) {
	c.list = list
	var names []string
	for _, one := range list {
		names = append(names, regexp.QuoteMeta(one.Name))
	}
	c.namePattern = regexp.MustCompile(`(^|[\s(` + "`" + `])/(` + strings.Join(names, "|") + `)\b`)
}

func (c *commandRegistry) infos() []chats.CommandInfo {
	var infos []chats.CommandInfo
	for _, one := range c.list {
		if !one.Hidden {
			infos = append(infos, one.CommandInfo)
		}
	}
	return infos
}

// maxCommandName bounds the part of an unknown command that the answer repeats, in characters.
const maxCommandName = 32

var commandPattern = regexp.MustCompile(`^/([a-z_]{1,32})(?:\s+([\s\S]*))?$`)

// forJob returns the command of a job and its arguments. A job with a notice has none; neither has a
// text that only looks like a command.
func (c *commandRegistry) forJob(j *queue.Run) (queue.Command, string) {
	if j.Message.Kind != chats.KindText || outbox.DeliveryOf(j).Notice != "" {
		return queue.Command{}, ""
	}
	one, args, _ := c.parseCommand(j.Message)
	return one, args
}

// parseCommand returns the command in a message, even an unknown one, and its arguments.
func (c *commandRegistry) parseCommand(m chats.Message) (queue.Command, string, bool) {
	match := commandPattern.FindStringSubmatch(strings.TrimSpace(m.Text))
	if match == nil || m.Continues {
		return queue.Command{}, "", false
	}
	one, known := c.find(match[1])
	if !known {
		one = queue.Command{CommandInfo: chats.CommandInfo{Name: match[1]}, Ephemeral: true, Run: c.answerUnknown}
	}
	return one, match[2], true
}

// find returns the command with a name.
func (c *commandRegistry) find(name string) (queue.Command, bool) {
	i := slices.IndexFunc(c.list, func(one queue.Command) bool { return one.Name == name })
	if i < 0 {
		return queue.Command{}, false
	}
	return c.list[i], true
}

// answerUnknown answers an unknown command without a call to the model.
func (c *commandRegistry) answerUnknown(_ context.Context, j *queue.Run, _ string) (string, error) {
	return c.unknownCommandText(commandPattern.FindStringSubmatch(strings.TrimSpace(j.Message.Text))[1]), nil
}

// unknownCommandText returns the answer to an unknown command, with the most similar known name.
func (c *commandRegistry) unknownCommandText(name string) string {
	var names []string
	for _, info := range c.infos() {
		names = append(names, info.Name)
	}
	if near := wording.NearestName(name, names); near != "" {
		return fmt.Sprintf("There is no /%s. Did you mean /%s?", name, near)
	}
	return fmt.Sprintf("There is no /%s. /help lists the commands.", name)
}

func (c *commandRegistry) run(ctx context.Context, j *queue.Run) (string, error) {
	one, args := c.forJob(j)
	if one.Ephemeral || j.Message.Alone {
		outbox.MakeEphemeral(j)
	}
	text, err := one.Run(ctx, j, args)
	outbox.DeliveryOf(j).Ephemeral = outbox.DeliveryOf(j).Ephemeral || one.Secret != nil
	return c.formatCommands(j.Message.Chat.Platform, text), err
}

// formatCommands rewrites the commands in one of the bot's texts, which begin with a slash, to the form
// that a platform uses.
func (c *commandRegistry) formatCommands(platform, text string) string {
	s, ok := c.platforms[platform].(chats.CommandPrefixer)
	if !ok {
		return text
	}
	return c.namePattern.ReplaceAllString(text, "${1}"+strings.ReplaceAll(s.CommandPrefix(), "$", "$$")+"${2}")
}

// FillSecret replaces the placeholder in a part by the secret of its command.
func (c *commandRegistry) FillSecret(ctx context.Context, j *queue.Run, part chats.Part) (chats.Part, error) {
	one, _ := c.forJob(j)
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

// start returns a one-line greeting. New chats begin with /start, and users repeat it in old ones.
func (c *commandRegistry) start(context.Context, *queue.Run, string) (string, error) {
	return "Hello! Write what you need, or send me a file. /help lists what I can do.", nil
}

// helpMore is the argument of /help that lists all commands.
const helpMore = "more"

// helpText shows what people ask for, in their words.
const helpText = `Write to me as you would to a person. For example:

- “Summarise https://example.com”, or send a PDF, a photo or a document, and ask about it
- “Remind me tomorrow at nine to call Bob”
- “Remember that I am vegetarian”
- “Make a spreadsheet of these costs: …”
- “Plan a weekend trip, and ask me what I like”
- “In the background, compare these three pages: …”
- “What did we say about Lisbon last week?”

/tools shows what else you can ask for. /stop stops me, /clear starts a new conversation, and ` + "`/help more`" + ` lists all commands.`

func (c *commandRegistry) help(_ context.Context, j *queue.Run, args string) (string, error) {
	switch name := strings.TrimLeft(strings.TrimSpace(args), "/!"); {
	case name == "" && j.Message.Direct:
		return helpText, nil
	case name == "":
		return helpText + "\n\n" + c.listeningText(j.Message), nil
	case !strings.EqualFold(name, helpMore):
		one, known := c.find(strings.ToLower(name))
		if !known {
			return c.unknownCommandText(wording.OneLine(name, maxCommandName)), nil
		}
		return fmt.Sprintf("/%s – %s", one.Name, one.Description), nil
	}
	var text strings.Builder
	admin := c.adminChecker.isBotAdmin(j.Message)
	for _, info := range c.infos() {
		if !info.Admin || admin {
			fmt.Fprintf(&text, "- /%s – %s\n", info.Name, info.Description)
		}
	}
	return text.String(), nil
}
