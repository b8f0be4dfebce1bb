package telegram

import "fmt"

// React has a person set or, with an empty emoji, take back a reaction. The bot
// hears of it only where it asked for message_reaction.
func (s *Server) React(chatID, messageID, userID int64, emoji string) (Sent, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, u, err := s.person(chatID, userID)
	if err != nil {
		return Sent{}, err
	}
	m := c.byID[messageID]
	if m == nil {
		return Sent{}, fmt.Errorf("telegram emulator: no message %d in chat %d", messageID, chatID)
	}
	r := wireReactionUpdated{
		Chat: c.wire(), MessageID: m.id, User: *u, Date: s.cfg.Now().Unix(), Old: []wireReaction{}, New: []wireReaction{},
	}
	if emoji != "" {
		r.New = append(r.New, wireReaction{Type: "emoji", Emoji: emoji})
	}
	return Sent{Chat: c.id, Message: m.id, Update: s.push("message_reaction", r)}, nil
}
