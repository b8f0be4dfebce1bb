package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/slack/shared"
)

// Types of envelopes.
const (
	kindEvent       = "events_api"
	kindCommand     = "slash_commands"
	kindInteractive = "interactive"
)

// intake is a payload from Slack. One of its fields is set, or none if it does not concern the bot.
type intake struct {
	event    *event
	command  *command
	press    *interaction
	agent    *agentEvent
	reaction *reaction
	view     *viewChange
	joined   *joinEvent
}

// decode decodes a payload. It returns an empty intake if the payload does not concern the bot, and
// an error if it should decode and does not.
func (s identity) decode(kind string, payload []byte) (intake, error) {
	switch kind {
	case kindCommand:
		var c command
		if err := json.Unmarshal(payload, &c); err != nil {
			return intake{}, fmt.Errorf("decode command: %w", err)
		}
		if !s.isOurs(c.TeamID) || c.ChannelID == "" || c.UserID == "" || c.TriggerID == "" {
			return intake{}, nil
		}
		return intake{command: &c}, nil
	case kindInteractive:
		return s.decodePress(payload)
	case kindEvent:
		var o eventWrapper
		if _, err := decodeLoosely(payload, &o); err != nil {
			return intake{}, fmt.Errorf("decode event: %w", err)
		}
		return s.decodeEvent(o)
	}
	return intake{}, nil
}

func (s identity) decodeEvent(o eventWrapper) (intake, error) {
	var kind typeOnly
	if !s.isOurs(o.TeamID) && !s.isOurs(o.ContextTeamID) || len(o.Event) == 0 {
		return intake{}, nil
	}
	if err := json.Unmarshal(o.Event, &kind); err != nil {
		return intake{}, fmt.Errorf("decode event %s: %w", o.EventID, err)
	}
	switch {
	case kind.Type == sessionStopped, kind.Type == homeOpened, kind.Type == threadStarted:
		return s.decodeAgentEvent(o)
	case kind.Type == memberJoined:
		return s.decodeJoin(o)
	case kind.Type == contextChanged:
		return decodeViewChange(o)
	case isReaction(kind.Type):
		said, err := decodeReaction(o.Event, s.user)
		if said != nil {
			said.Shared = o.Shared || !s.isOurs(o.TeamID)
		}
		return intake{reaction: said}, err
	case kind.Type != "message" && kind.Type != "app_mention":
		return intake{}, nil
	}
	var e event
	damaged, err := decodeLoosely(o.Event, &e)
	if err != nil {
		return intake{}, fmt.Errorf("decode event %s: %w", o.EventID, err)
	}
	if e.subject().damaged = damaged; damaged && (e.Channel == "" || e.subject().TS == "") {
		return intake{}, fmt.Errorf("decode event %s: its channel or its ts", o.EventID)
	}
	if e.Channel == "" {
		return intake{}, nil
	}
	e.shared, e.threaded = o.Shared || !s.isOurs(o.TeamID), s.agentView
	return intake{event: &e}, nil
}

// isOurs reports whether something comes from the bot's workspace.
func (s identity) isOurs(team string) bool {
	return team != "" && (team == s.team || team == s.enterprise)
}

// queueKey names the conversation in whose order an intake is accepted.
func (in intake) queueKey() string {
	switch {
	case in.command != nil:
		return in.command.ChannelID
	case in.press != nil:
		return in.press.Channel.ID + "/" + in.press.Container.MessageTS
	case in.agent != nil:
		return in.agent.Channel + "/" + in.agent.ThreadTS
	case in.reaction != nil:
		return in.reaction.Channel + "/" + in.reaction.TS
	case in.view != nil:
		return in.view.User
	case in.joined != nil:
		return in.joined.Channel
	case in.event == nil:
		return ""
	}
	m := in.event.subject()
	if in.event.isDirect() && !in.event.threaded && m.ThreadTS == "" {
		return in.event.Channel
	}
	return in.event.Channel + "/" + cmp.Or(m.ThreadTS, m.TS)
}

func (e *event) subject() *message {
	if e.Message != nil {
		return e.Message
	}
	return &e.message
}

func (e *event) isDirect() bool {
	return e.ChannelType == "im" || e.ChannelType == "" && strings.HasPrefix(e.Channel, "D")
}

