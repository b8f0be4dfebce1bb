// Package audit records who did what with the bot and its conversations. Entries are added and never
// changed; the oldest are deleted.
package audit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"oneclaw/storage"
)

const (
	// DefaultAge is how long entries are kept unless a setting says otherwise.
	DefaultAge = 365 * 24 * time.Hour
	// maxEntries bounds how many entries are kept.
	maxEntries = 50_000
	// PageChat is the Chat of actions on the administrators' pages.
	PageChat = "page"
	// prefix begins the keys of entries, which sort the newest entry first.
	prefix = "audit/"
)

// Entry is an action of a person.
type Entry struct {
	At time.Time `json:"at"`
	// Action is the action: clear, undo, remove, sign-in and the like.
	Action string `json:"action"`
	// By is the person who acted, as platform:id, and Name that person's name on the platform.
	By   string `json:"by"`
	Name string `json:"name,omitempty"`
	// Chat is where the action took place: platform:id[:thread], or [PageChat].
	Chat string `json:"chat,omitempty"`
	// About is the object of the action: the name of a conversation's log, or for a sign-in the address
	// of the browser.
	About string `json:"about,omitempty"`
}

// Author describes who acts, when and where, before the action is known. The zero value records nothing.
type Author struct {
	// KV stores the entry.
	KV storage.KV
	// Event identifies the cause: an action repeated for the same event is recorded only once.
	Event string
	At    time.Time
	// By, Name and Chat are as in [Entry].
	By, Name, Chat string
}

// Record stores an action before it is done, because a repetition after a crash may find nothing left to
// do.
func (a Author) Record(ctx context.Context, action, about string) error {
	if a.KV == nil {
		return nil
	}
	sum := sha256.Sum256([]byte(a.Event + "\x00" + action + "\x00" + about))
	return Append(ctx, a.KV, hex.EncodeToString(sum[:16]), Entry{At: a.At, Action: action, By: a.By, Name: a.Name, Chat: a.Chat, About: about})
}

// AppendOp returns the write of an entry, for a [storage.Store.Write] together with the action. The
// event identifies the entry among those of the same moment: a second write of it is a conflict.
func AppendOp(event string, e Entry) (storage.Op, error) {
	data, err := json.Marshal(e)
	if err != nil {
		return storage.Op{}, fmt.Errorf("encode an audit entry: %w", err)
	}
	return storage.Put(fmt.Sprintf("%s%019d/%s", prefix, math.MaxInt64-e.At.UnixNano(), event), data, storage.Absent), nil
}

// Append stores an entry. It is idempotent.
func Append(ctx context.Context, kv storage.KV, event string, e Entry) error {
	op, err := AppendOp(event, e)
	if err != nil {
		return err
	}
	if _, err = kv.Put(ctx, op.Key, op.Value, op.Rev); err != nil && !errors.Is(err, storage.ErrConflict) {
		return fmt.Errorf("store an audit entry: %w", err)
	}
	return nil
}

// List returns the newest entries, at most the given number; 0 means no limit.
func List(ctx context.Context, kv storage.KV, most int) (all []Entry, err error) {
	for entry, err := range kv.List(ctx, storage.Range{Prefix: prefix, Limit: most}) {
		if err != nil {
			return nil, fmt.Errorf("list audit entries: %w", err)
		}
		var e Entry
		if json.Unmarshal(entry.Value, &e) == nil { // skip damaged entries
			all = append(all, e)
		}
	}
	return all, nil
}

// Prune deletes entries older than before, and the oldest ones beyond [maxEntries].
func Prune(ctx context.Context, kv storage.KV, before time.Time) error {
	oldest := fmt.Sprintf("%s%019d", prefix, math.MaxInt64-before.UnixNano())
	n := 0
	for entry, err := range kv.List(ctx, storage.Range{Prefix: prefix}) {
		if err != nil {
			return fmt.Errorf("list audit entries: %w", err)
		}
		if n++; n <= maxEntries && entry.Key < oldest {
			continue
		}
		if err := kv.Delete(ctx, entry.Key, entry.Revision); err != nil && !errors.Is(err, storage.ErrConflict) { // another process prunes too
			return fmt.Errorf("remove an audit entry: %w", err)
		}
	}
	return nil
}
