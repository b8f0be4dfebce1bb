package telegram

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"oneclaw/internal/emulator/telegram/botapi"
	"oneclaw/internal/emulator/telegram/markup"
)

// recordedMessage has the relevant fields of a recorded message.
type recordedMessage struct {
	ID      int64       `json:"message_id"`
	Thread  int64       `json:"message_thread_id"`
	From    *User       `json:"from"`
	Chat    botapi.Chat `json:"chat"`
	Date    int64       `json:"date"`
	Text    string      `json:"text"`
	Caption string      `json:"caption"`
}

// Play queues a recorded update with a new id. It adds the users and chats of the update. A message is
// added to its chat with its id, and a button press can be answered. Files are missing.
func (st *setup) Play(recorded json.RawMessage) error {
	var update map[string]json.RawMessage
	if err := json.Unmarshal(recorded, &update); err != nil {
		return fmt.Errorf("telegram emulator: decode recorded update: %w", err)
	}
	delete(update, "update_id")
	for kind, body := range update {
		if err := st.playUpdate(kind, body); err != nil {
			return err
		}
	}
	return nil
}

// recordedUpdate has the relevant fields of a recorded message or button press.
type recordedUpdate struct {
	ID      string           `json:"id"`
	From    *User            `json:"from"`
	Data    string           `json:"data"`
	Message *recordedMessage `json:"message"`
}

// decode decodes the content of an update.
func (p *recordedUpdate) decode(kind string, body json.RawMessage) error {
	if kind == "callback_query" {
		err := json.Unmarshal(body, p)
		p.Message = cmp.Or(p.Message, &recordedMessage{})
		return err
	}
	p.Message = &recordedMessage{}
	err := json.Unmarshal(body, p.Message)
	p.From = p.Message.From
	return err
}

func (st *setup) playUpdate(kind string, body json.RawMessage) error {
	st.world.mu.Lock()
	defer st.world.mu.Unlock()
	var p recordedUpdate
	err := p.decode(kind, body)
	if err == nil && p.From != nil && p.Message.Chat.ID != 0 {
		err = st.world.addParticipants(p.Message.Chat, *p.From)
	}
	if err != nil {
		return fmt.Errorf("telegram emulator: play recorded %s: %w", kind, err)
	}
	m := p.Message
	c := st.world.chats[m.Chat.ID]
	if c != nil && m.Thread != 0 && c.topics[m.Thread] == "" {
		c.topics[m.Thread] = "Topic"
	}
	switch {
	case p.ID != "" && p.From != nil:
		st.world.callbacks[p.ID] = &Callback{ID: p.ID, Chat: m.Chat.ID, Message: m.ID, User: p.From.ID, Data: p.Data}
		st.world.callbackOrder = append(st.world.callbackOrder, p.ID)
	case c == nil || m.ID == 0 || p.From == nil:
	case c.byID[m.ID] != nil:
		c.byID[m.ID].body = markup.Text{Plain: m.Text, Source: m.Text}
	default:
		err = st.world.restoreMessage(Message{Chat: m.Chat.ID, ID: m.ID, Thread: m.Thread, From: p.From.ID, Date: time.Unix(m.Date, 0), Text: m.Text + m.Caption})
	}
	st.updates.push(kind, body)
	return err
}

// addParticipants adds a chat and a member, unless they exist.
func (w *world) addParticipants(in botapi.Chat, from User) error {
	if w.users[from.ID] == nil {
		w.addUser(from)
	}
	switch c := w.chats[in.ID]; {
	case c == nil:
		_, err := w.addChat(ChatSpec{ID: in.ID, Kind: in.Type, Title: in.Title, User: from.ID, Forum: in.IsForum})
		return err
	case in.Type != Private:
		c.members[from.ID] = Member
	}
	return nil
}

// restoreMessage adds a message with its recorded id to its chat.
func (w *world) restoreMessage(old Message) error {
	c, from := w.chats[old.Chat], w.users[old.From]
	if c == nil || from == nil {
		return fmt.Errorf("telegram emulator: message %d cannot have been in chat %d", old.ID, old.Chat)
	}
	m := &message{id: old.ID, thread: old.Thread, from: *from, date: old.Date, body: markup.Text{Plain: old.Text, Source: old.Text}}
	c.messages = append(c.messages, m)
	c.byID[m.id] = m
	w.countAnswer(c, m, 1)
	if c.kind == Supergroup {
		c.lastID = max(c.lastID, m.id)
	} else {
		w.nextShared = max(w.nextShared, m.id)
	}
	return nil
}
