// Package conversation keeps conversations: which one a chat has now, its log, and the end of it that a
// turn is shown. [QuoteText] and its relatives write quoted messages for a model, so that the words of
// others cannot be taken for those of the user who asks.
package conversation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/storage"
)

// Session is the present conversation of a chat: a generation, which /clear increases. Each generation
// has a log of its own, so nothing of a cleared one can reach the next.
type Session struct {
	Chat       chats.Chat `json:"chat"`
	Generation int        `json:"generation"`
	// ClearedAt is the Seq of the /clear that began it. Messages accepted before that belong to the
	// previous session.
	ClearedAt int64 `json:"cleared_at,omitempty"`
	// After is the platform's id of the message that cleared it: earlier messages belong to the
	// previous session.
	After string `json:"after,omitempty"`
	// StoppedAt is the Seq of the newest /stop that ended something. Messages accepted before it are
	// not answered any more.
	StoppedAt int64 `json:"stopped_at,omitempty"`
	// Halted is the Seq of the message whose answer was last stopped with a button, which stops only
	// that answer.
	Halted int64 `json:"halted,omitempty"`
	// Before is the conversation that the newest /clear ended, while that can be undone; UndoneAt is
	// the Seq of the newest /undo.
	Before   *ClearedSession `json:"before,omitempty"`
	UndoneAt int64           `json:"undone_at,omitempty"`
	// Of, if set, is the chat in which the conversation began, and under which its log is stored: that
	// chat continues as this one.
	Of chats.Chat `json:"of,omitzero"`
	// Task is the id of a task, whose conversation is separate from the chat's.
	Task string `json:"-"`

	Rev storage.Revision `json:"-"`
}

// ClearedSession is a conversation that a /clear has ended.
type ClearedSession struct {
	Generation int        `json:"generation"`
	Of         chats.Chat `json:"of,omitzero"`
	After      string     `json:"after,omitempty"`
	// At is the time of the /clear.
	At time.Time `json:"at"`
}

// UndoTime is how long a /clear can be undone.
const UndoTime = 10 * time.Minute

// UndoUntil returns until when the newest /clear can be undone; the zero time if there is none.
func (s Session) UndoUntil() time.Time {
	if s.Before == nil {
		return time.Time{}
	}
	return s.Before.At.Add(UndoTime)
}

// Log returns the name of the conversation's log.
func (s Session) Log() string {
	if s.Task != "" {
		return TaskLog(s.Chat, s.Task)
	}
	chat := s.Chat
	if s.Of.ID != "" {
		chat = s.Of
	}
	return ChatLog(chat, s.Generation)
}

// SessionPrefix begins the keys of sessions.
const SessionPrefix = "session/"

// Current returns the session of a chat for new messages.
func Current(ctx context.Context, kv storage.KV, chat chats.Chat) (Session, error) {
	return Of(ctx, kv, &queue.Job{Message: chats.Message{Chat: chat}, Seq: math.MaxInt64})
}

// Of returns the conversation that a job belongs to: its chat's, or for a task its own. One that was
// never cleared has generation 1 and is not stored. The errors ErrCleared and ErrStopped say that a
// command has ended the job.
func Of(ctx context.Context, kv storage.KV, j *queue.Job) (Session, error) {
	if j.Message.Kind == receipts.KindTask {
		return Session{Chat: j.Origin(), Task: j.Message.ID}, nil
	}
	chat := j.Message.Chat
	s := Session{Chat: chat, Generation: 1}
	entry, err := kv.Get(ctx, SessionPrefix+chat.String())
	if errors.Is(err, storage.ErrNotFound) {
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("read session of %s: %w", chat, err)
	}
	if err := queue.Decode(entry, &s); err != nil {
		return s, err
	}
	s.Chat, s.Rev = chat, entry.Revision
	switch {
	case j.Seq < s.ClearedAt:
		return s, ErrCleared
	case j.Seq < s.StoppedAt, j.Seq == s.Halted:
		return s, ErrStopped
	}
	return s, nil
}

