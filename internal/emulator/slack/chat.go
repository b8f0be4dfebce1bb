package slack

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"oneclaw/internal/emulator/slack/blockkit"
	"oneclaw/internal/emulator/wire"
)

// checkBlocks returns the service's refusal of blocks, if any.
func checkBlocks(raw []byte, most int) *refusal {
	if r := blockkit.Check(raw, most); r != nil {
		return newRefusal(r.Code, r.Messages...)
	}
	return nil
}

// readMessage reads the text and the blocks of a message, and refuses them if the service would. Blocks
// are nil if missing, and empty if they are an empty list.
func readMessage(p *wire.Params) (text string, blocks []byte, err *refusal) {
	text = p.Text("text")
	if md := p.Text("markdown_text"); md != "" {
		if text != "" || p.Text("blocks") != "" {
			return "", nil, newRefusal("markdown_text_conflict") // its page
		}
		if utf8.RuneCountInString(md) > blockkit.MaxMarkdown {
			return "", nil, newRefusal("msg_too_long") // its page
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
		return "", nil, newRefusal("no_text") // its page
	case utf8.RuneCountInString(text) > maxText:
		return "", nil, newRefusal("msg_too_long") // its page
	}
	return text, blocks, nil
}

// metadata is what an app keeps with a message for programs (docs.slack.dev/messaging/message-metadata).
type metadata struct {
	EventType    string          `json:"event_type"`
	EventPayload json.RawMessage `json:"event_payload"`
}

// setExtras stores the attachments and the metadata of a call. Missing ones stay as they are.
func (m *message) setExtras(p *wire.Params) *refusal {
	var attachments []map[string]any
	switch there, err := p.DecodeJSON("attachments", &attachments); {
	case err != nil:
		return newRefusal("invalid_arguments", "[ERROR] want a list of objects [json-pointer:/attachments]") // assumed
	case len(attachments) > maxAttachments:
		return newRefusal("too_many_attachments") // the page of chat.postMessage
	case there:
		m.attachments = nil
	}
	for i, one := range attachments {
		one["id"] = i + 1
		m.attachments = append(m.attachments, one)
	}
	var data metadata
	switch there, err := p.DecodeJSON("metadata", &data); {
	case err != nil, there && data.EventType == "" && len(data.EventPayload) > 0, data.EventType != "" && len(data.EventPayload) == 0:
		return newRefusal("invalid_metadata_format") // the page of chat.postMessage
	case there && data.EventType == "":
		m.metadata = nil
	case there:
		m.metadata = &data
	}
	return nil
}

func isEmptyList(raw []byte) bool {
	var list []json.RawMessage
	return json.Unmarshal(raw, &list) == nil && len(list) == 0
}

func postMessage(c *call) (any, *refusal) {
	text, blocks, err := readMessage(c.p)
	if err != nil {
		return nil, err
	}
	ch, err := c.world.findChannel(c.p.Text("channel"), true)
	if err != nil {
		return nil, err
	}
	m := &message{user: c.cfg.BotUser, fromBot: true, text: text, blocks: blocks, broadcast: c.p.Bool("reply_broadcast")}
	if err := m.setExtras(c.p); err != nil {
		return nil, err
	}
	if m.parent, err = ch.threadRoot(c.p.Text("thread_ts")); err != nil {
		return nil, err
	}
	if err := c.flood.takeMessage(ch.id, c.cfg.Now()); err != nil {
		return nil, err
	}
	c.notifier.publish(ch, m)
	c.channel, c.message = ch, m
	shown := c.world.messageJSON(m)
	shown.Metadata = m.metadata
	return map[string]any{"channel": ch.id, "ts": m.ts, "message": shown}, nil
}

// threadRoot returns the first message of the thread with the given thread_ts, which may also be the
// ts of a reply.
func (ch *channel) threadRoot(ts string) (*message, *refusal) {
	if ts == "" {
		return nil, nil
	}
	m := ch.byTS[ts]
	switch {
	case m == nil || m.ephemeral != "" || m.deleted && len(m.replies) == 0:
		return nil, newRefusal("thread_not_found") // assumed: the page of chat.postMessage does not mention it
	case m.parent != nil:
		return m.parent, nil
	}
	return m, nil
}

func postEphemeral(c *call) (any, *refusal) {
	text, blocks, err := readMessage(c.p)
	if err != nil {
		return nil, err
	}
	ch, err := c.world.findChannel(c.p.Text("channel"), true)
	if err != nil {
		return nil, err
	}
	user := c.p.Text("user")
	if !slices.Contains(ch.members, user) {
		return nil, newRefusal("user_not_in_channel") // its page
	}
	m := &message{user: c.cfg.BotUser, fromBot: true, text: text, blocks: blocks, ephemeral: user}
	if m.parent, err = ch.threadRoot(c.p.Text("thread_ts")); err != nil {
		return nil, err
	}
	c.world.addMessage(ch, m)
	c.channel, c.message = ch, m
	return map[string]any{"message_ts": m.ts}, nil
}

// botMessage returns the bot's message with the ts of a call. forbidden is the error for a message of
// another author.
func (c *call) botMessage(forbidden string) (*channel, *message, *refusal) {
	ch, err := c.world.findChannel(c.p.Text("channel"), true)
	if err != nil {
		return nil, nil, err
	}
	m := ch.byTS[c.p.Text("ts")]
	switch {
	case m == nil || m.deleted || m.ephemeral != "":
		return nil, nil, newRefusal("message_not_found") // its page
	case !m.fromBot:
		return nil, nil, newRefusal(forbidden)
	}
	return ch, m, nil
}

func updateMessage(c *call) (any, *refusal) {
	text, blocks, err := readMessage(c.p)
	if err != nil {
		return nil, err
	}
	ch, m, err := c.botMessage("cant_update_message")
	if err != nil {
		return nil, err
	}
	if c.world.isStreaming(m) {
		return nil, newRefusal("streaming_state_conflict") // its page
	}
	if err := c.flood.takeEdit(c.cfg.Now()); err != nil {
		return nil, err
	}
	before := c.world.messageJSON(m)
	if err := m.setExtras(c.p); err != nil {
		return nil, err
	}
	m.edits, m.stream = append(m.edits, Edit{At: c.cfg.Now(), Text: m.text}), nil
	m.text, m.edited, m.detectsBroadcasts = text, c.cfg.Now(), c.p.Text("parse") != "none"
	if blocks != nil { // missing blocks stay unchanged
		m.blocks = blocks
	}
	c.world.emit(event{Kind: eventEdit, Chat: ch.id, Message: m.ts}, ch, m)
	c.notifier.notifyEdit(ch, m, before)
	c.channel, c.message = ch, m
	return map[string]any{"channel": ch.id, "ts": m.ts, "text": m.text, "message": c.world.messageJSON(m)}, nil
}

func deleteMessage(c *call) (any, *refusal) {
	ch, m, err := c.botMessage("cant_delete_message")
	if err != nil {
		return nil, err
	}
	if c.world.isStreaming(m) {
		return nil, newRefusal("cant_delete_message") // as reported by apps
	}
	c.notifier.remove(ch, m)
	return map[string]any{"channel": ch.id, "ts": m.ts}, nil
}

func setStatus(c *call) (any, *refusal) {
	ch, err := c.world.findChannel(c.p.Text("channel_id"), false)
	if err != nil {
		return nil, err
	}
	thread := c.p.Text("thread_ts")
	if m := ch.byTS[thread]; m == nil || m.parent != nil {
		return nil, newRefusal("invalid_thread_ts") // its page
	}
	c.world.setStatus(ch, thread, c.p.Text("status"), true)
	return nil, nil
}
