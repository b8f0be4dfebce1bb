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

// references are the fields in which a message refers to others. They are decoded separately, so that
// unexpected data in them does not affect the message.
type references struct {
	External json.RawMessage `json:"external_reply"`
	Quote    json.RawMessage `json:"quote"`
	Origin   json.RawMessage `json:"forward_origin"`
	Story    json.RawMessage `json:"reply_to_story"`
	// Task and Option are the task of a checklist and the option of a poll that a reply points at.
	Task   json.RawMessage `json:"reply_to_checklist_task_id"`
	Option json.RawMessage `json:"reply_to_poll_option_id"`
}

// origin is the origin of a message (core.telegram.org/bots/api#messageorigin). A user who hides their
// account has only a name.
type origin struct {
	Type       string `json:"type"`
	Date       int64  `json:"date"`
	User       *user  `json:"sender_user"`
	SenderName string `json:"sender_user_name"`
	Sender     *chat  `json:"sender_chat"`
	Chat       *chat  `json:"chat"`
	Signature  string `json:"author_signature"`
}

func (m *message) isForward() bool { return isPresent(m.Origin) }

// isForeign reports whether the sender passes on a message by another user, chat or bot: a forward, or
// the result of an inline bot.
func (m *message) isForeign() bool { return m.isForward() || m.ViaBot != nil }

// fillQuotes fills in the quotes in a message. No text of a foreign message is the sender's own.
func (d *decoder) fillQuotes(m *message, msg *chats.Message) {
	var list []chats.Quoted
	if q, ok := d.quotedReply(m); ok {
		list = append(list, q)
	}
	if m.isForeign() {
		q := chats.Quoted{Kind: chats.RefForward, Files: msg.Files}
		if m.ViaBot != nil {
			q.By = m.ViaBot.name()
		}
		d.fillOrigin(m.Origin, &q)
		q.Text = m.fullText()
		msg.Text, msg.Files = "", nil
		if !q.Empty() || len(msg.Skipped) > 0 {
			list = append(list, q)
		}
	}
	msg.Quoted = chats.LimitQuotes(list)
}

// quotedReply returns the message that m replies to. If it is in another chat, Telegram provides only
// the selected part of its text.
func (d *decoder) quotedReply(m *message) (q chats.Quoted, ok bool) {
	q.Kind = chats.RefReply
	var items map[string]string
	switch {
	case m.ReplyTo != nil && !isPresent(m.ReplyTo.TopicCreated):
		items = d.decodeReply(m.ReplyTo.raw, &q)
	case isPresent(m.External):
		items = d.decodeExternal(m.External, &q, m.Chat)
	case isPresent(m.Story):
		d.decodeStory(m.Story, &q)
	}
	for _, id := range []json.RawMessage{m.Task, m.Option} {
		if isPresent(id) && items != nil {
			q.Item = cmp.Or(items[strings.Trim(string(id), `"`)], "one that is no longer there")
		}
	}
	var part struct {
		Text     string   `json:"text"`
		Entities []entity `json:"entities"`
		Manual   bool     `json:"is_manual"`
	}
	if isPresent(m.Quote) && json.Unmarshal(m.Quote, &part) == nil && part.Text != "" && (part.Manual || q.Text == "") {
		q.Text, q.Partial = markUp(part.Text, part.Entities), true
	}
	return q, !q.Empty()
}

// decodeReply decodes a replied-to message in the same chat, and returns the items in it.
func (d *decoder) decodeReply(raw json.RawMessage, q *chats.Quoted) map[string]string {
	var r message
	damaged, err := decodeLoosely(raw, &r)
	if err != nil {
		return nil
	}
	r.damaged = damaged
	switch {
	case r.SenderChat != nil:
		q.By = oneLine(cmp.Or(r.SenderChat.Title, r.SenderChat.Username))
		q.AuthorUnknown = r.Chat.IsDirectMessages || r.SenderChat.ID == r.Chat.ID // as administrators write, the bot too
	case r.ViaBot != nil:
		q.By = r.ViaBot.name()
	case r.From != nil:
		q.By, q.FromBot = r.From.name(), r.From.ID == d.self.ID
	}
	if isPresent(r.Origin) {
		forwarded := *q
		d.fillOrigin(r.Origin, &forwarded)
		q.By, q.FromBot, q.AuthorUnknown, q.From = forwarded.By, forwarded.FromBot, forwarded.AuthorUnknown, forwarded.From
	}
	r.readContents(raw)
	q.Text = r.fullText()
	q.Files, q.Skipped = r.attachments(raw, d.maxFile())
	q.ID = strconv.FormatInt(r.ID, 10)
	if r.Date > 0 { // the date is 0 if the message is too old for bots to see
		q.Time = time.Unix(r.Date, 0).UTC()
	}
	return r.items
}

