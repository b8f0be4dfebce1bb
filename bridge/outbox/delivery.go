package outbox

import (
	"cmp"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/toolgroups"
)

// Delivery is how far the answer to a job has come. It is the work of jobs that send something, or
// a part of that.
type Delivery struct {
	receipts.Answer
	// Heading stands above the answer, in Markdown.
	Heading string `json:"heading,omitempty"`
	// Delay is how long the message was on its way, where its answer says so.
	Delay time.Duration `json:"waited,omitempty"`
	// MovedTo is the new id of the chat, where the platform said so on delivery.
	MovedTo string `json:"moved_to,omitempty"`
	// OutageSince is since when its platform has not taken what is to be sent next; zero where
	// nothing is held up.
	OutageSince time.Time `json:"held,omitzero"`
	// Preview is the message in which the answer is shown while it is made.
	Preview *Preview `json:"preview,omitempty"`
	// Ephemeral says that the answer is for the sender of the message alone, where the platform can
	// show that ([chats.EphemeralSender]). It may have a [queue.SecretPlaceholder].
	Ephemeral bool `json:"only,omitempty"`

	// What follows is known to the process that works on it alone: it is not stored.

	// Files are to be delivered with the answer that is being rendered.
	Files []toolgroups.File `json:"-"`
	// StopTyping takes the sign of work down; nil where there is none.
	StopTyping func() `json:"-"`
	// ShowPreview ends what shows the turn while it is made, or begins that again; nil where nothing does.
	ShowPreview func(on bool) `json:"-"`
	// ready says that the record says sending of the first part, whose request is still to be made.
	ready bool
}

// Drop takes the parts from one on out of the answer.
func (d *Delivery) Drop(from int) {
	if d.ready = false; from == 0 {
		d.Parts = nil
		return
	}
	d.Parts = d.Parts[:from:from]
}

func (d *Delivery) delivery() *Delivery { return d }

// Report says what was sent.
func (d *Delivery) Report(r *receipts.Receipt) {
	if r.Answer = d.Answer; d.Preview != nil {
		r.Preview = d.Preview.ID
	}
}

// Adopt takes over the preview, which its goroutine writes.
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

// Of is the delivery of the answer to a job; of one that a later program wrote an empty one that is
// not kept.
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

// Own is the delivery of something that the bot shows by itself. That may repeat what a user said,
// and no user has sent it who could want it to be gone: its receipt has no text.
type Own struct{ Delivery }

// Report says no more than that it was shown.
func (d *Own) Report(r *receipts.Receipt) {
	bare := r.Bare()
	bare.Message.User, bare.LeaseToken, bare.Answer.Card = r.Message.User, r.LeaseToken, d.Card
	*r = *bare
}

// Clone returns a copy.
func (d *Own) Clone() any {
	copied := *d
	return &copied
}

// MakeEphemeral makes the answer one for the sender alone. In a direct chat it is that anyway.
func MakeEphemeral(j *queue.Run) { Of(j).Ephemeral = !j.Message.Direct }

// Address is where the answer to a job goes. What no platform has delivered says itself what it stands
// under.
func Address(j *queue.Run) chats.Address {
	to := chats.Address{Chat: j.Message.Chat}
	if moved := Of(j).MovedTo; moved != "" {
		to.Chat.ID = moved
		return to
	}
	switch {
	case j.From != "": // what it replies to is not there
	case j.Message.Kind != chats.KindText:
		to.ReplyTo = j.Message.On
	case !j.Message.Direct:
		to.ReplyTo = j.Message.Shown()
	}
	return to
}

// WithHeading puts above an answer what belongs there: that the message waited, or what it answers.
func WithHeading(j *queue.Run, answer string) string {
	d := Of(j)
	if above := cmp.Or(waited(d.Delay), d.Heading); above != "" {
		return above + "\n\n" + answer
	}
	return answer
}
