package outbox

import (
	"cmp"
	"context"
	"slices"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/toolgroups"
)

// Delivery is the state of the answer to a job. It is the Work, or a part of the Work, of jobs that send
// messages.
type Delivery struct {
	receipts.Answer
	// QuotedUser is the user, platform:id, whose words the card of a [BotMessage] shows.
	QuotedUser string `json:"of,omitempty"`
	// QuotesOthers says that the answer shows words of other users than the sender. Its texts stay out of
	// the receipt and of a dead letter, in which /forget looks for the sender only.
	QuotesOthers bool `json:"of_others,omitempty"`
	// Heading is Markdown above the answer.
	Heading string `json:"heading,omitempty"`
	// Delay is the delay of the message, if its answer mentions it, otherwise 0.
	Delay time.Duration `json:"waited,omitempty"`
	// MovedTo is the new id of the chat, if the platform reported one on delivery.
	MovedTo string `json:"moved_to,omitempty"`
	// OutageSince is the time since which the platform has not accepted the next part; zero if no part
	// is delayed.
	OutageSince time.Time `json:"held,omitzero"`
	// Preview is the message that shows the answer while it is generated.
	Preview *Preview `json:"preview,omitempty"`
	// Ephemeral says that only the sender of the message sees the answer, if the platform is a
	// [chats.EphemeralSender]. The answer may contain a [queue.SecretPlaceholder].
	Ephemeral bool `json:"only,omitempty"`

	// The fields below are not stored: only the process that works on the job has them.

	// Files are the files to deliver with the answer.
	Files []toolgroups.File `json:"-"`
	// Speak, if not nil, makes the recording of an answer, in a format of [chats.VoiceSender]. It is
	// called at most once, when the answer is delivered.
	Speak func(ctx context.Context, text, format string) ([]byte, error) `json:"-"`
	// spoken is the text to speak; empty if the answer is not spoken.
	spoken string
	// StopTyping clears the typing indicator; nil if there is none.
	StopTyping func() `json:"-"`
	// ShowPreview starts or ends the preview of the turn; nil if there is none.
	ShowPreview func(on bool) `json:"-"`
	// firstRecorded says that the job's record marks the first part as being sent, although the request
	// was not made yet.
	firstRecorded bool
}

// DropParts removes the parts from the index from on.
func (d *Delivery) DropParts(from int) {
	if d.firstRecorded = false; from == 0 {
		d.Parts = nil
		return
	}
	d.Parts = d.Parts[:from:from]
}

func (d *Delivery) delivery() *Delivery { return d }

// Report adds the answer and its preview to the receipt.
func (d *Delivery) Report(r *receipts.Receipt) {
	if r.Answer = d.Answer; d.Preview != nil {
		r.Preview = d.Preview.ID
	}
	if d.QuotesOthers {
		r.Answer.Parts = withoutTexts(d.Parts)
	}
}

func withoutTexts(parts []receipts.Part) []receipts.Part {
	parts = slices.Clone(parts)
	for i := range parts {
		parts[i].Part = chats.Part{Repeat: parts[i].Repeat}
	}
	return parts
}

// Adopt copies the preview from the stored work, because the preview's goroutine stores it.
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

// DeliveryOf returns the delivery of a job. For a job of unknown kind it is empty and not stored.
func DeliveryOf(j *queue.Run) *Delivery {
	if w, ok := j.Work.(deliverer); ok {
		return w.delivery()
	}
	d := new(Delivery)
	if j.Work == nil {
		j.Work = d
	}
	return d
}

// BotMessage is the delivery of a message that the bot sends on its own. It may quote a user, but
// /forget finds only messages from users, so its receipt contains no text.
type BotMessage struct{ Delivery }

// Report removes everything from the receipt except the ids, the times and the state.
func (d *BotMessage) Report(r *receipts.Receipt) {
	bare := r.WithoutContent()
	bare.Message.User, bare.LeaseToken, bare.Answer.CardToken = r.Message.User, r.LeaseToken, d.CardToken
	*r = *bare
}

// Clone returns a copy.
func (d *BotMessage) Clone() any {
	copied := *d
	return &copied
}

// Erasure is the delivery of a job that erases a user. Its receipt is written after the others are
// erased, so it does not name the user.
type Erasure struct{ Delivery }

// Report removes everything from the receipt except the ids, the times and the state.
func (d *Erasure) Report(r *receipts.Receipt) {
	bare := r.WithoutContent()
	bare.LeaseToken = r.LeaseToken
	*r = *bare
}

// Clone returns a copy.
func (d *Erasure) Clone() any {
	copied := *d
	return &copied
}

// MakeEphemeral makes the answer visible only to the sender. In a direct chat it does nothing.
func MakeEphemeral(j *queue.Run) { DeliveryOf(j).Ephemeral = !j.Message.Direct }

// Address returns the destination of a job's answer. The answer to a text in a shared chat replies to
// its [chats.Message.ReplyTarget], the answer to any other message to its TargetID. If the chat has
// moved, the answer replies to no message.
func Address(j *queue.Run) chats.Address {
	to := chats.Address{Chat: j.Message.Chat}
	if moved := DeliveryOf(j).MovedTo; moved != "" {
		to.Chat.ID = moved
		return to
	}
	switch {
	case j.From != "": // the message to reply to is in the old chat
	case j.Message.Kind != chats.KindText:
		to.ReplyTo = j.Message.TargetID
	case !j.Message.Direct:
		to.ReplyTo = j.Message.ReplyTarget()
	}
	return to
}

// WithHeading puts the notice about a delay, or else the heading, above an answer.
func WithHeading(j *queue.Run, answer string) string {
	d := DeliveryOf(j)
	if above := cmp.Or(delayText(d.Delay), d.Heading); above != "" {
		return above + "\n\n" + answer
	}
	return answer
}
