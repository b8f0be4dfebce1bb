package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/slack/shared"
)

// Types of what Slack sends, as envelopes name them.
const (
	kindEvent       = "events_api"
	kindCommand     = "slash_commands"
	kindInteractive = "interactive"
)

// intake is something that Slack sent: one of its fields, or none if it is not for the bot.
type intake struct {
	event   *event
	command *command
	press   *interaction
	agent   *agentEvent
	said    *reaction
}

// decode decodes a payload. It returns an empty intake for what does not concern the bot, and an error
// for what should decode and does not.
func (s self) decode(kind string, payload []byte) (intake, error) {
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
		var o outer
		if err := json.Unmarshal(payload, &o); err != nil {
			return intake{}, fmt.Errorf("decode event: %w", err)
		}
		return s.decodeEvent(o)
	}
	return intake{}, nil
}

func (s self) decodeEvent(o outer) (intake, error) {
	var kind kindOf
	if !s.isOurs(o.TeamID) && !s.isOurs(o.Context) || len(o.Event) == 0 {
		return intake{}, nil
	}
	if err := json.Unmarshal(o.Event, &kind); err != nil {
		return intake{}, fmt.Errorf("decode event %s: %w", o.EventID, err)
	}
	switch {
	case kind.Type == sessionStopped, kind.Type == homeOpened, kind.Type == threadStarted:
		return s.decodeAgent(o)
	case isReaction(kind.Type):
		said, err := decodeReaction(o.Event, s.user)
		if said != nil {
			said.Shared = o.Shared || !s.isOurs(o.TeamID)
		}
		return intake{said: said}, err
	case kind.Type != "message" && kind.Type != "app_mention":
		return intake{}, nil
	}
	var e event
	if err := json.Unmarshal(o.Event, &e); err != nil {
		return intake{}, fmt.Errorf("decode event %s: %w", o.EventID, err)
	}
	if e.Channel == "" {
		return intake{}, nil
	}
	e.shared, e.threaded = o.Shared || !s.isOurs(o.TeamID), s.agentView
	return intake{event: &e}, nil
}

// isOurs reports whether something comes from the bot's workspace.
func (s self) isOurs(team string) bool {
	return team != "" && (team == s.team || team == s.enterprise)
}

