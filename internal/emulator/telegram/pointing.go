package telegram

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
)

// Kinds of origins (core.telegram.org/bots/api#messageorigin).
const (
	OriginUser    = "user"
	OriginHidden  = "hidden_user"
	OriginChat    = "chat"
	OriginChannel = "channel"
)

// Pointers are what a message points at, besides the message of its chat that it answers.
type Pointers struct {
	// Quote is the part of the message replied to that the person has chosen.
	Quote string `json:"quote"`
	// Forward makes the message one that the person passes on.
	Forward *Origin `json:"forward"`
	// External makes it the answer to a message of another chat.
	External *External `json:"external"`
}

// Origin says where a message was first written.
type Origin struct {
	// Kind is one of those above.
	Kind string `json:"kind"`
	// User is who wrote it. Of somebody who hides their account bots are told the name alone.
	User int64 `json:"user"`
	// Title is the name of a chat or channel, Signature that of who wrote in its name.
	Title     string `json:"title"`
	Signature string `json:"signature"`
}

// External is a message of another chat.
type External struct {
	Origin Origin `json:"origin"`
	// Title is the name of the chat, where that is a group or channel.
	Title string `json:"title"`
	// Attachment came with it. Of its text bots are told nothing but a quote.
	Attachment *Attachment `json:"attachment"`
}

// wirePointers are the fields of a message in which that shows
// (core.telegram.org/bots/api#message).
type wirePointers struct {
	ForwardOrigin     *wireOrigin     `json:"forward_origin,omitempty"`
	ExternalReply     *wireExternal   `json:"external_reply,omitempty"`
	Quote             *wireQuote      `json:"quote,omitempty"`
	ForumTopicCreated *wireTopicStart `json:"forum_topic_created,omitempty"`
}

type wireTopicStart struct {
	Name      string `json:"name"`
	IconColor int    `json:"icon_color"`
}

type wireOrigin struct {
	Type           string    `json:"type"`
	Date           int64     `json:"date"`
	SenderUser     *User     `json:"sender_user,omitempty"`
	SenderUserName string    `json:"sender_user_name,omitempty"`
	SenderChat     *wireChat `json:"sender_chat,omitempty"`
	Chat           *wireChat `json:"chat,omitempty"`
	MessageID      int64     `json:"message_id,omitempty"`
	Signature      string    `json:"author_signature,omitempty"`
}

// wireExternal has no text (core.telegram.org/bots/api#externalreplyinfo).
type wireExternal struct {
	Origin    wireOrigin `json:"origin"`
	Chat      *wireChat  `json:"chat,omitempty"`
	MessageID int64      `json:"message_id,omitempty"`
	Document  *wireFile  `json:"document,omitempty"`
	Voice     *wireFile  `json:"voice,omitempty"`
	Photo     []wireFile `json:"photo,omitempty"`
}

type wireQuote struct {
	Text     string   `json:"text"`
	Entities []Entity `json:"entities,omitempty"`
	Position int      `json:"position"`
	IsManual bool     `json:"is_manual,omitempty"`
}

// pointing is what a message points at. A quote belongs to the message replied to.
type pointing struct {
	origin   *wireOrigin
	external *wireExternal
	quote    *wireQuote
}

// fill shows what a message points at. Of a message that is replied to, its own reply is left
// out, and so are these but where it comes from.
func (p *pointing) fill(w *wireMessage, withReply bool) {
	w.ForwardOrigin = p.origin
	if withReply {
		w.ExternalReply, w.Quote = p.external, p.quote
	}
}

// pointAt checks and keeps what a message points at.
func (s *Server) pointAt(m *message, p Pointers) (err error) {
	if p.Forward != nil && (m.replyTo != nil || p.External != nil || p.Quote != "") {
		return errors.New("telegram emulator: what is forwarded answers nothing")
	}
	if p.Forward != nil {
		if m.points.origin, err = s.origin(*p.Forward); err != nil {
			return err
		}
	}
	if e := p.External; e != nil {
		if m.replyTo != nil {
			return errors.New("telegram emulator: a message answers one message")
		}
		o, err := s.origin(e.Origin)
		if err != nil {
			return err
		}
		m.points.external = &wireExternal{Origin: *o, MessageID: 77}
		if e.Title != "" {
			m.points.external.Chat = &wireChat{ID: -1009999999999, Type: Supergroup, Title: e.Title}
		}
		s.attachExternal(m.points.external, e.Attachment)
	}
	return s.quote(m, p)
}

func (s *Server) attachExternal(e *wireExternal, a *Attachment) {
	if a == nil {
		return
	}
	f := s.files.put(a.Kind, a.Name, a.MIME, slices.Clone(a.Data), a.Size, s.cfg.MaxFiles).wire()
	switch a.Kind {
	case KindPhoto:
		e.Photo = []wireFile{f}
	case KindVoice:
		e.Voice = &f
	default:
		e.Document = &f
	}
}

// quote keeps the part that was chosen: an exact part of what is replied to, of at most 1,024
// UTF-16 units (core.telegram.org/bots/api#replyparameters).
func (s *Server) quote(m *message, p Pointers) error {
	if p.Quote == "" {
		return nil
	}
	position := 0
	switch {
	case m.replyTo != nil:
		at := strings.Index(m.replyTo.body.text, p.Quote)
		if at < 0 {
			return errors.New("telegram emulator: QUOTE_TEXT_INVALID")
		}
		position = len(utf16.Encode([]rune(m.replyTo.body.text[:at])))
	case p.External == nil:
		return errors.New("telegram emulator: a quote of nothing")
	}
	if len(utf16.Encode([]rune(p.Quote))) > 1024 {
		return errors.New("telegram emulator: QUOTE_TEXT_INVALID")
	}
	m.points.quote = &wireQuote{Text: p.Quote, Position: position, IsManual: true}
	return nil
}

func (s *Server) origin(o Origin) (*wireOrigin, error) {
	w := &wireOrigin{Type: o.Kind, Date: s.cfg.Now().Unix() - 3600, Signature: o.Signature}
	u := s.users[o.User]
	switch o.Kind {
	case OriginUser, OriginHidden:
		if o.User == s.bot.ID {
			u = &s.bot
		}
		if u == nil {
			return nil, fmt.Errorf("telegram emulator: unknown user %d", o.User)
		}
		if w.SenderUser = u; o.Kind == OriginHidden {
			w.SenderUser, w.SenderUserName = nil, strings.TrimSpace(u.FirstName+" "+u.LastName)
		}
	case OriginChat:
		w.SenderChat = &wireChat{ID: -1008888888888, Type: Supergroup, Title: o.Title}
	case OriginChannel:
		w.Chat, w.MessageID = &wireChat{ID: -1007777777777, Type: "channel", Title: o.Title}, 7
	default:
		return nil, fmt.Errorf("telegram emulator: unknown kind of origin %q", o.Kind)
	}
	return w, nil
}

// topicHead is the service message that began a topic. Whatever is said in the topic and
// answers nothing else seems to answer it, which bots see and the page about messages does not say.
func (c *chat) topicHead(topic int64) *wireMessage {
	return &wireMessage{
		MessageID: topic, ThreadID: topic, Chat: c.wire(), IsTopicMessage: true, Date: 1,
		From:         &User{ID: 1087968824, FirstName: "Group", IsBot: true, Username: "GroupAnonymousBot"},
		wirePointers: wirePointers{ForumTopicCreated: &wireTopicStart{Name: c.topics[topic], IconColor: 7322096}},
	}
}
