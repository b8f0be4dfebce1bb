package bridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"oneclaw/agent"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// Compactor is an [Agent] that can sum up what no longer fits. *[agent.Agent] is one.
type Compactor interface {
	// Compact returns a summary of the beginning of turn.History; its Kept counts the
	// messages at the end of turn.History that it does not cover. It returns false where
	// the conversation still fits the model's context and bound tokens.
	Compact(ctx context.Context, turn agent.Turn, bound int) (agent.Message, bool, error)
}

const (
	// compactTimeout bounds what a chat waits for its summaries after an answer.
	compactTimeout = 4 * time.Minute
	// compactRest is how long a conversation is left alone that could not be summed up.
	compactRest = 10 * time.Minute
	// maxCompactions bounds the summaries after one answer.
	maxCompactions = 8
)

// NoticeCut stands behind an answer that was given without the beginning of its
// conversation, unless the conversation shows it already.
const NoticeCut = "\n\n_This conversation has grown too long: I answered without its beginning. " +
	"Nothing is deleted, and /new begins a new conversation._"

// cuts is what the requests of a turn left out.
type cuts struct {
	first   bool // already the first request was cut
	context int  // how large the context seems to be, where a model refused
}

// watch prepares a turn for a conversation that may have outgrown the context, and its
// job for the compaction that follows the answer.
func (b *Bridge) watch(j *Job, h *history, turn *agent.Turn) *cuts {
	c := &cuts{}
	turn.Incomplete = h.cut
	turn.Cut = func(cut agent.Cut) {
		c.first = c.first || cut.Round == 1 && (cut.Left > 0 || turn.Incomplete)
		c.context = cmp.Or(cut.ContextTokens, c.context)
	}
	compactor, ok := b.cfg.Agent.(Compactor)
	if !ok {
		return c
	}
	later, log := *turn, h.log
	later.History = nil
	j.after = func(ctx context.Context) {
		later.ContextTokens = cmp.Or(c.context, later.ContextTokens)
		b.compact(ctx, compactor, log, later)
	}
	return c
}

// admit tells the user once that the model did not see everything.
func (c *cuts) admit(h *history, answer string) string {
	told := func(m agent.Message) bool { return m.Final && strings.HasSuffix(m.Text, NoticeCut) }
	if !c.first || strings.TrimSpace(answer) == "" || slices.ContainsFunc(h.messages, told) {
		return answer
	}
	return answer + NoticeCut
}

// afterwards does what a delivered answer did not wait for. The job is closed already,
// so nothing of this can fail it.
func (b *Bridge) afterwards(ctx context.Context, j *Job) {
	after := j.after
	j.after = nil
	if after == nil || len(j.Parts) == 0 || ctx.Err() != nil {
		return
	}
	defer func() {
		if r := recover(); r != nil {
			b.log.Error("compaction broke off", "panic", r, "stack", string(debug.Stack()))
		}
	}()
	if b.awaitTurn(ctx, j); ctx.Err() != nil {
		return
	}
	after(ctx)
}

// compact sums a conversation up as often as it takes to fit again. Where that fails the
// conversation stays as it is: requests are cut at their beginning, and people are told.
func (b *Bridge) compact(ctx context.Context, c Compactor, log string, turn agent.Turn) {
	ctx, cancel := context.WithTimeout(ctx, compactTimeout)
	defer cancel()
	for range maxCompactions {
		h, err := b.history.take(ctx, log)
		if err != nil {
			b.log.Warn("conversation can not be read for its summary", "log", log, "err", err)
			return
		}
		// A copy that may be wrong or is incomplete is read anew.
		more, keep, err := b.fold(ctx, c, h, turn)
		if keep {
			b.history.give(h, nil)
		}
		if err != nil && (ctx.Err() == nil || errors.Is(context.Cause(ctx), context.DeadlineExceeded)) {
			b.log.Warn("conversation can not be summed up", "log", log, "err", err)
		}
		if !more {
			return
		}
	}
}

// fold adds one summary to a conversation, if it needs one. more says that it may need
// another, keep that the history is still what the log says.
func (b *Bridge) fold(ctx context.Context, c Compactor, h *history, turn agent.Turn) (more, keep bool, err error) {
	if b.cfg.Now().Before(h.rest) {
		return false, true, nil
	}
	s, err := h.uncovered(ctx)
	if err != nil {
		return false, false, err
	}
	turn.History = slices.Clip(s.messages)
	// What the window holds, in tokens of such messages as these.
	bound := min(b.cfg.WindowTokens, agent.EstimateTokens(s.messages)*h.window/max(s.size, 1))
	summary, needed, err := c.Compact(ctx, turn, max(bound, 1))
	if err != nil {
		if ctx.Err() == nil || errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			h.rest = b.cfg.Now().Add(compactRest)
		}
		return false, true, err
	}
	if !needed {
		return false, true, nil
	}
	covers := len(s.messages) - summary.Kept
	if covers < 1 || covers > len(s.messages) {
		return false, true, fmt.Errorf("a summary keeps %d of %d messages", summary.Kept, len(s.messages))
	}
	if err := b.flush(ctx, turn.Scope, turn.History[:covers:covers]); err != nil {
		b.log.Warn("what a summary will cover could not be looked through before", "log", h.log, "err", err)
	}
	from := s.next
	if covers < len(s.messages) {
		from = s.at[covers]
	}
	summary.Kept = int(h.last + 1 - from)
	whole := !h.cut
	writing, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	if err := h.append(writing, summary); err != nil {
		return false, false, err
	}
	b.log.Info("conversation summed up", "log", h.log, "covered", covers, "kept", summary.Kept)
	return true, whole, nil
}

