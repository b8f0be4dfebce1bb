package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"oneclaw/storage"
	"oneclaw/toolgroups"
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
	Part
	State PartState `json:"state"`
	// ID is the platform's id of the sent message.
	ID string `json:"id,omitempty"`
	// Error is why the last try failed.
	Error string `json:"error,omitempty"`

	// ready is true where the record says sending, and the request is still to be made.
	ready bool
}

// Job is a message that was accepted, with all that became of it. While it is open it
// is what a restart continues; closed, it is the receipt, kept for [ReceiptAge]: it
// stops duplicates and shows what happened.
type Job struct {
	Message Message `json:"message"`
	// Seq orders the jobs of a chat; it grows with each accepted message.
	Seq   int64 `json:"seq"`
	State State `json:"state"`
	// Generation is the session that answered.
	Generation int `json:"generation,omitempty"`
	// Title stands above the answer of a task.
	Title string `json:"title,omitempty"`
	// Notice is an answer that needs no model: a polite refusal, a full queue.
	Notice string `json:"notice,omitempty"`
	// Knock has the owner asked about the sender, who is told so instead of the notice.
	Knock bool `json:"knock,omitempty"`
	// Waited is how long the message was on its way, where its answer says so.
	Waited time.Duration `json:"waited,omitempty"`
	// From is the id of the chat that the message was sent in, where Message.Chat is the
	// one as which that goes on.
	From string `json:"from,omitempty"`
	// MovedTo is the new id of the chat, where the platform said so on delivery.
	MovedTo string `json:"moved_to,omitempty"`
	// Parts is the answer, from the moment its delivery begins.
	Parts []SentPart `json:"parts,omitempty"`
	// Held is since when its platform has not taken what is to be sent next; zero where
	// nothing is held up.
	Held time.Time `json:"held,omitzero"`
	// Aside is the incident under which the rest of the answer was set aside. A line that
	// says so stands in its place.
	Aside string `json:"aside,omitempty"`
	// Card is the token of the card that the parts show.
	Card string `json:"card,omitempty"`
	// Approvals are the calls that needed a person's approval.
	Approvals []Approval `json:"approvals,omitempty"`
	// Incident is the id under which the log says why there was no answer.
	Incident string `json:"incident,omitempty"`
	// Refused is set where a budget did not allow an answer.
	Refused bool `json:"refused,omitempty"`
	// Resumes counts the restarts that found the job begun.
	Resumes  int       `json:"resumes,omitempty"`
	Accepted time.Time `json:"accepted"`
	Closed   time.Time `json:"closed,omitzero"`

	rev storage.Revision
	// found is set where a restart found the job: its turn may have begun.
	found bool
	// begun is set where this process has begun its turn, counted where it has counted
	// the restart that found it.
	begun, counted bool
	// after, if not nil, is done once the answer is delivered.
	after func(context.Context)
	// damaged names the damaged records that it met.
	damaged []string
	// turn says that it is counted among the turns that run.
	turn bool
	// waits says that it is counted among those of its sender that wait.
	waits bool
	// tries counts the errors of a press.
	tries int
	// suspended says that its last run ended with a wait for an approval.
	suspended bool
	// ended is why it ends, where a command ended it while it waited for an approval.
	ended error
	// cut says that a /stop has ended a turn, dropped how many messages it took out of
	// their queue.
	cut     bool
	dropped int
	// files are to be delivered with the answer that is being rendered.
	files []toolgroups.File
}

// ReceiptAge is how long closed jobs are kept (a week): a platform that delivers a
// message again later than that would be answered again.
const ReceiptAge = 7 * 24 * time.Hour

const (
	openPrefix    = "job/open/"
	receiptPrefix = "job/done/"
)

// Key identifies the event behind a job: chat without thread, message id, kind. So
// the two events that Slack sends for one mention meet, wherever they are found.
func (j *Job) Key() string {
	m := j.Message
	m.Chat = j.origin()
	return jobKey(m)
}

// origin is the chat that the message was sent in.
func (j *Job) origin() Chat {
	chat := j.Message.Chat
	if j.From != "" {
		chat.ID = j.From
	}
	return chat
}

func jobKey(m Message) string {
	return Chat{Platform: m.Chat.Platform, ID: m.Chat.ID}.String() + "/" + m.ID + "/" + string(m.Kind)
}

// by is whose it is, as platform:id.
func (j *Job) by() string { return j.Message.Chat.Platform + ":" + j.Message.User }

func (j *Job) address() Address {
	to := Address{Chat: j.Message.Chat}
	if j.MovedTo != "" {
		to.Chat.ID = j.MovedTo
		return to
	}
	switch {
	case j.From != "": // what it replies to is not there
	case j.Message.Kind == kindCard:
		to.ReplyTo = j.Message.On
	case !j.Message.Direct && !j.isTask():
		to.ReplyTo = j.Message.ID
	}
	return to
}

