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
	"oneclaw/internal/wording"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// Compactor is an [Agent] that can summarize the beginning of a conversation. *[agent.Agent] is one.
type Compactor interface {
	// Compact returns a summary of the beginning of turn.History. Its Kept is the number of messages at
	// the end that the summary does not cover. Compact returns false if what is sent of the conversation
	// still fits into the model's context, and its texts on record into bound tokens.
	Compact(ctx context.Context, turn agent.Turn, bound int) (agent.Message, bool, error)
}

const (
	// compactTimeout bounds the time that the summaries after an answer may take.
	compactTimeout = 4 * time.Minute
	// compactRest is the pause before a failed summary of a conversation is retried.
	compactRest = 10 * time.Minute
	// maxCompactions bounds the summaries after one answer.
	maxCompactions = 8
)

// NoticeCut follows an answer that was given without the beginning of its conversation, unless an
// earlier answer ends with it already.
const NoticeCut = "\n\n_This conversation has grown too long: I answered without its beginning. " +
	"Nothing is deleted, and /new begins a new conversation._"

// noticeShortened follows an answer that was given without older turns because the model refused them.
const noticeShortened = "\n\n_The language model refuses a part of our earlier conversation, so I answered without it. " +
	"Nothing is deleted, and /new begins a new conversation._"

// noticeSmallContext follows the first answer of a conversation whose model has too small a context, once that
// is known.
const noticeSmallContext = "\n\n_My model takes only %d tokens at once, and I need 8192, so I may forget what we just said. " +
	"The operator can change that: `oneclaw doctor` says how._"

// noticeLeftOut follows an answer that was given without tools that the model's server refuses.
const noticeLeftOut = "\n\n_The language model's server refuses %s, so I answered without %s. All else works as before._"

// maxLeftOut bounds how many of these tools are named.
const maxLeftOut = 5

// addLeftOutNotice adds [noticeLeftOut] to an answer, unless an earlier answer ends with the same.
func (c *cutTracker) addLeftOutNotice(h *conversation.History, answer string) string {
	if len(c.leftOut) == 0 || strings.TrimSpace(answer) == "" {
		return answer
	}
	names, it := slices.Clone(c.leftOut), "them"
	what := "the tools "
	if len(names) == 1 {
		what, it = "the tool ", "it"
	}
	more := ""
	if n := len(names) - maxLeftOut; n > 0 {
		names, more = names[:maxLeftOut], fmt.Sprintf(" and %d more", n)
	}
	notice := fmt.Sprintf(noticeLeftOut, what+codeNames(names)+more, it)
	if slices.ContainsFunc(h.Messages, func(m agent.Message) bool { return m.Final && strings.Contains(m.Text, notice) }) {
		return answer
	}
	return answer + notice
}

// noticeNoTools follows the first answer of a conversation whose model takes no tools.
const noticeNoTools = "\n\n_My model's server takes no tools, so I can only talk here. " +
	"The operator can change that: `oneclaw doctor` says how._"

// addModelNotices adds [noticeSmallContext] to an answer of a model with too small a context, and
// [noticeNoTools] to one of a model without tools, once in a conversation.
func addModelNotices(h *conversation.History, model agent.Model, answer string) string {
	if strings.TrimSpace(answer) == "" {
		return answer
	}
	profile := agent.ProfileOf(model)
	add := func(notice, known string) {
		told := func(m agent.Message) bool {
			return m.Role == agent.RoleSummary || m.Final && strings.Contains(m.Text, known)
		}
		if !slices.ContainsFunc(h.Messages, told) {
			answer += notice
		}
	}
	if size := profile.ContextTokens; size != 0 && size < agent.MinContextTokens {
		known, _, _ := strings.Cut(noticeSmallContext, "%d")
		add(fmt.Sprintf(noticeSmallContext, size), known)
	}
	if profile.NoTools {
		add(noticeNoTools, noticeNoTools)
	}
	return answer
}