// chat returns the chat of a message. In a channel, or in a direct chat with the agent view, a message
// outside of threads begins a thread with its answer.
func (e *event) chat(m *message) chats.Chat {
	chat := chats.Chat{Platform: platformName, ID: e.Channel, Thread: m.ThreadTS}
	switch {
	case !e.isDirect() || e.threaded:
		chat.Thread = cmp.Or(m.ThreadTS, m.TS)
	case m.ThreadTS == m.TS:
		chat.Thread = "" // only replies have a thread
	}
	return chat
}

// isFromPerson reports whether a message is neither from a bot nor from Slack itself.
func (m *message) isFromPerson() bool {
	return m.User != "" && m.User != "USLACKBOT" && m.BotID == "" && m.TS != ""
}

// isUserSubtype reports whether messages of a subtype are written by users. Messages of other subtypes
// report, for example, that a user joined or that a topic changed.
func isUserSubtype(subtype string) bool {
	return subtype == "" || subtype == "file_share" || subtype == "thread_broadcast" || subtype == "me_message"
}

// convert returns the message in an event, or nil if it is neither for the bot nor a wanted ambient
// message. It returns an error if that could not be determined.
func (r *receiver) convert(ctx context.Context, e *event) (*chats.Message, error) {
	m := e.subject()
	switch {
	case e.isDeletion():
		return r.convertDeletion(ctx, e), nil
	case r.self.isAuthor(m.User, m.BotID):
		if m.ThreadTS != "" {
			r.join(ctx, e.chat(m), m.ParentUserID)
		}
		return nil, nil
	case !r.serves(e.Channel, e.isDirect()):
		return nil, nil
	case !m.isFromPerson():
		return r.convertAmbient(ctx, e, m), nil
	case e.Subtype == "message_changed":
		return r.convertEdit(ctx, e)
	case !isUserSubtype(e.Subtype):
		return nil, nil
	}
	msg, w := r.compose(ctx, e, m)
	forBot, err := r.isForBot(ctx, e, msg, w.mentioned)
	if err != nil || !forBot && !r.wantsAmbient(m, msg) {
		return nil, err
	}
	r.completeMention(ctx, e)
	if r.fillNames(e, m, msg, r.nameLookupFor(ctx, forBot)); forBot {
		msg.Quoted = chats.LimitQuotes(append(msg.Quoted, r.viewed(ctx, e, m, msg)...))
		m.Files = r.api.completeFiles(ctx, m.Files)
	} else {
		msg.Kind, msg.Chat = chats.KindAmbient, msg.Chat.WithoutThread()
	}
	msg.Files, msg.Skipped = r.self.attached(m)
	if msg.Text == "" && len(msg.Files) == 0 && len(msg.Skipped) == 0 && len(msg.Quoted) == 0 {
		return nil, nil
	}
	return msg, nil
}

// convertAmbient returns an ambient message from a program, such as a bot or a workflow, in a channel
// where ambient messages are wanted, and otherwise nil. Programs cannot ask the bot.
func (r *receiver) convertAmbient(ctx context.Context, e *event, m *message) *chats.Message {
	if e.Message != nil || m.BotID == "" || m.TS == "" || !isUserSubtype(m.Subtype) && m.Subtype != "bot_message" {
		return nil
	}
	msg, _ := r.compose(ctx, e, m)
	if !r.wantsAmbient(m, msg) {
		return nil
	}
	if msg.Kind, msg.Chat = chats.KindAmbient, msg.Chat.WithoutThread(); m.User == "" {
		msg.User = m.BotID
	}
	msg.UserName, msg.Text = r.self.authorAndText(m, r.knownName)
	msg.Quoted = r.self.quotedMessages(m, e.Channel, r.knownName)
	msg.Files, msg.Skipped = r.self.attached(m)
	if msg.Text == "" && len(msg.Files) == 0 && len(msg.Skipped) == 0 && len(msg.Quoted) == 0 {
		return nil
	}
	return msg
}

// compose makes a message from an event. Its text contains ids instead of the names of users, which are
// looked up only for messages to the bot. The workspace of the sender is looked up if the event does not
// name it, as for a message with files.
func (r *receiver) compose(ctx context.Context, e *event, m *message) (*chats.Message, decodedText) {
	w := r.readText(e, m, func(id string) string { return id })
	inside := m.ThreadTS != "" && m.ThreadTS != m.TS
	team := m.team()
	if team == "" {
		team = r.lookUpTeam(ctx, m.User, e.shared)
	}
	return &chats.Message{
		Chat:        e.chat(m),
		ID:          m.TS,
		Kind:        chats.KindText,
		User:        r.self.userID(m.User, team, e.shared),
		Direct:      e.isDirect(),
		Text:        w.text,
		Time:        parseTS(m.TS),
		InThread:    inside,
		MentionsBot: inside && (w.mentioned || e.Type == "app_mention"),
	}, w
}

