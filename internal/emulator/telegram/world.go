package telegram

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
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

// generalTopic is the topic every forum has. It is left out of messages and
// refused where a message is sent.
const generalTopic = 1

// world is what the service knows: people, chats, files. Guarded by Server.mu.
type world struct {
	users      map[int64]*User
	chats      map[int64]*chat
	order      []int64 // chats as they were made
	nextUser   int64
	nextGroup  int64
	nextSuper  int64
	nextShared int64 // message ids of private chats and basic groups are counted together
	files      fileStore
	callbacks  map[string]*Callback
	callbackID []string // oldest first
	commands   map[string]json.RawMessage
	answers    int
	albums     int
	ephemerals int64
}

func newWorld() world {
	return world{
		users: map[int64]*User{}, chats: map[int64]*chat{}, callbacks: map[string]*Callback{},
		commands: map[string]json.RawMessage{}, nextUser: 1000, nextGroup: -1000, nextSuper: -1001000000000,
		files: fileStore{byID: map[string]*file{}},
	}
}

type chat struct {
	id       int64
	kind     string
	title    string
	user     *User // of a private chat
	forum    bool
	topics   map[int64]string
	closed   map[int64]bool   // topics in which administrators alone write
	members  map[int64]string // user to status
	botAdmin bool
	blocked  bool // by the user
	kicked   bool
	migrated int64 // to which supergroup

	messages []*message
	byID     map[int64]*message
	answers  int // messages of the bot that are not deleted
	next     int64
	actions  []Action
	drafts   map[int64]Draft
	whispers []*message
}

type message struct {
	id      int64
	thread  int64
	from    User
	date    time.Time
	edited  time.Time
	body    markup.Text
	replyTo *message
	album   string
	file    *file
	markup  *botapi.Keyboard
	edits   []Edit
	deleted bool
	silent  bool
	cut     int
	react   []string
	theirs  map[int64]string // the reactions of people
	migTo   int64
	migFrom int64
	points  pointing
	// receiver alone sees an ephemeral message, which has a number of its own.
	receiver  *User
	ephemeral int64
}

// newID gives the next message id of a chat (core.telegram.org/api/updates, sequences):
// private chats and basic groups share
// one row of numbers, each supergroup has its own.
func (s *Server) newID(c *chat) int64 {
	if c.kind == Supergroup {
		c.next++
		return c.next
	}
	s.nextShared++
	return s.nextShared
}

// add puts a message into its chat and tells the observers.
func (s *Server) add(c *chat, m *message) {
	m.id = s.newID(c)
	m.date = s.cfg.Now()
	c.messages = append(c.messages, m)
	c.byID[m.id] = m
	s.tally(c, m, 1)
	if len(c.messages) > s.cfg.MaxMessages {
		gone := c.messages[0]
		delete(c.byID, gone.id)
		s.tally(c, gone, -1)
		c.messages[0] = nil
		c.messages = c.messages[1:]
	}
	s.emit(Event{Kind: EventMessage, Chat: c.id, Message: m.id}, c, m)
}

// tally counts the messages of the bot that stand.
func (s *Server) tally(c *chat, m *message, n int) {
	if m.from.IsBot && !m.deleted {
		c.answers += n
		s.answers += n
	}
}

// isBotMember says whether the bot may see the chat.
func (c *chat) isBotMember() bool { return !c.kicked && !c.blocked }

// find looks a chat up as the methods do. Where write is set, it also refuses
// chats the bot cannot write to.
func (s *Server) find(p *wire.Params, write bool) (*chat, *apiError) {
	raw := p.Text("chat_id")
	if raw == "" {
		return nil, badRequest("chat_id is empty") // Client.cpp
	}
	if strings.HasPrefix(raw, "@") {
		return nil, badRequest("chat not found") // Client.cpp
	}
	id, err := strconv.ParseInt(raw, 10, 64)
	c := s.chats[id]
	switch {
	case err != nil, c == nil:
		return nil, badRequest("chat not found") // Client.cpp
	case c.migrated != 0 && write:
		e := badRequest("group chat was upgraded to a supergroup chat") // Client.cpp
		e.migrateTo = c.migrated
		return nil, e
	case c.kicked && (write || c.kind == Supergroup):
		return nil, errorf(403, "Forbidden: bot was kicked from the %s chat", c.kind) // Client.cpp
	case c.blocked && write:
		return nil, errorf(403, "Forbidden: bot was blocked by the user") // Client.cpp
	}
	return c, nil
}

