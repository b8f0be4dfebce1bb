package telegram

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"oneclaw/internal/emulator/telegram/botapi"
	"oneclaw/internal/emulator/wire"
)

// maxAlbum bounds an album (core.telegram.org/bots/api#sendmediagroup).
const maxAlbum = 10

// sendMediaGroup sends an album. If one of its files is refused, so are those after it; the service sends none.
func sendMediaGroup(_ context.Context, a *api, p *wire.Params) (any, *apiError) {
	var items []map[string]json.RawMessage
	if _, err := p.DecodeJSON("media", &items); err != nil {
		return nil, badRequest("can't parse media JSON object") // Client.cpp
	}
	switch {
	case len(items) == 0:
		return nil, badRequest("there are no messages to send") // td, MessageContent.cpp
	case len(items) > maxAlbum:
		return nil, badRequest("too many messages to send as an album") // td, MessageContent.cpp
	}
	a.world.albumCount++
	album := ""
	if len(items) > 1 {
		album = strconv.Itoa(13_000_000_000 + a.world.albumCount)
	}
	var sent []any
	for _, item := range items {
		one, kind := p.Clone(), ""
		for field, raw := range item {
			var text string
			if json.Unmarshal(raw, &text) != nil {
				text = string(raw)
			}
			if field == "type" {
				kind = text
			}
			one.Set(field, text)
		}
		if kind != KindPhoto && kind != KindDocument {
			return nil, badRequest("can't parse InputMedia: type %q is unsupported", kind) // Client.cpp
		}
		one.Set(kind, one.Text("media"))
		m, err := sendMedia(a, one, kind, album)
		if err != nil {
			return nil, err
		}
		sent = append(sent, m)
	}
	return sent, nil
}

// sourceMessage returns the message that a call forwards or copies.
func (a *api) sourceMessage(p *wire.Params, missing string) (*message, *apiError) {
	from := p.Clone()
	from.Set("chat_id", p.Text("from_chat_id"))
	c, err := a.findChat(from, false)
	if err != nil {
		return nil, err
	}
	if m := c.byID[p.Int("message_id")]; m != nil && !m.deleted {
		return m, nil
	}
	return nil, badRequest("%s", missing) // of the caller
}

func forwardMessage(_ context.Context, a *api, p *wire.Params) (any, *apiError) {
	source, err := a.sourceMessage(p, "message to forward not found") // Client.cpp
	if err != nil {
		return nil, err
	}
	m := &message{from: a.world.bot, body: source.body, file: source.file, silent: p.Bool("disable_notification")}
	if m.references.origin = source.references.origin; m.references.origin == nil {
		m.references.origin = &botapi.MessageOrigin{Type: OriginUser, Date: source.date.Unix(), SenderUser: &source.from}
	}
	c, err := a.deliver(p, m)
	if err != nil {
		return nil, err
	}
	return m.apiMessage(c, true), nil
}

// copyMessage sends the content of a message without its origin, with its own buttons alone.
func copyMessage(_ context.Context, a *api, p *wire.Params) (any, *apiError) {
	source, err := a.sourceMessage(p, "message to copy not found") // Client.cpp
	if err != nil {
		return nil, err
	}
	m := &message{from: a.world.bot, body: source.body, file: source.file, silent: p.Bool("disable_notification")}
	if m.markup, err = parseKeyboard(p); err != nil {
		return nil, err
	}
	if _, err := a.deliver(p, m); err != nil {
		return nil, err
	}
	return map[string]int64{"message_id": m.id}, nil
}

// deliver adds a message of the bot to the chat and topic of a call.
func (a *api) deliver(p *wire.Params, m *message) (*chat, *apiError) {
	c, err := a.findChat(p, true)
	if err != nil {
		return nil, err
	}
	if m.thread, err = topicParam(c, p, false); err != nil {
		return nil, err
	}
	if err := a.flood.admit(c, a.world.now()); err != nil {
		return nil, err
	}
	a.world.addMessage(c, m)
	return c, nil
}

func pinChatMessage(_ context.Context, a *api, p *wire.Params) (any, *apiError) {
	c, err := a.pinnable(p)
	if err != nil {
		return nil, err
	}
	m := c.byID[p.Int("message_id")]
	if m == nil || m.deleted {
		return nil, badRequest("message to pin not found") // Client.cpp
	}
	c.pinned = append(slices.DeleteFunc(c.pinned, func(id int64) bool { return id == m.id }), m.id)
	return true, nil
}

// unpinChatMessage unpins a message, or the last one that was pinned.
func unpinChatMessage(_ context.Context, a *api, p *wire.Params) (any, *apiError) {
	c, err := a.pinnable(p)
	if err != nil {
		return nil, err
	}
	id := p.Int("message_id")
	if id == 0 && len(c.pinned) > 0 {
		id = c.pinned[len(c.pinned)-1]
	}
	c.pinned = slices.DeleteFunc(c.pinned, func(pinned int64) bool { return pinned == id })
	return true, nil
}

// pinnable returns the chat of a call if the bot may pin messages there.
func (a *api) pinnable(p *wire.Params) (*chat, *apiError) {
	c, err := a.findChat(p, true)
	if err == nil && c.kind != Private && !c.botAdmin {
		return nil, badRequest("not enough rights to manage pinned messages in the chat") // td, MessagesManager.cpp
	}
	return c, err
}

// getChatMemberCount counts the members, the bot among them.
func getChatMemberCount(_ context.Context, a *api, p *wire.Params) (any, *apiError) {
	c, err := a.findChat(p, false)
	if err != nil {
		return nil, err
	}
	if c.kind == Private {
		return 2, nil
	}
	n := 1
	for status := range maps.Values(c.members) {
		if status != left && status != Kicked {
			n++
		}
	}
	return n, nil
}