// decodeStory names a story, which bots cannot see.
func (d *decoder) decodeStory(raw json.RawMessage, q *chats.Quoted) {
	var s struct {
		Chat chat `json:"chat"`
	}
	_ = json.Unmarshal(raw, &s) // then nothing is known of it
	q.By, q.Skipped = oneLine(cmp.Or(s.Chat.Title, s.Chat.FirstName+" "+s.Chat.LastName, s.Chat.Username)), []string{"a story: I can't read that yet"}
}

// decodeExternal decodes a message from another chat or topic than here, and returns the items in it.
func (d *decoder) decodeExternal(raw json.RawMessage, q *chats.Quoted, here chat) map[string]string {
	var r struct {
		message
		Origin json.RawMessage `json:"origin"`
	}
	damaged, err := decodeLoosely(raw, &r)
	if err != nil {
		return nil
	}
	if r.ID != 0 && r.Chat.ID == here.ID { // in another topic
		q.ID = strconv.FormatInt(r.ID, 10)
	}
	r.damaged = damaged
	q.From = oneLine(cmp.Or(r.Chat.Title, r.Chat.Username))
	d.fillOrigin(r.Origin, q)
	r.readContents(raw)
	q.Text = r.fullText()
	q.Files, q.Skipped = r.attachments(raw, d.maxFile())
	return r.items
}

// fillOrigin fills in the author, the chat and the time of a quote.
func (d *decoder) fillOrigin(raw json.RawMessage, q *chats.Quoted) {
	var o origin
	if json.Unmarshal(raw, &o) != nil {
		return
	}
	title := func(c *chat) string { return oneLine(cmp.Or(c.Title, c.Username)) }
	switch {
	case o.User != nil:
		q.By, q.FromBot = o.User.name(), o.User.ID == d.self.ID
	case o.SenderName != "":
		q.By = oneLine(o.SenderName)
	case o.Sender != nil:
		q.By, q.AuthorUnknown = title(o.Sender), true
	case o.Chat != nil:
		q.By, q.From = oneLine(o.Signature), title(o.Chat)
		if q.By == "" {
			q.By, q.From = q.From, ""
		}
	}
	if o.Date > 0 {
		q.Time = time.Unix(o.Date, 0).UTC()
	}
}

// textAndEntities returns the text of a message with its entities, or else its caption, or else the
// text of its contents.
func (m *message) textAndEntities() (string, []entity) {
	switch {
	case strings.TrimSpace(m.Text) != "":
		return m.Text, m.Entities
	case strings.TrimSpace(m.Caption) != "":
		return m.Caption, m.CaptionEntities
	}
	return m.contentText, m.contentEntities
}

// fullText returns the full text of a message.
func (m *message) fullText() string { return markUp(m.textAndEntities()) }

// markUp returns a text with its formatting. It removes no mention, as the text was not addressed to the bot.
func markUp(text string, entities []entity) string {
	units := utf16.Encode([]rune(text))
	return markedText(units, entities, 0, len(units))
}

// isAmbientWanted reports whether a message in a group is wanted although it is not for the bot.
func (d *decoder) isAmbientWanted(m *message) bool {
	return d.wantsAmbient != nil && m.Chat.ID != 0 && d.wantsAmbient(m.place())
}

// ambientFilter returns the function with which an inbox selects ambient messages; nil if it has none.
func ambientFilter(in chats.Inbox) func(chats.Chat) bool {
	if l, ok := in.(chats.AmbientInbox); ok {
		return l.WantsAmbient
	}
	return nil
}
