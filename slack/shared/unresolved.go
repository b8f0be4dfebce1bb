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

// owedPrefix begins the keys of unresolved threads.
const owedPrefix = "slack/owed/"

// Postponement is a thread with a message for which Slack did not tell in time whether the bot
// participates there. It is acknowledged all the same, because Slack gives up soon, and fetched again,
// from Since on.
type Postponement struct {
	Since  string `json:"since"`
	Kind   string `json:"kind"`
	Shared bool   `json:"shared,omitempty"`
}

// maxPostponed bounds the unresolved threads. Messages of further ones are not acknowledged.
const maxPostponed = 200

// Postpone stores an unresolved thread; of two entries for a thread the older one counts.
func (r *Reach) Postpone(ctx context.Context, chat chats.Chat, d Postponement) error {
	if r.kv == nil {
		return errors.New("slack: nothing is kept across restarts")
	}
	if !r.postpone(chat, d) {
		return errors.New("slack: too many threads are still to be looked at")
	}
	if err := r.storePostponed(ctx, chat, d); err != nil {
		return fmt.Errorf("slack: note a message to look at: %w", err)
	}
	r.WakeUp()
	return nil
}

func (r *Reach) postpone(chat chats.Chat, d Postponement) bool {
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

func (r *Reach) storePostponed(ctx context.Context, chat chats.Chat, d Postponement) error {
	body, err := json.Marshal(d)
	if err != nil {
		return err
	}
	key := owedPrefix + chat.String()
	err = storage.ErrConflict
	for try := 0; errors.Is(err, storage.ErrConflict) && try < maxTries; try++ {
		var have Postponement
		entry, missing := r.kv.Get(ctx, key)
		switch {
		case errors.Is(missing, storage.ErrNotFound):
		case missing != nil:
			return missing
		case json.Unmarshal(entry.Value, &have) == nil && have.Since <= d.Since:
			return nil
		}
		_, err = r.kv.Put(ctx, key, body, entry.Revision)
	}
	return err
}

// LoadPostponed loads the entries of all processes of the bot.
func (r *Reach) LoadPostponed(ctx context.Context) error {
	if r.kv == nil {
		return nil
	}
	for entry, err := range r.kv.List(ctx, storage.Range{Prefix: owedPrefix}) {
		if err != nil {
			return fmt.Errorf("slack: read what is still to be looked at: %w", err)
		}
		var d Postponement
		if chat, ok := threadOf(entry.Key[len(owedPrefix):]); ok && json.Unmarshal(entry.Value, &d) == nil {
			r.postpone(chat, d)
		}
	}
	return nil
}

// Resolved deletes an entry, unless there is an older one meanwhile.
func (r *Reach) Resolved(ctx context.Context, chat chats.Chat, d Postponement) error {
	r.mu.Lock()
	if r.postponed[chat] == d {
		delete(r.postponed, chat)
	}
	r.mu.Unlock()
	if r.kv == nil {
		return nil
	}
	key := owedPrefix + chat.String()
	entry, err := r.kv.Get(ctx, key)
	var have Postponement
	if err == nil && (json.Unmarshal(entry.Value, &have) != nil || have == d) {
		err = r.kv.Delete(ctx, key, entry.Revision)
	}
	if errors.Is(err, storage.ErrNotFound) || errors.Is(err, storage.ErrConflict) {
		return nil // another process has settled it, or stored an older one
	}
	return err
}

// Postponed returns the unresolved threads.
func (r *Reach) Postponed() map[chats.Chat]Postponement {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.postponed)
}