// Answered returns the conversation in which a job was answered; false if its turn never began.
func Answered(ctx context.Context, kv storage.KV, r *receipts.Receipt) (Session, bool) {
	s := Session{Chat: r.Origin(), Generation: r.Turn.Generation}
	if now, err := Current(ctx, kv, r.Message.Chat); err == nil && now.Generation == r.Turn.Generation && r.From == "" {
		s = now // it may have begun in another chat
	}
	if r.Message.Kind == receipts.KindTask {
		s.Task = r.Message.ID
		return s, true
	}
	return s, r.Turn.Generation > 0
}

// Clear begins a new session at a job. It is idempotent for a job that is run again. An empty session
// is kept and only its start moves, so that repeated clears leave no trail of empty ones.
func (s Session) Clear(ctx context.Context, store storage.Store, by *queue.Job, empty bool) (Session, error) {
	if s.ClearedAt >= by.Seq {
		return s, nil
	}
	former := ClearedSession{Generation: s.Generation, Of: s.Of, After: s.After, At: by.Accepted}
	s.ClearedAt, s.After = by.Seq, by.Message.ID
	if !empty {
		s.Before = &former
		s.Generation++
		s.Of = chats.Chat{}
	}
	return s.Save(ctx, store)
}

// In returns the session of a generation, the present one for 0.
func (s Session) In(generation int) Session {
	if generation == 0 {
		return s
	}
	s.Generation = generation
	if s.Before != nil && s.Before.Generation == generation {
		s.Of = s.Before.Of
	}
	return s
}

// EndedLog returns the log of the conversation that a /clear has ended; that of the present one if there
// was none.
func (s Session) EndedLog(by *queue.Job) string {
	if former := s.Before; former != nil && former.At.Equal(by.Accepted) {
		s = s.In(former.Generation)
	}
	return s.Log()
}

// Undo makes the conversation that the newest /clear has ended the present one again. Jobs that the
// /clear stopped or dropped stay so.
func (s Session) Undo(ctx context.Context, store storage.Store, by *queue.Job) (Session, error) {
	s.Generation, s.Of, s.After = s.Before.Generation, s.Before.Of, s.Before.After
	s.Before, s.UndoneAt = nil, by.Seq
	return s.Save(ctx, store)
}

// Stop ends, for good, what was accepted before a job: it is stored, so that a restart knows.
func (s Session) Stop(ctx context.Context, store storage.Store, at int64) (Session, error) {
	if s.StoppedAt >= at {
		return s, nil
	}
	s.StoppedAt = at
	return s.Save(ctx, store)
}

// StopOne ends, for good, the answer to one message: it is stored, so that a restart knows.
func (s Session) StopOne(ctx context.Context, store storage.Store, seq int64) (Session, error) {
	if s.Halted == seq {
		return s, nil
	}
	s.Halted = seq
	return s.Save(ctx, store)
}

// Cancellation causes of a running job's context.
var (
	ErrCleared = errors.New("conversation: cleared")
	ErrStopped = errors.New("conversation: stopped")
)

// MovedPrefix begins the keys of chats that continue under another id, which is the value.
const MovedPrefix = "moved/"

// ErrMoved says that the session belongs to a chat that continues under another id: a command there
// concerns the conversation that moved along.
var ErrMoved = errors.New("conversation: the chat has moved")

// Save writes a session over the revision at which it was read, unless its chat has moved.
func (s Session) Save(ctx context.Context, store storage.Store) (Session, error) {
	op, err := s.record()
	if err != nil {
		return s, err
	}
	moved := MovedPrefix + s.Chat.WithoutThread().String()
	rev, err := store.Write(ctx, op, storage.Check(moved, storage.Absent))
	if errors.Is(err, storage.ErrConflict) {
		if _, absent := store.Get(ctx, moved); absent == nil {
			return s, fmt.Errorf("store session of %s: %w", s.Chat, ErrMoved)
		}
	}
	if err != nil {
		return s, fmt.Errorf("store session of %s: %w", s.Chat, err)
	}
	s.Rev = rev
	return s, nil
}

func (s Session) record() (storage.Op, error) {
	data, err := json.Marshal(s)
	if err != nil {
		return storage.Op{}, fmt.Errorf("encode session of %s: %w", s.Chat, err)
	}
	return storage.Put(SessionPrefix+s.Chat.String(), data, s.Rev), nil
}

