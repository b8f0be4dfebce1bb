package turn

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/provenance"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/wording"
)

// Work is the state of the job of a message or a task: its turn and its delivery.
type Work struct {
	receipts.Turn
	outbox.Delivery
	// AskOwner says that the owner has to be asked whether to admit the sender.
	AskOwner bool `json:"knock,omitempty"`

	// Awaited are the cards of the background tasks for which the turn waits. They are not stored: the
	// turn waits again when it runs again.
	Awaited []string `json:"-"`

	// The fields below are not stored. waited says that the turn continues after a wait.
	waited bool
	// announced says that the log may have announcements of the turn.
	announced bool
	// question is that of the turn as the model was shown it, kept for a stop before it is stored.
	question agent.Message
	// notedOthers says that HeldOthers or ReadOthers is set and not stored.
	notedOthers bool
	// compact is called once the answer is delivered.
	compact func(context.Context)
	// original is set only in a copy of a job that has another message of the turn. It is the job from
	// which the copy was made.
	original *queue.Run
}

// Report adds the records of the turn and the answer to the receipt.
func (w *Work) Report(r *receipts.Receipt) {
	r.Turn = w.Turn
	w.Delivery.Report(r)
}

// Adopt copies the preview, the feedback and the decisions from the stored work, because other goroutines
// store them: an erasure removes users from decisions. A decision that is not stored yet stays.
func (w *Work) Adopt(stored any) {
	known, ok := stored.(*Work)
	if !ok {
		return
	}
	w.Preview, w.Feedback = known.Preview, known.Feedback
	for _, a := range known.Approvals {
		i := slices.IndexFunc(w.Approvals, func(own receipts.Approval) bool { return own.CardToken == a.CardToken })
		if i >= 0 && a.Decision != nil && w.Approvals[i].Decision != nil {
			*w.Approvals[i].Decision = *a.Decision
		}
	}
}

// NoteOthers records what the model is shown of others, before it is asked and before it acts: what has been shown or
// read stays so, whatever is forgotten or changed since. The input is told what was shown before.
func (w *Work) NoteOthers(in *provenance.Input) {
	in.HeldBefore = w.HeldOthers
	_, held := in.HoldsOthers()
	read := w.ReadOthers || held && in.ReadOthers()
	if held != w.HeldOthers || read != w.ReadOthers {
		w.HeldOthers, w.ReadOthers, w.notedOthers = held, read, true
	}
}

// Clone returns a copy.
func (w *Work) Clone() any {
	copied := *w
	return &copied
}

// WorkOf returns the work of a job with a turn. For another kind of job it is empty and not stored.
func WorkOf(j *queue.Run) *Work {
	w, ok := j.Work.(*Work)
	if !ok {
		w = new(Work)
	}
	if j.Work == nil {
		j.Work = w
	}
	return w
}

// withMessage returns a copy of a job that has another message, which became part of the job's turn.
func withMessage(j *queue.Run, m *chats.Message) *queue.Run {
	copied, work := *j, *WorkOf(j)
	work.original = j
	copied.Work = &work
	to := &copied.Message
	to.ID, to.Files, to.Quoted, to.InThread, to.MentionsBot, to.Time = m.ID, m.Files, m.Quoted, m.InThread, m.MentionsBot, m.Time
	return &copied
}

// recordOwner returns the job whose record stores transcripts: j, or the job of which j is a copy.
func recordOwner(j *queue.Run) *queue.Run { return cmp.Or(WorkOf(j).original, j) }

// IsBackground reports whether a job is a background task.
func IsBackground(j *queue.Run) bool { return j.Message.Kind == receipts.KindBackground }

// IsUnasked reports whether no message of a user has begun the turn of a job or become part of it.
func IsUnasked(j *queue.Run) bool {
	asked := func(key string) bool {
		m, ok := queue.MessageOf(key, "")
		return ok && m.Kind != receipts.KindResult
	}
	return TaskOf(j) != nil || j.Message.Kind == receipts.KindResult && !slices.ContainsFunc(j.Joined, asked)
}

// TaskOf returns the task of a job; nil if it is not a task.
func TaskOf(j *queue.Run) *receipts.Task {
	task, _ := j.Args.(*receipts.Task)
	return task
}

// PendingDecisions returns the cards of a job that may still be open, and the tools concerned. For
// background tasks that it waits for there is no tool.
func PendingDecisions(j *queue.Run) (cards, tools []string) {
	w, ok := j.Work.(*Work)
	if !ok {
		return nil, nil
	}
	cards = slices.Clone(w.Awaited)
	for _, a := range w.Approvals {
		if a.Decision != nil {
			continue
		}
		cards = append(cards, a.CardToken)
		if name := wording.InlineCode(a.Tool); !slices.Contains(tools, name) {
			tools = append(tools, name)
		}
	}
	return cards, tools
}

// transcriptOf returns the transcript of the recording with a Ref, if there is one.
func (w *Work) transcriptOf(ref string) (receipts.Transcript, bool) {
	for _, h := range w.Transcripts {
		if h.Ref == ref {
			return h, true
		}
	}
	return receipts.Transcript{}, false
}

// purposeOf returns the purpose of a job's turn.
func purposeOf(j *queue.Run) Purpose {
	switch task := TaskOf(j); {
	case task == nil && WorkOf(j).Deep:
		return ForDeep
	case task == nil:
		return ForMessage
	case IsBackground(j):
		return ForBackground
	case task.Hook != "":
		return ForWebhook
	}
	return ForSchedule
}

// questionText returns the text of a job's message, without the command for the strong model. For the
// result of a background task, the text quotes the result.
func questionText(j *queue.Run) string {
	if result, ok := j.Args.(*receipts.Result); ok {
		return conversation.FormatResult(result.Title, result.Text, resultTokens)
	}
	if !WorkOf(j).Deep {
		return j.Message.Text
	}
	text := strings.TrimSpace(j.Message.Text)
	end := strings.IndexFunc(text+" ", unicode.IsSpace)
	// An edit that arrives as the turn begins may have removed the command.
	if text == "" || text[1:end] != DeepCommand {
		return j.Message.Text
	}
	return strings.TrimSpace(text[end:])
}

// IsQuestionMissing reports whether a message for the strong model has no question, no files and no quotes.
func IsQuestionMissing(j *queue.Run) bool {
	m := &j.Message
	return WorkOf(j).Deep && len(m.Files)+len(m.Quoted)+len(m.Skipped) == 0 && questionText(j) == ""
}

// textOrTranscript returns the text of a job's message, or else the transcript of its first recording.
func textOrTranscript(j *queue.Run) string {
	if text := questionText(j); text != "" {
		return text
	}
	for _, h := range WorkOf(j).Transcripts {
		if h.Text != "" {
			return h.Text
		}
	}
	return ""
}
