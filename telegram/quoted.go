package telegram

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"oneclaw/bridge/chats"
)

// pointers are the fields in which a message refers to others. They are decoded separately, so that
// unexpected data in them does not affect the message.
type pointers struct {
	External json.RawMessage `json:"external_reply"`
	Quote    json.RawMessage `json:"quote"`
	Origin   json.RawMessage `json:"forward_origin"`
}

// origin is the origin of a message (core.telegram.org/bots/api#messageorigin). A user who hides their
// account has only a name.
type origin struct {
	Type      string `json:"type"`
	Date      int64  `json:"date"`
	User      *user  `json:"sender_user"`
	Hidden    string `json:"sender_user_name"`
	Sender    *chat  `json:"sender_chat"`
	Chat      *chat  `json:"chat"`
	Signature string `json:"author_signature"`
}

func (m *message) isForward() bool { return present(m.Origin) }

// isForeign reports whether the sender passes on what another user, chat or bot has written: a forward,
// or the result of an inline bot.
func (m *message) isForeign() bool { return m.isForward() || m.ViaBot != nil }

// point fills in the quotes of a message. No text of a foreign message is the sender's own.
func (d *decoder) point(m *message, msg *chats.Message) {
	var list []chats.Quoted
	if q, ok := d.reply(m); ok {
		list = append(list, q)
	}
	if m.isForeign() {
		q := chats.Quoted{How: chats.PointForward, Files: msg.Files}
		if m.ViaBot != nil {
			q.By = m.ViaBot.name()
		}
		d.written(m.Origin, &q)
		q.Text = m.plain()
		msg.Text, msg.Files = "", nil
		if !q.Empty() || len(msg.Skipped) > 0 {
			list = append(list, q)
		}
	}
	msg.Quoted = chats.Bound(list)
}

// reply returns the message that m replies to: one of the chat, or of another chat, of which Telegram
// only has the selected text.
func (d *decoder) reply(m *message) (q chats.Quoted, ok bool) {
	q.How = chats.PointReply
	switch {
	case m.ReplyTo != nil && !present(m.ReplyTo.TopicCreated):
		d.answered(m.ReplyTo.whole, &q)
	case present(m.External):
		d.external(m.External, &q)
	}
	var part struct {
		Text     string   `json:"text"`
		Entities []entity `json:"entities"`
		Manual   bool     `json:"is_manual"`
	}
	if present(m.Quote) && json.Unmarshal(m.Quote, &part) == nil && part.Text != "" && (part.Manual || q.Text == "") {
		q.Text, q.Part = plain(part.Text, part.Entities), true
	}
	return q, !q.Empty()
}

// answered decodes a message of the same chat.
func (d *decoder) answered(raw json.RawMessage, q *chats.Quoted) {
	var r message
	if json.Unmarshal(raw, &r) != nil {
		return
	}
	switch {
	case r.SenderChat != nil:
		q.By = tidy(cmp.Or(r.SenderChat.Title, r.SenderChat.Username))
	case r.ViaBot != nil:
		q.By = r.ViaBot.name()
	case r.From != nil:
		q.By, q.Own = r.From.name(), r.From.ID == d.self.ID
	}
	if present(r.Origin) {
		forwarded := *q
		d.written(r.Origin, &forwarded)
		q.By, q.Own, q.From = forwarded.By, forwarded.Own, forwarded.From
	}
	r.readContents(raw)
	q.Text = r.plain()
	q.Files, q.Skipped = r.attachments(raw)
	q.ID = strconv.FormatInt(r.ID, 10)
	if r.Date > 0 { // 0 if it is too old for bots to see
		q.Time = time.Unix(r.Date, 0).UTC()
	}
}

// external decodes a message of another chat.
func (d *decoder) external(raw json.RawMessage, q *chats.Quoted) {
	var r struct {
		message
		Origin json.RawMessage `json:"origin"`
	}
	if json.Unmarshal(raw, &r) != nil {
		return
	}
	q.From = tidy(cmp.Or(r.Chat.Title, r.Chat.Username))
	d.written(r.Origin, q)
	r.readContents(raw)
	q.Text = r.plain()
	q.Files, q.Skipped = r.attachments(raw)
}

// written fills in the author and the time of a quote.
func (d *decoder) written(raw json.RawMessage, q *chats.Quoted) {
	var o origin
	if json.Unmarshal(raw, &o) != nil {
		return
	}
	title := func(c *chat) string { return tidy(cmp.Or(c.Title, c.Username)) }
	switch {
	case o.User != nil:
		q.By, q.Own = o.User.name(), o.User.ID == d.self.ID
	case o.Hidden != "":
		q.By = tidy(o.Hidden)
	case o.Sender != nil:
		q.By = title(o.Sender)
	case o.Chat != nil:
		q.By, q.From = tidy(o.Signature), title(o.Chat)
		if q.By == "" {
			q.By, q.From = q.From, ""
		}
	}
	if o.Date > 0 {
		q.Time = time.Unix(o.Date, 0).UTC()
	}
}

// words returns the text of a message with its entities: or else its caption, or else the text of its
// contents.
func (m *message) words() (string, []entity) {
	switch {
	case strings.TrimSpace(m.Text) != "":
		return m.Text, m.Entities
	case strings.TrimSpace(m.Caption) != "":
		return m.Caption, m.CaptionEntities
	}
	return m.told, m.toldEntities
}

// plain returns the full text of a message.
func (m *message) plain() string { return plain(m.words()) }

// plain returns a text with the addresses of links that do not show. It removes no mention: the text
// was not addressed to the bot.
func plain(text string, entities []entity) string {
	units := utf16.Encode([]rune(text))
	var edits []edit
	for _, e := range entities {
		s, ok := e.span(len(units))
		if ok && e.Type == "text_link" && e.URL != "" && e.URL != string(utf16.Decode(units[s.from:s.to])) {
			edits = append(edits, edit{span{s.to, s.to}, " (" + e.URL + ")"})
		}
	}
	return strings.TrimSpace(apply(units, edits, 0, len(units)))
}

// hears reports whether a message of a group is wanted although it is not for the bot.
func (d *decoder) hears(m *message) bool {
	return d.listens != nil && m.Chat.ID != 0 && d.listens(chatOf(m.Chat.ID))
}

// listening returns the function with which an inbox selects ambient messages; nil if it has none.
func listening(in chats.Inbox) func(chats.Chat) bool {
	if l, ok := in.(chats.AmbientInbox); ok {
		return l.WantsAmbient
	}
	return nil
}
