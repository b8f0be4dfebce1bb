package telegram

import (
	"strconv"
	"strings"

	"oneclaw/bridge/chats"
)

// In the direct messages of a channel (Bot API 9.2), many people write to one chat, each in a topic of their own,
// which they and the administrators of the channel see. To the bridge each topic is a chat, so that nothing of
// one person reaches another: its id is that of the chat, topicMark and that of the topic, such as -1001234.5678.
const topicMark = "."

// directTopic is a topic of direct messages (core.telegram.org/bots/api#directmessagestopic).
type directTopic struct {
	ID   int64 `json:"topic_id"`
	User *user `json:"user"`
}

// directChat returns the chat of a topic.
func directChat(chat, topic int64) chats.Chat {
	c := chatOf(chat)
	c.ID += topicMark + strconv.FormatInt(topic, 10)
	return c
}

// splitID returns the id of Telegram's chat and, in the direct messages of a channel, that of the topic.
func splitID(c chats.Chat) (chat, topic string) {
	chat, topic, _ = strings.Cut(c.ID, topicMark)
	return chat, topic
}

// chatID returns the id of Telegram's chat, to which rate limits apply.
func chatID(c chats.Chat) string {
	chat, _ := splitID(c)
	return chat
}

// place returns the chat of a message. Every topic of direct messages has the id of the account that it is with
// (td, MessageTopic.cpp), which stands in for a topic that an update does not name.
func (m *message) place() chats.Chat {
	switch by, _, ok := m.sender(); {
	case !m.Chat.IsDirectMessages:
		return chatOf(m.Chat.ID)
	case m.DirectTopic != nil && m.DirectTopic.ID != 0:
		return directChat(m.Chat.ID, m.DirectTopic.ID)
	case ok:
		return directChat(m.Chat.ID, by)
	}
	return chatOf(m.Chat.ID)
}

// isDirectMessage reports whether a person writes to a channel. What is written in the name of a chat is an answer
// of the channel's administrators.
func (m *message) isDirectMessage() bool { return m.Chat.IsDirectMessages && m.SenderChat == nil }

// opener returns the id of the user who began a topic; empty if there is no topic.
func (t *directTopic) opener() string {
	if t == nil || t.User == nil || t.User.ID == 0 {
		return ""
	}
	return strconv.FormatInt(t.User.ID, 10)
}
