// Package receipts keeps the results of closed jobs. A [Receipt] stops duplicates for [Age]. It is also
// read by /why, the administrators' pages, traces, exports and /forget, which do not depend on jobs or
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

// Age is how long receipts are kept (a week). A message that a platform delivers again after that time
// would be answered again.
const Age = 7 * 24 * time.Hour

// Prefix begins the keys of receipts in the store.
const Prefix = "job/done/"

// Kinds of jobs that no platform delivers and that the model answers.
const (
	// KindTask is a task that a schedule or a webhook starts.
	KindTask chats.Kind = "task"
	// KindBackground is a background task, which the model starts for a user.
	KindBackground chats.Kind = "background"
	// KindResult is the result of a background task, which its chat gets as a message.
	KindResult chats.Kind = "result"
)

// IsTask reports whether a message is a task, which has a conversation of its own.
func IsTask(m chats.Message) bool { return m.Kind == KindTask || m.Kind == KindBackground }

// State is the state of a job.
type State string

// The states of a job. All but the first two are final and occur in receipts.
const (
	// Open: the job waits or runs, or its answer is being delivered.
	Open State = "open"
	// Waiting: the job's turn waits for a user's decision or answer, or for background tasks, and the
	// messages of its chat wait behind it.
	Waiting State = "waiting"
	// Done: the answer was delivered.
	Done State = "done"
	// Cleared: a /clear came before the message was answered.
	Cleared State = "cleared"
	// Stopped: a /stop came before the message was answered.
	Stopped State = "stopped"
	// Failed: the platform refused a part of the answer, or the job was given up.
	Failed State = "failed"
	// Revoked: the access of the user was revoked before the message was answered.
	Revoked State = "barred"
	// Refused: too many messages were waiting when the message came.
	Refused State = "refused"
	// Joined: the message became part of another job; see [Receipt.JoinedTo].
	Joined State = "joined"
)

// Receipt is the record of a closed job.
type Receipt struct {
	Message chats.Message `json:"message"`
	// Kind is the kind of the job, if it differs from the kind of its message.
	Kind chats.Kind `json:"as,omitempty"`
	// From is the id of the chat in which the message was sent, if the chat has moved since.
	From  string `json:"from,omitempty"`
	Seq   int64  `json:"seq,omitempty"`
	State State  `json:"state"`
	// LeaseToken is the token of the lease under which the job was closed.
	LeaseToken string `json:"holder,omitempty"`
	// Incident is the id under which the reason for a missing answer is logged.
	Incident string `json:"incident,omitempty"`
	// Joined are the keys of the messages that became part of this one. JoinedTo is the key of the job
	// of which this one became a part. PieceCount is the number of pieces that were joined, OwnLength
	// the length of the first piece's text, in bytes.
	Joined     []string `json:"joined,omitempty"`
	JoinedTo   string   `json:"with,omitempty"`
	PieceCount int      `json:"whole,omitempty"`
	OwnLength  int      `json:"own_length,omitempty"`
	// Resumes counts the restarts after which the job was continued.
	Resumes  int       `json:"resumes,omitempty"`
	Accepted time.Time `json:"accepted"`
	Closed   time.Time `json:"closed,omitzero"`

	// Preview is the id of the message that showed the answer while it was generated.
	Preview string `json:"preview,omitempty"`
	// Task describes the task, if the job is one.
	Task *Task `json:"task,omitempty"`
	// Turn is the record of the job's turn.
	Turn Turn `json:"turn,omitzero"`
	// Answer is the record of the job's answer.
	Answer Answer `json:"answer,omitzero"`
}

// Task describes a job that a schedule or a webhook started, or a background task.
type Task struct {
	// Title is shown above the answer.
	Title string `json:"title,omitempty"`
	Trigger
	// Groups are the tool groups with which a background task begins. Model names its model; empty means
	// the usual one.
	Groups []string `json:"groups,omitempty"`
	Model  string   `json:"model,omitempty"`
	// Silent says that the task ended without an answer.
	Silent bool `json:"silent,omitempty"`
	// Paused says that the task did not run, because its chat takes no messages from the bot.
	Paused bool `json:"paused,omitempty"`
}

