// Package queue keeps the open jobs, and dead letters, which cannot be completed. It does not know the
// meaning of the kinds of jobs. Workers say where their jobs wait ([Placement]), and keep their own
// data in Args and Work.
//
// [Queue] runs the jobs of each chat one after another and those of different chats concurrently. It
// bounds the number of concurrent turns, and moves waiting jobs when a chat moves. [LeaseHolder] knows
// which chats this process owns: all of them, or a part if several processes share the store. Chats are
// assigned to shares by the hash of platform and id, so that the threads of a chat stay together. Each
// share is a lease of storage/replicas, and every job that a process works on has the lease's token.
package queue

import (
	"cmp"
	"errors"
	"time"

	"oneclaw/bridge/audit"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/receipts"
	"oneclaw/storage"
)

// Stall counts the consecutive restarts between which a job made no progress: no tool call of its turn
// returned, it got no answer, and no part of an answer was sent.
type Stall struct {
	Restarts int       `json:"restarts"`
	Since    time.Time `json:"since"`
}

// Job is an accepted message as it is stored until it is closed, so that a restart can continue it. When
// it is closed, a [receipts.Receipt] replaces it. A process that works on it has a [Run].
type Job struct {
	Message chats.Message `json:"message"`
	// Kind is the kind of the job, if it differs from the kind of its message: a text can be a command, a
	// press can stop a turn. The owner of the chat sets it when it claims the job, and again when the
	// waiting message is edited or gets a notice instead of an answer.
	Kind chats.Kind `json:"as,omitempty"`
	// Seq orders the jobs of a chat; it grows with each accepted message, whichever process accepts it.
	// It is derived from the revision of the job's first record, which therefore lacks it, and never
	// changes.
	Seq   int64          `json:"seq,omitempty"`
	State receipts.State `json:"state"`
	// From is the id of the chat in which the message was sent, if the chat has moved since.
	// Message.Chat is the new chat.
	From string `json:"from,omitempty"`
	// Incident is the id under which the reason for a missing answer is logged.
	Incident string `json:"incident,omitempty"`
	// Joined are the keys of the messages that became part of this one. JoinedTo is the key of the job
	// of which this one became a part.
	Joined   []string `json:"joined,omitempty"`
	JoinedTo string   `json:"with,omitempty"`
	// PieceCount is the number of pieces that were joined into the message; 0 if more may come.
	PieceCount int `json:"whole,omitempty"`
	// OwnLength is the length of the first piece's text in a joined message, in bytes; 0 if it has none.
	OwnLength int `json:"own_length,omitempty"`
	// Resumes counts the restarts after which the job was continued, Stall the latest ones without
	// progress.
	Resumes  int       `json:"resumes,omitempty"`
	Stall    Stall     `json:"vain,omitzero"`
	Accepted time.Time `json:"accepted"`
	Closed   time.Time `json:"closed,omitzero"`

	// Unclaimed says that no process works on the job: a process that does not own its chat accepted it,
	// and its kind is undecided.
	Unclaimed bool `json:"offer,omitempty"`
	// LeaseToken is the token of the lease under which a process works on the job; see [Store].
	LeaseToken string `json:"holder,omitempty"`
	// Unstarted says that the turn of the job has not begun. The write that adds the question to the
	// conversation clears it, or an earlier one that stores the transcript of a recording.
	Unstarted bool `json:"fresh,omitempty"`

	// Args is the worker's input in addition to the message, Work its progress. Both are pointers to
	// types of the worker ([DataFactory]), or nil. A type that adds to the receipt is a [Reporter].
	Args any `json:"args,omitempty"`
	Work any `json:"work,omitempty"`
}

// DataFactory returns new values to decode a job's Args and Work into; nil if its worker has none.
type DataFactory func(kind chats.Kind) (args, work any)

// Reporter adds to the receipt of its job.
type Reporter interface {
	// Report sets the fields of r that the value determines.
	Report(r *receipts.Receipt)
}

// Adopter is the Work of a job if another goroutine stores a part of it.
type Adopter interface {
	// Adopt copies that part from the stored work.
	Adopt(stored any)
}

// Cloner is the Work of a job if it changes while other goroutines may read the job.
type Cloner interface {
	// Clone returns a copy that may be changed.
	Clone() any
}

// ErrInvalid is returned for messages that can never become a job: those with an unknown platform, an
// invalid id or a text that is too large.
var ErrInvalid = errors.New("queue: invalid message")

// OpenPrefix begins the keys of open jobs.
const OpenPrefix = "job/open/"

// Key identifies the event behind a job; see [receipts.Key].
func (j *Job) Key() string { return receipts.Key(j.Message, j.From) }

// KeyOf returns the key of the job that a message becomes.
func KeyOf(m chats.Message) string { return receipts.Key(m, "") }

// Origin returns the chat in which the message was sent.
func (j *Job) Origin() chats.Chat {
	chat := j.Message.Chat
	chat.ID = cmp.Or(j.From, chat.ID)
	return chat
}

// RecordProgress resets the count of restarts without progress.
func (j *Job) RecordProgress() { j.Stall = Stall{} }

// Author returns the sender of the job's message, for the audit.
func (j *Job) Author(kv storage.KV) audit.Author {
	m := j.Message
	return audit.Author{KV: kv, Event: j.Key(), At: j.Accepted, By: m.SenderID(), Name: m.UserName, Chat: m.Chat.String()}
}

// Receipt returns the receipt of the job in its current state.
func (j *Job) Receipt() *receipts.Receipt {
	r := &receipts.Receipt{
		Message: j.Message, Kind: j.Kind, From: j.From, Seq: j.Seq, State: j.State, LeaseToken: j.LeaseToken, Incident: j.Incident,
		Joined: j.Joined, JoinedTo: j.JoinedTo, PieceCount: j.PieceCount, OwnLength: j.OwnLength,
		Resumes: j.Resumes, Accepted: j.Accepted, Closed: j.Closed,
	}
	for _, part := range []any{j.Work, j.Args} {
		if says, ok := part.(Reporter); ok {
			says.Report(r)
		}
	}
	return r
}
