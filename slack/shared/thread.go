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
	// threadPrefix begins the keys of the threads in which the bot participates, if there are several
	// processes.
	threadPrefix = "slack/thread/"
	// threadAge is how long their records are kept. Afterwards Slack is asked.
	threadAge = 24 * time.Hour
)

// participation records that the bot participates in a thread.
type participation struct {
	Opener string    `json:"opener,omitempty"`
	At     time.Time `json:"at"`
}

// Join tells the bot's other processes, through the store, that it participates in a thread, and who
// opened the thread, if known.
func (r *Progress) Join(ctx context.Context, chat chats.Chat, opener string) error {
	if r.kv == nil {
		return nil
	}
	_, err := storage.Save(ctx, r.kv, threadPrefix+chat.String(), participation{Opener: opener, At: r.clock.Now()}, storage.Any) // all say the same
	return err
}

// Joined reports whether any process of the bot participates in a thread, and who opened it.
func (r *Progress) Joined(ctx context.Context, chat chats.Chat) (opener string, joined bool, err error) {
	if r.kv == nil {
		return "", false, nil
	}
	t, rev, err := storage.Load[participation](ctx, r.kv, threadPrefix+chat.String())
	return t.Opener, err == nil && rev != storage.Absent, err
}

// Prune deletes the records of threads that the bot joined more than threadAge ago.
func (r *Progress) Prune(ctx context.Context) error {
	if r.kv == nil {
		return nil
	}
	for entry, err := range r.kv.List(ctx, storage.Range{Prefix: threadPrefix}) {
		var t participation
		if err == nil && (json.Unmarshal(entry.Value, &t) != nil || r.clock.Now().Sub(t.At) > threadAge) {
			err = r.kv.Delete(ctx, entry.Key, entry.Revision)
		}
		if err != nil && !errors.Is(err, storage.ErrConflict) { // after a conflict the bot has just joined again
			return err
		}
	}
	return nil
}
