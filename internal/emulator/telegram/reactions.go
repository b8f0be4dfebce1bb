package telegram

import (
	"fmt"
	"maps"

	"oneclaw/internal/emulator/telegram/botapi"
)

// React has a person set the one reaction that they have, or, with an empty emoji, take it
// back. The bot hears of it where it asked for message_reaction: in private chats
// (aiogram/aiogram #1449; openclaw/openclaw PR 43730 did not see them) and in groups where it
// is an administrator (core.telegram.org/bots/api#update, message_reaction).
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
	theirs := maps.Clone(m.theirs) // who looks has the old one
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
