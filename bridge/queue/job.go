// Package queue keeps what was accepted and is not over yet: each message as a job with its
// receipt once it is closed, and dead letters, which cannot be carried to their end.
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
	"slices"
	"strings"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
)

// State is where a job stands.
type State string

// The states of a job. All but the first two are final.
const (
	// StateOpen: it waits, runs, or is being delivered.
	StateOpen State = "open"
	// StateWaiting: its turn waits for the approval of a call, and the messages of its
	// chat wait behind it.
	StateWaiting State = "waiting"
	// StateDone: the answer was delivered.
	StateDone State = "done"
	// StateCleared: a /clear came before it was answered.
	StateCleared State = "cleared"
	// StateStopped: a /stop came before it was answered.
	StateStopped State = "stopped"
	// StateFailed: a part of the answer was refused by the platform.
	StateFailed State = "failed"
	// StateBarred: whoever asked for it may not talk to the bot any more.
	StateBarred State = "barred"
	// StateRefused: too many messages waited when it came.
	StateRefused State = "refused"
	// StateJoined: it is part of another job, and answered by that; see [Job.JoinedTo].
	StateJoined State = "joined"
)

// The kinds of jobs that no platform delivers.
const (
	// KindTask is a task whose time has come; see Submit of the bridge.
	KindTask chats.Kind = "task"
	// KindLoad is a tool group that somebody loads with a button. It waits for its turn
	// like a message, because it changes the conversation.
	KindLoad chats.Kind = "load"
	// KindAmend is the edit of a message that is being answered. It is given to that turn, or
	// answered with a line when it is over.
	KindAmend chats.Kind = "amend"
	// KindMove is the move of a chat to a new id. Its job waits until no turn runs at
	// either end; no message is answered there before it is done, and what waits goes along.
	KindMove chats.Kind = "move"
	// KindCard is a card to be sent, KindRefresh one whose message shows an older version.
	KindCard    chats.Kind = "card"
	KindRefresh chats.Kind = "card-refresh"
	// KindTell tells a user something, before what is answered later in the chat.
	KindTell chats.Kind = "tell"
	// KindUndo is a /undo that somebody gives with a button. Message.On is the /clear.
	KindUndo chats.Kind = "undo"
	// KindForget is the wish of a person that the bot forgets them. Its jobs in the chats that
	// they have asked in are KindErase, and KindEraseTasks for the tasks there.
	KindForget     chats.Kind = "forget"
	KindErase      chats.Kind = "erase"
	KindEraseTasks chats.Kind = "erase-tasks"
	// KindPreview is what a preview shows in the end whose answer does not come.
	KindPreview chats.Kind = "preview"
)

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

// SentPart is a part of an answer with what became of it.
type SentPart struct {
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

	// Ready is true where the record says sending, and the request is still to be made.
	Ready bool `json:"-"`
}

// Stall are restarts in a row after which a job was taken up again, and came no further: no call
// of its turn returned, it got no answer, and no part of that was sent.
type Stall struct {
	Restarts int       `json:"restarts"`
	Since    time.Time `json:"since"`
}