// Trigger is the origin of a task.
type Trigger struct {
	// Hook is the name of the webhook that submitted the task, with data from outside. It is empty if a
	// schedule or a user started the task.
	Hook string `json:"hook,omitempty"`
	// FilesOwner owns the workspace of the task; empty means the owner of the chat.
	FilesOwner string `json:"files_owner,omitempty"`
	// Note describes the trigger for users, such as when the task runs or which delivery started it.
	Note string `json:"note,omitempty"`
	// Hosts are the hosts that the instructions of the task name. Uses are the tools and groups that a quiet
	// task may use, besides these hosts, and end without an answer.
	Hosts []string `json:"hosts,omitempty"`
	Uses  []string `json:"uses,omitempty"`
	// Outside says that the task was made, or changed, in a conversation that held words of others: it may say
	// what they want.
	Outside bool `json:"outside,omitempty"`
	// Version identifies what started the task as it was then, for the hook that says whether it may still begin.
	Version string `json:"version,omitempty"`
	// StopTool and StopData name the undo that ends what starts such tasks; empty if nothing does.
	StopTool string          `json:"stop_tool,omitempty"`
	StopData json.RawMessage `json:"stop,omitempty"`
	// Quiet allows the task to end without an answer, by answering [Silence].
	Quiet bool `json:"quiet,omitempty"`
}

// Report sets the receipt's Task.
func (t *Task) Report(r *Receipt) { r.Task = t }

// Result is the result of a background task that a chat gets.
type Result struct {
	// Title is the title of the task, Seq its number.
	Title string `json:"title"`
	Seq   int64  `json:"of"`
	// Generation is that of the conversation that asked for the task.
	Generation int `json:"generation,omitempty"`
	// Text is the answer to the task.
	Text string `json:"text"`
}

// Report names the task in the receipt.
func (t *Result) Report(r *Receipt) { r.Task = &Task{Title: t.Title} }

// Silence is the answer of a task that has nothing to report. It is not sent.
const Silence = "NO_REPLY"

// IsSilence reports whether an answer of the task is [Silence]. It returns false for a nil task.
func (t *Task) IsSilence(answer string) bool {
	return t != nil && t.Quiet && strings.TrimSpace(answer) == Silence
}

// Turn is the record of a turn.
type Turn struct {
	// Generation is the number of the chat's conversation in which the turn ran; 0 for none.
	Generation int `json:"generation,omitempty"`
	// Approvals are the calls that needed a user's decision or answer.
	Approvals []Approval `json:"approvals,omitempty"`
	// Transcripts are the transcripts of recordings in the message.
	Transcripts []Transcript `json:"heard,omitempty"`
	// Refused says that a budget did not allow an answer.
	Refused bool `json:"refused,omitempty"`
	// Deep says that the message asked for the strong model.
	Deep bool `json:"deep,omitempty"`
	// HeldOthers says that the model was shown words of others before a reply or a call, ReadOthers that the turn had read
	// them: what has been read since stays read, also once it is forgotten.
	HeldOthers bool `json:"held_others,omitempty"`
	ReadOthers bool `json:"read_others,omitempty"`
	// Feedback are the ratings of the answer.
	Feedback []Feedback `json:"feedback,omitempty"`
}

// IsUndecided reports whether a call waits for a user.
func (t Turn) IsUndecided() bool {
	return slices.ContainsFunc(t.Approvals, func(a Approval) bool { return a.Decision == nil })
}

// IsZero reports whether nothing is recorded.
func (t Turn) IsZero() bool {
	return t.Generation == 0 && t.Approvals == nil && t.Transcripts == nil && !t.Refused && !t.Deep && !t.HeldOthers && !t.ReadOthers && t.Feedback == nil
}

// Answer is the record of an answer.
type Answer struct {
	// Notice is the text of an answer that needed no model.
	Notice string `json:"notice,omitempty"`
	// RepliesTo is the token of the card whose question the message answered. CardToken is the token of
	// the card that the parts show.
	RepliesTo string `json:"replies,omitempty"`
	CardToken string `json:"card,omitempty"`
	// Parts are the parts of the answer, as they were sent.
	Parts []Part `json:"parts,omitempty"`
	// DeadLetter is the incident under which the rest of the answer became a dead letter.
	DeadLetter string `json:"aside,omitempty"`
}

// IsZero reports whether nothing is recorded.
func (a Answer) IsZero() bool {
	return a.Notice == "" && a.RepliesTo == "" && a.CardToken == "" && a.Parts == nil && a.DeadLetter == ""
}

// PartState is the state of a part of an answer.
type PartState string

// The states of a part.
const (
	// PartPending: the part was not sent, or certainly did not arrive.
	PartPending PartState = "pending"
	// PartSending: the request was or is about to be made. After a crash, this means unknown.
	PartSending PartState = "sending"
	// PartSent: the platform has confirmed the part.
	PartSent PartState = "sent"
	// PartUnknown: the response to the request was lost.
	PartUnknown PartState = "unknown"
	// PartFailed: the platform has refused the part, or not accepted a notice about a dead letter for a day.
	PartFailed PartState = "failed"
)

