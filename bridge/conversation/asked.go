package conversation

import (
	"context"
	"encoding/json"
	"errors"
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

// askedPrefix begins the keys of an index by user: the conversations of shared chats in which the user
// has asked something.
const askedPrefix = "asked/"

// Participation is a conversation of a shared chat in which a user has asked something.
type Participation struct {
	Chat chats.Chat `json:"chat"`
	Log  string     `json:"log"`
	// Task is set for the conversation of a task.
	Task bool   `json:"task,omitempty"`
	By   string `json:"-"`

	rev storage.Revision
}

func askedKey(by, log string) string { return askedPrefix + by + "/" + log }

// NoteAuthor stages a record of who asked, to be written with the question of a turn in a shared chat,
// unless earlier messages show that there is one already.
func (h *History) NoteAuthor(j *queue.Job) {
	h.authorOps = nil
	by := j.Message.SenderID()
	if len(askedKey(by, h.Log)) > storage.MaxKey || slices.ContainsFunc(h.Messages, func(m agent.Message) bool { return m.AuthorKey == by }) {
		return
	}
	data, _ := json.Marshal(Participation{Chat: j.Message.Chat, Log: h.Log, Task: receipts.IsTask(j.Message)}) // never fails
	h.authorOps = []storage.Op{storage.Put(askedKey(by, h.Log), data, storage.Any)}                            // only the key is read
}

// AskedBy yields the conversations of shared chats in which a user, platform:id, has asked something; if
// by is empty, those of all users.
func AskedBy(ctx context.Context, kv storage.KV, by string) iter.Seq2[Participation, error] {
	return func(yield func(Participation, error) bool) {
		prefix := askedPrefix
		if by != "" {
			prefix = askedKey(by, "")
		}
		for entry, err := range kv.List(ctx, storage.Range{Prefix: prefix}) {
			var a Participation
			switch {
			case err != nil:
				err = fmt.Errorf("list the conversations in which %s has asked: %w", by, err)
			case json.Unmarshal(entry.Value, &a) != nil:
				continue
			}
			a.By, _, _ = strings.Cut(strings.TrimPrefix(entry.Key, askedPrefix), "/")
			a.rev = entry.Revision
			if !yield(a, err) || err != nil {
				return
			}
		}
	}
}

// Remove removes the entry from the index, unless the user has asked again since it was read.
func (a Participation) Remove(ctx context.Context, kv storage.KV) error {
	if err := kv.Delete(ctx, askedKey(a.By, a.Log), a.rev); err != nil && !errors.Is(err, storage.ErrConflict) {
		return fmt.Errorf("remove %s from the index of users who asked: %w", a.Log, err)
	}
	return nil
}

// TurnsBy yields the messages of the turns that a user, platform:id, has begun in a conversation of a
// shared chat. It skips damaged records and summaries, which also cover the turns of others.
func TurnsBy(ctx context.Context, store storage.Log, log, by string) iter.Seq2[agent.Message, error] {
	return func(yield func(agent.Message, error) bool) {
		theirs := false
		for m, err := range Messages(ctx, store, log) {
			if queue.IsDamaged(err) || m.Role == agent.RoleSummary {
				continue
			}
			if err == nil && m.BeginsTurn() {
				theirs = m.AuthorKey == by
			}
			if (theirs || err != nil) && !yield(m, err) {
				return
			}
		}
	}
}

// pruneAsked deletes the index entries of conversations that have not begun or no longer hold any text.
func pruneAsked(ctx context.Context, store storage.Store) error {
	for a, err := range AskedBy(ctx, store, "") {
		if err != nil {
			return err
		}
		said := false
		for _, err := range keptRecords(ctx, store, a.Log, storage.Query{}) {
			if err != nil {
				return fmt.Errorf("look for the records left in %s: %w", a.Log, err)
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
