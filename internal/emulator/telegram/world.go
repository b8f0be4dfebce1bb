package telegram

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"oneclaw/internal/emulator/telegram/botapi"
	"oneclaw/internal/emulator/telegram/markup"
	"oneclaw/internal/emulator/wire"
)

// Kinds of chats.
const (
	Private    = "private"
	Group      = "group"
	Supergroup = "supergroup"
)

// Statuses of members.
const (
	Creator       = "creator"
	Administrator = "administrator"
	Member        = "member"
	left          = "left"
	Kicked        = "kicked"
)

// generalTopic is the id of the topic that every forum has. Messages do not name it, and the service
// refuses to send to it.
const generalTopic = 1

// world is the data of the service: users, chats with their messages, and files. Every change emits
// an event to the observers, and wakes the functions that wait for a condition. The fields of other
// parts of a [Server] are guarded by the same lock.
//
// Callers of its methods, and users of the fields below mu, must hold the
// lock.
type world struct {
	bot         User
	now         func() time.Time
	maxMessages int // bound of the stored messages per chat
	hub         *wire.Hub[int64, Message]

	mu               sync.Mutex
	users            map[int64]*User
	chats            map[int64]*chat
	chatOrder        []int64 // ids of chats in the order of creation
	nextUser         int64
	nextGroup        int64
	nextSuper        int64
	nextShared       int64 // private chats and basic groups share message ids
	files            fileStore
	callbacks        map[string]*Callback
	callbackOrder    []string // ids of callbacks, the oldest first
	commands         map[string]json.RawMessage
	answerCount      int
	albumCount       int
	ephemeralCount   int64
	droppedResponses int // number of accepted calls whose response was dropped
}

func newWorld(cfg *Config, bot User) *world {
	return &world{
		bot: bot, now: cfg.Now, maxMessages: cfg.MaxMessages,
		users: map[int64]*User{}, chats: map[int64]*chat{}, callbacks: map[string]*Callback{},
		commands: map[string]json.RawMessage{}, nextUser: 1000, nextGroup: -1000, nextSuper: -1001000000000,
		files: fileStore{byID: map[string]*file{}},
	}
}

type chat struct {
	id         int64
	kind       string
	title      string
	user       *User // of a private chat
	forum      bool
	direct     bool // direct messages of a channel; a topic is the thread of its messages
	topics     map[int64]string
	closed     map[int64]bool   // topics in which only administrators write
	members    map[int64]string // user to status
	botAdmin   bool
	blocked    bool // the user blocked the bot
	kicked     bool
	migratedTo int64 // id of the supergroup that replaced the chat

	messages    []*message
	byID        map[int64]*message
	answerCount int // messages of the bot that are not deleted
	pinned      []int64
	lastID      int64
	actions     []Action
	drafts      map[int64]Draft
	ephemeral   []*message
}

func (w *world) addUser(u User) User {
	if u.ID == 0 {
		for w.nextUser++; w.users[w.nextUser] != nil; w.nextUser++ {
			continue
		}
		u.ID = w.nextUser
	}
	if u.FirstName == "" {
		u.FirstName = fmt.Sprintf("User %d", u.ID)
	}
	w.users[u.ID] = &u
	return u
}

func (w *world) addChat(spec ChatSpec) (int64, error) {
	c := &chat{
		id: spec.ID, kind: spec.Kind, title: spec.Title, forum: spec.Forum, direct: spec.DirectMessages, botAdmin: spec.BotAdmin || spec.DirectMessages,
		topics: map[int64]string{}, closed: map[int64]bool{}, members: map[int64]string{}, byID: map[int64]*message{}, drafts: map[int64]Draft{},
	}
	switch spec.Kind {
	case Private:
		c.id, c.title, c.user = spec.User, "", w.users[spec.User]
		if c.user == nil {
			return 0, fmt.Errorf("telegram emulator: private chat with unknown user %d", spec.User)
		}
	case Group, Supergroup:
		if err := w.fillGroup(c, spec); err != nil {
			return 0, err
		}
	default:
		return 0, fmt.Errorf("telegram emulator: unknown kind of chat %q", spec.Kind)
	}
	if w.chats[c.id] != nil {
		return 0, fmt.Errorf("telegram emulator: chat %d exists", c.id)
	}
	if c.forum {
		c.topics[generalTopic] = "General"
	}
	w.chats[c.id] = c
	w.chatOrder = append(w.chatOrder, c.id)
	w.hub.Wake()
	return c.id, nil
}

func (w *world) fillGroup(c *chat, spec ChatSpec) error {
	if spec.Forum && spec.Kind != Supergroup {
		return errors.New("telegram emulator: only supergroups and private chats have topics")
	}
	if spec.DirectMessages && (spec.Kind != Supergroup || spec.Forum) {
		return errors.New("telegram emulator: direct messages of a channel are a supergroup that is no forum")
	}
	if c.id == 0 && spec.Kind == Group {
		w.nextGroup--
		c.id = w.nextGroup
	} else if c.id == 0 {
		w.nextSuper--
		c.id = w.nextSuper
	}
	if c.id >= 0 {
		return fmt.Errorf("telegram emulator: id %d of a group is not negative", c.id)
	}
	add := func(status string, ids ...int64) error {
		for _, id := range ids {
			if w.users[id] == nil {
				return fmt.Errorf("telegram emulator: unknown member %d", id)
			}
			c.members[id] = status
		}
		return nil
	}
	err := errors.Join(add(Member, spec.Members...), add(Administrator, spec.Admins...))
	if spec.User != 0 {
		err = errors.Join(err, add(Creator, spec.User))
	}
	return err
}

