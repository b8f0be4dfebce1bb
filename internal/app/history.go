package app

import (
	"bytes"
	"context"
	"iter"
	"slices"

	"oneclaw/agent"
	"oneclaw/bridge/conversation"
	"oneclaw/storage"
	"oneclaw/toolgroups/core"
	"oneclaw/toolgroups/memory"
)

// History is the recorded history of an owner.
type History struct {
	Store  storage.Store
	Memory *memory.Memory
}

// Passages implements core.History: the newest conversations first, each from its end.
func (h History) Passages(ctx context.Context, owner string, q core.HistoryQuery) iter.Seq2[core.Passage, error] {
	return func(yield func(core.Passage, error) bool) {
		if slices.Contains(q.Kinds, core.KindMemory) && !h.notes(ctx, owner, q, yield) {
			return
		}
		conversations, err := conversation.Conversations(ctx, h.Store, owner)
		if err != nil {
			yield(core.Passage{}, err)
			return
		}
		slices.SortFunc(conversations, func(a, b conversation.Conversation) int { return b.Begun.Compare(a.Begun) })
		for _, c := range conversations {
			if !q.Until.IsZero() && !c.Begun.Before(q.Until) {
				continue
			}
			if !h.conversation(ctx, c, q, yield) {
				return
			}
		}
	}
}

func (h History) notes(ctx context.Context, owner string, q core.HistoryQuery, yield func(core.Passage, error) bool) bool {
	notes, err := h.Memory.Notes(ctx, owner)
	if err != nil {
		return yield(core.Passage{}, err)
	}
	for _, n := range notes {
		if n.Saved.Before(q.From) || (!q.Until.IsZero() && !n.Saved.Before(q.Until)) {
			continue
		}
		if !yield(core.Passage{Kind: core.KindMemory, Time: n.Saved, Title: n.Section, Text: n.Text}, nil) {
			return false
		}
	}
	return true
}

// conversation yields the messages of one conversation, from the end to the query's first
// moment, and results that its model no longer sees.
func (h History) conversation(ctx context.Context, c conversation.Conversation, q core.HistoryQuery, yield func(core.Passage, error) bool) bool {
	if slices.Contains(q.Kinds, core.KindSession) && !c.Begun.Before(q.From) {
		if !yield(core.Passage{Kind: core.KindSession, Time: c.Begun, Title: c.Title, Text: c.Title}, nil) {
			return false
		}
	}
	if !slices.Contains(q.Kinds, core.KindMessage) {
		return true
	}
	cleared := false
	for m, err := range conversation.RecentMatches(ctx, h.Store, c.Log(), mayMatch(q)) {
		if err != nil {
			if !yield(core.Passage{}, err) {
				return false
			}
			continue
		}
		if !m.Time.IsZero() && (m.Time.Before(q.From) || q.Enough != nil && q.Enough(m.Time)) {
			return true
		}
		cleared = cleared || m.Role == agent.RoleCleared
		if cleared && m.Clearable() {
			m.Role, m.Text = agent.RoleAssistant, "Result of "+m.Tool+": "+m.Text
		}
		if !wanted(m, q) {
			continue
		}
		if !yield(core.Passage{Kind: core.KindMessage, Time: m.Time, Title: c.Title, Text: m.Text}, nil) {
			return false
		}
	}
	return true
}

// mayMatch looks for the words of a query in stored records: JSON does not change letters and
// digits. A query with a first day reads everything back to that day.
func mayMatch(q core.HistoryQuery) func(record []byte) bool {
	if len(q.Words) == 0 || !q.From.IsZero() {
		return func([]byte) bool { return true }
	}
	words := make([][]byte, len(q.Words))
	for i, w := range q.Words {
		words[i] = []byte(w)
	}
	return func(record []byte) bool {
		record = bytes.ToLower(record)
		count := 0
		for _, w := range words {
			if bytes.Contains(record, w) {
				count++
			}
		}
		return 2*count >= len(words) || bytes.Contains(record, []byte(`"role":"`+agent.RoleCleared+`"`))
	}
}

// wanted reports whether a message was said before the query's end.
func wanted(m agent.Message, q core.HistoryQuery) bool {
	said := m.Text != "" && (m.Role == agent.RoleUser || m.Role == agent.RoleAssistant)
	return said && (q.Until.IsZero() || m.Time.Before(q.Until))
}
