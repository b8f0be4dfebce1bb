// Package conversation keeps conversations: which one a chat has now, its log, and the end of the log
// that the model is shown. [FormatQuotes] and related functions format quoted messages for a model, so
// that the words of others cannot be mistaken for those of the user who asks.
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

// Session is the current conversation of a chat: a generation, which /clear increases. Each generation
// has a log of its own, so nothing from a cleared one can reach the next.
type Session struct {
	Chat       chats.Chat `json:"chat"`
	Generation int        `json:"generation"`
	// ClearedAt is the Seq of the /clear that began the session. Messages accepted before it belong to
	// the previous session.
	ClearedAt int64 `json:"cleared_at,omitempty"`
	// AfterID is the platform's id of the message that cleared the previous session, to which earlier
	// messages belong.
	AfterID string `json:"after,omitempty"`
	// StoppedAt is the Seq of the newest /stop that stopped something. Messages accepted before it are
	// no longer answered.
	StoppedAt int64 `json:"stopped_at,omitempty"`
	// HaltedSeq is the Seq of the newest message whose answer was stopped with a button, which stops only
	// that answer.
	HaltedSeq int64 `json:"halted,omitempty"`
	// Previous is the conversation that the newest /clear ended, as long as that can be undone. UndoneAt
	// is the Seq of the newest /undo.
	Previous *ClearedSession `json:"before,omitempty"`
	UndoneAt int64           `json:"undone_at,omitempty"`
	// OriginChat, if set, is the chat in which the conversation began and under whose name its log is
	// stored. That chat has since become this one.
	OriginChat chats.Chat `json:"of,omitzero"`
	// Task is the id of a task, whose conversation is separate from the chat's.
	Task string `json:"-"`

	Rev storage.Revision `json:"-"`
}

// ClearedSession is a conversation that a /clear has ended.
type ClearedSession struct {
	Generation int        `json:"generation"`
	OriginChat chats.Chat `json:"of,omitzero"`
	AfterID    string     `json:"after,omitempty"`
	// At is the time of the /clear.
	At time.Time `json:"at"`
}

// undoTime is how long a /clear can be undone.
const undoTime = 10 * time.Minute

// UndoUntil returns the time until which the newest /clear can be undone; the zero time if there is
// none.
func (s Session) UndoUntil() time.Time {
	if s.Previous == nil {
		return time.Time{}
	}
	return s.Previous.At.Add(undoTime)
}

// Log returns the name of the conversation's log.
func (s Session) Log() string {
	if s.Task != "" {
		return TaskLog(s.Chat, s.Task)
	}
	chat := s.Chat
	if s.OriginChat.ID != "" {
		chat = s.OriginChat
	}
	return ChatLog(chat, s.Generation)
}

// SessionPrefix begins the keys of sessions.
const SessionPrefix = "session/"

// Current returns the session of a chat to which new messages belong.
func Current(ctx context.Context, kv storage.KV, chat chats.Chat) (Session, error) {
	return SessionOf(ctx, kv, &queue.Job{Message: chats.Message{Chat: chat}, Seq: math.MaxInt64})
}

// SessionOf returns the conversation that a job belongs to: its chat's, or a task's own. A session that
// was never cleared has generation 1 and is not stored. It returns ErrCleared or ErrStopped if a command
// has ended the job. A /stop ends no task, and a /clear only background tasks. The same read says whether
// the job's sender was forgotten since; then it returns ErrStopped.
func SessionOf(ctx context.Context, kv storage.KV, j *queue.Job) (Session, error) {
	chat, isTask := j.Message.Chat, receipts.IsTask(j.Message)
	s := Session{Chat: chat, Generation: 1}
	key, sender := SessionPrefix+chat.String(), ForgottenPrefix+j.Message.SenderID()
	known, err := storage.GetMany(ctx, kv, []string{key, sender})
	if err != nil {
		return s, fmt.Errorf("read session of %s: %w", chat, err)
	}
	if isTask {
		s = Session{Chat: j.Origin(), Task: j.Message.ID}
	}
	if _, f := DecodeForgotten(known[sender]); f.Ends(j.Message, j.Seq) {
		return s, ErrStopped
	}
	entry, stored := known[key]
	if !stored || isTask && j.Message.Kind != receipts.KindBackground {
		return s, nil
	}
	ofChat := s
	if err := queue.Decode(entry, &ofChat); err != nil {
		return s, err
	}
	ofChat.Chat, ofChat.Rev = chat, entry.Revision
	if !isTask {
		s = ofChat
	}
	switch {
	case j.Seq < ofChat.ClearedAt:
		return s, ErrCleared
	case !isTask && (j.Seq < ofChat.StoppedAt || j.Seq == ofChat.HaltedSeq):
		return s, ErrStopped
	}
	return s, nil
}