// queue names the conversation in whose order an intake is accepted.
func (in intake) queue() string {
	switch {
	case in.command != nil:
		return in.command.ChannelID
	case in.press != nil:
		return in.press.Channel.ID + "/" + in.press.Container.MessageTS
	case in.agent != nil:
		return in.agent.Channel + "/" + in.agent.ThreadTS
	case in.said != nil:
		return in.said.Channel + "/" + in.said.TS
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

// chat returns the chat of a message. A message in a channel, or in a direct chat with the agent view,
// that is in no thread begins a thread with its answer.
func (e *event) chat(m *message) chats.Chat {
	chat := chats.Chat{Platform: Name, ID: e.Channel, Thread: m.ThreadTS}
	switch {
	case !e.isDirect() || e.threaded:
		chat.Thread = cmp.Or(m.ThreadTS, m.TS)
	case m.ThreadTS == m.TS:
		chat.Thread = "" // only replies have a thread
	}
	return chat
}

// fromPerson reports whether a message is neither from a bot nor from Slack itself.
func (m *message) fromPerson() bool {
	return m.User != "" && m.User != "USLACKBOT" && m.BotID == "" && m.TS != ""
}

// spoken reports whether messages of a subtype are written by users; others report that a user joined,
// or that a topic changed.
func spoken(subtype string) bool {
	return subtype == "" || subtype == "file_share" || subtype == "thread_broadcast" || subtype == "me_message"
}

// convert returns the message of an event; nil if it is not for the bot. An error means that this could
// not be determined.
func (r *receiver) convert(ctx context.Context, e *event) (*chats.Message, error) {
	m := e.subject()
	switch {
	case r.self.wrote(m.User, m.BotID):
		if m.ThreadTS != "" {
			r.join(ctx, e.chat(m), m.Parent)
		}
		return nil, nil
	case !r.serves(e.Channel, e.isDirect()):
		return nil, nil
	case !m.fromPerson():
		return r.overhear(e, m), nil
	case e.Subtype == "message_changed":
		return r.convertEdit(ctx, e)
	case !spoken(e.Subtype):
		return nil, nil
	}
	msg, w := r.compose(e, m)
	forBot, err := r.isForBot(ctx, e, msg, w.mentioned)
	if err != nil || !forBot && !r.hears(m, msg) {
		return nil, err
	}
	files := m.Files
	if r.name(e, m, msg, r.naming(ctx, forBot)); forBot {
		files = r.api.known(ctx, files)
	} else {
		msg.Kind, msg.Chat = chats.KindAmbient, msg.Chat.WithoutThread()
	}
	msg.Files, msg.Skipped = readAttached(files)
	if msg.Text == "" && len(msg.Files) == 0 && len(msg.Skipped) == 0 && len(msg.Quoted) == 0 {
		return nil, nil
	}
	return msg, nil
}

// overhear returns an ambient message for what a program, such as a bot or a workflow, has said in a
// channel, if ambient messages are wanted there; else nil. Programs cannot ask the bot.
func (r *receiver) overhear(e *event, m *message) *chats.Message {
	if e.Message != nil || m.BotID == "" || m.TS == "" || !spoken(m.Subtype) && m.Subtype != "bot_message" {
		return nil
	}
	msg, _ := r.compose(e, m)
	if !r.hears(m, msg) {
		return nil
	}
	if msg.Kind, msg.Chat = chats.KindAmbient, msg.Chat.WithoutThread(); m.User == "" {
		msg.User = m.BotID
	}
	msg.UserName, msg.Text = r.self.saying(m, r.knownName)
	msg.Quoted = r.self.pointed(m, e.Channel, r.knownName)
	msg.Files, msg.Skipped = readAttached(m.Files)
	if msg.Text == "" && len(msg.Files) == 0 && len(msg.Skipped) == 0 && len(msg.Quoted) == 0 {
		return nil
	}
	return msg
}

// compose makes a message of an event. Users in it have no names yet: they are looked up only for
// messages to the bot.
func (r *receiver) compose(e *event, m *message) (*chats.Message, words) {
	w := r.words(e, m, func(id string) string { return id })
	inside := m.ThreadTS != "" && m.ThreadTS != m.TS
	return &chats.Message{
		Chat:   e.chat(m),
		ID:     m.TS,
		Kind:   chats.KindText,
		User:   r.self.userID(m.User, m.team(), e.shared),
		Direct: e.isDirect(),
		Text:   w.text,
		Time:   stamp(m.TS),
		Inside: inside,
		Called: inside && (w.mentioned || e.Type == "app_mention"),
	}, w
}

// words reads the text of a message.
func (r *receiver) words(e *event, m *message, name names) words {
	w := r.self.read(m.Text, name)
	w.text = r.asCommand(w.text, e.isDirect() || w.called)
	return w
}

// name looks up the sender's name and the names in the text, and reads the quoted messages.
func (r *receiver) name(e *event, m *message, msg *chats.Message, name names) {
	msg.Text, msg.UserName = r.words(e, m, name).text, name(m.User)
	msg.Quoted = r.self.pointed(m, e.Channel, name)
}

// isForBot reports whether a message is direct, mentions the bot, or is in a thread in which the bot
// participates. It fills in what it has learned about the thread.
func (r *receiver) isForBot(ctx context.Context, e *event, msg *chats.Message, mentioned bool) (bool, error) {
	m := e.subject()
	inThread := m.ThreadTS != "" && m.ThreadTS != m.TS
	mentioned = mentioned || e.Type == "app_mention"
	msg.Opener = m.Parent
	switch {
	case e.isDirect():
		msg.Opener = msg.User
	case !inThread && !mentioned:
		return false, nil
	case !inThread:
		msg.Opener = msg.User
		r.join(ctx, msg.Chat, msg.User)
	default:
		if m.Parent != "" && m.Parent == r.self.user {
			r.join(ctx, msg.Chat, m.Parent)
		}
		if mentioned {
			r.join(ctx, msg.Chat, m.Parent)
			known, _ := r.recall(ctx, msg.Chat)
			msg.Opener = known.opener
			if known.opener != "" || !strings.HasPrefix(msg.Text, "/") {
				break // the opener is not needed
			}
		}
		// Messages from before the bot was called in are not for it when Slack delivers them again.
		key := e.Channel + "/" + m.TS
		if is, _ := r.ignored.Get(key); is && !mentioned {
			return false, nil
		}
		t, err := r.thread(ctx, r.self, msg.Chat)
		if err != nil {
			return false, fmt.Errorf("find out who takes part in %s: %w", msg.Chat, err)
		}
		if !t.joined {
			r.ignored.Put(key, true, ignoredAge)
			return false, nil
		}
		msg.Opener = cmp.Or(m.Parent, t.opener)
	}
	return true, nil
}

// convertEdit converts an edit of a text; link previews are edits as well. An edit that adds a mention
// speaks to the bot for the first time.
func (r *receiver) convertEdit(ctx context.Context, e *event) (*chats.Message, error) {
	m, before := e.Message, e.Previous
	if m == nil || before == nil || m.Text == before.Text && !addsQuote(before.Attachments, m.Attachments) || !spoken(m.Subtype) {
		return nil, nil
	}
	msg, w := r.compose(e, m)
	was := r.self.isMentioned(before.Text)
	if w.mentioned && !was && !e.isDirect() {
		if _, err := r.isForBot(ctx, e, msg, true); err != nil {
			return nil, err
		}
		r.name(e, m, msg, r.names(ctx))
		msg.Files, msg.Skipped = readAttached(r.api.known(ctx, m.Files))
		return msg, nil
	}
	if !e.isDirect() && m.ThreadTS == "" && !was {
		return nil, nil
	}
	// A message was for the bot if it has a job. Then its names are known.
	r.name(e, m, msg, r.knownName)
	msg.Kind = chats.KindEdit
	return msg, nil
}

// convertCommand converts a slash command to a message, or returns a reply for its user.
func (r *receiver) convertCommand(ctx context.Context, c *command) (*chats.Message, string) {
	direct := isDirectID(c.ChannelID)
	text := cmp.Or(strings.TrimSpace(unescape(c.Text)), "help")
	first, rest, _ := strings.Cut(text, " ")
	word := strings.ToLower(strings.TrimLeft(first, "/!"))
	info, is := r.command(word)
	switch {
	case !r.serves(c.ChannelID, direct):
		return nil, "I do not work in this channel. Write to me in a direct message."
	case info.OfThread && direct && r.self.agentView:
		return nil, fmt.Sprintf("Each conversation here is a thread, and Slack has no slash commands in threads: write “!%s” in the thread you mean.", word)
	case info.OfThread && !direct:
		return nil, fmt.Sprintf("A conversation in a channel is a thread, and Slack has no slash commands in threads: "+
			"mention me in the thread you mean, as in “@%s %s”.", r.self.name, word)
	case is:
		text = strings.TrimSpace("/" + word + " " + rest)
	case !direct:
		return nil, fmt.Sprintf("I do not know that command; “/oneclaw help” lists all of them. To talk to me, mention me: “@%s …”.", r.self.name)
	}
	if c.ResponseURL != "" {
		r.invited(ctx, c.ChannelID, shared.Invitation{ID: c.TriggerID, Command: true, Address: c.ResponseURL})
	}
	return &chats.Message{
		Chat: chats.Chat{Platform: Name, ID: c.ChannelID}, ID: c.TriggerID, Kind: chats.KindText,
		User: c.UserID, UserName: r.names(ctx)(c.UserID), Direct: direct, Opener: c.UserID, Text: text, Time: time.Now().UTC(),
	}, ""
}
