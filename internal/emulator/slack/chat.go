package slack

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"oneclaw/internal/emulator/slack/blockkit"
	"oneclaw/internal/emulator/wire"
)

// checkBlocks refuses blocks that the service refuses.
func checkBlocks(raw []byte, most int) *refusal {
	if r := blockkit.Check(raw, most); r != nil {
		return refuse(r.Code, r.Messages...)
	}
	return nil
}

// compose reads the text and blocks of a message and refuses what the service does. Blocks are
// nil if missing, and empty for an empty list.
func compose(p *wire.Params) (text string, blocks []byte, err *refusal) {
	text = p.Text("text")
	if md := p.Text("markdown_text"); md != "" {
		if text != "" || p.Text("blocks") != "" {
			return "", nil, refuse("markdown_text_conflict") // its page
		}
		if utf8.RuneCountInString(md) > blockkit.MaxMarkdown {
			return "", nil, refuse("msg_too_long") // its page
		}
		text = md
	}
	if raw := p.Text("blocks"); raw != "" && raw != "null" {
		if err := checkBlocks([]byte(raw), maxBlocks); err != nil {
			return "", nil, err
		}
		if blocks = []byte(raw); isEmptyList(blocks) {
			blocks = []byte{}
		}
	}
	switch {
	case strings.TrimSpace(text) == "" && len(blocks) == 0 && p.Text("attachments") == "":
		return "", nil, refuse("no_text") // its page
	case utf8.RuneCountInString(text) > maxText:
		return "", nil, refuse("msg_too_long") // its page
	}
	return text, blocks, nil
}

func isEmptyList(raw []byte) bool {
	var list []json.RawMessage
	return json.Unmarshal(raw, &list) == nil && len(list) == 0
}

func postMessage(c *call) (any, *refusal) {
	text, blocks, err := compose(c.p)
	if err != nil {
		return nil, err
	}
	ch, err := c.world.find(c.p.Text("channel"), true)
	if err != nil {
		return nil, err
	}
	m := &message{user: c.cfg.BotUser, bot: true, text: text, blocks: blocks, broadcast: c.p.Bool("reply_broadcast")}
	if m.parent, err = ch.parentOf(c.p.Text("thread_ts")); err != nil {
		return nil, err
	}
	if err := c.flood.take(ch.id, c.cfg.Now()); err != nil {
		return nil, err
	}
	c.news.publish(ch, m)
	c.channel, c.message = ch, m
	return map[string]any{"channel": ch.id, "ts": m.ts, "message": c.world.wire(m)}, nil
}

// parentOf returns the first message of the thread of a thread_ts; a reply's ts leads to its
// thread too.
func (ch *channel) parentOf(ts string) (*message, *refusal) {
	if ts == "" {
		return nil, nil
	}
	m := ch.byTS[ts]
	switch {
	case m == nil || m.ephemeral != "" || m.deleted && len(m.replies) == 0:
		return nil, refuse("thread_not_found") // assumed: the page of chat.postMessage says nothing of it
	case m.parent != nil:
		return m.parent, nil
	}
	return m, nil
}

func postEphemeral(c *call) (any, *refusal) {
	text, blocks, err := compose(c.p)
	if err != nil {
		return nil, err
	}
	ch, err := c.world.find(c.p.Text("channel"), true)
	if err != nil {
		return nil, err
	}
	user := c.p.Text("user")
	if !slices.Contains(ch.members, user) {
		return nil, refuse("user_not_in_channel") // its page
	}
	m := &message{user: c.cfg.BotUser, bot: true, text: text, blocks: blocks, ephemeral: user}
	if m.parent, err = ch.parentOf(c.p.Text("thread_ts")); err != nil {
		return nil, err
	}
	c.world.add(ch, m)
	c.channel, c.message = ch, m
	return map[string]any{"message_ts": m.ts}, nil
}

// own returns a message of the bot by the ts of a call.
func (c *call) own(forbidden string) (*channel, *message, *refusal) {
	ch, err := c.world.find(c.p.Text("channel"), true)
	if err != nil {
		return nil, nil, err
	}
	m := ch.byTS[c.p.Text("ts")]
	switch {
	case m == nil || m.deleted || m.ephemeral != "":
		return nil, nil, refuse("message_not_found") // its page
	case !m.bot:
		return nil, nil, refuse(forbidden)
	}
	return ch, m, nil
}

func updateMessage(c *call) (any, *refusal) {
	text, blocks, err := compose(c.p)
	if err != nil {
		return nil, err
	}
	ch, m, err := c.own("cant_update_message")
	if err != nil {
		return nil, err
	}
	if c.world.streams(m) {
		return nil, refuse("streaming_state_conflict") // its page
	}
	if err := c.flood.takeUpdate(c.cfg.Now()); err != nil {
		return nil, err
	}
	before := c.world.wire(m)
	m.edits, m.stream = append(m.edits, Edit{At: c.cfg.Now(), Text: m.text}), nil
	m.text, m.edited, m.loose = text, c.cfg.Now(), c.p.Text("parse") != "none"
	if blocks != nil { // missing blocks stay unchanged
		m.blocks = blocks
	}
	c.world.emit(Event{Kind: EventEdit, Chat: ch.id, Message: m.ts}, ch, m)
	c.news.tellChanged(ch, m, before)
	c.channel, c.message = ch, m
	return map[string]any{"channel": ch.id, "ts": m.ts, "text": m.text, "message": c.world.wire(m)}, nil
}

func deleteMessage(c *call) (any, *refusal) {
	ch, m, err := c.own("cant_delete_message")
	if err != nil {
		return nil, err
	}
	if c.world.streams(m) {
		return nil, refuse("cant_delete_message") // as reported by apps
	}
	c.news.remove(ch, m)
	return map[string]any{"channel": ch.id, "ts": m.ts}, nil
}

func setStatus(c *call) (any, *refusal) {
	ch, err := c.world.find(c.p.Text("channel_id"), false)
	if err != nil {
		return nil, err
	}
	thread := c.p.Text("thread_ts")
	if m := ch.byTS[thread]; m == nil || m.parent != nil {
		return nil, refuse("invalid_thread_ts") // its page
	}
	c.world.setStatus(ch, thread, c.p.Text("status"), true)
	return nil, nil
}
