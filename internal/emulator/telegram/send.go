package telegram

import (
	"context"
	"time"

	"oneclaw/internal/emulator/telegram/botapi"
	"oneclaw/internal/emulator/telegram/markup"
	"oneclaw/internal/emulator/wire"
)

func sendMessage(_ context.Context, a *api, p *wire.Params) (any, *apiError) {
	if p.Text("text") == "" {
		return nil, badRequest("message text is empty") // Client.cpp
	}
	body, err := a.formattedText(p, "text", "entities")
	if err != nil {
		return nil, err
	}
	return a.send(p, body, "", "")
}

func sendPhoto(_ context.Context, a *api, p *wire.Params) (any, *apiError) {
	return sendMedia(a, p, KindPhoto, "")
}

func sendDocument(_ context.Context, a *api, p *wire.Params) (any, *apiError) {
	return sendMedia(a, p, KindDocument, "")
}

func sendVoice(_ context.Context, a *api, p *wire.Params) (any, *apiError) {
	return sendMedia(a, p, KindVoice, "")
}

// sendMedia sends a file, which may belong to an album.
func sendMedia(a *api, p *wire.Params, kind, album string) (any, *apiError) {
	body, err := a.formattedText(p, "caption", "caption_entities")
	if err != nil {
		return nil, err
	}
	if markup.UTF16Length(body.Plain) > maxCaption {
		return nil, badRequest("message caption is too long") // MessageContent.cpp
	}
	if markup.Size(body.Entities) > maxEntityBytes {
		return nil, badRequest("ENTITIES_TOO_LONG") // core.telegram.org/api/errors
	}
	return a.send(p, body, kind, album)
}

// send accepts a message of the bot, with a file or only a text.
func (a *api) send(p *wire.Params, body markup.Text, kind, album string) (any, *apiError) {
	keys, err := parseKeyboard(p)
	if err != nil {
		return nil, err
	}
	c, err := a.findChat(p, true)
	if err != nil {
		return nil, err
	}
	if kind == "" {
		if err := checkText(body); err != nil {
			return nil, err
		}
	}
	m := &message{from: a.world.bot, body: body, markup: keys, album: album, silent: p.Bool("disable_notification")}
	if m.thread, err = topicParam(c, p, false); err != nil {
		return nil, err
	}
	if m.replyTo, err = replyParam(c, p); err != nil {
		return nil, err
	}
	if c.direct {
		m.topicUser, m.senderChat = a.world.users[m.thread], c.channel()
	}
	if m.replyTo != nil && m.thread == 0 {
		m.thread = m.replyTo.thread
	}
	ephemeral, err := a.setReceiver(p, c, m)
	if err != nil {
		return nil, err
	}
	if err := a.flood.admit(c, a.world.now()); err != nil {
		return nil, err
	}
	if kind != "" {
		if m.file, err = a.fileParam(p, kind); err != nil {
			return nil, err
		}
	}
	if ephemeral {
		a.world.addEphemeral(c, m)
		return m.apiMessage(c, true), nil
	}
	clear(c.drafts) // a real message replaces the draft
	a.world.addMessage(c, m)
	return m.apiMessage(c, true), nil
}

// checkText refuses texts that are empty or too long after parsing entities. The service counts
// code points; the documented UTF-16 units are at least as strict.
func checkText(body markup.Text) *apiError {
	switch n := markup.UTF16Length(body.Plain); {
	case n == 0:
		return badRequest("text must be non-empty") // MessageEntity.cpp
	case n > maxText:
		return badRequest("message is too long") // MessageContent.cpp
	case markup.Size(body.Entities) > maxEntityBytes:
		return badRequest("ENTITIES_TOO_LONG") // core.telegram.org/api/errors
	}
	return nil
}