// Move continues the conversation of a chat in another one, and records in the same write that the chat
// has moved, so that no later command ends a conversation that was moved already, or one that no longer
// belongs to a chat.
func Move(ctx context.Context, store storage.Store, from, to chats.Chat) error {
	old, err := Current(ctx, store, from)
	if err != nil {
		return err
	}
	session, err := Current(ctx, store, to)
	if err != nil {
		return err
	}
	if err := session.follow(ctx, store, old); err != nil {
		return err
	}
	op, err := session.record()
	if err != nil {
		return err
	}
	where, err := json.Marshal(to)
	if err != nil {
		return fmt.Errorf("encode chat %s: %w", to, err)
	}
	_, err = store.Write(ctx, op, storage.Check(SessionPrefix+from.String(), old.Rev), storage.Put(MovedPrefix+from.String(), where, storage.Absent))
	if err != nil {
		return fmt.Errorf("store session of %s, which was %s: %w", to, from, err)
	}
	return nil
}

// follow makes the conversation of a moved chat that of its new chat, unless that has one of its own:
// something was asked or cleared there.
func (s *Session) follow(ctx context.Context, store storage.Store, old Session) error {
	has, err := HasBegun(ctx, store, s.Log())
	if err != nil {
		return err
	}
	begun, err := HasBegun(ctx, store, old.Log())
	if err != nil {
		return err
	}
	if s.Of.ID == "" && s.Generation == 1 && s.ClearedAt == 0 && !has && begun {
		s.Of, s.Generation = old.Of, old.Generation
		if s.Of.ID == "" {
			s.Of = old.Chat
		}
	}
	s.ClearedAt, s.StoppedAt = max(s.ClearedAt, old.ClearedAt), max(s.StoppedAt, old.StoppedAt)
	s.Halted = max(s.Halted, old.Halted)
	return nil
}

// Conversation is an entry of an owner's list of conversations.
type Conversation struct {
	Owner      string     `json:"owner"`
	Chat       chats.Chat `json:"chat"`
	Generation int        `json:"generation"`
	Task       string     `json:"task,omitempty"`
	Title      string     `json:"title"`
	Begun      time.Time  `json:"begun"`
	// By is the user of a task in a shared chat.
	By string `json:"by,omitempty"`
	// Since is the time of its oldest turn left, if others were erased.
	Since time.Time `json:"since,omitzero"`
}

// Log returns the name of the conversation's log.
func (c Conversation) Log() string {
	return Session{Chat: c.Chat, Generation: c.Generation, Task: c.Task}.Log()
}

// ConversationPrefix begins the keys of conversations.
const ConversationPrefix = "conversation/"

// conversationKey sorts by owner. A slash ends the owner, which contains none.
func conversationKey(owner, log string) string { return ConversationPrefix + owner + "/" + log }

// AddToLists adds a conversation to its owner's list, and to the index by start. It is idempotent.
func (c Conversation) AddToLists(ctx context.Context, store storage.Store) error {
	data, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("encode conversation %s: %w", c.Log(), err)
	}
	_, err = store.Write(ctx, append(c.begun(), storage.Put(conversationKey(c.Owner, c.Log()), data, storage.Absent))...)
	if err != nil && !errors.Is(err, storage.ErrConflict) {
		return fmt.Errorf("list conversation %s: %w", c.Log(), err)
	}
	return nil
}

// Conversations returns all conversations of an owner, in no particular order.
func Conversations(ctx context.Context, kv storage.KV, owner string) ([]Conversation, error) {
	var all []Conversation
	for entry, err := range kv.List(ctx, storage.Range{Prefix: conversationKey(owner, "")}) {
		if err != nil {
			return nil, fmt.Errorf("list conversations of %s: %w", owner, err)
		}
		var c Conversation
		if err := queue.Decode(entry, &c); err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// FindConversation returns a conversation of an owner by its log; storage.ErrNotFound if it has not
// begun.
func FindConversation(ctx context.Context, kv storage.KV, owner, log string) (Conversation, error) {
	return conversationAt(ctx, kv, conversationKey(owner, log))
}

// ChatLog returns the name of the log of a conversation in a chat.
func ChatLog(chat chats.Chat, generation int) string { return fmt.Sprintf("%s/%d", chat, generation) }

// TaskLog returns the name of the log of a task.
func TaskLog(chat chats.Chat, task string) string { return chat.String() + "/task/" + task }
