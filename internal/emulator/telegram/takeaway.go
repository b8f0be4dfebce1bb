package telegram

import "fmt"

// TakeAway has a person delete a message of the bot for everybody: either side of a private chat
// may, and administrators of a group (telegram.org/faq, deleting messages). Bots are not told.
func (s *Server) TakeAway(chatID, message int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chats[chatID]
	if c == nil || c.byID[message] == nil || c.byID[message].from.ID != s.bot.ID {
		return fmt.Errorf("telegram emulator: no message %d of the bot in chat %d", message, chatID)
	}
	m := c.byID[message]
	s.tally(c, m, -1)
	m.deleted = true
	s.emit(Event{Kind: EventDelete, Chat: c.id, Message: m.id}, c, m)
	return nil
}
