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
	// maxDeadLetterData bounds the stored part of a record. Encoded, it has to fit into one value.
	maxDeadLetterData = storage.MaxValue / 2
)

// UnacceptedPrefix begins the keys of dead letters that are messages which could not be accepted.
const UnacceptedPrefix = "message/"

// DeadLetter is a job that the bridge cannot complete, or a record that does not decode. A job becomes a
// dead letter, for example, if the platform does not accept its answer for a day. oneclaw doctor lists
// dead letters with their content. They are deleted after [DeadLetterAge].
type DeadLetter struct {
	// Key is the key of the original record; there is at most one dead letter for each key.
	Key string `json:"key"`
	// Chat is the chat of the job, as platform:id or platform:id:thread; empty if unknown.
	Chat string `json:"chat,omitempty"`
	// QuotedUser is the user, platform:id, whom a message of the bot quotes; empty if there is none.
	QuotedUser string `json:"of,omitempty"`
	// Reason is the reason in words for the operator, without texts from users.
	Reason string `json:"reason"`
	// Incident is the id of the failure in the log and in the chat.
	Incident string `json:"incident"`
	// Time is when the record became a dead letter.
	Time time.Time `json:"time"`
	// Data is the content of the record, or its first 4 MiB.
	Data []byte `json:"data,omitempty"`
}

// DeadLetterStore stores dead letters in a KV.
type DeadLetterStore struct {
	KV  storage.KV
	Log *slog.Logger
	Now func() time.Time
}

// Add stores and logs a dead letter. The caller removes the original record after Add has returned nil.
// A dead letter with the same key is replaced.
func (s DeadLetterStore) Add(ctx context.Context, a DeadLetter) error {
	a.Time = s.Now()
	a.Data = a.Data[:min(len(a.Data), maxDeadLetterData)]
	if _, err := storage.Save(ctx, s.KV, DeadLetterKey(a.Key), a, storage.Any); err != nil {
		return fmt.Errorf("store the dead letter %s: %w", a.Key, err)
	}
	s.Log.Error("dead letter stored: oneclaw doctor lists it", "incident", a.Incident, "key", a.Key, "chat", a.Chat, "reason", a.Reason)
	return nil
}

// AddDamaged stores a dead letter for a damaged record. The caller removes or replaces the record.
func (s DeadLetterStore) AddDamaged(ctx context.Context, entry storage.Entry) error {
	return s.Add(ctx, DeadLetter{Key: entry.Key, Reason: "the record does not decode", Incident: NewIncident(), Data: entry.Value})
}

// SenderID returns the sender of the message of a dead letter; empty if unknown.
func (a DeadLetter) SenderID() string {
	var j Job
	into := any(&j)
	if strings.HasPrefix(a.Key, UnacceptedPrefix) {
		into = &j.Message
	}
	if json.Unmarshal(a.Data, into) != nil {
		return ""
	}
	return j.Message.SenderID()
}

// DeadLetterKey returns the key of a dead letter in the store. It contains a hash of the original key,
// because the full key might be too long.
func DeadLetterKey(key string) string { return deadLetterPrefix + Hash(key) }

// ListDeadLetters returns the dead letters, the oldest first.
func ListDeadLetters(ctx context.Context, kv storage.KV) ([]DeadLetter, error) {
	var all []DeadLetter
	for entry, err := range kv.List(ctx, storage.Range{Prefix: deadLetterPrefix}) {
		if err != nil {
			return nil, fmt.Errorf("list dead letters: %w", err)
		}
		all = append(all, decodeDeadLetter(entry))
	}
	slices.SortFunc(all, func(a, b DeadLetter) int { return cmp.Or(a.Time.Compare(b.Time), strings.Compare(a.Key, b.Key)) })
	return all, nil
}

// decodeDeadLetter decodes a dead letter. If that fails, it returns one that says so.
func decodeDeadLetter(entry storage.Entry) DeadLetter {
	var a DeadLetter
	if err := json.Unmarshal(entry.Value, &a); err != nil {
		return DeadLetter{Key: entry.Key, Reason: "the record of the dead letter does not decode"}
	}
	return a
}

// Prune deletes the dead letters that are older than the given time.
func (s DeadLetterStore) Prune(ctx context.Context, before time.Time) error {
	for entry, err := range s.KV.List(ctx, storage.Range{Prefix: deadLetterPrefix}) {
		if err != nil {
			return fmt.Errorf("list dead letters: %w", err)
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
