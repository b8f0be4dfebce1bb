// Package receipts keeps what became of the messages and other jobs that are closed. A [Receipt]
// stops duplicates for [Age], and is what /why, the pages of administrators, traces, exports and
// /forget read: they know no jobs, and nothing of those who work on them.
package receipts

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/storage"
)

// Age is how long receipts are kept (a week): a platform that delivers a message again later
// than that would be answered again.
const Age = 7 * 24 * time.Hour

// Prefix begins the keys of receipts in the store.
const Prefix = "job/done/"

// KindTask is the kind of tasks, which no platform delivers: their time has come.
const KindTask chats.Kind = "task"

// State is where a job stands.
type State string

// The states of a job. All but the first two are final: those of receipts.
const (
	// Open: it waits, runs, or is being delivered.
	Open State = "open"
	// Waiting: its turn waits for the approval of a call, and the messages of its chat wait
	// behind it.
	Waiting State = "waiting"
	// Done: the answer was delivered.
	Done State = "done"
	// Cleared: a /clear came before it was answered.
	Cleared State = "cleared"
	// Stopped: a /stop came before it was answered.
	Stopped State = "stopped"
	// Failed: a part of the answer was refused by the platform.
	Failed State = "failed"
	// Revoked: who asked for it may not talk to the bot any more.
	Revoked State = "barred"
	// Refused: too many messages waited when it came.
	Refused State = "refused"
	// Joined: it is part of another job, and answered by that; see [Receipt.JoinedTo].
	Joined State = "joined"
)

// Receipt is what became of a message.
type Receipt struct {
	Message chats.Message `json:"message"`
	// Kind names the worker of its job, where that is not the one for the kind of its message.
	Kind chats.Kind `json:"as,omitempty"`
	// From is the id of the chat that the message was sent in, where that has moved.
	From  string `json:"from,omitempty"`
	Seq   int64  `json:"seq,omitempty"`
	State State  `json:"state"`
	// LeaseToken names the lease under which it was closed.
	LeaseToken string `json:"holder,omitempty"`
	// Incident is the id under which the log says why there was no answer.
	Incident string `json:"incident,omitempty"`
	// Joined are the keys of the messages that became part of this one, JoinedTo that of the one
	// that this one is part of, PieceCount how many pieces it was put together from, OwnLength how
	// much of its text is that of the first piece, in bytes.
	Joined     []string `json:"joined,omitempty"`
	JoinedTo   string   `json:"with,omitempty"`
	PieceCount int      `json:"whole,omitempty"`
	OwnLength  int      `json:"own_length,omitempty"`
	// Resumes counts the restarts after which it was taken up again.
	Resumes  int       `json:"resumes,omitempty"`
	Accepted time.Time `json:"accepted"`
	Closed   time.Time `json:"closed,omitzero"`

	// Preview is the id of the message in which the answer was shown while it was made.
	Preview string `json:"preview,omitempty"`
	// Task is what was to be done, where no platform delivered it.
	Task *Task `json:"task,omitempty"`
	// Turn is how it was answered by the model.
	Turn Turn `json:"turn,omitzero"`
	// Answer is what was sent.
	Answer Answer `json:"answer,omitzero"`
}

// Task is what began a job that no platform delivered, and what that means for its answer.
type Task struct {
	// Title stands above the answer.
	Title string `json:"title,omitempty"`
	Trigger
	// Silent says that it ended without an answer.
	Silent bool `json:"silent,omitempty"`
}

// Trigger is what begins a task.
type Trigger struct {
	// Hook is the name of the webhook that has taken the task in. What it brought is data
	// from outside. It is empty where a schedule or a person began the task.
	Hook string `json:"hook,omitempty"`
	// Note says more about that to people: when the task runs, which delivery it was.
	Note string `json:"note,omitempty"`
	// Quiet lets the task end without an answer, by [Silence].
	Quiet bool `json:"quiet,omitempty"`
}

// Report says what was to be done.
func (t *Task) Report(r *Receipt) { r.Task = t }

// Silence is the whole answer of a task that has nothing to tell. Nothing is sent then.
const Silence = "NO_REPLY"

// Ends reports whether an answer says that there is nothing to tell. It does not without a task.
func (t *Task) Ends(answer string) bool {
	return t != nil && t.Quiet && strings.TrimSpace(answer) == Silence
}

// Turn is what is kept of how a message was answered.
type Turn struct {
	// Generation is the session that answered; 0 where none has.
	Generation int `json:"generation,omitempty"`
	// Approvals are the calls that needed a person.
	Approvals []Approval `json:"approvals,omitempty"`
	// Transcripts is what was understood of the sounds that came with the message.
	Transcripts []Transcript `json:"heard,omitempty"`
	// Refused is set where a budget did not allow an answer.
	Refused bool `json:"refused,omitempty"`
	// Feedback is what people think of the answer.
	Feedback []Feedback `json:"feedback,omitempty"`
}

// IsZero reports whether nothing is kept.
func (t Turn) IsZero() bool {
	return t.Generation == 0 && t.Approvals == nil && t.Transcripts == nil && !t.Refused && t.Feedback == nil
}

// Answer is what is kept of the answer to a message.
type Answer struct {
	// Notice is an answer that needed no model.
	Notice string `json:"notice,omitempty"`
	// Replies is the token of the card whose question the message answered, Card that of the one
	// that the parts show.
	Replies string `json:"replies,omitempty"`
	Card    string `json:"card,omitempty"`
	// Parts is the answer as it was sent.
	Parts []Part `json:"parts,omitempty"`
	// DeadLetter is the incident under which the rest of the answer was set aside.
	DeadLetter string `json:"aside,omitempty"`
}