// readText decodes the text of a message.
func (r *receiver) readText(e *event, m *message, name nameLookup) decodedText {
	w := r.self.decodeText(m.Text, name)
	w.text = r.asCommand(w.text, e.isDirect() || w.addressed)
	return w
}

// fillNames looks up the sender's name and the names in the text, and reads what the message says besides it,
// and the quoted messages.
func (r *receiver) fillNames(e *event, m *message, msg *chats.Message, name nameLookup) {
	msg.Text, msg.UserName = r.readText(e, m, name).text, name(m.User)
	content, others := m.read(maxContent)
	msg.Quoted = r.self.quotedMessages(m, e.Channel, name)
	// Others may have chosen what stands in attachments and blocks: only what the sender typed is a command, or belongs to one.
	switch more := strings.TrimSpace(r.self.plainText(content, name)); {
	case more == "":
	case strings.HasPrefix(msg.Text, "/"):
		msg.Quoted = append([]chats.Quoted{{Kind: chats.RefLink, Text: more}}, msg.Quoted...)
	case msg.Text == "" && strings.HasPrefix(more, "/"):
		msg.Text = "[attached:]\n" + more
	default:
		msg.Text = strings.TrimSpace(msg.Text + "\n\n" + more)
	}
	msg.Foreign = others || r.self.namesOthers(m.Text+content) || m.hasWordsOfOthers()
}

// isForBot reports whether a message is direct, mentions the bot, or is in a thread in which the bot
// participates. It fills in the opener of the thread. For a mention, it records that the bot participates.
func (r *receiver) isForBot(ctx context.Context, e *event, msg *chats.Message, mentioned bool) (bool, error) {
	m := e.subject()
	inThread := m.ThreadTS != "" && m.ThreadTS != m.TS
	mentioned = mentioned || e.Type == "app_mention"
	msg.Opener = m.ParentUserID
	switch {
	case e.isDirect():
		msg.Opener = msg.User
	case !inThread && !mentioned:
		return false, nil
	case !inThread:
		msg.Opener = msg.User
		r.join(ctx, msg.Chat, msg.User)
	default:
		if m.ParentUserID != "" && m.ParentUserID == r.self.user {
			r.join(ctx, msg.Chat, m.ParentUserID)
		}
		if mentioned {
			r.join(ctx, msg.Chat, m.ParentUserID)
			known, _ := r.knownThread(ctx, msg.Chat)
			msg.Opener = known.opener
			if known.opener != "" || !strings.HasPrefix(msg.Text, "/") {
				break // the opener is not needed
			}
		}
		// Messages from before the bot joined are not for it when Slack delivers them again.
		key := e.Channel + "/" + m.TS
		if is, _ := r.ignored.Get(key); is && !mentioned {
			return false, nil
		}
		t, err := r.lookUpThread(ctx, r.self, msg.Chat)
		if err != nil {
			return false, fmt.Errorf("look up the participants of %s: %w", msg.Chat, err)
		}
		if !t.joined {
			r.ignored.Put(key, true, ignoredAge)
			return false, nil
		}
		msg.Opener = cmp.Or(m.ParentUserID, t.opener)
	}
	return true, nil
}

