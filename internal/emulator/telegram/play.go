package telegram

import (
	"encoding/json"
	"fmt"
	"time"

	"oneclaw/internal/emulator/telegram/botapi"
	"oneclaw/internal/emulator/telegram/markup"
)

// played is what matters of a recorded message.
type played struct {
	ID      int64       `json:"message_id"`
	Thread  int64       `json:"message_thread_id"`
	From    *User       `json:"from"`
	Chat    botapi.Chat `json:"chat"`
	Date    int64       `json:"date"`
	Text    string      `json:"text"`
	Caption string      `json:"caption"`
}

// Play queues an update of a recording, as it was but for its id. Who and where it names
// are made known, a message is added to its chat under its own id, and a press can be
// answered. Files are not there.
func (s *Server) Play(recorded json.RawMessage) error {
	var update map[string]json.RawMessage
	if err := json.Unmarshal(recorded, &update); err != nil {
		return fmt.Errorf("telegram emulator: decode an update: %w", err)
	}
	delete(update, "update_id")
	for kind, body := range update {
		if err := s.play(kind, body); err != nil {
			return err
		}
	}
	return nil
}

// playedPress is what matters of a recorded press.
type playedPress struct {
	ID      string  `json:"id"`
	From    *User   `json:"from"`
	Data    string  `json:"data"`
	Message *played `json:"message"`
}

// open reads what an update is about.
func (p *playedPress) open(kind string, body json.RawMessage) error {
	p.Message = &played{}
	if kind != "callback_query" {
		err := json.Unmarshal(body, p.Message)
		p.From = p.Message.From
		return err
	}
	err := json.Unmarshal(body, p)
	if p.Message == nil {
		p.Message = &played{}
	}
	return err
}

func (s *Server) play(kind string, body json.RawMessage) error {
	var p playedPress
	err := p.open(kind, body)
	if err == nil && p.From != nil && p.Message.Chat.ID != 0 {
		err = s.meet(p.Message.Chat, *p.From)
	}
	if err != nil {
		return fmt.Errorf("telegram emulator: play a %s: %w", kind, err)
	}
	m := p.Message
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chats[m.Chat.ID]
	if c != nil && m.Thread != 0 && c.topics[m.Thread] == "" {
		c.topics[m.Thread] = "Topic"
	}
	switch {
	case p.ID != "" && p.From != nil:
		s.callbacks[p.ID] = &Callback{ID: p.ID, Chat: m.Chat.ID, Message: m.ID, User: p.From.ID, Data: p.Data}
		s.callbackID = append(s.callbackID, p.ID)
	case c == nil || m.ID == 0 || p.From == nil:
	case c.byID[m.ID] != nil:
		c.byID[m.ID].body = markup.Text{Plain: m.Text, Source: m.Text}
	default:
		err = s.restore(Message{Chat: m.Chat.ID, ID: m.ID, Thread: m.Thread, From: p.From.ID, Date: time.Unix(m.Date, 0), Text: m.Text + m.Caption})
	}
	s.push(kind, body)
	return err
}

// meet makes a chat and somebody in it known.
func (s *Server) meet(in botapi.Chat, from User) error {
	s.mu.Lock()
	known := s.users[from.ID] != nil
	there := s.chats[in.ID] != nil
	s.mu.Unlock()
	if !known {
		s.AddUser(from)
	}
	switch {
	case !there:
		_, err := s.AddChat(ChatSpec{ID: in.ID, Kind: in.Type, Title: in.Title, User: from.ID, Forum: in.IsForum})
		return err
	case in.Type != Private:
		return s.SetMember(in.ID, from.ID, Member)
	}
	return nil
}
