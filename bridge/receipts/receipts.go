// Package receipts keeps the results of closed jobs. A [Receipt] stops duplicates for [Age], and is
// read by /why, the administrators' pages, traces, exports and /forget, which know neither jobs nor
// workers.
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

// Age is how long receipts are kept (a week): a message that a platform delivers again later would be
// answered again.
const Age = 7 * 24 * time.Hour

// Prefix begins the keys of receipts in the store.
const Prefix = "job/done/"

// KindTask is the kind of tasks, which no platform delivers: a schedule or a webhook starts them.
const KindTask chats.Kind = "task"

// State is the state of a job.
type State string

// The states of a job. All but the first two are final and occur in receipts.
const (
	// Open: it waits, runs, or is being delivered.
	Open State = "open"
	// Waiting: its turn waits for the approval of a call, and the messages of its chat wait behind it.
	Waiting State = "waiting"
	// Done: the answer was delivered.
	Done State = "done"
	// Cleared: a /clear came before it was answered.
	Cleared State = "cleared"
	// Stopped: a /stop came before it was answered.
	Stopped State = "stopped"
	// Failed: a part of the answer was refused by the platform.
	Failed State = "failed"
	// Revoked: its user may not talk to the bot any more.
	Revoked State = "barred"
	// Refused: too many messages were waiting when it came.
	Refused State = "refused"
	// Joined: it is part of another job and answered with it; see [Receipt.JoinedTo].
	Joined State = "joined"
)

// Receipt is the record of a closed job.
type Receipt struct {
	Message chats.Message `json:"message"`
	// Kind names the worker of its job, if that is not the one for the kind of its message.
	Kind chats.Kind `json:"as,omitempty"`
	// From is the id of the chat that the message was sent in, if that has moved.
	From  string `json:"from,omitempty"`
	Seq   int64  `json:"seq,omitempty"`
	State State  `json:"state"`
	// LeaseToken names the lease under which it was closed.
	LeaseToken string `json:"holder,omitempty"`
	// Incident is the id under which the reason for a missing answer is logged.
	Incident string `json:"incident,omitempty"`
	// Joined are the keys of the messages that became part of this one, JoinedTo is the key of the job
	// that this one is part of, PieceCount how many pieces it was joined from, OwnLength the length of
	// the first piece's text, in bytes.
	Joined     []string `json:"joined,omitempty"`
	JoinedTo   string   `json:"with,omitempty"`
	PieceCount int      `json:"whole,omitempty"`
	OwnLength  int      `json:"own_length,omitempty"`
	// Resumes counts the restarts after which it was taken up again.
	Resumes  int       `json:"resumes,omitempty"`
	Accepted time.Time `json:"accepted"`
	Closed   time.Time `json:"closed,omitzero"`

	// Preview is the id of the message that showed the answer while it was made.
	Preview string `json:"preview,omitempty"`
	// Task describes the task, if no platform delivered it.
	Task *Task `json:"task,omitempty"`
	// Turn is the record of its turn.
	Turn Turn `json:"turn,omitzero"`
	// Answer is what was sent.
	Answer Answer `json:"answer,omitzero"`
}

// Task describes a job that no platform delivered.
type Task struct {
	// Title is shown above the answer.
	Title string `json:"title,omitempty"`
	Trigger
	// Silent says that it ended without an answer.
	Silent bool `json:"silent,omitempty"`
}

// Trigger is the origin of a task.
type Trigger struct {
	// Hook is the name of the webhook that submitted the task, with data from outside. It is empty if a
	// schedule or a user began it.
	Hook string `json:"hook,omitempty"`
	// Note describes the trigger for users: when the task runs, which delivery it was.
	Note string `json:"note,omitempty"`
	// Quiet lets the task end without an answer, by [Silence].
	Quiet bool `json:"quiet,omitempty"`
}

// Report sets the receipt's Task.
func (t *Task) Report(r *Receipt) { r.Task = t }

// Silence is the whole answer of a task that has nothing to report. Then nothing is sent.
const Silence = "NO_REPLY"

// Ends reports whether an answer says that there is nothing to report. Without a task it never does.
func (t *Task) Ends(answer string) bool {
	return t != nil && t.Quiet && strings.TrimSpace(answer) == Silence
}

// Turn is the record of a turn.
type Turn struct {
	// Generation is the session that answered; 0 for none.
	Generation int `json:"generation,omitempty"`
	// Approvals are the calls that needed a user.
	Approvals []Approval `json:"approvals,omitempty"`
	// Transcripts are the texts of recordings in the message.
	Transcripts []Transcript `json:"heard,omitempty"`
	// Refused says that a budget did not allow an answer.
	Refused bool `json:"refused,omitempty"`
	// Deep says that the message asked for the strong model.
	Deep bool `json:"deep,omitempty"`
	// Feedback are the ratings of the answer.
	Feedback []Feedback `json:"feedback,omitempty"`
}

// IsZero reports whether nothing is recorded.
func (t Turn) IsZero() bool {
	return t.Generation == 0 && t.Approvals == nil && t.Transcripts == nil && !t.Refused && !t.Deep && t.Feedback == nil
}