// convertEdit converts an edit that changes what the message says, or adds a quoted message. It returns nil
// for others: link previews arrive as edits as well. An edit that adds a mention becomes a new message, because
// it may address the bot for the first time.
func (r *receiver) convertEdit(ctx context.Context, e *event) (*chats.Message, error) {
	m, before := e.Message, e.PreviousMessage
	if m == nil || before == nil || !isUserSubtype(m.Subtype) {
		return nil, nil
	}
	same := m.Text == before.Text && m.content(maxContent) == before.content(maxContent) && slices.Equal(m.fileIDs(), before.fileIDs())
	if same && !addsQuote(before.Attachments, m.Attachments) {
		return nil, nil
	}
	msg, w := r.compose(ctx, e, m)
	was := r.self.isMentioned(before.Text)
	if w.mentioned && !was && !e.isDirect() {
		if _, err := r.isForBot(ctx, e, msg, true); err != nil {
			return nil, err
		}
		r.fillNames(e, m, msg, r.nameLookup(ctx))
		m.Files = r.api.completeFiles(ctx, m.Files)
		msg.Files, msg.Skipped = r.self.attached(m)
		return msg, nil
	}
	known, _ := r.knownThread(ctx, msg.Chat)
	switch {
	case e.isDirect(), was, known.joined:
	case r.wantsAmbient(m, msg):
		r.fillNames(e, m, msg, r.knownName)
		msg.Kind, msg.Chat = chats.KindAmbient, msg.Chat.WithoutThread()
		msg.Files, msg.Skipped = r.self.attached(m)
		return msg, nil
	case m.ThreadTS == "":
		return nil, nil
	}
	// If the message was for the bot, it has a job and its names are cached.
	r.fillNames(e, m, msg, r.knownName)
	m.Files = r.api.completeFiles(ctx, m.Files)
	msg.Files, msg.Skipped = r.self.attached(m)
	msg.Kind = chats.KindEdit
	return msg, nil
}

// isDeletion reports whether the event says that a message was deleted. Of one with replies, a tombstone is
// left.
func (e *event) isDeletion() bool {
	return e.Subtype == "message_deleted" || e.Subtype == "message_changed" && e.Message != nil && e.Message.Subtype == "tombstone"
}

// convertDeletion converts the deletion of a person's message, where the bot takes part, and of one that it overheard.
func (r *receiver) convertDeletion(ctx context.Context, e *event) *chats.Message {
	gone := e.PreviousMessage
	if gone == nil || !r.serves(e.Channel, e.isDirect()) {
		return nil
	}
	msg, _ := r.compose(ctx, e, gone)
	switch known, _ := r.knownThread(ctx, msg.Chat); {
	case gone.isFromPerson() && (e.isDirect() || known.joined):
	case r.wantsAmbient(gone, msg):
		msg.Chat = msg.Chat.WithoutThread()
	default:
		return nil
	}
	msg.Kind, msg.Text = chats.KindDelete, ""
	return msg
}

// convertCommand converts a slash command to a message, or returns a reply to its user.
func (r *receiver) convertCommand(ctx context.Context, c *command) (*chats.Message, string) {
	direct, err := r.isDirectWith(ctx, c.ChannelID, c.UserID)
	if err != nil {
		r.log.Warn("command not accepted: not known whether its chat is direct", "channel", c.ChannelID, "err", err)
		return nil, "Slack does not tell me right now whose chat this is. Please try again in a minute."
	}
	text := cmp.Or(strings.TrimSpace(unescape(c.Text)), "help")
	first, rest, _ := strings.Cut(text, " ")
	word := strings.ToLower(strings.TrimLeft(first, "/!"))
	info, is := r.lookUpCommand(word)
	switch {
	case !r.serves(c.ChannelID, direct):
		return nil, "I do not work in this channel. Write to me in a direct message."
	case info.NeedsThread && direct && r.self.agentView:
		return nil, fmt.Sprintf("Each conversation here is a thread, and Slack has no slash commands in threads: write “!%s” in the thread you mean.", word)
	case (info.NeedsThread || !is) && !direct && isDirectID(c.ChannelID):
		return nil, "I am not in this conversation, so I can only run a command that needs none; “/oneclaw help” lists all of them. To talk to me, write to me in a direct message."
	case info.NeedsThread && !direct:
		return nil, fmt.Sprintf("A conversation in a channel is a thread, and Slack has no slash commands in threads: "+
			"mention me in the thread you mean, as in “@%s %s”.", r.self.name, word)
	case is:
		text = strings.TrimSpace("/" + word + " " + rest)
	case !direct:
		return nil, fmt.Sprintf("I do not know that command; “/oneclaw help” lists all of them. To talk to me, mention me: “@%s …”.", r.self.name)
	}
	if c.ResponseURL != "" {
		r.storeInvitation(ctx, c.ChannelID, shared.Invitation{ID: c.TriggerID, Address: c.ResponseURL})
	}
	return &chats.Message{
		Chat: chats.Chat{Platform: platformName, ID: c.ChannelID}, ID: c.TriggerID, Kind: chats.KindText,
		User: c.UserID, UserName: r.nameLookup(ctx)(c.UserID), Direct: direct, Opener: c.UserID, Text: text, Foreign: r.self.namesOthers(text) || namesEmoji(text), Time: time.Now().UTC(),
	}, ""
}