// IsZero reports whether nothing is kept.
func (a Answer) IsZero() bool {
	return a.Notice == "" && a.Replies == "" && a.Card == "" && a.Parts == nil && a.DeadLetter == ""
}

// PartState is where a part of an answer stands.
type PartState string

// The states of a part.
const (
	// PartPending: not sent, or sent and certainly not arrived.
	PartPending PartState = "pending"
	// PartSending: the request is about to be made, or was. Found after a crash it means
	// unknown.
	PartSending PartState = "sending"
	// PartSent: the platform has confirmed it.
	PartSent PartState = "sent"
	// PartUnknown: the request was whole, its answer was lost.
	PartUnknown PartState = "unknown"
	// PartFailed: the platform refuses it.
	PartFailed PartState = "failed"
)

// Part is a part of an answer with what became of it.
type Part struct {
	chats.Part
	State PartState `json:"state"`
	// ID is the platform's id of the sent message.
	ID string `json:"id,omitempty"`
	// Error is why the last try failed.
	Error string `json:"error,omitempty"`
	// Edit is the id of the message that the part takes the place of: an edit can be made
	// again. Where that message is gone the part is sent; if it is Last, which takes the
	// buttons away, it is left out.
	Edit string `json:"edit,omitempty"`
	Last bool   `json:"last,omitempty"`
}

// Approval is what became of a call that needed a person: to allow it, or to answer what its
// tool asked.
type Approval struct {
	// Call names the call inside its conversation: the place of the reply that made it,
	// and its id there.
	Call string `json:"call"`
	Tool string `json:"tool"`
	// Hash is that of the call as the model made it, Shown that of the arguments that
	// stand on the card: those the tool is given. A call with others asks again.
	Hash  string `json:"hash"`
	Shown string `json:"shown,omitempty"`
	// Question says that the tool of a call that runs has asked. Then Hash is that of what it asked.
	Question bool `json:"question,omitempty"`
	// Card is the token of the card that asks.
	Card string `json:"card"`
	// Decision is there once it has counted.
	Decision *Decision `json:"decision,omitempty"`
}

// Decision is the answer to a request for approval.
type Decision struct {
	// Choice is "allow", "deny" or "expired", or "void" for a card that ended without; of a question "accept", "decline", "cancel" or "over".
	Choice string `json:"choice"`
	// By is who decided, as platform:id, and Name what the platform calls them.
	By   string    `json:"by,omitempty"`
	Name string    `json:"name,omitempty"`
	At   time.Time `json:"at"`
	// Where is where, as an audit entry has it; empty for the chat of the question.
	Where string `json:"where,omitempty"`
}

// The choices of a [Decision].
const (
	ChoiceAllow   = "allow"
	ChoiceDeny    = "deny"
	ChoiceExpired = "expired"
	// ChoiceOver: the call ended before its question was answered.
	ChoiceOver = "over"
)

// Transcript is what was understood of a sound that came with a message: it is heard once.
type Transcript struct {
	// Ref is that of the attachment.
	Ref string `json:"ref"`
	// Text are its words; empty where Why says in words for people why there are none.
	Text string `json:"text,omitempty"`
	Why  string `json:"why,omitempty"`
}

// Key identifies the event behind a job: chat without thread, message id, kind. So the two events
// that Slack sends for one mention meet, wherever they are found. From is the id of the chat that
// the message was sent in, where it has moved since.
func Key(m chats.Message, from string) string {
	return m.Chat.Platform + ":" + cmp.Or(from, m.Chat.ID) + "/" + m.ID + "/" + string(m.Kind)
}

// Key is that of its job.
func (r *Receipt) Key() string { return Key(r.Message, r.From) }

// Origin is the chat that the message was sent in.
func (r *Receipt) Origin() chats.Chat {
	chat := r.Message.Chat
	chat.ID = cmp.Or(r.From, chat.ID)
	return chat
}

// OwnText is the text of a message itself, without those of the pieces that continue it.
func (r *Receipt) OwnText() string {
	if r.OwnLength > 0 && r.OwnLength <= len(r.Message.Text) {
		return r.Message.Text[:r.OwnLength]
	}
	return r.Message.Text
}

// HasSent reports whether a message of the bot is part of the answer.
func (r *Receipt) HasSent(id string) bool {
	return r.Preview == id || slices.ContainsFunc(r.Answer.Parts, func(p Part) bool { return p.ID == id })
}

// Bare is what stays of a receipt that its sender wants to be gone: what stops duplicates, and
// what sums are made of.
func (r *Receipt) Bare() *Receipt {
	m := r.Message
	return &Receipt{
		Message: chats.Message{Chat: m.Chat, ID: m.ID, Kind: m.Kind, Direct: m.Direct}, Kind: r.Kind, Seq: r.Seq, State: r.State, From: r.From, JoinedTo: r.JoinedTo,
		Incident: r.Incident, Accepted: r.Accepted, Closed: r.Closed,
	}
}

// Ops are the operations that write a receipt over a revision, and the entry of the index that
// finds it by its time.
func (r *Receipt) Ops(rev storage.Revision) ([]storage.Op, error) {
	data, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode receipt %s: %w", r.Key(), err)
	}
	ops, err := r.list()
	return append(ops, storage.Put(Prefix+r.Key(), data, rev)), err
}

// Put writes a receipt over a revision.
func Put(ctx context.Context, store storage.Store, r *Receipt, rev storage.Revision) error {
	ops, err := r.Ops(rev)
	if err == nil {
		_, err = store.Write(ctx, ops...)
	}
	if err != nil {
		return fmt.Errorf("store receipt %s: %w", r.Key(), err)
	}
	return nil
}
