package telegram

import (
	"fmt"
	"maps"

	"oneclaw/internal/emulator/telegram/botapi"
)

// React sets a user's only reaction or, with an empty emoji, removes it. The bot gets
// message_reaction if it requested that kind: in private chats (aiogram/aiogram #1449;
// openclaw/openclaw PR 43730 did not get them) and in groups in which it is an administrator
// (core.telegram.org/bots/api#update, message_reaction).
func (p *people) React(chatID, messageID, userID int64, emoji string) (Sent, error) {
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	c, u, err := p.world.findChatAndUser(chatID, userID)
	if err != nil {
		return Sent{}, err
	}
	m := c.byID[messageID]
	if m == nil {
		return Sent{}, fmt.Errorf("telegram emulator: no message %d in chat %d", messageID, chatID)
	}
	if emoji != "" && !knownReaction(emoji) {
		return Sent{}, fmt.Errorf("telegram emulator: no reaction %q exists", emoji)
	}
	if emoji == "" && m.userReactions[userID] == "" {
		return Sent{}, fmt.Errorf("telegram emulator: %d has no reaction to message %d to remove", userID, messageID)
	}
	r := botapi.MessageReactionUpdated{
		Chat: c.apiChat(), MessageID: m.id, User: *u, Date: p.world.now().Unix(), OldReaction: reactionList(m.userReactions[userID]), NewReaction: reactionList(emoji),
	}
	theirs := maps.Clone(m.userReactions)
	if theirs == nil {
		theirs = map[int64]string{}
	}
	theirs[userID] = emoji
	m.userReactions = theirs
	p.world.emit(event{Kind: eventReaction, Chat: c.id, Message: m.id, Text: emoji}, c, m)
	sent := Sent{Chat: c.id, Message: m.id}
	if c.kind == Private || c.botAdmin {
		sent.Update = p.updates.push("message_reaction", r)
	}
	return sent, nil
}

func reactionList(emoji string) []botapi.Reaction {
	if emoji == "" {
		return []botapi.Reaction{}
	}
	return []botapi.Reaction{{Type: "emoji", Emoji: emoji}}
}