// thread checks a message_thread_id: an unknown topic is refused, and so is the
// General one, which is reached by leaving the id out.
func (c *chat) thread(p *wire.Params, general bool) (int64, *apiError) {
	id := p.Int("message_thread_id")
	if id == 0 || general && c.forum && id == generalTopic {
		return 0, nil
	}
	if _, ok := c.topics[id]; !ok || id == generalTopic {
		return 0, badRequest("message thread not found") // telegram-bot-api, Client.cpp
	}
	if c.closed[id] && !c.botAdmin {
		return 0, badRequest("TOPIC_CLOSED") // the error's name in td, DraftMessageManager.cpp
	}
	return id, nil
}

func (c *chat) wire() botapi.Chat {
	w := botapi.Chat{ID: c.id, Type: c.kind, Title: c.title, IsForum: c.forum && c.kind == Supergroup}
	if c.user != nil {
		w.Username, w.FirstName, w.LastName = c.user.Username, c.user.FirstName, c.user.LastName
	}
	return w
}

// wire builds the JSON of a message. A reply shows the message it replies to,
// whose own reply is left out.
func (m *message) wire(c *chat, withReply bool) *botapi.Message {
	from := m.from
	w := &botapi.Message{
		MessageID: m.id, ThreadID: m.thread, From: &from, Chat: c.wire(), Date: m.date.Unix(),
		IsTopicMessage: m.thread != 0, MediaGroupID: m.album, ReplyMarkup: m.markup,
		MigrateTo: m.migTo, MigrateFrom: m.migFrom, ReceiverUser: m.receiver, EphemeralID: m.ephemeral,
	}
	if !m.edited.IsZero() {
		w.EditDate = m.edited.Unix()
	}
	if m.replyTo != nil && withReply && !m.replyTo.deleted {
		w.ReplyToMessage = m.replyTo.wire(c, false)
	} else if withReply && m.thread != 0 && c.topics[m.thread] != "" {
		w.ReplyToMessage = c.topicHead(m.thread)
	}
	m.points.fill(w, withReply)
	if m.file == nil {
		w.Text, w.Entities = m.body.Plain, m.body.Entities
		return w
	}
	w.Caption, w.CaptionEntities = m.body.Plain, m.body.Entities
	switch m.file.kind {
	case KindPhoto:
		w.Photo = []botapi.File{m.file.wire()}
	case KindVoice:
		// Neither of the two has a name (core.telegram.org/bots/api#voice, #videonote).
		f := m.file.wire()
		f.FileName = ""
		w.Voice = &f
	case KindRound:
		f := m.file.wire()
		f.FileName, f.MimeType, f.Length = "", "", 240
		w.VideoNote = &f
	case KindAudio:
		f := m.file.wire()
		w.Audio = &f
	default:
		f := m.file.wire()
		w.Document = &f
	}
	return w
}

// observed is the message as observers see it.
func (m *message) observed(c *chat) Message {
	o := Message{
		Chat: c.id, ID: m.id, Thread: m.thread, From: m.from.ID, FromBot: m.from.IsBot, Date: m.date,
		Text: m.body.Plain, Entities: m.body.Entities, Edits: slices.Clone(m.edits), Deleted: m.deleted,
		Silent: m.silent, Cut: m.cut, Reactions: slices.Clone(m.react), Album: m.album,
	}
	if m.body.Mode == "html" {
		o.HTML = m.body.Source
	}
	if m.replyTo != nil {
		o.ReplyTo = m.replyTo.id
	}
	if m.file != nil {
		o.File = &File{Kind: m.file.kind, ID: m.file.id, Name: m.file.name, MIME: m.file.mime, Size: m.file.size, Data: m.file.data}
	}
	o.Buttons = m.markup.Buttons()
	if m.receiver != nil {
		o.Receiver, o.Ephemeral = m.receiver.ID, m.ephemeral
	}
	return o
}