// cutTracker records whether the first request of a turn left out messages, and how large the model's
// context is.
type cutTracker struct {
	firstWasCut   bool // the first request left out messages
	contextTokens int  // context size, as estimated after a refusal
	// leftOut are the tools that the model's server refuses. callsInText is set if it left calls in the text.
	leftOut     []string
	callsInText bool
}

// trackCuts makes a turn record the messages that its requests leave out, and schedules the compaction
// of the conversation after the answer. For a task it extends the prompt.
func (t *Runner) trackCuts(j *queue.Run, h *conversation.History, turn *agent.Turn, persona Profile) *cutTracker {
	c := &cutTracker{}
	if task := TaskOf(j); task != nil {
		turn.PromptTail = taskTail(turn.PromptTail, task, IsBackground(j))
	}
	turn.Incomplete = h.Truncated
	turn.OnCut = func(cut agent.Cut) {
		c.firstWasCut = c.firstWasCut || cut.Round == 1 && (cut.Omitted > 0 || turn.Incomplete)
		c.contextTokens = cmp.Or(cut.ContextTokens, c.contextTokens)
	}
	turn.OnReply = func(reply agent.Reply) {
		for _, name := range reply.LeftOut {
			if !slices.Contains(c.leftOut, name) {
				c.leftOut = append(c.leftOut, name)
			}
		}
		c.callsInText = c.callsInText || reply.CallsInText
	}
	compactor, ok := t.cfg.Agent.(Compactor)
	if !ok {
		return c
	}
	later, log := *turn, h.Log
	later.History = nil
	WorkOf(j).compact = func(ctx context.Context) {
		if persona.ChatModel != nil {
			later.Model = persona.ChatModel
		} else {
			later.ContextTokens = cmp.Or(c.contextTokens, later.ContextTokens)
		}
		t.compact(ctx, compactor, log, later, persona.Charges)
	}
	return c
}

// noticeCallsInText tells administrators that a model's server does not recognize calls.
const noticeCallsInText = "The server of the model %s leaves the model's tool calls in the text of its answers. I take them from there, " +
	"but it works better if the server is started with a parser for this model (vLLM: `--tool-call-parser`, llama.cpp: `--jinja`)."

// notifyCallsInText sends administrators [noticeCallsInText], once for each model.
func (t *Runner) notifyCallsInText(ctx context.Context, c *cutTracker, model agent.Model) {
	if !c.callsInText {
		return
	}
	name := agent.ProfileOf(model).Name
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), queue.WriteTimeout)
	defer cancel()
	if err := t.cfg.Host.NotifyAdmins(ctx, "calls/"+queue.Hash(name), fmt.Sprintf(noticeCallsInText, wording.InlineCode(name))); err != nil {
		t.cfg.Log.Warn("administrators cannot be notified that a server does not recognize calls", "model", name, "err", err)
	}
}

// addNotice adds [NoticeCut] to an answer if the first request left out messages.
func (c *cutTracker) addNotice(h *conversation.History, answer string) string {
	told := func(m agent.Message) bool { return m.Final && strings.HasSuffix(m.Text, NoticeCut) }
	if !c.firstWasCut || strings.TrimSpace(answer) == "" || slices.ContainsFunc(h.Messages, told) {
		return answer
	}
	return answer + NoticeCut
}

// RunDeferred does the work that was deferred until after the delivery of an answer. A failure of this
// work does not fail the job.
func (t *Runner) RunDeferred(ctx context.Context, j *queue.Run) {
	w, ok := j.Work.(*Work)
	if !ok {
		return
	}
	compact := w.compact
	w.compact = nil
	defer func() {
		if r := recover(); r != nil {
			t.cfg.Log.Error("work after an answer panicked", "panic", r, "stack", string(debug.Stack()))
		}
	}()
	if compact == nil || len(w.Parts) == 0 || ctx.Err() != nil {
		return
	}
	if t.cfg.Queue.AwaitSlot(ctx, j); ctx.Err() != nil {
		return
	}
	compact(ctx)
}

