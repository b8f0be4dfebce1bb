package telegram

import (
	"fmt"
	"maps"
	"strconv"

	"oneclaw/internal/emulator/telegram/botapi"
)

// maxCallbacks bounds the presses remembered.
const maxCallbacks = 10_000

// Press has a person who is in the chat press the button of a message that carries
// data. Where forge is given and true, the button need not exist: apps can be made to
// send anything. Then the message may be deleted, too, and the bot is told only where
// it stood.
func (s *Server) Press(chatID, messageID, userID int64, data string, forge ...bool) (Sent, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, u, err := s.speaker(chatID, userID)
	if err != nil {
		return Sent{}, err
	}
	forged := len(forge) > 0 && forge[0]
	m := c.byID[messageID]
	if m == nil || m.deleted && !forged {
		return Sent{}, fmt.Errorf("telegram emulator: no message %d in chat %d", messageID, chatID)
	}
	if !forged && (!m.markup.Has(data) || m.from.ID != s.bot.ID) {
		return Sent{}, fmt.Errorf("telegram emulator: message %d has no button with data %q", messageID, data)
	}
	return s.pressed(c, u, m, data), nil
}

// pressed tells the bot of a press.
func (s *Server) pressed(c *chat, u *User, m *message, data string) Sent {
	id := strconv.FormatInt(4_000_000_000_000+s.last+int64(len(s.callbackID)), 10)
	for s.callbacks[id] != nil {
		id += "1"
	}
	s.callbacks[id] = &Callback{ID: id, Chat: c.id, Message: m.id, User: u.ID, Data: data, at: s.cfg.Now()}
	s.callbackID = append(s.callbackID, id)
	if len(s.callbackID) > maxCallbacks {
		delete(s.callbacks, s.callbackID[0])
		s.callbackID = s.callbackID[1:]
	}
	q := botapi.CallbackQuery{ID: id, From: *u, Message: m.wire(c, true), ChatInstance: strconv.FormatInt(-c.id, 10), Data: data}
	if m.deleted {
		q.Message = &botapi.Message{Chat: c.wire(), MessageID: m.id} // a date of 0 says so
	}
	sent := Sent{Chat: c.id, Message: m.id, Callback: id}
	if c.isBotMember() {
		sent.Update = s.push("callback_query", q)
	}
	s.hub.Changed()
	return sent
}

// SetBlocked has the user of a private chat block the bot or start it again.
func (s *Server) SetBlocked(userID int64, blocked bool) (Sent, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, u, err := s.person(userID, userID)
	if err != nil {
		return Sent{}, err
	}
	old := s.member(c, s.bot)
	c.blocked = blocked
	return s.myMember(c, u, old), nil
}

// SetBot has a person remove the bot from a group or add it, as an administrator
// or not.
func (s *Server) SetBot(chatID, byUser int64, status string) (Sent, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, u, err := s.person(chatID, byUser)
	if err != nil {
		return Sent{}, err
	}
	if c.kind == Private {
		return Sent{}, fmt.Errorf("telegram emulator: chat %d is private", chatID)
	}
	old := s.member(c, s.bot)
	switch status {
	case Member, Administrator, Kicked:
		c.kicked, c.botAdmin = status == Kicked, status == Administrator
	default:
		return Sent{}, fmt.Errorf("telegram emulator: unknown status %q of the bot", status)
	}
	return s.myMember(c, u, old), nil
}

func (s *Server) myMember(c *chat, by *User, old botapi.Member) Sent {
	update := s.push("my_chat_member", botapi.MemberUpdated{
		Chat: c.wire(), From: *by, Date: s.cfg.Now().Unix(), Old: old, New: s.member(c, s.bot),
	})
	s.hub.Changed()
	return Sent{Chat: c.id, Update: update}
}

// Migrate turns a group into a supergroup and returns the new chat's id. Both chats
// get the message that says so.
func (s *Server) Migrate(chatID, byUser int64) (int64, error) {
	s.mu.Lock()
	old, u, err := s.speaker(chatID, byUser)
	if err == nil && old.kind != Group {
		err = fmt.Errorf("telegram emulator: chat %d is not a basic group", chatID)
	}
	if err != nil {
		s.mu.Unlock()
		return 0, err
	}
	spec := ChatSpec{Kind: Supergroup, Title: old.title, BotAdmin: old.botAdmin}
	members := maps.Clone(old.members)
	by := *u
	s.mu.Unlock()
	id, err := s.AddChat(spec)
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.chats[id]
	now.members = members
	left := &message{from: by, migTo: id}
	s.add(old, left)
	s.tell(old, left, "message")
	old.migrated = id
	came := &message{from: by, migFrom: old.id}
	s.add(now, came)
	s.tell(now, came, "message")
	return id, nil
}