// newMessageID returns the next message id of a chat (core.telegram.org/api/updates, sequences).
// Private chats and basic groups share a sequence; each supergroup has its own.
func (w *world) newMessageID(c *chat) int64 {
	if c.kind == Supergroup {
		c.lastID++
		return c.lastID
	}
	w.nextShared++
	return w.nextShared
}

// addMessage adds a message to its chat and emits the event.
func (w *world) addMessage(c *chat, m *message) {
	m.id = w.newMessageID(c)
	m.date = w.now()
	c.messages = append(c.messages, m)
	c.byID[m.id] = m
	w.countAnswer(c, m, 1)
	if len(c.messages) > w.maxMessages {
		gone := c.messages[0]
		delete(c.byID, gone.id)
		w.countAnswer(c, gone, -1)
		c.messages[0] = nil
		c.messages = c.messages[1:]
	}
	w.emit(event{Kind: EventMessage, Chat: c.id, Message: m.id}, c, m)
}

// countAnswer adds n to the counts of answers if the message is an answer of the bot.
func (w *world) countAnswer(c *chat, m *message, n int) {
	if m.from.IsBot && !m.deleted {
		c.answerCount += n
		w.answerCount += n
	}
}

// isBotMember reports whether the bot is in the chat and not blocked.
func (c *chat) isBotMember() bool { return !c.kicked && !c.blocked }

// maxEdits bounds the stored edits of a message. A long streamed answer has a few hundred.
const maxEdits = 1000

// revise changes the content of a message and records the previous content.
func (w *world) revise(c *chat, m *message, body markup.Text, keys *botapi.Keyboard) {
	if len(m.edits) < maxEdits {
		m.edits = append(m.edits, Edit{At: w.now(), Text: m.body.Plain, Buttons: m.markup.Buttons()})
	}
	m.body, m.markup, m.edited = body, keys, w.now()
	kind := eventEdit
	if m.ephemeral != 0 {
		kind = eventEphemeral
	}
	w.emit(event{Kind: kind, Chat: c.id, Message: m.id}, c, m)
}

// remove deletes a message.
func (w *world) remove(c *chat, m *message) {
	w.countAnswer(c, m, -1)
	m.deleted = true
	w.emit(event{Kind: eventDelete, Chat: c.id, Message: m.id}, c, m)
}

// recordDropped records, also on the call's message, that the response to a call was dropped.
func (w *world) recordDropped(result any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.droppedResponses++
	shown, ok := result.(*botapi.Message)
	if !ok {
		return
	}
	c := w.chats[shown.Chat.ID]
	if m := c.byID[shown.MessageID]; m != nil {
		m.droppedResponses++
		w.emit(event{Kind: eventCut, Chat: c.id, Message: m.id}, c, m)
	}
}

// findChatAndUser returns a chat and a user by their ids.
func (w *world) findChatAndUser(chatID, userID int64) (*chat, *User, error) {
	c, u := w.chats[chatID], w.users[userID]
	if c == nil {
		return nil, nil, fmt.Errorf("telegram emulator: unknown chat %d", chatID)
	}
	if u == nil {
		return nil, nil, fmt.Errorf("telegram emulator: unknown user %d", userID)
	}
	return c, u, nil
}

// findWriter returns a chat and a user. The error says why the user may not write to the chat.
func (w *world) findWriter(chatID, userID int64) (*chat, *User, error) {
	c, u, err := w.findChatAndUser(chatID, userID)
	if err != nil {
		return nil, nil, err
	}
	switch st := c.members[userID]; {
	case c.migratedTo != 0:
		return nil, nil, fmt.Errorf("telegram emulator: chat %d has become %d", chatID, c.migratedTo)
	case c.kind == Private && c.user.ID != userID,
		c.kind != Private && (st == "" || st == left || st == Kicked):
		return nil, nil, fmt.Errorf("telegram emulator: user %d is not in chat %d", userID, chatID)
	}
	return c, u, nil
}

// chatMember returns a user, or the bot, as a member of a chat.
func (w *world) chatMember(c *chat, u User) botapi.Member {
	m := botapi.Member{User: u, Status: cmp.Or(c.members[u.ID], left)}
	if u.ID == w.bot.ID {
		switch {
		case c.kicked || c.blocked:
			m.Status = Kicked
		case c.botAdmin:
			m.Status = Administrator
		default:
			m.Status = Member
		}
	} else if c.kind == Private && c.user.ID == u.ID {
		m.Status = Member
	}
	switch m.Status {
	case Kicked:
		m.UntilDate = new(int)
	case "restricted":
		m.UntilDate, m.RestrictedRights = new(int), &botapi.RestrictedRights{IsMember: true}
		m.CanChangeInfo, m.CanInviteUsers = new(bool), new(bool)
	case Creator:
		m.IsAnonymous = new(bool)
	case Administrator:
		m.IsAnonymous, m.AdministratorRights = new(bool), &botapi.AdministratorRights{CanManageChat: true, CanDeleteMessages: true}
		m.CanChangeInfo, m.CanInviteUsers = new(bool), new(bool)
	}
	return m
}
