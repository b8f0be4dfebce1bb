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
	originChat    = "chat"
	originChannel = "channel"
)

// References are the messages that a message refers to, besides the message that it replies to.
type References struct {
	// Quote is the part of the replied-to message that the user has selected.
	Quote string `json:"quote"`
	// Forward makes the message a forwarded one.
	Forward *Origin `json:"forward"`
	// External makes the message a reply to a message in another chat.
	External *ExternalMessage `json:"external"`
}

// Origin says who wrote a message that is forwarded, or that is in another chat.
type Origin struct {
	// Kind is one of the Origin constants.
	Kind string `json:"kind"`
	// User is the author. For a hidden account, bots get only the name.
	User int64 `json:"user"`
	// Title is the name of a chat or channel, Signature that of the author.
	Title     string `json:"title"`
	Signature string `json:"signature"`
}

// ExternalMessage is a message in another chat.
type ExternalMessage struct {
	Origin Origin `json:"origin"`
	// Title is the name of the chat, if it is a group or channel.
	Title string `json:"title"`
	// Attachment is the file of the message. Bots get no text except a quote.
	Attachment *Attachment `json:"attachment"`
}

// messageReferences has the references of a message. A quote is from the message that is replied to.
type messageReferences struct {
	origin   *botapi.MessageOrigin
	external *botapi.ExternalReplyInfo
	quote    *botapi.Quote
}

// apply sets the references in the object of a message. A message that is replied to is included
// without its own reply and references, except its origin.
func (p *messageReferences) apply(w *botapi.Message, withReply bool) {
	w.ForwardOrigin = p.origin
	if withReply {
		w.ExternalReply, w.Quote = p.external, p.quote
	}
}

// setReferences checks and stores the references of a message.
func (w *world) setReferences(m *message, p References) (err error) {
	if p.Forward != nil && (m.replyTo != nil || p.External != nil || p.Quote != "") {
		return errors.New("telegram emulator: a forwarded message cannot be a reply")
	}
	if p.Forward != nil {
		if m.references.origin, err = w.newOrigin(*p.Forward); err != nil {
			return err
		}
	}
	if e := p.External; e != nil {
		if m.replyTo != nil {
			return errors.New("telegram emulator: a message can reply to one message only")
		}
		o, err := w.newOrigin(e.Origin)
		if err != nil {
			return err
		}
		m.references.external = &botapi.ExternalReplyInfo{Origin: *o, MessageID: 77}
		if e.Title != "" {
			m.references.external.Chat = &botapi.Chat{ID: -1009999999999, Type: Supergroup, Title: e.Title}
		}
		w.setExternalFile(m.references.external, e.Attachment)
	}
	return m.setQuote(p)
}

func (w *world) setExternalFile(e *botapi.ExternalReplyInfo, a *Attachment) {
	if a == nil {
		return
	}
	f := w.files.add(a.Kind, a.Name, a.MIME, slices.Clone(a.Data), a.Size).apiFile()
	switch a.Kind {
	case KindPhoto:
		e.Photo = []botapi.File{f}
	case KindVoice:
		e.Voice = &f
	default:
		e.Document = &f
	}
}

// setQuote stores the quote, an exact part of the replied-to message of at most 1,024 UTF-16 units
// (core.telegram.org/bots/api#replyparameters).
func (m *message) setQuote(p References) error {
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
		position = markup.UTF16Length(m.replyTo.body.Plain[:at])
	case p.External == nil:
		return errors.New("telegram emulator: a quote requires a replied-to message")
	}
	if markup.UTF16Length(p.Quote) > 1024 {
		return errors.New("telegram emulator: QUOTE_TEXT_INVALID")
	}
	m.references.quote = &botapi.Quote{Text: p.Quote, Position: position, IsManual: true}
	return nil
}

func (w *world) newOrigin(o Origin) (*botapi.MessageOrigin, error) {
	shown := &botapi.MessageOrigin{Type: o.Kind, Date: w.now().Unix() - 3600, AuthorSignature: o.Signature}
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
	case originChat:
		shown.SenderChat = &botapi.Chat{ID: -1008888888888, Type: Supergroup, Title: o.Title}
	case originChannel:
		shown.Chat, shown.MessageID = &botapi.Chat{ID: -1007777777777, Type: "channel", Title: o.Title}, 7
	default:
		return nil, fmt.Errorf("telegram emulator: unknown kind of origin %q", o.Kind)
	}
	return shown, nil
}

// topicHead returns the service message that began a topic. Messages in the topic that reply to no
// other message appear as replies to it. Bots see that although it is undocumented.
func (c *chat) topicHead(topic int64) *botapi.Message {
	return &botapi.Message{
		MessageID: topic, MessageThreadID: topic, Chat: c.apiChat(), IsTopicMessage: true, Date: 1,
		From:       new(groupAnonymousBot),
		References: botapi.References{ForumTopicCreated: &botapi.ForumTopicCreated{Name: c.topics[topic], IconColor: 7322096}},
	}
}