// Answer is the record of an answer.
type Answer struct {
	// Notice is an answer that needed no model.
	Notice string `json:"notice,omitempty"`
	// Replies is the token of the card whose question the message answered, Card that of the card that
	// the parts show.
	Replies string `json:"replies,omitempty"`
	Card    string `json:"card,omitempty"`
	// Parts is the answer as it was sent.
	Parts []Part `json:"parts,omitempty"`
	// DeadLetter is the incident under which the rest of the answer became a dead letter.
	DeadLetter string `json:"aside,omitempty"`
}

// IsZero reports whether nothing is recorded.
func (a Answer) IsZero() bool {
	return a.Notice == "" && a.Replies == "" && a.Card == "" && a.Parts == nil && a.DeadLetter == ""
}

// PartState is the state of a part of an answer.
type PartState string

// The states of a part.
const (
	// PartPending: not sent, or sent and certainly not arrived.
	PartPending PartState = "pending"
	// PartSending: the request was made, or is about to be. Found after a crash it means unknown.
	PartSending PartState = "sending"
	// PartSent: the platform has confirmed it.
	PartSent PartState = "sent"
	// PartUnknown: the request was complete, but its response was lost.
	PartUnknown PartState = "unknown"
	// PartFailed: the platform refuses it.
	PartFailed PartState = "failed"
)

// Part is a part of an answer with its state.
type Part struct {
	chats.Part
	State PartState `json:"state"`
	// ID is the platform's id of the sent message.
	ID string `json:"id,omitempty"`
	// Error is why the last attempt failed.
	Error string `json:"error,omitempty"`
	// Edit is the id of the message that the part replaces: an edit can be repeated. If that message is
	// gone, the part is sent; a part that is Last, which removes the buttons, is dropped.
	Edit string `json:"edit,omitempty"`
	Last bool   `json:"last,omitempty"`
}

// Approval is the record of a call that needed a user: to approve it, or to answer its tool's question.
type Approval struct {
	// Call identifies the call in its conversation: the position of the reply that made it, and its id
	// there.
	Call string `json:"call"`
	Tool string `json:"tool"`
	// Hash is the hash of the call as the model made it, Shown that of the arguments on the card, which
	// the tool gets. A call with others asks again.
	Hash  string `json:"hash"`
	Shown string `json:"shown,omitempty"`
	// Question says that the tool of a running call asked a question. Then Hash is the hash of the
	// question.
	Question bool `json:"question,omitempty"`
	// Card is the token of the card that asks.
	Card string `json:"card"`
	// Decision is set once a decision counts.
	Decision *Decision `json:"decision,omitempty"`
}

// Decision is the answer to a request for approval.
type Decision struct {
	// Choice is "allow", "deny" or "expired", or "void" for a card that ended without; of a question "accept", "decline", "cancel" or "over".
	Choice string `json:"choice"`
	// By is the user who decided, as platform:id, Name the platform's name of them.
	By   string    `json:"by,omitempty"`
	Name string    `json:"name,omitempty"`
	At   time.Time `json:"at"`
	// Where is where they decided, as in an audit entry; empty for the chat of the question.
	Where string `json:"where,omitempty"`
}

// Values of [Decision.Choice].
const (
	ChoiceAllow   = "allow"
	ChoiceDeny    = "deny"
	ChoiceExpired = "expired"
	// ChoiceOver: the call ended before its question was answered, or the card is gone.
	ChoiceOver = "over"
)

// Transcript is the text of a recording in a message, which is transcribed once.
type Transcript struct {
	// Ref is the attachment's.
	Ref string `json:"ref"`
	// Text is the text; if it is empty, Why says why, in words for the user.
	Text string `json:"text,omitempty"`
	Why  string `json:"why,omitempty"`
}

// Key identifies the event behind a job: chat without thread, message id, kind. So the two events that
// Slack sends for one mention have the same key, in whichever thread. from is the id of the chat that
// the message was sent in, if it has moved since.
func Key(m chats.Message, from string) string {
	return m.Chat.Platform + ":" + cmp.Or(from, m.Chat.ID) + "/" + m.ID + "/" + string(m.Kind)
}

// Key returns the key of its job.
func (r *Receipt) Key() string { return Key(r.Message, r.From) }

// Origin returns the chat that the message was sent in.
func (r *Receipt) Origin() chats.Chat {
	chat := r.Message.Chat
	chat.ID = cmp.Or(r.From, chat.ID)
	return chat
}

// OwnText returns the text of the message itself, without the pieces that continue it.
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

// Bare returns what stays of a receipt after /forget: what stops duplicates, and what sums are made of.
func (r *Receipt) Bare() *Receipt {
	m := r.Message
	return &Receipt{
		Message: chats.Message{Chat: m.Chat, ID: m.ID, Kind: m.Kind, Direct: m.Direct}, Kind: r.Kind, Seq: r.Seq, State: r.State, From: r.From, JoinedTo: r.JoinedTo,
		Incident: r.Incident, Accepted: r.Accepted, Closed: r.Closed,
	}
}

// Ops returns the operations that write a receipt over a revision, with its index entry.
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