// replyParam returns the message that reply_parameters or the older reply_to_message_id name, or nil.
func replyParam(c *chat, p *wire.Params) (*message, *apiError) {
	var reply struct {
		MessageID                int64 `json:"message_id"`
		AllowSendingWithoutReply bool  `json:"allow_sending_without_reply"`
	}
	there, err := p.DecodeJSON("reply_parameters", &reply)
	if err != nil {
		return nil, badRequest("can't parse reply parameters JSON object") // Client.cpp
	}
	if !there {
		reply.MessageID = p.Int("reply_to_message_id")
		reply.AllowSendingWithoutReply = p.Bool("allow_sending_without_reply")
	}
	if reply.MessageID == 0 {
		return nil, nil
	}
	m := c.byID[reply.MessageID]
	if m == nil || m.deleted {
		if reply.AllowSendingWithoutReply {
			return nil, nil
		}
		return nil, badRequest("message to be replied not found") // Client.cpp
	}
	return m, nil
}

// editableMessage returns the bot's message that a call edits.
func (a *api) editableMessage(p *wire.Params) (*chat, *message, *apiError) {
	if p.Text("chat_id") == "" && p.Int("message_id") == 0 {
		return nil, nil, badRequest("message identifier is not specified") // Client.cpp
	}
	c, err := a.findChat(p, true)
	if err != nil {
		return nil, nil, err
	}
	m := c.byID[p.Int("message_id")]
	switch {
	case m == nil || m.deleted:
		return nil, nil, badRequest("message to edit not found") // Client.cpp
	case m.from.ID != a.world.bot.ID:
		return nil, nil, badRequest("message can't be edited") // MessagesManager.cpp
	}
	return c, m, nil
}

const notModified = "message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message"

// parseNewText parses the new text and keyboard of a message.
func (a *api) parseNewText(p *wire.Params) (body markup.Text, keys *botapi.Keyboard, err *apiError) {
	if p.Text("text") == "" {
		return body, nil, badRequest("message text is empty") // Client.cpp
	}
	if body, err = a.formattedText(p, "text", "entities"); err != nil {
		return body, nil, err
	}
	keys, err = parseKeyboard(p)
	return body, keys, err
}

func editMessageText(_ context.Context, a *api, p *wire.Params) (any, *apiError) {
	body, keys, err := a.parseNewText(p)
	if err != nil {
		return nil, err
	}
	c, m, err := a.editableMessage(p)
	if err != nil {
		return nil, err
	}
	if m.file != nil {
		return nil, badRequest("there is no text in the message to edit") // MessagesManager.cpp
	}
	if err := checkText(body); err != nil {
		return nil, err
	}
	return a.edit(c, m, body, keys)
}

func editMessageReplyMarkup(_ context.Context, a *api, p *wire.Params) (any, *apiError) {
	keys, err := parseKeyboard(p)
	if err != nil {
		return nil, err
	}
	c, m, err := a.editableMessage(p)
	if err != nil {
		return nil, err
	}
	return a.edit(c, m, m.body, keys)
}

// edit changes a message of the bot. Edits count against the limits.
func (a *api) edit(c *chat, m *message, body markup.Text, keys *botapi.Keyboard) (any, *apiError) {
	if m.body.Equal(body) && m.markup.Equal(keys) {
		return nil, badRequest(notModified)
	}
	if err := a.flood.admit(c, a.world.now()); err != nil {
		return nil, err
	}
	a.world.revise(c, m, body, keys)
	return m.apiMessage(c, true), nil
}

// deleteMessage follows core.telegram.org/bots/api#deletemessage.
func deleteMessage(_ context.Context, a *api, p *wire.Params) (any, *apiError) {
	c, err := a.findChat(p, true)
	if err != nil {
		return nil, err
	}
	m := c.byID[p.Int("message_id")]
	switch {
	case m == nil || m.deleted:
		return nil, badRequest("message to delete not found") // Client.cpp
	case m.from.ID != a.world.bot.ID && c.kind != Private && !c.botAdmin,
		a.world.now().Sub(m.date) > 48*time.Hour && !c.botAdmin:
		return nil, badRequest("message can't be deleted") // Client.cpp
	}
	a.world.remove(c, m)
	return true, nil
}
