package conversation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"oneclaw/agent"
	"oneclaw/storage"
)

// span is the newest summary of a conversation, if there is one, and then the messages that no summary
// covers yet.
type span struct {
	Messages  []agent.Message
	Positions []storage.Position
	Size      int
	Next      storage.Position // after its last message
}

// Unsummarized returns the messages that the next summary can cover. If the oldest of them were dropped,
// they are read again, up to the size of the window and then to the beginning of the next turn.
func (h *History) Unsummarized(ctx context.Context) (span, error) {
	s := span{Messages: h.Messages, Positions: h.positions, Size: h.size, Next: h.Last + 1}
	if !h.Truncated {
		return s, nil
	}
	s = span{}
	head, pos, err := newestSummary(ctx, h.store, h.Log)
	if err != nil {
		return s, err
	}
	refused, err := refusals(ctx, h.store, h.Log)
	if err != nil {
		return s, err
	}
	after := storage.Position(0)
	if head != nil {
		s.Messages, s.Positions, after = []agent.Message{*head}, []storage.Position{pos}, firstKept(head, pos)-1
	}
	for record, err := range keptRecords(ctx, h.store, h.Log, storage.Query{After: after, Before: h.Last + 1}) {
		if err != nil {
			return s, fmt.Errorf("read %s: %w", h.Log, err)
		}
		if refused(record.Pos) {
			continue
		}
		m, err := Decode(h.Log, record)
		if err != nil || m.Role == agent.RoleSummary {
			continue
		}
		full := s.Size > h.Window
		if full && m.Role == agent.RoleTool && len(m.Text) > clippedBytes {
			m.Text = strings.ToValidUTF8(m.Text[:clippedBytes], "") + " […]"
		}
		s.Messages, s.Positions, s.Next = append(s.Messages, m), append(s.Positions, record.Pos), record.Pos+1
		s.Size += len(record.Data)
		if full && m.BeginsTurn() {
			break
		}
	}
	return s, nil
}

// AnyErased reports whether one of these records was erased since it was read, possibly by another
// process. There must be at least one record.
func (h *History) AnyErased(ctx context.Context, at []storage.Position) (bool, error) {
	for record, err := range h.store.Records(ctx, h.Log, storage.Query{After: slices.Min(at) - 1, Before: slices.Max(at) + 1}) {
		if err != nil {
			return false, fmt.Errorf("look for erased records in %s: %w", h.Log, err)
		}
		if isErased(record) && slices.Contains(at, record.Pos) {
			return true, nil
		}
	}
	return false, nil
}

// clippedBytes is how much is read of a tool result beyond the window, in a larger turn.
const clippedBytes = 1000

// firstKept returns the position of the first record that a summary does not cover.
func firstKept(m *agent.Message, pos storage.Position) storage.Position {
	kept := storage.Position(max(m.Kept, 0))
	if kept == 0 {
		return pos + 1
	}
	return pos - min(kept, pos-1)
}

// firstRefused returns the position of the first record that a refusal drops.
func firstRefused(m *agent.Message, pos storage.Position) storage.Position {
	return pos - min(storage.Position(max(m.Omitted, 0)), pos-1)
}

// refusals returns a function that reports whether a position of a log belongs to a refused exchange.
// Only labelled records are read.
func refusals(ctx context.Context, store storage.Log, log string) (func(storage.Position) bool, error) {
	out := make(map[storage.Position]bool)
	for record, err := range store.Records(ctx, log, storage.Query{Label: agent.LabelRefused}) {
		if err != nil {
			return nil, fmt.Errorf("look for refusals in %s: %w", log, err)
		}
		m, err := Decode(log, record)
		if err != nil {
			continue // the record was damaged after the log was read
		}
		for pos := firstRefused(&m, record.Pos); pos <= record.Pos; pos++ {
			out[pos] = true
		}
	}
	return func(pos storage.Position) bool { return out[pos] }, nil
}

func newestSummary(ctx context.Context, store storage.Log, log string) (*agent.Message, storage.Position, error) {
	for record, err := range store.Records(ctx, log, storage.Query{Label: agent.LabelSummary, Backward: true}) {
		if err != nil {
			return nil, 0, fmt.Errorf("look for the summary of %s: %w", log, err)
		}
		m, err := Decode(log, record)
		if err != nil {
			continue // the earlier summary covers less
		}
		return &m, record.Pos, nil
	}
	return nil, 0, nil
}