// AnsweredSession returns the conversation in which a job was answered; false if its turn never began.
func AnsweredSession(ctx context.Context, kv storage.KV, r *receipts.Receipt) (Session, bool) {
	s := Session{Chat: r.Origin(), Generation: r.Turn.Generation}
	if now, err := Current(ctx, kv, r.Message.Chat); err == nil && now.Generation == r.Turn.Generation && r.From == "" {
		s = now // it may have begun in another chat
	}
	if receipts.IsTask(r.Message) {
		s.Task = r.Message.ID
		return s, true
	}
	return s, r.Turn.Generation > 0
}

// Clear begins a new session at a job. It is idempotent for a job that runs again. An empty session is
// kept and only its start moves, so that repeated clears leave no trail of empty sessions.
func (s Session) Clear(ctx context.Context, store storage.Store, by *queue.Job, empty bool) (Session, error) {
	if s.ClearedAt >= by.Seq {
		return s, nil
	}
	former := ClearedSession{Generation: s.Generation, OriginChat: s.OriginChat, AfterID: s.AfterID, At: by.Accepted}
	s.ClearedAt, s.AfterID = by.Seq, by.Message.ID
	if !empty {
		s.Previous = &former
		s.Generation++
		s.OriginChat = chats.Chat{}
	}
	return s.save(ctx, store)
}

// AtGeneration returns the session with another generation, or s for 0.
func (s Session) AtGeneration(generation int) Session {
	if generation == 0 {
		return s
	}
	s.Generation = generation
	if s.Previous != nil && s.Previous.Generation == generation {
		s.OriginChat = s.Previous.OriginChat
	}
	return s
}

// EndedLog returns the log of the conversation that a /clear has ended; the current log if it ended
// none.
func (s Session) EndedLog(by *queue.Job) string {
	if former := s.Previous; former != nil && former.At.Equal(by.Accepted) {
		s = s.AtGeneration(former.Generation)
	}
	return s.Log()
}

// Undo makes the conversation that the newest /clear ended the current one again; Previous must not be
// nil. Jobs that the /clear stopped or dropped are not resumed.
func (s Session) Undo(ctx context.Context, store storage.Store, by *queue.Job) (Session, error) {
	s.Generation, s.OriginChat, s.AfterID = s.Previous.Generation, s.Previous.OriginChat, s.Previous.AfterID
	s.Previous, s.UndoneAt = nil, by.Seq
	return s.save(ctx, store)
}

// Stop permanently stops the messages accepted before a job. This is stored, so that it holds after a
// restart.
func (s Session) Stop(ctx context.Context, store storage.Store, at int64) (Session, error) {
	if s.StoppedAt >= at {
		return s, nil
	}
	s.StoppedAt = at
	return s.save(ctx, store)
}

// StopAnswer permanently stops the answer to one message. This is stored, so that it holds after a
// restart.
func (s Session) StopAnswer(ctx context.Context, store storage.Store, seq int64) (Session, error) {
	if s.HaltedSeq >= seq { // a late press on an older answer, which is over or ends now
		return s, nil
	}
	s.HaltedSeq = seq
	return s.save(ctx, store)
}

// Cancellation causes of a running job's context, and errors of [SessionOf].
var (
	ErrCleared = errors.New("conversation: cleared")
	ErrStopped = errors.New("conversation: stopped")
)

// MovedPrefix begins the keys of chats that continue under another id. The value is the new chat.
const MovedPrefix = "moved/"

// errMoved is returned for a session whose chat continues under another id. The conversation has moved
// along, so a command in the old chat applies to the new one.
var errMoved = errors.New("conversation: the chat has moved")

// save writes a session over the revision at which it was read, unless its chat has moved.
func (s Session) save(ctx context.Context, store storage.Store) (Session, error) {
	op, err := s.putOp()
	if err != nil {
		return s, err
	}
	moved := MovedPrefix + s.Chat.WithoutThread().String()
	rev, err := store.Write(ctx, op, storage.Check(moved, storage.Absent))
	if errors.Is(err, storage.ErrConflict) {
		if _, absent := store.Get(ctx, moved); absent == nil {
			return s, fmt.Errorf("store session of %s: %w", s.Chat, errMoved)
		}
	}
	if err != nil {
		return s, fmt.Errorf("store session of %s: %w", s.Chat, err)
	}
	s.Rev = rev
	return s, nil
}

