package turn

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
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/queue"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// Compactor is an [Agent] that can summarize what no longer fits. *[agent.Agent] is one.
type Compactor interface {
	// Compact returns a summary of the beginning of turn.History; its Kept counts the messages at the
	// end that it does not cover. It returns false if the conversation still fits the model's context
	// and bound tokens.
	Compact(ctx context.Context, turn agent.Turn, bound int) (agent.Message, bool, error)
}

const (
	// compactTimeout bounds how long a chat waits for its summaries after an answer.
	compactTimeout = 4 * time.Minute
	// compactRest is the pause after a failed summary of a conversation.
	compactRest = 10 * time.Minute
	// maxCompactions bounds the summaries after one answer.
	maxCompactions = 8
)

// NoticeCut follows an answer that was given without the beginning of its conversation, unless the
// conversation already shows it.
const NoticeCut = "\n\n_This conversation has grown too long: I answered without its beginning. " +
	"Nothing is deleted, and /new begins a new conversation._"

// NoticeShortened follows an answer that was given without older turns, which the model refuses.
const NoticeShortened = "\n\n_The language model refuses a part of our earlier conversation, so I answered without it. " +
	"Nothing is deleted, and /new begins a new conversation._"

// cuts records what the requests of a turn left out.
type cuts struct {
	first   bool // the first request was cut already
	context int  // apparent context size after a refusal
}

// watch prepares a turn for a conversation that may have outgrown the context, and its job for the
// compaction after the answer. A task's prompt names its trigger.
func (t *Runner) watch(j *queue.Run, h *conversation.History, turn *agent.Turn) *cuts {
	c := &cuts{}
	if task := TaskOf(j); task != nil {
		turn.Tail = tail(turn.Tail, task)
	}
	turn.Incomplete = h.Cut
	turn.Cut = func(cut agent.Cut) {
		c.first = c.first || cut.Round == 1 && (cut.Left > 0 || turn.Incomplete)
		c.context = cmp.Or(cut.ContextTokens, c.context)
	}
	compactor, ok := t.cfg.Agent.(Compactor)
	if !ok {
		return c
	}
	later, log := *turn, h.Log
	later.History = nil
	Of(j).after = func(ctx context.Context) {
		later.ContextTokens = cmp.Or(c.context, later.ContextTokens)
		t.compact(ctx, compactor, log, later)
	}
	return c
}

// addNotice adds to an answer, once, the notice that the model did not see everything.
func (c *cuts) addNotice(h *conversation.History, answer string) string {
	told := func(m agent.Message) bool { return m.Final && strings.HasSuffix(m.Text, NoticeCut) }
	if !c.first || strings.TrimSpace(answer) == "" || slices.ContainsFunc(h.Messages, told) {
		return answer
	}
	return answer + NoticeCut
}

// Afterwards does the work that a delivered answer did not wait for. The job is closed already, so a
// failure here cannot fail it.
func (t *Runner) Afterwards(ctx context.Context, j *queue.Run) {
	w, ok := j.Work.(*Work)
	if !ok || w.after == nil {
		return
	}
	after := w.after
	w.after = nil
	if len(w.Parts) == 0 || ctx.Err() != nil {
		return
	}
	defer func() {
		if r := recover(); r != nil {
			t.cfg.Log.Error("compaction broke off", "panic", r, "stack", string(debug.Stack()))
		}
	}()
	if t.cfg.Queue.AwaitSlot(ctx, j); ctx.Err() != nil {
		return
	}
	after(ctx)
}

// compact summarizes a conversation until it fits again. If that fails the conversation is unchanged:
// requests are cut at their beginning, and users are told.
func (t *Runner) compact(ctx context.Context, c Compactor, log string, turn agent.Turn) {
	ctx, cancel := context.WithTimeout(ctx, compactTimeout)
	defer cancel()
	for range maxCompactions {
		if t.cfg.Keeper.Failing() {
			return // retried after the next answer
		}
		h, err := t.Cache.Take(ctx, log)
		if err != nil {
			t.cfg.Log.Warn("conversation cannot be read for its summary", "log", log, "err", err)
			return
		}
		// A copy that may be wrong or incomplete is read again.
		more, keep, err := t.fold(ctx, c, h, turn)
		if keep {
			t.Cache.Put(h)
		}
		if err != nil && (ctx.Err() == nil || errors.Is(context.Cause(ctx), context.DeadlineExceeded)) {
			t.cfg.Log.Warn("conversation cannot be summed up", "log", log, "err", err)
		}
		if !more {
			return
		}
	}
}

// fold adds one summary to a conversation, if it needs one. more says that it may need another, keep
// that the history still equals the log.
func (t *Runner) fold(ctx context.Context, c Compactor, h *conversation.History, turn agent.Turn) (more, keep bool, err error) {
	if some, err := t.trimPictures(ctx, h); some || err != nil {
		return some, !h.Cut, err
	}
	if t.cfg.Now().Before(h.Rest) {
		return false, true, nil
	}
	s, err := h.Unsummarized(ctx)
	if err != nil {
		return false, false, err
	}
	turn.History = slices.Clip(s.Messages)
	// The size of the window in tokens, estimated from these messages.
	bound := min(t.cfg.WindowTokens, agent.EstimateTokens(s.Messages)*h.Window/max(s.Size, 1))
	summary, needed, err := c.Compact(ctx, turn, max(bound, 1))
	if err != nil {
		if ctx.Err() == nil || errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			h.Rest = t.cfg.Now().Add(compactRest)
		}
		return false, true, err
	}
	if !needed {
		return false, true, nil
	}
	covers, erased, err := covered(ctx, h, s.At, summary.Kept)
	if erased || err != nil {
		return erased, false, err // a summary must not keep erased text
	}
	if err := t.flush(ctx, turn.Scope, turn.History[:covers:covers]); err != nil {
		t.cfg.Log.Warn("what a summary will cover could not be looked through before", "log", h.Log, "err", err)
	}
	from := s.Next
	if covers < len(s.Messages) {
		from = s.At[covers]
	}
	summary.Kept = int(h.Last + 1 - from)
	whole := !h.Cut
	writing, cancel := context.WithTimeout(context.WithoutCancel(ctx), queue.WriteTimeout)
	defer cancel()
	if _, err := h.Append(writing, nil, summary); err != nil {
		return false, false, err
	}
	t.cfg.Log.Info("conversation summed up", "log", h.Log, "covered", covers, "kept", summary.Kept)
	return true, whole, nil
}

// covered returns how many of the messages are covered by a summary that keeps the last kept ones, and
// whether any of them was erased since they were read.
func covered(ctx context.Context, h *conversation.History, at []storage.Position, kept int) (n int, erased bool, err error) {
	n = len(at) - kept
	if n < 1 || n > len(at) {
		return 0, false, fmt.Errorf("a summary keeps %d of %d messages", kept, len(at))
	}
	erased, err = h.Erased(ctx, at[:n])
	return n, erased, err
}

// flush passes messages that a summary will cover to the tools that want to keep something.
func (t *Runner) flush(ctx context.Context, scope toolgroups.Scope, messages []agent.Message) (err error) {
	if t.cfg.BeforeCompact == nil {
		return nil
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	return t.cfg.BeforeCompact(ctx, scope, messages)
}
