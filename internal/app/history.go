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

// history gives the history tool access to stored conversations and memory.
type history struct {
	store  storage.Store
	memory *memory.Memory
}

// Passages implements core.History. It yields notes first, then the newest conversations, each from its
// end.
func (h history) Passages(ctx context.Context, owner string, q core.HistoryQuery) iter.Seq2[core.Passage, error] {
	return func(yield func(core.Passage, error) bool) {
		if slices.Contains(q.Kinds, core.KindMemory) && !h.yieldNotes(ctx, owner, q, yield) {
			return
		}
		conversations, err := conversation.Conversations(ctx, h.store, owner)
		if err != nil {
			yield(core.Passage{}, err)
			return
		}
		slices.SortFunc(conversations, func(a, b conversation.Conversation) int { return b.StartedAt.Compare(a.StartedAt) })
		for _, c := range conversations {
			if !q.Until.IsZero() && !c.StartedAt.Before(q.Until) {
				continue
			}
			if !h.yieldConversation(ctx, c, q, yield) {
				return
			}
		}
	}
}

func (h history) yieldNotes(ctx context.Context, owner string, q core.HistoryQuery, yield func(core.Passage, error) bool) bool {
	notes, err := h.memory.Notes(ctx, owner)
	if err != nil {
		return yield(core.Passage{}, err)
	}
	for _, n := range notes {
		if n.SavedAt.Before(q.From) || (!q.Until.IsZero() && !n.SavedAt.Before(q.Until)) {
			continue
		}
		if !yield(core.Passage{Kind: core.KindMemory, Time: n.SavedAt, Title: n.Section, Text: n.Text}, nil) {
			return false
		}
	}
	return true
}

// yieldConversation yields the title of a conversation, and its messages from the end back to the query's
// From. Tool results count as messages if they were cleared from requests.
func (h history) yieldConversation(ctx context.Context, c conversation.Conversation, q core.HistoryQuery, yield func(core.Passage, error) bool) bool {
	if slices.Contains(q.Kinds, core.KindSession) && !c.StartedAt.Before(q.From) {
		if !yield(core.Passage{Kind: core.KindSession, Time: c.StartedAt, Title: c.Title, Text: c.Title}, nil) {
			return false
		}
	}
	if !slices.Contains(q.Kinds, core.KindMessage) {
		return true
	}
	cleared := false
	for m, err := range conversation.RecentMatches(ctx, h.store, c.Log(), recordFilter(q)) {
		if err != nil {
			if !yield(core.Passage{}, err) {
				return false
			}
			continue
		}
		if !m.Time.IsZero() && (m.Time.Before(q.From) || q.CanStop != nil && q.CanStop(m.Time)) {
			return true
		}
		cleared = cleared || m.Role == agent.RoleCleared
		if cleared && m.Clearable() {
			m.Role, m.Text = agent.RoleAssistant, "Result of "+m.Tool+": "+m.Text
		}
		if !isWanted(m, q) {
			continue
		}
		if !yield(core.Passage{Kind: core.KindMessage, Time: m.Time, Message: m.Ref, Title: c.Title, Text: m.Text}, nil) {
			return false
		}
	}
	return true
}

// recordFilter returns a function that reports whether a stored record has at least half of a query's
// words, or marks results as cleared. The JSON of records does not escape letters and digits. For a query
// with From, or without words, the function accepts all records.
func recordFilter(q core.HistoryQuery) func(record []byte) bool {
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

// isWanted reports whether a message has a text by a user or the assistant and precedes the query's end.
func isWanted(m agent.Message, q core.HistoryQuery) bool {
	said := m.Text != "" && (m.Role == agent.RoleUser || m.Role == agent.RoleAssistant)
	return said && (q.Until.IsZero() || m.Time.Before(q.Until))
}