// Part is a part of an answer with its state.
type Part struct {
	chats.Part
	State PartState `json:"state"`
	// ID is the platform's id of the sent message.
	ID string `json:"id,omitempty"`
	// Error is the error of the last failed attempt.
	Error string `json:"error,omitempty"`
	// ReplacesID is the id of the message that the part replaces. If that message is gone, the part is
	// sent as a new message. A part with RemovesButtons only removes buttons, and is dropped then.
	ReplacesID     string `json:"edit,omitempty"`
	RemovesButtons bool   `json:"last,omitempty"`
	// Once says that the part is not sent again if it may have arrived.
	Once bool `json:"once,omitempty"`
	// Bare says that the platform refused the part as it was, so it has neither formatting nor buttons.
	// Incident, if that was refused too, is the incident that a line shows in place of the part.
	Bare     bool   `json:"bare,omitempty"`
	Incident string `json:"incident,omitempty"`
}

// IsUndelivered reports whether the platform has refused the part.
func (p *Part) IsUndelivered() bool { return p.State == PartFailed || p.Incident != "" }

// Approval is the record of a call that needed a user's approval, or an answer to its tool's question.
type Approval struct {
	// Call identifies the call in its conversation by the position of the reply that made the call, and
	// the call's id.
	Call string `json:"call"`
	Tool string `json:"tool"`
	// Hash is the hash of the call as the model made it. ShownHash is the hash of the arguments on the
	// card, which the tool gets. A call with other arguments needs another approval.
	Hash      string `json:"hash"`
	ShownHash string `json:"shown,omitempty"`
	// Question says that the tool of a running call asked a question. Then Hash is the hash of the
	// question.
	Question bool `json:"question,omitempty"`
	// CardToken is the token of the card that asks the user.
	CardToken string `json:"card"`
	// Decision is nil until the turn has got the decision.
	Decision *Decision `json:"decision,omitempty"`
}

// Decision is the answer to a request for approval or to a question.
type Decision struct {
	// Choice is allow, deny or expired, for questions accept, decline or cancel, or over. It is unseen
	// or void if the card of a request was closed without a decision.
	Choice string `json:"choice"`
	// By is the user who decided, as platform:id, and Name their name on the platform.
	By   string    `json:"by,omitempty"`
	Name string    `json:"name,omitempty"`
	At   time.Time `json:"at"`
	// Where is the place of the decision, as in an audit entry; empty for the chat of the card.
	Where string `json:"where,omitempty"`
	// Lasting says that the decision also allows such calls until the conversation is cleared.
	Lasting bool `json:"lasting,omitempty"`
}

// Values of [Decision.Choice].
const (
	ChoiceAllow   = "allow"
	ChoiceDeny    = "deny"
	ChoiceExpired = "expired"
	// ChoiceOver: the call ended before its question was answered, or the card is gone.
	ChoiceOver = "over"
)

// Transcript is the transcript of a recording in a message, which is transcribed only once.
type Transcript struct {
	// Ref is the Ref of the attachment.
	Ref string `json:"ref"`
	// Text is the transcript. If it is empty, FailureReason says why, in words for the user.
	Text          string `json:"text,omitempty"`
	FailureReason string `json:"why,omitempty"`
}

// Key returns the key of a job, made of the chat without thread, the message id and the kind. So the two
// events that Slack sends for one mention have the same key, even if their threads differ. from is the
// id of the chat in which the message was sent, if the chat has moved since.
func Key(m chats.Message, from string) string {
	return m.Chat.Platform + ":" + cmp.Or(from, m.Chat.ID) + "/" + m.ID + "/" + string(m.Kind)
}

// Key returns the key of the receipt's job.
func (r *Receipt) Key() string { return Key(r.Message, r.From) }

// Origin returns the chat in which the message was sent.
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

// HasSent reports whether the message with an id is the preview or a part of the answer.
func (r *Receipt) HasSent(id string) bool {
	return r.Preview == id || slices.ContainsFunc(r.Answer.Parts, func(p Part) bool { return p.ID == id })
}

// WithoutContent returns a copy without texts and users: only the fields for duplicates and tallies.
func (r *Receipt) WithoutContent() *Receipt {
	m := r.Message
	return &Receipt{
		Message: chats.Message{Chat: m.Chat, ID: m.ID, Kind: m.Kind, Direct: m.Direct}, Kind: r.Kind, Seq: r.Seq, State: r.State, From: r.From, JoinedTo: r.JoinedTo,
		Incident: r.Incident, Accepted: r.Accepted, Closed: r.Closed,
	}
}

// Ops returns the operations that write a receipt, if it has the revision rev, and its index entry.
func (r *Receipt) Ops(rev storage.Revision) ([]storage.Op, error) {
	data, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode receipt %s: %w", r.Key(), err)
	}
	ops, err := r.indexOps()
	return append(ops, storage.Put(Prefix+r.Key(), data, rev)), err
}

// Put writes a receipt, if it has the revision rev, and its index entry.
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
