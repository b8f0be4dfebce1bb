package shared

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/storage"
)

const (
	// threadPrefix is where the store keeps in which threads the bot takes part, where there
	// are several processes.
	threadPrefix = "slack/thread/"
	// threadAge is how long: later Slack is asked.
	threadAge = 24 * time.Hour
)

// taking is that the bot takes part in a thread.
type taking struct {
	Opener string    `json:"opener,omitempty"`
	At     time.Time `json:"at"`
}

// Join tells the other processes of the bot that it takes part in a thread, and who began
// that, if it is known.
func (r *Reach) Join(ctx context.Context, chat chats.Chat, opener string) error {
	if r.kv == nil {
		return nil
	}
	body, err := json.Marshal(taking{Opener: opener, At: r.clock.Now()})
	if err == nil {
		_, err = r.kv.Put(ctx, threadPrefix+chat.String(), body, storage.Any) // all say the same
	}
	return err
}

// Joined reports whether a process of the bot takes part in a thread.
func (r *Reach) Joined(ctx context.Context, chat chats.Chat) (opener string, joined bool, err error) {
	if r.kv == nil {
		return "", false, nil
	}
	entry, err := r.kv.Get(ctx, threadPrefix+chat.String())
	if errors.Is(err, storage.ErrNotFound) {
		return "", false, nil
	}
	var t taking
	if err == nil {
		err = json.Unmarshal(entry.Value, &t)
	}
	return t.Opener, err == nil, err
}

// Prune removes threads that were joined long ago.
func (r *Reach) Prune(ctx context.Context) error {
	if r.kv == nil {
		return nil
	}
	for entry, err := range r.kv.List(ctx, storage.Range{Prefix: threadPrefix}) {
		var t taking
		if err == nil && (json.Unmarshal(entry.Value, &t) != nil || r.clock.Now().Sub(t.At) > threadAge) {
			err = r.kv.Delete(ctx, entry.Key, entry.Revision)
		}
		if err != nil && !errors.Is(err, storage.ErrConflict) {
			return err
		}
	}
	return nil
}
