// Package queue keeps the accepted jobs that are not closed yet, and dead letters, which cannot be
// completed. It does not know what the kinds of jobs mean: their workers say where they wait
// ([Placement]), and keep their own data in Args and Work.
//
// [Queue] runs the jobs of each chat one after another and those of different chats concurrently,
// bounds how many turns run at once, and moves waiting jobs when a chat moves. [Leases] say which chats
// this process owns: all if it works alone, a share of them if others work with the same store. Chats
// fall into shares by the hash of platform and id, so that the threads of a chat stay together. Each
// share is a lease of storage/replicas; every job that is worked on under it carries its token.
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

// Stall counts restarts in a row after which a job was taken up again without progress: no call of its
// turn returned, it got no answer, and no part of an answer was sent.
type Stall struct {
	Restarts int       `json:"restarts"`
	Since    time.Time `json:"since"`
}

// Job is an accepted message, as it is stored while it is open, so that a restart can continue it.
// Closed, it becomes a [receipts.Receipt]. A process that works on it has a [Run].
type Job struct {
	Message chats.Message `json:"message"`
	// Kind names its worker, if that is not the one for the kind of its message: a text can be a
	// command. The owner of the chat sets it once, when it claims the job.
	Kind chats.Kind `json:"as,omitempty"`
	// Seq orders the jobs of a chat; it grows with each accepted message, whichever process accepts it.
	// It is derived from the revision of the job's first record, which therefore lacks it, and never
	// changes.
	Seq   int64          `json:"seq,omitempty"`
	State receipts.State `json:"state"`
	// From is the id of the chat that the message was sent in, if that has moved; Message.Chat is the
	// new one.
	From string `json:"from,omitempty"`
	// Incident is the id under which the reason for a missing answer is logged.
	Incident string `json:"incident,omitempty"`
	// Joined are the keys of the messages that became part of this one, JoinedTo is the key of the job
	// that this one is part of.
	Joined   []string `json:"joined,omitempty"`
	JoinedTo string   `json:"with,omitempty"`
	// PieceCount is how many pieces the message was joined from, before its turn; 0 if more may come.
	PieceCount int `json:"whole,omitempty"`
	// OwnLength is the length of the first piece's text in such a message, in bytes; 0 if it has none.
	OwnLength int `json:"own_length,omitempty"`
	// Resumes counts the restarts after which it was taken up again, Stall the last ones without
	// progress.
	Resumes int   `json:"resumes,omitempty"`
	Stall   Stall `json:"vain,omitzero"`
	// Trace is the state of its trace.
	Trace    Trace     `json:"trace,omitzero"`
	Accepted time.Time `json:"accepted"`
	Closed   time.Time `json:"closed,omitzero"`

	// Unclaimed says that no process works on it: it was accepted by one that does not own its chat,
	// and how to handle it is undecided.
	Unclaimed bool `json:"offer,omitempty"`
	// LeaseToken is the token of the lease under which it is worked on; see [Store].
	LeaseToken string `json:"holder,omitempty"`
	// Unstarted says that its turn has not begun. The write that puts its question into the
	// conversation clears it.
	Unstarted bool `json:"fresh,omitempty"`

	// Args is its worker's input in addition to the message, Work its progress: pointers to types of
	// the worker ([Types]), or nil. A type that adds to the receipt is a [Reporter].
	Args any `json:"args,omitempty"`
	Work any `json:"work,omitempty"`
}

// Types returns new values to decode Args and Work of a kind into; nil if its worker has none.
type Types func(kind chats.Kind) (args, work any)

// Reporter adds to the receipt of its job.
type Reporter interface {
	// Report sets its fields of r.
	Report(r *receipts.Receipt)
}

// Adopter is the Work of a job of which a part is also written by another goroutine.
type Adopter interface {
	// Adopt takes that part over from the stored work.
	Adopt(stored any)
}

// Cloner is the Work of a job that changes while others may read the job.
type Cloner interface {
	// Clone returns a copy that may be changed.
	Clone() any
}

// ErrInvalid is returned for what can never become a job: an unknown platform, a bad id, a text that is
// too large.
var ErrInvalid = errors.New("queue: nothing that can be answered")

// OpenPrefix begins the keys of open jobs.
const OpenPrefix = "job/open/"

// Key identifies the event behind a job; see [receipts.Key].
func (j *Job) Key() string { return receipts.Key(j.Message, j.From) }

// KeyOf returns the key of the job that a message becomes.
func KeyOf(m chats.Message) string { return receipts.Key(m, "") }

// Origin returns the chat that the message was sent in.
func (j *Job) Origin() chats.Chat {
	chat := j.Message.Chat
	chat.ID = cmp.Or(j.From, chat.ID)
	return chat
}

// Progressed records progress of the job.
func (j *Job) Progressed() { j.Stall = Stall{} }

// Author returns the sender of the job's message, for the audit.
func (j *Job) Author(kv storage.KV) audit.Author {
	m := j.Message
	return audit.Author{KV: kv, Event: j.Key(), At: j.Accepted, By: m.By(), Name: m.UserName, Chat: m.Chat.String()}
}

// Receipt returns the receipt of the job in its present state.
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