// jobs keeps jobs in a KV: open ones and receipts under prefixes of their own.
type jobs struct{ kv storage.KV }

// add writes a new job. It reports false, and writes nothing, where the event is known.
func (s jobs) add(ctx context.Context, j *Job) (bool, error) {
	if known, err := s.closed(ctx, j.Key()); known || err != nil {
		return false, err
	}
	err := s.put(ctx, j, storage.Absent)
	if errors.Is(err, storage.ErrConflict) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	// Between the look and the write the first delivery may have been closed.
	known, err := s.closed(ctx, j.Key())
	if known && err == nil {
		err = s.remove(ctx, j)
	}
	return !known && err == nil, err
}

// save writes a job that this process works on. A conflict means that an earlier write
// happened although it reported an error: an open job has one owner.
func (s jobs) save(ctx context.Context, j *Job) error {
	err := s.put(ctx, j, j.rev)
	if errors.Is(err, storage.ErrConflict) {
		return s.put(ctx, j, storage.Any)
	}
	return err
}

func (s jobs) put(ctx context.Context, j *Job, rev storage.Revision) error {
	data, err := json.Marshal(j)
	if err != nil {
		return fmt.Errorf("encode job %s: %w", j.Key(), err)
	}
	rev, err = s.kv.Put(ctx, openPrefix+j.Key(), data, rev)
	if err != nil {
		return fmt.Errorf("store job %s: %w", j.Key(), err)
	}
	j.rev = rev
	return nil
}

// record is the operation that saves a job.
func (j *Job) record() (storage.Op, error) {
	data, err := json.Marshal(j)
	if err != nil {
		return storage.Op{}, fmt.Errorf("encode job %s: %w", j.Key(), err)
	}
	return storage.Put(openPrefix+j.Key(), data, j.rev), nil
}

func (s jobs) remove(ctx context.Context, j *Job) error {
	if err := s.kv.Delete(ctx, openPrefix+j.Key(), storage.Any); err != nil {
		return fmt.Errorf("remove job %s: %w", j.Key(), err)
	}
	return nil
}

// close writes the receipt, and only then removes the open job: a crash in between
// leaves both, and the receipt counts.
func (s jobs) close(ctx context.Context, j *Job) error {
	data, err := json.Marshal(j)
	if err != nil {
		return fmt.Errorf("encode receipt %s: %w", j.Key(), err)
	}
	if _, err := s.kv.Put(ctx, receiptPrefix+j.Key(), data, storage.Any); err != nil {
		return fmt.Errorf("store receipt %s: %w", j.Key(), err)
	}
	return s.remove(ctx, j)
}

func (s jobs) closed(ctx context.Context, key string) (bool, error) {
	_, err := s.kv.Get(ctx, receiptPrefix+key)
	if errors.Is(err, storage.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for receipt %s: %w", key, err)
	}
	return true, nil
}

// open returns the jobs that a former run of the program left open, and the records that
// do not decode.
func (s jobs) open(ctx context.Context) (found []*Job, broken []error, err error) {
	for entry, err := range s.kv.List(ctx, storage.Range{Prefix: openPrefix}) {
		if err != nil {
			return nil, nil, fmt.Errorf("list open jobs: %w", err)
		}
		j := &Job{}
		if err := decode(entry, j); err != nil {
			broken = append(broken, err)
			continue
		}
		j.rev, j.found = entry.Revision, true
		known, err := s.closed(ctx, j.Key())
		if err != nil {
			return nil, nil, err
		}
		if !known {
			found = append(found, j)
			continue
		}
		if err := s.remove(ctx, j); err != nil {
			return nil, nil, err
		}
	}
	return found, broken, nil
}

// load returns an open job; nil where there is none.
func (s jobs) load(ctx context.Context, key string) (*Job, error) {
	entry, err := s.kv.Get(ctx, openPrefix+key)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read job %s: %w", key, err)
	}
	j := &Job{}
	if err := decode(entry, j); err != nil {
		return nil, err
	}
	j.rev, j.found = entry.Revision, true
	return j, nil
}

// find returns a job, open or closed; nil where there is none.
func (s jobs) find(ctx context.Context, key string) (*Job, error) {
	j, err := s.load(ctx, key)
	if j != nil || err != nil {
		return j, err
	}
	entry, err := s.kv.Get(ctx, receiptPrefix+key)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read receipt %s: %w", key, err)
	}
	j = &Job{}
	if err := decode(entry, j); err != nil {
		return nil, err
	}
	return j, nil
}
