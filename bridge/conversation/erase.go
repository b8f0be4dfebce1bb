package conversation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/storage"
)

// erasedTitle replaces an erased title.
const erasedTitle = "…"

// eraseBatch bounds how many records one write erases.
const eraseBatch = 500

// EraseBy erases what a user, platform:id, has asked in a conversation that is listed under owners, in
// messages with a number below before: the turns that these messages begin, and the summaries that may cover
// them. kept reports whether later turns of the user remain.
//
// An empty record then ends the log, so that a process that has a copy reads the conversation again, and
// nothing is added to it that was begun with the copy. What was added in between is looked through again.
func EraseBy(ctx context.Context, store storage.Store, log, by string, before int64, owners ...string) (kept bool, err error) {
	forgotten := func(m *agent.Message) bool { return m.AuthorKey == by && m.Seq < before }
	for record, err := range keptRecords(ctx, store, log, storage.Query{Limit: 1}) {
		if m, broken := Decode(log, record); err == nil && broken == nil && forgotten(&m) {
			for _, owner := range owners {
				err = errors.Join(err, eraseTitle(ctx, store, owner, log))
			}
		}
		if err != nil {
			return false, err
		}
	}
	for again := range 2 {
		gone := false
		kept = false
		_, err := erase(ctx, store, log, func(m *agent.Message) (bool, bool) {
			if m.BeginsTurn() {
				gone = forgotten(m)
				kept = kept || m.AuthorKey == by && !gone
			}
			return gone, true
		})
		if err == nil && again == 0 {
			err = appendEmpty(ctx, store, log)
		}
		if err != nil {
			return kept, err
		}
	}
	return kept, nil
}

