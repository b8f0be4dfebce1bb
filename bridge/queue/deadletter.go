package queue

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"oneclaw/storage"
)

// DeadLetterAge is how long what was set aside is kept.
const DeadLetterAge = 30 * 24 * time.Hour

const (
	// deadLetterPrefix is where the store keeps what was set aside, one record for each.
	deadLetterPrefix = "aside/"
	// maxDeadLetterData bounds what is kept of a record: encoded, it has to fit into one again.
	maxDeadLetterData = storage.MaxValue / 2
)

// DeadLetter is something that the bridge cannot carry to its end: an answer that no platform
// took for a day, a record that does not decode. Nothing works on it any more. The record
// keeps what it was, oneclaw doctor lists it, and it goes after [DeadLetterAge].
type DeadLetter struct {
	// Key is the key that it had in the store. It is set aside once under each key.
	Key string `json:"key"`
	// Chat is where it belonged, as platform:id or platform:id:thread; empty where it is
	// unknown.
	Chat string `json:"chat,omitempty"`
	// Reason says why, in words for the operator, without anything that people wrote.
	Reason string `json:"reason"`
	// Incident is what the log and the chat call it.
	Incident string `json:"incident"`
	// Time is when it was set aside.
	Time time.Time `json:"time"`
	// Data is what the record held, or its first 4 MiB.
	Data []byte `json:"data,omitempty"`
}

// DeadLetters keeps what was set aside in a KV.
type DeadLetters struct {
	KV  storage.KV
	Log *slog.Logger
	Now func() time.Time
}

// Add puts on record that something was set aside, and in the log. It leaves the record
// that it was to the caller, who removes it after this has returned nil. Doing it again
// replaces what is there.
func (s DeadLetters) Add(ctx context.Context, a DeadLetter) error {
	a.Time = s.Now()
	a.Data = a.Data[:min(len(a.Data), maxDeadLetterData)]
	if _, err := Write(ctx, s.KV, DeadLetterKey(a.Key), a, storage.Any); err != nil {
		return fmt.Errorf("set %s aside: %w", a.Key, err)
	}
	s.Log.Error("set aside: oneclaw doctor lists it", "incident", a.Incident, "key", a.Key, "chat", a.Chat, "reason", a.Reason)
	return nil
}

// Damaged sets a record aside that does not decode. The caller takes it away, or puts another in
// its place.
func (s DeadLetters) Damaged(ctx context.Context, entry storage.Entry) error {
	return s.Add(ctx, DeadLetter{Key: entry.Key, Reason: "the record does not decode", Incident: NewIncident(), Data: entry.Value})
}

// DeadLetterKey is where something is kept. A key of its own length would be too long behind
// the prefix.
func DeadLetterKey(key string) string { return deadLetterPrefix + Hash(key) }

// ListDeadLetters returns what was set aside, the oldest first.
func ListDeadLetters(ctx context.Context, kv storage.KV) ([]DeadLetter, error) {
	var all []DeadLetter
	for entry, err := range kv.List(ctx, storage.Range{Prefix: deadLetterPrefix}) {
		if err != nil {
			return nil, fmt.Errorf("list what was set aside: %w", err)
		}
		all = append(all, decodeDeadLetter(entry))
	}
	slices.SortFunc(all, func(a, b DeadLetter) int { return cmp.Or(a.Time.Compare(b.Time), strings.Compare(a.Key, b.Key)) })
	return all, nil
}

// decodeDeadLetter reads a record; one that does not decode is worth a line as well.
func decodeDeadLetter(entry storage.Entry) DeadLetter {
	var a DeadLetter
	if err := json.Unmarshal(entry.Value, &a); err != nil {
		return DeadLetter{Key: entry.Key, Reason: "the record of what was set aside does not decode"}
	}
	return a
}

// Prune removes what was set aside before the given time.
func (s DeadLetters) Prune(ctx context.Context, before time.Time) error {
	for entry, err := range s.KV.List(ctx, storage.Range{Prefix: deadLetterPrefix}) {
		if err != nil {
			return fmt.Errorf("list what was set aside: %w", err)
		}
		if !decodeDeadLetter(entry).Time.Before(before) {
			continue
		}
		if err := s.KV.Delete(ctx, entry.Key, storage.Any); err != nil {
			return fmt.Errorf("remove %s: %w", entry.Key, err)
		}
	}
	return nil
}
