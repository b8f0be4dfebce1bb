package outbox

import (
	"cmp"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/toolgroups"
)

// Delivery is the state of the answer to a job. It is the work, or a part of the work, of jobs that
// send something.
type Delivery struct {
	receipts.Answer
	// Heading is Markdown above the answer.
	Heading string `json:"heading,omitempty"`
	// Delay is how long the message was delayed, if its answer says so; else 0.
	Delay time.Duration `json:"waited,omitempty"`
	// MovedTo is the new id of the chat, if the platform reported one on delivery.
	MovedTo string `json:"moved_to,omitempty"`
	// OutageSince is since when its platform has not accepted the next part; zero if nothing is
	// delayed.
	OutageSince time.Time `json:"held,omitzero"`
	// Preview is the message that shows the answer while it is made.
	Preview *Preview `json:"preview,omitempty"`
	// Ephemeral says that only the sender of the message sees the answer, if the platform can do that
	// ([chats.EphemeralSender]). It may contain a [queue.SecretPlaceholder].
	Ephemeral bool `json:"only,omitempty"`

	// The fields below are not stored: only the process that works on the job has them.

	// Files are to be delivered with the answer that is being rendered.
	Files []toolgroups.File `json:"-"`
	// StopTyping clears the typing indicator; nil if there is none.
	StopTyping func() `json:"-"`
	// ShowPreview starts or ends the preview of the turn; nil if there is none.
	ShowPreview func(on bool) `json:"-"`
	// ready says that the record marks the first part as being sent, and the request is still to be
	// made.
	ready bool
}

// Drop removes the parts from an index on.
func (d *Delivery) Drop(from int) {
	if d.ready = false; from == 0 {
		d.Parts = nil
		return
	}
	d.Parts = d.Parts[:from:from]
}

func (d *Delivery) delivery() *Delivery { return d }

// Report adds what was sent to the receipt.
func (d *Delivery) Report(r *receipts.Receipt) {
	if r.Answer = d.Answer; d.Preview != nil {
		r.Preview = d.Preview.ID
	}
}

// Adopt takes over the preview, which its own goroutine stores.
func (d *Delivery) Adopt(stored any) {
	if w, ok := stored.(deliverer); ok {
		d.Preview = w.delivery().Preview
	}
}

// Clone returns a copy.
func (d *Delivery) Clone() any {
	copied := *d
	return &copied
}

type deliverer interface{ delivery() *Delivery }

// Of returns the delivery of a job; for a job of a later version an empty one that is not stored.
func Of(j *queue.Run) *Delivery {
	if w, ok := j.Work.(deliverer); ok {
		return w.delivery()
	}
	d := new(Delivery)
	if j.Work == nil {
		j.Work = d
	}
	return d
}

// BotMessage is the delivery of a message that the bot sends on its own. It may quote a user, but no user sent
// it who could have it deleted: so its receipt has no text.
type BotMessage struct{ Delivery }

// Report records only that it was shown.
func (d *BotMessage) Report(r *receipts.Receipt) {
	bare := r.Bare()
	bare.Message.User, bare.LeaseToken, bare.Answer.Card = r.Message.User, r.LeaseToken, d.Card
	*r = *bare
}

// Clone returns a copy.
func (d *BotMessage) Clone() any {
	copied := *d
	return &copied
}

// MakeEphemeral makes the answer visible only to the sender. A direct chat needs nothing for that.
func MakeEphemeral(j *queue.Run) { Of(j).Ephemeral = !j.Message.Direct }

// Address returns the destination of a job's answer. A message that no platform delivered names the
// message it replies to.
func Address(j *queue.Run) chats.Address {
	to := chats.Address{Chat: j.Message.Chat}
	if moved := Of(j).MovedTo; moved != "" {
		to.Chat.ID = moved
		return to
	}
	switch {
	case j.From != "": // the message it replies to is in the old chat
	case j.Message.Kind != chats.KindText:
		to.ReplyTo = j.Message.On
	case !j.Message.Direct:
		to.ReplyTo = j.Message.ReplyTarget()
	}
	return to
}

// WithHeading puts the heading above an answer: that the message was delayed, or what it answers.
func WithHeading(j *queue.Run, answer string) string {
	d := Of(j)
	if above := cmp.Or(waited(d.Delay), d.Heading); above != "" {
		return above + "\n\n" + answer
	}
	return answer
}
