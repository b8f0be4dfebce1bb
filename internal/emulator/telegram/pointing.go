package telegram

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"oneclaw/internal/emulator/telegram/botapi"
	"oneclaw/internal/emulator/telegram/markup"
)

// Kinds of origins (core.telegram.org/bots/api#messageorigin).
const (
	OriginUser    = "user"
	OriginHidden  = "hidden_user"
	OriginChat    = "chat"
	OriginChannel = "channel"
)

// Pointers are references of a message besides the message that it replies to.
type Pointers struct {
	// Quote is the part of the replied message that the person has selected.
	Quote string `json:"quote"`
	// Forward makes it a forwarded message.
	Forward *Origin `json:"forward"`
	// External makes it a reply to a message of another chat.
	External *External `json:"external"`
}

// Origin is the origin of a forwarded message.
type Origin struct {
	// Kind is one of those above.
	Kind string `json:"kind"`
	// User is the author. Of a hidden account bots only get the name.
	User int64 `json:"user"`
	// Title is the name of a chat or channel, Signature that of the author.
	Title     string `json:"title"`
	Signature string `json:"signature"`
}

// External is a message of another chat.
type External struct {
	Origin Origin `json:"origin"`
	// Title is the name of the chat if it is a group or channel.
	Title string `json:"title"`
	// Attachment is its file. Bots get no text but a quote.
	Attachment *Attachment `json:"attachment"`
}

// pointing has a message's references. A quote belongs to the message replied to.
type pointing struct {
	origin   *botapi.Origin
	external *botapi.External
	quote    *botapi.Quote
}

// fill adds the references of a message. A message that is replied to is shown without its own
// reply and references, except its origin.
func (p *pointing) fill(w *botapi.Message, withReply bool) {
	w.ForwardOrigin = p.origin
	if withReply {
		w.ExternalReply, w.Quote = p.external, p.quote
	}
}

// pointAt checks and stores the references of a message.
func (w *world) pointAt(m *message, p Pointers) (err error) {
	if p.Forward != nil && (m.replyTo != nil || p.External != nil || p.Quote != "") {
		return errors.New("telegram emulator: what is forwarded answers nothing")
	}
	if p.Forward != nil {
		if m.points.origin, err = w.origin(*p.Forward); err != nil {
			return err
		}
	}
	if e := p.External; e != nil {
		if m.replyTo != nil {
			return errors.New("telegram emulator: a message answers one message")
		}
		o, err := w.origin(e.Origin)
		if err != nil {
			return err
		}
		m.points.external = &botapi.External{Origin: *o, MessageID: 77}
		if e.Title != "" {
			m.points.external.Chat = &botapi.Chat{ID: -1009999999999, Type: Supergroup, Title: e.Title}
		}
		w.attachExternal(m.points.external, e.Attachment)
	}
	return m.quote(p)
}

func (w *world) attachExternal(e *botapi.External, a *Attachment) {
	if a == nil {
		return
	}
	f := w.files.put(a.Kind, a.Name, a.MIME, slices.Clone(a.Data), a.Size).wire()
	switch a.Kind {
	case KindPhoto:
		e.Photo = []botapi.File{f}
	case KindVoice:
		e.Voice = &f
	default:
		e.Document = &f
	}
}

// quote stores the quote: an exact part of the replied message, of at most 1,024 UTF-16 units
// (core.telegram.org/bots/api#replyparameters).
func (m *message) quote(p Pointers) error {
	if p.Quote == "" {
		return nil
	}
	position := 0
	switch {
	case m.replyTo != nil:
		at := strings.Index(m.replyTo.body.Plain, p.Quote)
		if at < 0 {
			return errors.New("telegram emulator: QUOTE_TEXT_INVALID")
		}
		position = markup.Length(m.replyTo.body.Plain[:at])
	case p.External == nil:
		return errors.New("telegram emulator: a quote of nothing")
	}
	if markup.Length(p.Quote) > 1024 {
		return errors.New("telegram emulator: QUOTE_TEXT_INVALID")
	}
	m.points.quote = &botapi.Quote{Text: p.Quote, Position: position, IsManual: true}
	return nil
}

func (w *world) origin(o Origin) (*botapi.Origin, error) {
	shown := &botapi.Origin{Type: o.Kind, Date: w.now().Unix() - 3600, Signature: o.Signature}
	u := w.users[o.User]
	switch o.Kind {
	case OriginUser, OriginHidden:
		if o.User == w.bot.ID {
			u = &w.bot
		}
		if u == nil {
			return nil, fmt.Errorf("telegram emulator: unknown user %d", o.User)
		}
		if shown.SenderUser = u; o.Kind == OriginHidden {
			shown.SenderUser, shown.SenderUserName = nil, strings.TrimSpace(u.FirstName+" "+u.LastName)
		}
	case OriginChat:
		shown.SenderChat = &botapi.Chat{ID: -1008888888888, Type: Supergroup, Title: o.Title}
	case OriginChannel:
		shown.Chat, shown.MessageID = &botapi.Chat{ID: -1007777777777, Type: "channel", Title: o.Title}, 7
	default:
		return nil, fmt.Errorf("telegram emulator: unknown kind of origin %q", o.Kind)
	}
	return shown, nil
}

// topicHead returns the service message that began a topic. Messages in the topic that reply to
// nothing else appear as replies to it, which bots see although it is undocumented.
func (c *chat) topicHead(topic int64) *botapi.Message {
	return &botapi.Message{
		MessageID: topic, ThreadID: topic, Chat: c.wire(), IsTopicMessage: true, Date: 1,
		From:     &User{ID: 1087968824, FirstName: "Group", IsBot: true, Username: "GroupAnonymousBot"},
		Pointers: botapi.Pointers{ForumTopicCreated: &botapi.TopicStart{Name: c.topics[topic], IconColor: 7322096}},
	}
}