// appendEmpty adds an empty record to a log, unless the log does not exist.
func appendEmpty(ctx context.Context, store storage.Log, log string) error {
	err := storage.Retry(ctx, func() (err error) {
		for last, failed := range store.Records(ctx, log, storage.Query{Backward: true, Limit: 1}) {
			if err = failed; err == nil {
				_, err = store.Append(ctx, log, last.Pos, storage.Record{})
			}
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("end %s: %w", log, err)
	}
	return nil
}

// eraseTitle erases the title of a conversation, which is a part of its first message, and the name of the
// user who asked first.
func eraseTitle(ctx context.Context, kv storage.KV, owner, log string) error {
	entry, err := kv.Get(ctx, conversationKey(owner, log))
	var c Conversation
	if err == nil {
		err = queue.Decode(entry, &c)
	}
	if err == nil {
		c.Title, c.By = erasedTitle, ""
		_, err = storage.Save(ctx, kv, entry.Key, c, entry.Revision)
	}
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return fmt.Errorf("erase the title of %s: %w", log, err)
	}
	return nil
}

// eraseBefore erases the turns of a conversation from before a time, and the summaries that may cover
// them. It returns the time of the oldest remaining turn; the zero time if there is none.
func eraseBefore(ctx context.Context, store storage.Log, log string, t time.Time) (oldest time.Time, err error) {
	return erase(ctx, store, log, func(m *agent.Message) (bool, bool) {
		left := m.BeginsTurn() && !m.Time.Before(t)
		return !left, !left
	})
}

// erase erases the records that which selects, and the summaries that may cover them. It calls which for
// one record after another until more is false, and returns the time of that record, or the zero time at
// the end of the log. It erases summaries first and questions last, so that the remaining records can be
// found until the end.
//
// Records that load groups keep the data that restores the groups, which belong to the conversation
// until it is cleared.
func erase(ctx context.Context, store storage.Log, log string, which func(m *agent.Message) (gone, more bool)) (last time.Time, err error) {
	groups, err := LoadedGroups(ctx, store, log)
	if err != nil {
		return last, err
	}
	var rest []storage.Record // the records to erase, in their erased form
	for record, err := range keptRecords(ctx, store, log, storage.Query{}) {
		if err != nil {
			return last, fmt.Errorf("look for records to erase in %s: %w", log, err)
		}
		m, _ := Decode(log, record) // a damaged record is erased with its turn
		gone, more := which(&m)
		if !more {
			last = m.Time
			break
		}
		if !gone {
			continue
		}
		left := storage.Record{Pos: record.Pos}
		if load, ok := m.WithoutTexts(groups); ok {
			if left, err = Encode(load); err != nil {
				return last, err
			}
			left.Pos = record.Pos
		}
		rest = append(rest, left)
	}
	if len(rest) == 0 {
		return last, nil
	}
	told, err := summariesCovering(ctx, store, log, rest[0].Pos)
	if err != nil {
		return last, err
	}
	slices.Reverse(rest)
	for part := range slices.Chunk(slices.Concat(told, rest), eraseBatch) {
		if err := store.Erase(ctx, log, part...); err != nil {
			return last, fmt.Errorf("erase records: %w", err)
		}
	}
	return last, nil
}

// summariesCovering returns the erased forms of the summaries that cover the record at first, or may do
// so because they are damaged.
func summariesCovering(ctx context.Context, store storage.Log, log string, first storage.Position) (at []storage.Record, err error) {
	for record, err := range store.Records(ctx, log, storage.Query{Label: agent.LabelSummary, After: first}) {
		if err != nil {
			return nil, fmt.Errorf("look for summaries in %s: %w", log, err)
		}
		if m, err := Decode(log, record); err != nil || firstKept(&m, record.Pos) > first {
			at = append(at, storage.Record{Pos: record.Pos})
		}
	}
	return at, nil
}

// Delete permanently deletes a conversation and its log, if its entry has the revision rev. It deletes
// the entry last: after a crash, the entry is needed to find the log again.
func (c Conversation) Delete(ctx context.Context, store storage.Store, rev storage.Revision) error {
	if err := store.Drop(ctx, c.Log()); err != nil {
		return fmt.Errorf("remove %s: %w", c.Log(), err)
	}
	return c.remove(ctx, store, rev)
}

// oldest returns the time of the oldest remaining turn of a conversation.
func (c Conversation) oldest() time.Time {
	if c.OldestTurn.IsZero() {
		return c.StartedAt
	}
	return c.OldestTurn
}

// eraseBefore erases the messages of a conversation from before a time, and its title, which is a part
// of its first message, if its entry has the revision rev. It reports whether nothing is left, not even
// a loaded group of a conversation that is still in use.
func (c Conversation) eraseBefore(ctx context.Context, store storage.Store, before time.Time, rev storage.Revision) (empty bool, err error) {
	oldest, err := eraseBefore(ctx, store, c.Log(), before)
	if err != nil {
		return false, err
	}
	if oldest.IsZero() {
		if keeps, err := c.keepsGroups(ctx, store); err != nil || !keeps {
			return err == nil, err
		}
		oldest = before
	}
	c.Title, c.OldestTurn = erasedTitle, oldest
	_, err = storage.Save(ctx, store, conversationKey(c.Owner, c.Log()), c, rev)
	if errors.Is(err, storage.ErrConflict) {
		err = nil // retry at the next pruning
	}
	return false, err
}

// keepsGroups reports whether groups are loaded in a conversation that its chat still uses.
func (c Conversation) keepsGroups(ctx context.Context, store storage.Store) (bool, error) {
	if c.Task != "" {
		return false, nil
	}
	groups, err := LoadedGroups(ctx, store, c.Log())
	if err != nil || len(groups) == 0 {
		return false, err
	}
	s, err := Current(ctx, store, c.Chat)
	if queue.IsDamaged(err) { // the current session is unknown until its record is repaired
		return true, nil
	}
	return s.Log() == c.Log(), err
}

// StartNew begins a new session at a job, and the previous one cannot be restored with /undo. It returns the
// chat's session, and is idempotent for a job that runs again.
func StartNew(ctx context.Context, store storage.Store, by *queue.Job) (Session, error) {
	s, err := Current(ctx, store, by.Message.Chat)
	if err != nil || s.ClearedAt >= by.Seq {
		return s, err
	}
	s.ClearedAt, s.AfterID, s.Previous, s.OriginChat = by.Seq, "", nil, chats.Chat{} // the job is not a message of the chat
	s.Generation++
	return s.save(ctx, store)
}
