package conversation

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/storage"
)

// askedPrefix begins the keys of an index: by user, the conversations of shared chats in which the user
// has asked something.
const askedPrefix = "asked/"

// Asked is a conversation of a shared chat in which a user has asked something.
type Asked struct {
	Chat chats.Chat `json:"chat"`
	Log  string     `json:"log"`
	// Task says that it is the conversation of a task.
	Task bool   `json:"task,omitempty"`
	By   string `json:"-"`
}

func askedKey(by, log string) string { return askedPrefix + by + "/" + log }

// NoteAuthor records, with the question of a turn in a shared chat, who asked, unless earlier messages
// show that this is recorded.
func (h *History) NoteAuthor(j *queue.Job) {
	h.asked = nil
	by := j.Message.By()
	if len(askedKey(by, h.Log)) > storage.MaxKey || slices.ContainsFunc(h.Messages, func(m agent.Message) bool { return m.By == by }) {
		return
	}
	data, _ := json.Marshal(Asked{Chat: j.Message.Chat, Log: h.Log, Task: j.Message.Kind == receipts.KindTask}) // never fails
	h.asked = []storage.Op{storage.Put(askedKey(by, h.Log), data, storage.Any)}                                 // the key is all that is read
}

// AskedBy yields the conversations of shared chats in which a user, platform:id, has asked something;
// those of all users if by is empty.
func AskedBy(ctx context.Context, kv storage.KV, by string) iter.Seq2[Asked, error] {
	return func(yield func(Asked, error) bool) {
		prefix := askedPrefix
		if by != "" {
			prefix = askedKey(by, "")
		}
		for entry, err := range kv.List(ctx, storage.Range{Prefix: prefix}) {
			var a Asked
			switch {
			case err != nil:
				err = fmt.Errorf("list where %s has asked: %w", by, err)
			case json.Unmarshal(entry.Value, &a) != nil:
				continue
			}
			a.By, _, _ = strings.Cut(strings.TrimPrefix(entry.Key, askedPrefix), "/")
			if !yield(a, err) || err != nil {
				return
			}
		}
	}
}

// Remove removes it from the index.
func (a Asked) Remove(ctx context.Context, kv storage.KV) error {
	if err := kv.Delete(ctx, askedKey(a.By, a.Log), storage.Any); err != nil {
		return fmt.Errorf("forget who asked in %s: %w", a.Log, err)
	}
	return nil
}

// TurnsBy yields the turns of a conversation of a shared chat that a user, platform:id, has begun. It
// skips damaged records and summaries, which also tell of others.
func TurnsBy(ctx context.Context, store storage.Log, log, by string) iter.Seq2[agent.Message, error] {
	return func(yield func(agent.Message, error) bool) {
		theirs := false
		for m, err := range Messages(ctx, store, log) {
			if queue.IsDamaged(err) || m.Role == agent.RoleSummary {
				continue
			}
			if err == nil && m.BeginsTurn() {
				theirs = m.By == by
			}
			if (theirs || err != nil) && !yield(m, err) {
				return
			}
		}
	}
}

// ForgetAsked deletes index entries of conversations that have not begun or hold no text any more.
func ForgetAsked(ctx context.Context, store storage.Store) error {
	for a, err := range AskedBy(ctx, store, "") {
		if err != nil {
			return err
		}
		said := false
		for _, err := range Records(ctx, store, a.Log, storage.Query{}) {
			if err != nil {
				return fmt.Errorf("look for what is left of %s: %w", a.Log, err)
			}
			said = true
			break
		}
		if said {
			continue
		}
		if err := a.Remove(ctx, store); err != nil {
			return err
		}
	}
	return nil
}