func (s Session) putOp() (storage.Op, error) {
	data, err := json.Marshal(s)
	if err != nil {
		return storage.Op{}, fmt.Errorf("encode session of %s: %w", s.Chat, err)
	}
	return storage.Put(SessionPrefix+s.Chat.String(), data, s.Rev), nil
}

// Move continues the conversation of a chat in another chat. The same write records that the chat has
// moved, so that no later command in the old chat ends a conversation that has moved already.
func Move(ctx context.Context, store storage.Store, from, to chats.Chat) error {
	old, err := Current(ctx, store, from)
	if err != nil {
		return err
	}
	session, err := Current(ctx, store, to)
	if err != nil {
		return err
	}
	if err := session.inherit(ctx, store, old); err != nil {
		return err
	}
	op, err := session.putOp()
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

// inherit gives the new chat of a moved chat the old one's conversation, unless the new chat has a
// conversation of its own: something was asked or cleared there.
func (s *Session) inherit(ctx context.Context, store storage.Store, old Session) error {
	has, err := HasBegun(ctx, store, s.Log())
	if err != nil {
		return err
	}
	begun, err := HasBegun(ctx, store, old.Log())
	if err != nil {
		return err
	}
	if s.OriginChat.ID == "" && s.Generation == 1 && s.ClearedAt == 0 && !has && begun {
		s.OriginChat, s.Generation = old.OriginChat, old.Generation
		if s.OriginChat.ID == "" {
			s.OriginChat = old.Chat
		}
	}
	s.ClearedAt, s.StoppedAt = max(s.ClearedAt, old.ClearedAt), max(s.StoppedAt, old.StoppedAt)
	s.HaltedSeq = max(s.HaltedSeq, old.HaltedSeq)
	return nil
}

// Conversation is an entry of an owner's list of conversations.
type Conversation struct {
	Owner      string     `json:"owner"`
	Chat       chats.Chat `json:"chat"`
	Generation int        `json:"generation"`
	Task       string     `json:"task,omitempty"`
	Title      string     `json:"title"`
	StartedAt  time.Time  `json:"begun"`
	// By is the user of a task in a shared chat.
	By string `json:"by,omitempty"`
	// OldestTurn is the time of the oldest remaining turn, if older ones were erased.
	OldestTurn time.Time `json:"since,omitzero"`
}

// Log returns the name of the conversation's log.
func (c Conversation) Log() string {
	return Session{Chat: c.Chat, Generation: c.Generation, Task: c.Task}.Log()
}

// ConversationPrefix begins the keys of conversations.
const ConversationPrefix = "conversation/"

// conversationKey returns a key that sorts by owner. A slash ends the owner, which contains none.
func conversationKey(owner, log string) string { return ConversationPrefix + owner + "/" + log }

// AddToList adds a conversation to its owner's list. It is idempotent.
func (c Conversation) AddToList(ctx context.Context, kv storage.KV) error {
	_, err := storage.Save(ctx, kv, conversationKey(c.Owner, c.Log()), c, storage.Absent)
	if err != nil && !errors.Is(err, storage.ErrConflict) {
		return fmt.Errorf("list conversation %s: %w", c.Log(), err)
	}
	return nil
}

// remove removes a conversation from the lists. If its entry in its owner's list no longer has the
// revision rev, it does nothing.
func (c Conversation) remove(ctx context.Context, store storage.Store, rev storage.Revision) error {
	ops := []storage.Op{storage.Delete(conversationKey(c.Owner, c.Log()), rev)}
	if c.By != "" {
		ops = append(ops, storage.Delete(askedKey(c.By, c.Log()), storage.Any))
	}
	_, err := store.Write(ctx, ops...)
	if err != nil && !errors.Is(err, storage.ErrConflict) {
		return fmt.Errorf("remove %s from the lists: %w", c.Log(), err)
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

// FindConversation returns the conversation of an owner with the given log; storage.ErrNotFound if it
// has not begun.
func FindConversation(ctx context.Context, kv storage.KV, owner, log string) (Conversation, error) {
	c, rev, err := storage.Load[Conversation](ctx, kv, conversationKey(owner, log))
	if err == nil && rev == storage.Absent {
		err = fmt.Errorf("find %s: %w", log, storage.ErrNotFound)
	}
	return c, err
}

// ChatLog returns the name of the log of a conversation in a chat.
func ChatLog(chat chats.Chat, generation int) string { return fmt.Sprintf("%s/%d", chat, generation) }

// TaskLog returns the name of the log of a task.
func TaskLog(chat chats.Chat, task string) string { return chat.String() + "/task/" + task }
