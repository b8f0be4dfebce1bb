package shared

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"oneclaw/bridge/chats"
	"oneclaw/storage"
)

// postponedPrefix begins the keys of postponed threads.
const postponedPrefix = "slack/owed/"

// Postponement is a thread with a message for which Slack did not report in time whether the bot
// participates there. The message is acknowledged anyway, because Slack soon gives up, and the thread is
// fetched later, from the ts in Since on. Kind is the channel_type.
type Postponement struct {
	Since  string `json:"since"`
	Kind   string `json:"kind"`
	Shared bool   `json:"shared,omitempty"`
}

// maxPostponed bounds the postponed threads. Messages in further ones are not acknowledged.
const maxPostponed = 200

// Postpone stores a postponed thread. Of two entries for a thread, the older one counts.
func (r *Progress) Postpone(ctx context.Context, chat chats.Chat, d Postponement) error {
	if r.kv == nil {
		return errors.New("slack: there is no store for postponed messages")
	}
	if !r.postpone(chat, d) {
		return errors.New("slack: too many postponed threads")
	}
	err := storage.Retry(ctx, func() error {
		key := postponedPrefix + chat.String()
		have, rev, err := storage.Load[Postponement](ctx, r.kv, key)
		switch {
		case err != nil && rev == storage.Absent:
			return err
		case err == nil && rev != storage.Absent && have.Since <= d.Since:
			return nil
		}
		_, err = storage.Save(ctx, r.kv, key, d, rev)
		return err
	})
	if err != nil {
		return fmt.Errorf("slack: store a postponed message: %w", err)
	}
	r.WakeUp()
	return nil
}

func (r *Progress) postpone(chat chats.Chat, d Postponement) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	have, known := r.postponed[chat]
	if !known && len(r.postponed) >= maxPostponed {
		return false
	}
	if !known || d.Since < have.Since {
		r.postponed[chat] = d
	}
	return true
}

// LoadPostponed loads the postponed threads of all processes of the bot.
func (r *Progress) LoadPostponed(ctx context.Context) error {
	if r.kv == nil {
		return nil
	}
	for entry, err := range r.kv.List(ctx, storage.Range{Prefix: postponedPrefix}) {
		if err != nil {
			return fmt.Errorf("slack: read postponed messages: %w", err)
		}
		var d Postponement
		if chat, ok := parseThread(entry.Key[len(postponedPrefix):]); ok && json.Unmarshal(entry.Value, &d) == nil {
			r.postpone(chat, d)
		}
	}
	return nil
}

// Resolve deletes an entry, unless an older one was stored since.
func (r *Progress) Resolve(ctx context.Context, chat chats.Chat, d Postponement) error {
	r.mu.Lock()
	if r.postponed[chat] == d {
		delete(r.postponed, chat)
	}
	r.mu.Unlock()
	if r.kv == nil {
		return nil
	}
	key := postponedPrefix + chat.String()
	have, rev, err := storage.Load[Postponement](ctx, r.kv, key)
	if rev != storage.Absent && (err != nil || have == d) {
		err = r.kv.Delete(ctx, key, rev)
	}
	if errors.Is(err, storage.ErrConflict) {
		return nil // another process has resolved it, or stored an older one
	}
	return err
}

// Postponed returns the postponed threads.
func (r *Progress) Postponed() map[chats.Chat]Postponement {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.postponed)
}
