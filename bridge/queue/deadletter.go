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

// DeadLetterAge is how long dead letters are kept.
const DeadLetterAge = 30 * 24 * time.Hour

const (
	// deadLetterPrefix begins the keys of dead letters.
	deadLetterPrefix = "aside/"
	// maxDeadLetterData bounds the stored part of a record: encoded, it has to fit into one again.
	maxDeadLetterData = storage.MaxValue / 2
)

// DeadLetter is something that the bridge cannot complete: an answer that the platform did not accept
// for a day, a record that does not decode. Nothing works on it any more. It keeps the content, oneclaw
// doctor lists it, and it is deleted after [DeadLetterAge].
type DeadLetter struct {
	// Key is the key that it had in the store; there is one dead letter for each key.
	Key string `json:"key"`
	// Chat is its chat, as platform:id or platform:id:thread; empty if unknown.
	Chat string `json:"chat,omitempty"`
	// Reason is the reason in words for the operator, without texts of users.
	Reason string `json:"reason"`
	// Incident is its name in the log and the chat.
	Incident string `json:"incident"`
	// Time is when it became a dead letter.
	Time time.Time `json:"time"`
	// Data is the content of the record, or its first 4 MiB.
	Data []byte `json:"data,omitempty"`
}

// DeadLetters stores dead letters in a KV.
type DeadLetters struct {
	KV  storage.KV
	Log *slog.Logger
	Now func() time.Time
}

// Add stores and logs a dead letter. The caller removes the original record after Add has returned nil.
// A repetition replaces the earlier one.
func (s DeadLetters) Add(ctx context.Context, a DeadLetter) error {
	a.Time = s.Now()
	a.Data = a.Data[:min(len(a.Data), maxDeadLetterData)]
	if _, err := Write(ctx, s.KV, DeadLetterKey(a.Key), a, storage.Any); err != nil {
		return fmt.Errorf("set %s aside: %w", a.Key, err)
	}
	s.Log.Error("set aside: oneclaw doctor lists it", "incident", a.Incident, "key", a.Key, "chat", a.Chat, "reason", a.Reason)
	return nil
}

// Damaged makes a record that does not decode a dead letter. The caller removes or replaces the record.
func (s DeadLetters) Damaged(ctx context.Context, entry storage.Entry) error {
	return s.Add(ctx, DeadLetter{Key: entry.Key, Reason: "the record does not decode", Incident: NewIncident(), Data: entry.Value})
}

// DeadLetterKey returns the key of a dead letter. It is a hash, because a full key might be too long
// after the prefix.
func DeadLetterKey(key string) string { return deadLetterPrefix + Hash(key) }

// ListDeadLetters returns the dead letters, the oldest first.
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

// decodeDeadLetter decodes a dead letter; one that does not decode is listed as well.
func decodeDeadLetter(entry storage.Entry) DeadLetter {
	var a DeadLetter
	if err := json.Unmarshal(entry.Value, &a); err != nil {
		return DeadLetter{Key: entry.Key, Reason: "the record of what was set aside does not decode"}
	}
	return a
}

// Prune deletes dead letters from before the given time.
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
