package telegram

import (
	"fmt"
	"maps"

	"oneclaw/internal/emulator/telegram/botapi"
)

// React sets a person's only reaction or, with an empty emoji, removes it. The bot gets
// message_reaction if it asked for it: in private chats (aiogram/aiogram #1449;
// openclaw/openclaw PR 43730 did not see them) and in groups in which it is an administrator
// (core.telegram.org/bots/api#update, message_reaction).
func (p *people) React(chatID, messageID, userID int64, emoji string) (Sent, error) {
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	c, u, err := p.world.person(chatID, userID)
	if err != nil {
		return Sent{}, err
	}
	m := c.byID[messageID]
	if m == nil {
		return Sent{}, fmt.Errorf("telegram emulator: no message %d in chat %d", messageID, chatID)
	}
	if emoji != "" && !knownReaction(emoji) {
		return Sent{}, fmt.Errorf("telegram emulator: nobody can react with %q", emoji)
	}
	r := botapi.ReactionUpdated{
		Chat: c.wire(), MessageID: m.id, User: *u, Date: p.world.now().Unix(), Old: reactionsOf(m.theirs[userID]), New: reactionsOf(emoji),
	}
	theirs := maps.Clone(m.theirs) // observers have the old one
	if theirs == nil {
		theirs = map[int64]string{}
	}
	theirs[userID] = emoji
	m.theirs = theirs
	p.world.emit(Event{Kind: EventReaction, Chat: c.id, Message: m.id, Text: emoji}, c, m)
	sent := Sent{Chat: c.id, Message: m.id}
	if c.kind == Private || c.botAdmin {
		sent.Update = p.updates.push("message_reaction", r)
	}
	return sent, nil
}

func reactionsOf(emoji string) []botapi.Reaction {
	if emoji == "" {
		return []botapi.Reaction{}
	}
	return []botapi.Reaction{{Type: "emoji", Emoji: emoji}}
}
