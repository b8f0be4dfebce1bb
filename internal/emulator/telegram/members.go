package telegram

import (
	"fmt"
	"maps"
	"strconv"

	"oneclaw/internal/emulator/telegram/botapi"
)

// maxCallbacks bounds the stored button presses.
const maxCallbacks = 10_000

// Press presses the button with the given data in a message, as a member of the chat. With forge, the
// button need not exist, because clients can send anything. Then the message may even be deleted, and
// the bot gets only its id.
func (p *people) Press(chatID, messageID, userID int64, data string, forge ...bool) (Sent, error) {
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	c, u, err := p.world.findWriter(chatID, userID)
	if err != nil {
		return Sent{}, err
	}
	forged := len(forge) > 0 && forge[0]
	m := c.byID[messageID]
	if m == nil || m.deleted && !forged {
		return Sent{}, fmt.Errorf("telegram emulator: no message %d in chat %d", messageID, chatID)
	}
	if !forged && (!m.markup.HasButton(data) || m.from.ID != p.world.bot.ID) {
		return Sent{}, fmt.Errorf("telegram emulator: message %d has no button with data %q", messageID, data)
	}
	return p.handlePress(c, u, m, data), nil
}

// handlePress stores a button press and sends the bot its update.
func (p *people) handlePress(c *chat, u *User, m *message, data string) Sent {
	id := strconv.FormatInt(4_000_000_000_000+p.updates.lastID+int64(len(p.world.callbackOrder)), 10)
	for p.world.callbacks[id] != nil {
		id += "1"
	}
	p.world.callbacks[id] = &Callback{ID: id, Chat: c.id, Message: m.id, User: u.ID, Data: data, pressedAt: p.world.now()}
	p.world.callbackOrder = append(p.world.callbackOrder, id)
	if len(p.world.callbackOrder) > maxCallbacks {
		delete(p.world.callbacks, p.world.callbackOrder[0])
		p.world.callbackOrder = p.world.callbackOrder[1:]
	}
	q := botapi.CallbackQuery{ID: id, From: *u, Message: m.apiMessage(c, true), ChatInstance: strconv.FormatInt(-c.id, 10), Data: data}
	if m.deleted {
		q.Message = &botapi.Message{Chat: c.apiChat(), MessageID: m.id} // a date of 0 marks it as inaccessible
	}
	sent := Sent{Chat: c.id, Message: m.id, Callback: id}
	if c.isBotMember() {
		sent.Update = p.updates.push("callback_query", q)
	}
	p.world.hub.Wake()
	return sent
}

// SetBlocked blocks the bot, or starts it again, as the user of a private chat.
func (p *people) SetBlocked(userID int64, blocked bool) (Sent, error) {
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	c, u, err := p.world.findChatAndUser(userID, userID)
	if err != nil {
		return Sent{}, err
	}
	old := p.world.chatMember(c, p.world.bot)
	c.blocked = blocked
	return p.notifyMembership(c, u, old), nil
}

// SetBotStatus removes the bot from a group or adds it, as a user, optionally as an administrator.
func (p *people) SetBotStatus(chatID, byUser int64, status string) (Sent, error) {
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	c, u, err := p.world.findChatAndUser(chatID, byUser)
	if err != nil {
		return Sent{}, err
	}
	if c.kind == Private {
		return Sent{}, fmt.Errorf("telegram emulator: chat %d is private", chatID)
	}
	old := p.world.chatMember(c, p.world.bot)
	switch status {
	case Member, Administrator, Kicked:
		c.kicked, c.botAdmin = status == Kicked, status == Administrator
	default:
		return Sent{}, fmt.Errorf("telegram emulator: unknown status %q of the bot", status)
	}
	return p.notifyMembership(c, u, old), nil
}

func (p *people) notifyMembership(c *chat, by *User, old botapi.Member) Sent {
	update := p.updates.push("my_chat_member", botapi.ChatMemberUpdated{
		Chat: c.apiChat(), From: *by, Date: p.world.now().Unix(), OldChatMember: old, NewChatMember: p.world.chatMember(c, p.world.bot),
	})
	p.world.hub.Wake()
	return Sent{Chat: c.id, Update: update}
}

// Migrate turns a group into a supergroup and returns the id of the new chat. The bot gets a service
// message in each of the chats.
func (p *people) Migrate(chatID, byUser int64) (int64, error) {
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	old, by, err := p.world.findWriter(chatID, byUser)
	if err == nil && old.kind != Group {
		err = fmt.Errorf("telegram emulator: chat %d is not a basic group", chatID)
	}
	if err != nil {
		return 0, err
	}
	id, err := p.world.addChat(ChatSpec{Kind: Supergroup, Title: old.title, BotAdmin: old.botAdmin})
	if err != nil {
		return 0, err
	}
	now := p.world.chats[id]
	now.members = maps.Clone(old.members)
	left := &message{from: *by, migratedTo: id}
	p.world.addMessage(old, left)
	p.notify(old, left, "message")
	old.migratedTo = id
	came := &message{from: *by, migratedFrom: old.id}
	p.world.addMessage(now, came)
	p.notify(now, came, "message")
	return id, nil
}
