package telegram

import (
	"cmp"
	"slices"
	"time"

	"oneclaw/internal/emulator/telegram/botapi"
	"oneclaw/internal/emulator/telegram/markup"
)

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
	known   bool // the bot was told about it
	silent  bool
	cut     int
	react   []string
	theirs  map[int64]string // people's reactions
	migTo   int64
	migFrom int64
	points  pointing
	// receiver is the only user who sees an ephemeral message, which has its own number.
	receiver  *User
	ephemeral int64
}

func (c *chat) wire() botapi.Chat {
	w := botapi.Chat{ID: c.id, Type: c.kind, Title: c.title, IsForum: c.forum && c.kind == Supergroup}
	if c.kind != Private {
		w.Title = cmp.Or(w.Title, "Group") // every group has one
	}
	if c.user != nil {
		w.Username, w.FirstName, w.LastName = c.user.Username, c.user.FirstName, c.user.LastName
	}
	return w
}

// wire returns the JSON of a message. A reply includes the message it replies to, without that
// one's own reply.
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
	f := m.file.wire()
	switch m.file.kind {
	case KindPhoto:
		w.Photo = []botapi.File{f}
	case KindVoice:
		w.Voice = &f
	case KindRound:
		w.VideoNote = &f
	case KindAudio:
		w.Audio = &f
	default:
		w.Document = &f
	}
	return w
}

// observed returns the message as observers see it.
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
