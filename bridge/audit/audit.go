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
	"strings"
	"time"

	"oneclaw/storage"
)

const (
	// DefaultAge is how long entries are kept if no setting says.
	DefaultAge = 365 * 24 * time.Hour
	// Most bounds how many are kept.
	Most = 50_000
	// Page is the Chat of actions on the administrators' pages.
	Page = "page"
	// Terminal is the Chat of actions of the program's commands.
	Terminal = "terminal"
	// prefix begins the keys of entries, the newest first.
	prefix = "audit/"
)

// Entry is an action of a person.
type Entry struct {
	At time.Time `json:"at"`
	// Action is the action: clear, undo, remove, sign-in and the like.
	Action string `json:"action"`
	// By is who did it, as platform:id, Name the platform's name of them.
	By   string `json:"by"`
	Name string `json:"name,omitempty"`
	// Chat is where it was done: platform:id[:thread], [Page] or [Terminal].
	Chat string `json:"chat,omitempty"`
	// About is what it was done to: for a conversation the name of its log, for a sign-in the address
	// of the browser.
	About string `json:"about,omitempty"`
}

// Author is who acts, when and where, before the action is known. The zero value records nothing.
type Author struct {
	// KV stores the entry.
	KV storage.KV
	// Event identifies the cause: an action repeated for the same event is recorded once.
	Event string
	At    time.Time
	// By, Name and Chat are as in [Entry].
	By, Name, Chat string
}

// Record stores an action before it is done: a repetition after a crash may find nothing left to do.
func (a Author) Record(ctx context.Context, action, about string) error {
	if a.KV == nil {
		return nil
	}
	sum := sha256.Sum256([]byte(a.Event + "\x00" + action + "\x00" + about))
	return Append(ctx, a.KV, hex.EncodeToString(sum[:16]), Entry{At: a.At, Action: action, By: a.By, Name: a.Name, Chat: a.Chat, About: about})
}

// Op returns the write of an entry, for a [storage.Store.Write] together with the action. event
// identifies it among the entries of its moment: a second write of it is a conflict.
func Op(event string, e Entry) (storage.Op, error) {
	data, err := json.Marshal(e)
	if err != nil {
		return storage.Op{}, fmt.Errorf("encode an audit entry: %w", err)
	}
	return storage.Put(fmt.Sprintf("%s%019d/%s", prefix, math.MaxInt64-e.At.UnixNano(), event), data, storage.Absent), nil
}

// Append stores an entry. It is idempotent.
func Append(ctx context.Context, kv storage.KV, event string, e Entry) error {
	op, err := Op(event, e)
	if err != nil {
		return err
	}
	if _, err = kv.Put(ctx, op.Key, op.Value, op.Rev); err != nil && !errors.Is(err, storage.ErrConflict) {
		return fmt.Errorf("store an audit entry: %w", err)
	}
	return nil
}

// List returns the newest entries, at most most; 0 is no bound.
func List(ctx context.Context, kv storage.KV, most int) ([]Entry, error) {
	all, _, err := After(ctx, kv, "", most)
	return all, err
}

// After returns entries as [List] does, but those after a cursor, and the cursor of the older ones;
// empty if there are none.
func After(ctx context.Context, kv storage.KV, after string, most int) (all []Entry, next string, err error) {
	r, n := storage.Range{Prefix: prefix}, 0
	if after != "" {
		r.After = prefix + after
	}
	last := ""
	for entry, err := range kv.List(ctx, r) {
		if err != nil {
			return nil, "", fmt.Errorf("list audit entries: %w", err)
		}
		if n++; most > 0 && n > most {
			return all, last, nil
		}
		last = strings.TrimPrefix(entry.Key, prefix)
		var e Entry
		if json.Unmarshal(entry.Value, &e) == nil { // skip damaged entries
			all = append(all, e)
		}
	}
	return all, "", nil
}

// Prune deletes entries that are older than before, and those beyond [Most].
func Prune(ctx context.Context, kv storage.KV, before time.Time) error {
	oldest := fmt.Sprintf("%s%019d", prefix, math.MaxInt64-before.UnixNano())
	n := 0
	for entry, err := range kv.List(ctx, storage.Range{Prefix: prefix}) {
		if err != nil {
			return fmt.Errorf("list audit entries: %w", err)
		}
		if n++; n <= Most && entry.Key < oldest {
			continue
		}
		if err := kv.Delete(ctx, entry.Key, entry.Revision); err != nil && !errors.Is(err, storage.ErrConflict) {
			return fmt.Errorf("remove an audit entry: %w", err)
		}
	}
	return nil
}
