package telegram

import (
	"cmp"
	"slices"
	"time"

	"oneclaw/internal/emulator/telegram/botapi"
	"oneclaw/internal/emulator/telegram/markup"
)

type message struct {
	id               int64
	thread           int64
	from             User
	date             time.Time
	edited           time.Time
	body             markup.Text
	replyTo          *message
	album            string
	file             *file
	contents         *botapi.Contents
	markup           *botapi.Keyboard
	edits            []Edit
	deleted          bool
	sentToBot        bool // the bot got the message
	silent           bool
	droppedResponses int
	botReactions     []string
	userReactions    map[int64]string // users' reactions
	migratedTo       int64
	migratedFrom     int64
	references       messageReferences
	// receiver is the only user who sees an ephemeral message. ephemeral is the message's own number.
	receiver  *User
	ephemeral int64
	// senderChat is the chat in whose name an administrator writes.
	senderChat *botapi.Chat
	topicUser  *User // user of the topic of a direct message
}

func (c *chat) apiChat() botapi.Chat {
	w := botapi.Chat{ID: c.id, Type: c.kind, Title: c.title, IsForum: c.forum && c.kind == Supergroup, IsDirectMessages: c.direct}
	if c.kind != Private {
		w.Title = cmp.Or(w.Title, "Group") // every group has a title
	}
	if c.user != nil {
		w.Username, w.FirstName, w.LastName = c.user.Username, c.user.FirstName, c.user.LastName
	}
	return w
}

// apiMessage returns the JSON object for a message. A reply includes the message that it replies to,
// without the latter's own reply.
func (m *message) apiMessage(c *chat, withReply bool) *botapi.Message {
	from := m.from
	w := &botapi.Message{
		MessageID: m.id, MessageThreadID: m.thread, From: &from, Chat: c.apiChat(), Date: m.date.Unix(),
		IsTopicMessage: m.thread != 0, MediaGroupID: m.album, ReplyMarkup: m.markup,
		MigrateToChatID: m.migratedTo, MigrateFromChatID: m.migratedFrom, ReceiverUser: m.receiver, EphemeralMessageID: m.ephemeral,
	}
	switch w.SenderChat = m.senderChat; {
	case m.senderChat == nil:
	case m.senderChat.ID == c.id:
		w.From = new(groupAnonymousBot)
	case m.senderChat.Type == "channel":
		w.From = new(channelBot)
	}
	if c.direct {
		w.MessageThreadID, w.IsTopicMessage = 0, false
		w.DirectMessagesTopic = &botapi.DirectMessagesTopic{TopicID: m.thread, User: m.topicUser}
	}
	if !m.edited.IsZero() {
		w.EditDate = m.edited.Unix()
	}
	if m.replyTo != nil && withReply && !m.replyTo.deleted {
		w.ReplyToMessage = m.replyTo.apiMessage(c, false)
	} else if withReply && m.thread != 0 && c.topics[m.thread] != "" {
		w.ReplyToMessage = c.topicHead(m.thread)
	}
	m.references.apply(w, withReply)
	w.Contents = m.contents
	if m.file == nil {
		w.Text, w.Entities = m.body.Plain, m.body.Entities
		return w
	}
	w.Caption, w.CaptionEntities = m.body.Plain, m.body.Entities
	f := m.file.apiFile()
	switch m.file.kind {
	case KindPhoto:
		w.Photo = []botapi.File{f}
	case KindVoice:
		w.Voice = &f
	case kindRound:
		w.VideoNote = &f
	case KindAudio:
		w.Audio = &f
	default:
		w.Document = &f
	}
	return w
}

// observedMessage returns the message as observers see it.
func (m *message) observedMessage(c *chat) Message {
	o := Message{
		Chat: c.id, ID: m.id, Thread: m.thread, From: m.from.ID, FromBot: m.from.IsBot, Date: m.date,
		Text: m.body.Plain, Entities: m.body.Entities, Edits: slices.Clone(m.edits), Deleted: m.deleted,
		Contents: m.contents, Silent: m.silent, DroppedResponses: m.droppedResponses, Reactions: slices.Clone(m.botReactions), Album: m.album,
	}
	if m.body.ParseMode == "html" {
		o.HTML = m.body.Source
	}
	if from := m.references.origin; from != nil {
		o.Forwarded = from.Name()
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