// flush shows messages that a summary will stand for to whoever wants to keep something.
func (b *Bridge) flush(ctx context.Context, scope toolgroups.Scope, messages []agent.Message) (err error) {
	if b.cfg.BeforeCompact == nil {
		return nil
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	return b.cfg.BeforeCompact(ctx, scope, messages)
}

// span is a stretch of a conversation that no summary stands for yet, behind the newest
// summary if there is one.
type span struct {
	messages []agent.Message
	at       []storage.Position
	size     int
	next     storage.Position // behind its last message
}

// uncovered returns what a next summary could cover. Where the beginning of that has been
// let go, it is read again, as far as the window is wide and to the next user message.
func (h *history) uncovered(ctx context.Context) (span, error) {
	s := span{messages: h.messages, at: h.at, size: h.size, next: h.last + 1}
	if !h.cut {
		return s, nil
	}
	s = span{}
	head, pos, err := newestSummary(ctx, h.store, h.log)
	if err != nil {
		return s, err
	}
	refused, err := refusals(ctx, h.store, h.log)
	if err != nil {
		return s, err
	}
	after := storage.Position(0)
	if head != nil {
		s.messages, s.at, after = []agent.Message{*head}, []storage.Position{pos}, firstKept(head, pos)-1
	}
	for record, err := range h.store.Records(ctx, h.log, storage.Query{After: after, Before: h.last + 1}) {
		if err != nil {
			return s, fmt.Errorf("read %s: %w", h.log, err)
		}
		if refused(record.Pos) {
			continue
		}
		m, err := decodeMessage(h.log, record)
		if err != nil || m.Role == agent.RoleSummary {
			continue
		}
		full := s.size > h.window
		if full && m.Role == agent.RoleTool && len(m.Text) > clippedBytes {
			m.Text = strings.ToValidUTF8(m.Text[:clippedBytes], "") + " […]"
		}
		s.messages, s.at, s.next = append(s.messages, m), append(s.at, record.Pos), record.Pos+1
		s.size += len(record.Data)
		if full && m.Role == agent.RoleUser {
			break
		}
	}
	return s, nil
}

// clippedBytes is what is read of results beyond the window, in a turn that is larger.
const clippedBytes = 1000

// firstKept is the position of the first record that a summary does not stand for.
func firstKept(m *agent.Message, pos storage.Position) storage.Position {
	kept := storage.Position(max(m.Kept, 0))
	if kept == 0 {
		return pos + 1
	}
	return pos - min(kept, pos-1)
}

// firstRefused is the position of the first record that a refusal takes out.
func firstRefused(m *agent.Message, pos storage.Position) storage.Position {
	return pos - min(storage.Position(max(m.Left, 0)), pos-1)
}

// refusals returns which positions of a log belong to refused exchanges. Only the labelled
// records are read.
func refusals(ctx context.Context, store storage.Log, log string) (func(storage.Position) bool, error) {
	out := make(map[storage.Position]bool)
	for record, err := range store.Records(ctx, log, storage.Query{Label: agent.LabelRefused}) {
		if err != nil {
			return nil, fmt.Errorf("look for refusals in %s: %w", log, err)
		}
		m, err := decodeMessage(log, record)
		if err != nil {
			continue // set aside when the log was read
		}
		for pos := firstRefused(&m, record.Pos); pos <= record.Pos; pos++ {
			out[pos] = true
		}
	}
	return func(pos storage.Position) bool { return out[pos] }, nil
}

// newestSummary returns the newest summary of a log, or nil.
func newestSummary(ctx context.Context, store storage.Log, log string) (*agent.Message, storage.Position, error) {
	for record, err := range store.Records(ctx, log, storage.Query{Label: agent.LabelSummary, Backward: true}) {
		if err != nil {
			return nil, 0, fmt.Errorf("look for the summary of %s: %w", log, err)
		}
		m, err := decodeMessage(log, record)
		if err != nil {
			continue // the one before it stands for less
		}
		return &m, record.Pos, nil
	}
	return nil, 0, nil
}
