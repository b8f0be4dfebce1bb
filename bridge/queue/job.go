// Package queue keeps what was accepted and is not over yet: each message as a job, and dead
// letters, which cannot be carried to their end. It does not know what the kinds of jobs mean:
// their workers say where they wait ([Placement]), and keep what is theirs in Args and Work.
//
// [Queue] runs the jobs of each chat one after another and those of different chats side by side,
// bounds how many turns run at once, and carries what waits along when a chat moves. [Leases] say
// in which chats this process answers: in all where it works alone, in a share of them where others
// work with the same store. Chats fall into shares by the hash of platform and id, so that the
// threads of a chat stay together. Each share is a lease of internal/replicas; every job that is
// worked on under it carries its token.
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

// Stall are restarts in a row after which a job was taken up again, and came no further: no call
// of its turn returned, it got no answer, and no part of that was sent.
type Stall struct {
	Restarts int       `json:"restarts"`
	Since    time.Time `json:"since"`
}

// Job is a message that was accepted, as it is stored while it is open: what a restart continues.
// Closed, it has a [receipts.Receipt]. A process that works on it has a [Run].
type Job struct {
	Message chats.Message `json:"message"`
	// Kind names its worker, where that is not the one for the kind of its message: a text can be a
	// command. The process that answers in the chat decides it once, when it claims the job.
	Kind chats.Kind `json:"as,omitempty"`
	// Seq orders the jobs of a chat; it grows with each accepted message, whichever process
	// accepts it. It is not in the first record of a job, whose revision it comes from, and
	// never changes.
	Seq   int64          `json:"seq,omitempty"`
	State receipts.State `json:"state"`
	// From is the id of the chat that the message was sent in, where Message.Chat is the
	// one as which that goes on.
	From string `json:"from,omitempty"`
	// Incident is the id under which the log says why there was no answer.
	Incident string `json:"incident,omitempty"`
	// Joined are the keys of the messages that became part of this one, JoinedTo that of the job
	// that this one is part of.
	Joined   []string `json:"joined,omitempty"`
	JoinedTo string   `json:"with,omitempty"`
	// PieceCount is how many pieces a message was put together from, before its turn; 0 where more
	// of them may come.
	PieceCount int `json:"whole,omitempty"`
	// OwnLength is how much of the text of such a message is that of its first piece, in bytes; 0 where
	// that has none.
	OwnLength int `json:"own_length,omitempty"`
	// Resumes counts the restarts after which it was taken up again, Stall those of them at the
	// end that found no progress.
	Resumes int   `json:"resumes,omitempty"`
	Stall   Stall `json:"vain,omitzero"`
	// Trace is what follows it.
	Trace    Trace     `json:"trace,omitzero"`
	Accepted time.Time `json:"accepted"`
	Closed   time.Time `json:"closed,omitzero"`

	// Unclaimed says that no process works on it: it was accepted by one that does not answer
	// in its chat, and nothing was decided about it yet.
	Unclaimed bool `json:"offer,omitempty"`
	// LeaseToken is that of the lease under which it is worked on; see [Store].
	LeaseToken string `json:"holder,omitempty"`
	// Unstarted says that its turn has not begun. The write that puts its question into the
	// conversation takes it away.
	Unstarted bool `json:"fresh,omitempty"`

	// Args is what its worker was given, beside the message, and Work how far that has come: pointers
	// to types of the worker's ([Types]), or nil. A type that says something to a receipt is a
	// [Reporter].
	Args any `json:"args,omitempty"`
	Work any `json:"work,omitempty"`
}

// Types returns new values for Args and Work of jobs of a kind, to be read into; nil where its
// worker has none.
type Types func(kind chats.Kind) (args, work any)

// Reporter is what has something to say to the receipt of its job.
type Reporter interface {
	// Report says it.
	Report(r *receipts.Receipt)
}

// Adopter is the work of a job of which a part is written beside the one who works on it.
type Adopter interface {
	// Adopt takes that part over from the work as it is stored.
	Adopt(stored any)
}

// Cloner is the work of a job that changes while others may look at the job.
type Cloner interface {
	// Clone returns a copy that may be changed.
	Clone() any
}

// ErrInvalid is returned for what can never become a job: a chat of no platform, a bad id,
// a text that is too large.
var ErrInvalid = errors.New("queue: nothing that can be answered")

// OpenPrefix begins the keys of open jobs.
const OpenPrefix = "job/open/"

// Key identifies the event behind a job; see [receipts.Key].
func (j *Job) Key() string { return receipts.Key(j.Message, j.From) }

// KeyOf returns the key of the job that a message becomes.
func KeyOf(m chats.Message) string { return receipts.Key(m, "") }

// Origin is the chat that the message was sent in.
func (j *Job) Origin() chats.Chat {
	chat := j.Message.Chat
	chat.ID = cmp.Or(j.From, chat.ID)
	return chat
}

// Progressed notes that work on the job came further.
func (j *Job) Progressed() { j.Stall = Stall{} }

// Author is who sent the message of a job.
func (j *Job) Author(kv storage.KV) audit.Author {
	m := j.Message
	return audit.Author{KV: kv, Event: j.Key(), At: j.Accepted, By: m.By(), Name: m.UserName, Chat: m.Chat.String()}
}

// Receipt is what is known of a job by now.
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
