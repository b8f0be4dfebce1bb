package turn

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/wording"
)

// Work is the state of a message or a task: its turn, and its delivery.
type Work struct {
	receipts.Turn
	outbox.Delivery
	// AskOwner says that the owner is asked about the sender, who is told so instead of the notice.
	AskOwner bool `json:"knock,omitempty"`

	// The fields below are not stored. after runs once the answer is delivered.
	after func(context.Context)
	// within is set only in a copy of a job with another message that is part of its turn: the job
	// itself.
	within *queue.Run
}

// Report adds how it was answered, and what was sent, to the receipt.
func (w *Work) Report(r *receipts.Receipt) {
	r.Turn = w.Turn
	w.Delivery.Report(r)
}

// Adopt takes over the preview and the feedback, which other goroutines store.
func (w *Work) Adopt(stored any) {
	if known, ok := stored.(*Work); ok {
		w.Preview, w.Feedback = known.Preview, known.Feedback
	}
}

// Clone returns a copy.
func (w *Work) Clone() any {
	copied := *w
	return &copied
}

// Of returns the work of a turn's job; for another kind of job an empty one that is not stored.
func Of(j *queue.Run) *Work {
	w, ok := j.Work.(*Work)
	if !ok {
		w = new(Work)
	}
	if j.Work == nil {
		j.Work = w
	}
	return w
}

// withMessage returns a copy of a job with a message that became part of its turn.
func withMessage(j *queue.Run, m *chats.Message) *queue.Run {
	copied, work := *j, *Of(j)
	work.within = j
	copied.Work = &work
	to := &copied.Message
	to.ID, to.Files, to.Quoted, to.Inside, to.Called, to.Time = m.ID, m.Files, m.Quoted, m.Inside, m.Called, m.Time
	return &copied
}

// recordOwner returns the job whose record stores the results for a message.
func recordOwner(j *queue.Run) *queue.Run { return cmp.Or(Of(j).within, j) }

// TaskOf returns the task of a job; nil if it is not a task.
func TaskOf(j *queue.Run) *receipts.Task {
	task, _ := j.Args.(*receipts.Task)
	return task
}

// Decisions returns the cards of a job that may still be open, and the tools concerned.
func Decisions(j *queue.Run) (cards, tools []string) {
	w, ok := j.Work.(*Work)
	if !ok {
		return nil, nil
	}
	for _, a := range w.Approvals {
		if a.Decision != nil {
			continue
		}
		cards = append(cards, a.Card)
		if name := wording.Code(a.Tool); !slices.Contains(tools, name) {
			tools = append(tools, name)
		}
	}
	return cards, tools
}

// approvedBy returns who approved a call that begins; empty if no user was asked.
func (w *Work) approvedBy(started agent.Message) string {
	for _, a := range slices.Backward(w.Approvals) {
		if a.Hash == started.Hash && strings.HasSuffix(a.Call, "/"+started.CallID) && a.Decision != nil && a.Decision.Choice == receipts.ChoiceAllow {
			return a.Decision.By
		}
	}
	return ""
}

// transcriptOf returns the transcript of a sound, if there is one.
func (w *Work) transcriptOf(ref string) (receipts.Transcript, bool) {
	for _, h := range w.Transcripts {
		if h.Ref == ref {
			return h, true
		}
	}
	return receipts.Transcript{}, false
}

// purpose returns what the turn of a job is for.
func purpose(j *queue.Run) Purpose {
	switch task := TaskOf(j); {
	case task == nil && Of(j).Deep:
		return ForDeep
	case task == nil:
		return ForMessage
	case task.Hook != "":
		return ForWebhook
	}
	return ForSchedule
}

// asked returns the text of a message, without the word that asks for the strong model.
func asked(j *queue.Run) string {
	if !Of(j).Deep {
		return j.Message.Text
	}
	text := strings.TrimSpace(j.Message.Text)
	end := strings.IndexFunc(text, unicode.IsSpace)
	if end < 0 {
		return ""
	}
	return strings.TrimSpace(text[end:])
}

// words returns the text of the message, or else the transcript of its first sound.
func words(j *queue.Run) string {
	if text := asked(j); text != "" {
		return text
	}
	for _, h := range Of(j).Transcripts {
		if h.Text != "" {
			return h.Text
		}
	}
	return ""
}