// compact summarizes a conversation until it fits again. If that fails, the conversation stays
// unchanged, later requests leave out its beginning, and answers end with a notice.
func (t *Runner) compact(ctx context.Context, c Compactor, log string, turn agent.Turn, charges conversation.Charges) {
	ctx, cancel := context.WithTimeout(ctx, compactTimeout)
	defer cancel()
	if charges != nil {
		defer charges.Flush()
	}
	for range maxCompactions {
		if t.cfg.StoreMonitor.Failing() {
			return // retried after the next answer
		}
		h, err := t.Cache.Take(ctx, log)
		if err != nil {
			t.cfg.Log.Warn("conversation to summarize cannot be read", "log", log, "err", err)
			return
		}
		h.Charges = charges
		// If the history in memory may be wrong or incomplete, it is read again.
		more, keep, err := t.addSummary(ctx, c, h, turn)
		if keep {
			t.Cache.Put(h)
		}
		if err != nil && (ctx.Err() == nil || errors.Is(context.Cause(ctx), context.DeadlineExceeded)) {
			t.cfg.Log.Warn("conversation cannot be summarized", "log", log, "err", err)
		}
		if !more {
			return
		}
	}
}

// addSummary adds one summary to a conversation, if it needs one. more says that the conversation may
// need another, keep that the history in memory still equals the log.
func (t *Runner) addSummary(ctx context.Context, c Compactor, h *conversation.History, turn agent.Turn) (more, keep bool, err error) {
	if some, err := t.trimPictures(ctx, h); some || err != nil {
		return some, !h.Truncated, err
	}
	if t.cfg.Now().Before(h.NoSummaryUntil) {
		return false, true, nil
	}
	s, err := h.Unsummarized(ctx)
	if err != nil {
		return false, false, err
	}
	turn.History = slices.Clip(s.Messages)
	// The size of the window, which holds what is on record, in tokens of these messages.
	bound := agent.EstimateTextTokens(s.Messages) * h.Window / max(s.Size, 1)
	summary, needed, err := c.Compact(ctx, turn, max(bound, 1))
	if err != nil {
		if ctx.Err() == nil || errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			h.NoSummaryUntil = t.cfg.Now().Add(compactRest)
		}
		return false, true, err
	}
	if !needed {
		return false, true, nil
	}
	covers, erased, err := countCovered(ctx, h, s.Positions, summary.Kept)
	if erased || err != nil {
		return erased, false, err // a summary must not keep erased text
	}
	if err := t.callBeforeCompact(ctx, turn.Scope, turn.History[:covers:covers]); err != nil {
		t.cfg.Log.Warn("the callback before a summary failed", "log", h.Log, "err", err)
	}
	from := s.Next
	if covers < len(s.Messages) {
		from = s.Positions[covers]
	}
	summary.Kept = int(h.Last + 1 - from)
	whole := !h.Truncated
	writing, cancel := context.WithTimeout(context.WithoutCancel(ctx), queue.WriteTimeout)
	defer cancel()
	if _, err := h.Append(writing, nil, summary); err != nil {
		return false, false, err
	}
	t.cfg.Log.Info("conversation summarized", "log", h.Log, "covered", covers, "kept", summary.Kept)
	return true, whole, nil
}

// countCovered returns how many messages a summary covers that does not cover the last kept ones. erased
// says that a covered message was erased since it was read.
func countCovered(ctx context.Context, h *conversation.History, at []storage.Position, kept int) (n int, erased bool, err error) {
	n = len(at) - kept
	if n < 1 || n > len(at) {
		return 0, false, fmt.Errorf("a summary keeps %d of %d messages", kept, len(at))
	}
	erased, err = h.AnyErased(ctx, at[:n])
	return n, erased, err
}

// callBeforeCompact calls the BeforeCompact hook with the messages that a summary will cover.
func (t *Runner) callBeforeCompact(ctx context.Context, scope toolgroups.Scope, messages []agent.Message) (err error) {
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
