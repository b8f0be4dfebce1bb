// Package audit keeps who did what about the bot and its conversations, for those who may have
// to know later. Entries are added and never changed; the oldest go.
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
	// DefaultAge is how long entries are kept where no setting says.
	DefaultAge = 365 * 24 * time.Hour
	// Most is how many are kept.
	Most = 50_000
	// Page is the place of what was done on the page of administrators.
	Page = "page"
	// Terminal is the place of what was done with a command of the program.
	Terminal = "terminal"
	// prefix begins the keys of entries, the newest first.
	prefix = "audit/"
)

// Entry is something that a person did.
type Entry struct {
	At time.Time `json:"at"`
	// Action is what was done: clear, undo, remove, sign-in and the like.
	Action string `json:"action"`
	// By is who did it, as platform:id, and Name what the platform calls them.
	By   string `json:"by"`
	Name string `json:"name,omitempty"`
	// Chat is where, as platform:id[:thread], [Page] or [Terminal].
	Chat string `json:"chat,omitempty"`
	// About says what it was done to: for a conversation the name of its log, for a sign-in
	// the address of the browser.
	About string `json:"about,omitempty"`
}

// Author is who does something, when and where, before it is known what. The zero value keeps nothing.
type Author struct {
	// KV keeps the entry.
	KV storage.KV
	// Event is what it belongs to: what is done again because of that is kept once.
	Event string
	At    time.Time
	// By, Name and Chat are those of the [Entry].
	By, Name, Chat string
}

// Record keeps that something is done, before it is: what is tried again after a crash may find nothing
// left to do.
func (a Author) Record(ctx context.Context, action, about string) error {
	if a.KV == nil {
		return nil
	}
	sum := sha256.Sum256([]byte(a.Event + "\x00" + action + "\x00" + about))
	return Append(ctx, a.KV, hex.EncodeToString(sum[:16]), Entry{At: a.At, Action: action, By: a.By, Name: a.Name, Chat: a.Chat, About: about})
}

// Op returns what keeps an entry, for a [storage.Store.Write] together with what it tells of.
// Event identifies it among those of its moment: written twice, the second is a conflict.
func Op(event string, e Entry) (storage.Op, error) {
	data, err := json.Marshal(e)
	if err != nil {
		return storage.Op{}, fmt.Errorf("encode an audit entry: %w", err)
	}
	return storage.Put(fmt.Sprintf("%s%019d/%s", prefix, math.MaxInt64-e.At.UnixNano(), event), data, storage.Absent), nil
}

// Append keeps an entry. Appended twice, it is there once.
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

// List returns the newest entries, at most so many; 0 is no bound.
func List(ctx context.Context, kv storage.KV, most int) ([]Entry, error) {
	all, _, err := After(ctx, kv, "", most)
	return all, err
}

// After returns entries as [List] does, from behind a place on, and the place where those go on
// that are older; empty where there are none.
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
		if json.Unmarshal(entry.Value, &e) == nil { // one that is damaged hides no other
			all = append(all, e)
		}
	}
	return all, "", nil
}

// Prune removes what is older, and what is more than [Most].
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
