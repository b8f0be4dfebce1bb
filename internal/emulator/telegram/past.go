package telegram

import (
	"encoding/json"
	"errors"
	"fmt"

	"oneclaw/internal/emulator/telegram/botapi"
	"oneclaw/internal/emulator/telegram/markup"
)

// Past is what an earlier [Server] has done, for a bot that remembers it.
type Past struct {
	// Messages stand in chats that exist; their files, replies and edits are left out.
	Messages []Message `json:"messages"`
	// LastMessage is the newest message id of private chats and basic groups, LastUpdate
	// the newest id of an update. Ids go on from there.
	LastMessage int64 `json:"last_message"`
	LastUpdate  int64 `json:"last_update"`
}

// Restore goes on from a past, before the first update. The bot hears nothing of it.
func (st *stage) Restore(p Past) error {
	st.world.mu.Lock()
	defer st.world.mu.Unlock()
	if len(st.updates.waiting) > 0 {
		return errors.New("telegram emulator: a past comes before the first update")
	}
	for _, old := range p.Messages {
		if err := st.world.restore(old); err != nil {
			return err
		}
	}
	st.world.nextShared = max(st.world.nextShared, p.LastMessage)
	st.updates.last = max(st.updates.last, p.LastUpdate)
	st.updates.confirmed = st.updates.last
	st.world.hub.Changed()
	return nil
}

func (w *world) restore(old Message) error {
	c, from := w.chats[old.Chat], &w.bot
	if !old.FromBot {
		from = w.users[old.From]
	}
	if c == nil || from == nil || c.byID[old.ID] != nil {
		return fmt.Errorf("telegram emulator: message %d cannot have been in chat %d", old.ID, old.Chat)
	}
	m := &message{
		id: old.ID, thread: old.Thread, from: *from, date: old.Date, silent: old.Silent, deleted: old.Deleted,
		body: markup.Text{Plain: old.Text, Source: old.Text, Entities: old.Entities},
	}
	for _, row := range old.Buttons {
		raw := make([]json.RawMessage, len(row))
		for i, b := range row {
			data, err := json.Marshal(b)
			if err != nil {
				return fmt.Errorf("telegram emulator: encode a button: %w", err)
			}
			raw[i] = data
		}
		if m.markup == nil {
			m.markup = &botapi.Keyboard{}
		}
		m.markup.InlineKeyboard = append(m.markup.InlineKeyboard, raw)
	}
	c.messages = append(c.messages, m)
	c.byID[m.id] = m
	w.tally(c, m, 1)
	if c.kind == Supergroup {
		c.next = max(c.next, m.id)
	} else {
		w.nextShared = max(w.nextShared, m.id)
	}
	return nil
}