// Job is a message that was accepted, with all that became of it. While it is open it
// is what a restart continues; closed, it is the receipt, kept for [ReceiptAge]: it
// stops duplicates and shows what happened. A process that works on it has a [Run].
type Job struct {
	Message chats.Message `json:"message"`
	// Seq orders the jobs of a chat; it grows with each accepted message, whichever process
	// accepts it. It is not in the first record of a job, whose revision it comes from, and
	// never changes.
	Seq   int64 `json:"seq,omitempty"`
	State State `json:"state"`
	// Generation is the session that answered.
	Generation int `json:"generation,omitempty"`
	// Title stands above the answer of a task.
	Title string `json:"title,omitempty"`
	// Trigger is what began a task; nil for messages.
	Trigger *Trigger `json:"trigger,omitempty"`
	// Notice is an answer that needs no model: a polite refusal, a full queue.
	Notice string `json:"notice,omitempty"`
	// AskOwner has the owner asked about the sender, who is told so instead of the notice.
	AskOwner bool `json:"knock,omitempty"`
	// Delay is how long the message was on its way, where its answer says so.
	Delay time.Duration `json:"waited,omitempty"`
	// From is the id of the chat that the message was sent in, where Message.Chat is the
	// one as which that goes on.
	From string `json:"from,omitempty"`
	// MovedTo is the new id of the chat, where the platform said so on delivery.
	MovedTo string `json:"moved_to,omitempty"`
	// Parts is the answer, from the moment its delivery begins.
	Parts []SentPart `json:"parts,omitempty"`
	// OutageSince is since when its platform has not taken what is to be sent next; zero where
	// nothing is held up.
	OutageSince time.Time `json:"held,omitzero"`
	// DeadLetter is the incident under which the rest of the answer was set aside. A line that
	// says so stands in its place.
	DeadLetter string `json:"aside,omitempty"`
	// Preview is the message in which the answer is shown while it is made.
	Preview *Preview `json:"preview,omitempty"`
	// Ephemeral says that the answer is for the sender of the message alone, where the platform can
	// show that ([chats.EphemeralSender]). It may have a [SecretPlaceholder].
	Ephemeral bool `json:"only,omitempty"`
	// Card is the token of the card that the parts show.
	Card string `json:"card,omitempty"`
	// Answers is the token of a card whose question the message answers, instead of being one
	// itself.
	Answers string `json:"answers,omitempty"`
	// Approvals are the calls that needed a person.
	Approvals []Approval `json:"approvals,omitempty"`
	// Transcripts is what was understood of the sounds that came with the message.
	Transcripts []Transcript `json:"heard,omitempty"`
	// Feedback are what people think of the answer.
	Feedback []Feedback `json:"opinions,omitempty"`
	// Incident is the id under which the log says why there was no answer.
	Incident string `json:"incident,omitempty"`
	// Refused is set where a budget did not allow an answer.
	Refused bool `json:"refused,omitempty"`
	// Joined are the keys of the messages that became part of this one, With that of the job
	// that this one is part of.
	Joined   []string `json:"joined,omitempty"`
	JoinedTo string   `json:"with,omitempty"`
	// PieceCount is how many pieces a message was put together from, before its turn; 0 where more
	// of them may come.
	PieceCount int `json:"whole,omitempty"`
	// OwnLength is how much of the text of such a message is that of its first piece, in bytes; 0 where
	// that has none, and in records of former builds.
	OwnLength int `json:"own_length,omitempty"`
	// Resumes counts the restarts after which it was taken up again, Vain those of them at the
	// end that found no progress.
	Resumes int   `json:"resumes,omitempty"`
	Stall   Stall `json:"vain,omitzero"`
	// Trace is what follows it.
	Trace    Trace     `json:"trace,omitzero"`
	Accepted time.Time `json:"accepted"`
	Closed   time.Time `json:"closed,omitzero"`

	// Unclaimed says that nobody works on it: it was accepted by a process that does not answer
	// in its chat, and nothing was decided about it yet.
	Unclaimed bool `json:"offer,omitempty"`
	// LeaseToken is the mark of the tenure in which it is worked on; see [Store].
	LeaseToken string `json:"holder,omitempty"`
	// Unstarted says that its turn has not begun. The write that puts its question into the
	// conversation takes it away.
	Unstarted bool `json:"fresh,omitempty"`
}

// ErrInvalid is returned for what can never become a job: a chat of no platform, a bad id,
// a text that is too large.
var ErrInvalid = errors.New("queue: nothing that can be answered")

// ReceiptAge is how long closed jobs are kept (a week): a platform that delivers a
// message again later than that would be answered again.
const ReceiptAge = 7 * 24 * time.Hour

// The prefixes of the keys of open jobs and of receipts.
const (
	OpenPrefix    = "job/open/"
	ReceiptPrefix = "job/done/"
)

// Key identifies the event behind a job: chat without thread, message id, kind. So
// the two events that Slack sends for one mention meet, wherever they are found.
func (j *Job) Key() string {
	m := j.Message
	return m.Chat.Platform + ":" + cmp.Or(j.From, m.Chat.ID) + "/" + m.ID + "/" + string(m.Kind)
}

// KeyOf returns the key of the job that a message becomes.
func KeyOf(m chats.Message) string { return (&Job{Message: m}).Key() }

// MakeEphemeral makes the answer one for the sender alone. In a direct chat it is that anyway.
func (j *Job) MakeEphemeral() { j.Ephemeral = !j.Message.Direct }

// Origin is the chat that the message was sent in.
func (j *Job) Origin() chats.Chat {
	chat := j.Message.Chat
	chat.ID = cmp.Or(j.From, chat.ID)
	return chat
}

// Address is where the answer goes.
func (j *Job) Address() chats.Address {
	to := chats.Address{Chat: j.Message.Chat}
	if j.MovedTo != "" {
		to.Chat.ID = j.MovedTo
		return to
	}
	switch {
	case j.From != "": // what it replies to is not there
	case j.Message.Kind == KindCard, j.Message.Kind == KindUndo && !j.Message.Direct:
		to.ReplyTo = j.Message.On
	case !j.Message.Direct && j.Message.Kind != KindTask:
		to.ReplyTo = j.Message.ID
	}
	return to
}

// Undecided are the cards of a job that may still be open.
func (j *Job) Undecided() []string {
	var tokens []string
	for _, a := range j.Approvals {
		if a.Decision == nil {
			tokens = append(tokens, a.Card)
		}
	}
	return tokens
}

// ApprovedBy is who allowed a call that begins; empty where nobody was asked.
func (j *Job) ApprovedBy(started agent.Message) string {
	for _, a := range slices.Backward(j.Approvals) {
		if a.Hash == started.Hash && strings.HasSuffix(a.Call, "/"+started.CallID) && a.Decision != nil && a.Decision.Choice == ChoiceAllow {
			return a.Decision.By
		}
	}
	return ""
}
