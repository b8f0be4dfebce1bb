package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"oneclaw/storage"
)

// Session is the present conversation of a chat: a generation that /clear raises.
// Each generation has a log of its own, so what belongs to a cleared one can never
// reach the next.
type Session struct {
	Chat       Chat `json:"chat"`
	Generation int  `json:"generation"`
	// ClearedAt is the Seq of the /clear that began it. Messages accepted before it
	// belong to the session that it ended.
	ClearedAt int64 `json:"cleared_at,omitempty"`
	// StoppedAt is the Seq of the newest /stop that ended something. Messages accepted
	// before it are not answered any more.
	StoppedAt int64 `json:"stopped_at,omitempty"`
	// Of, where it is set, is the chat in which the conversation began, and under which
	// its log is found: that chat goes on as this one.
	Of Chat `json:"of,omitzero"`
	// Task is the id of a task, whose conversation is apart from that of the chat.
	Task string `json:"-"`

	rev storage.Revision
}

// Log is the name of the log that holds the conversation.
func (s Session) Log() string {
	if s.Task != "" {
		return taskLog(s.Chat, s.Task)
	}
	if s.Of.ID != "" {
		return logName(s.Of, s.Generation)
	}
	return logName(s.Chat, s.Generation)
}

func logName(chat Chat, generation int) string {
	return fmt.Sprintf("%s/%d", chat, generation)
}

const sessionPrefix = "session/"

// CurrentSession returns the session of a chat. One that was never cleared has
// generation 1 and is not stored.
func CurrentSession(ctx context.Context, kv storage.KV, chat Chat) (Session, error) {
	s := Session{Chat: chat, Generation: 1}
	entry, err := kv.Get(ctx, sessionPrefix+chat.String())
	if errors.Is(err, storage.ErrNotFound) {
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("read session of %s: %w", chat, err)
	}
	if err := decode(entry, &s); err != nil {
		return s, err
	}
	s.Chat, s.rev = chat, entry.Revision
	return s, nil
}

// clear begins a new session at a job, once: a job that is run again finds it done. An
// empty session is kept, only its beginning moves, so that repeated clears leave no
// trail of empty ones.
func (s Session) clear(ctx context.Context, kv storage.KV, at int64, empty bool) (Session, error) {
	if s.ClearedAt >= at {
		return s, nil
	}
	s.ClearedAt = at
	if !empty {
		s.Generation++
		s.Of = Chat{}
	}
	return s.save(ctx, kv)
}

// stop ends what was accepted before a job, for good: a restart finds it ended.
func (s Session) stop(ctx context.Context, kv storage.KV, at int64) (Session, error) {
	if s.StoppedAt >= at {
		return s, nil
	}
	s.StoppedAt = at
	return s.save(ctx, kv)
}

// overtaken returns errCleared or errStopped where a command ended a job.
func (s Session) overtaken(j *Job) error {
	switch {
	case j.Seq < s.ClearedAt:
		return errCleared
	case j.Seq < s.StoppedAt:
		return errStopped
	}
	return nil
}

func (s Session) save(ctx context.Context, kv storage.KV) (Session, error) {
	data, err := json.Marshal(s)
	if err != nil {
		return s, fmt.Errorf("encode session of %s: %w", s.Chat, err)
	}
	if s.rev, err = kv.Put(ctx, sessionPrefix+s.Chat.String(), data, s.rev); err != nil {
		return s, fmt.Errorf("store session of %s: %w", s.Chat, err)
	}
	return s, nil
}

// Owner is whose memory, files and history a message may reach: the user's in a
// direct chat, the chat's (all its threads) in a shared one.
func (m Message) Owner() string {
	if m.Direct {
		return m.Chat.Platform + ":" + m.User
	}
	return Chat{Platform: m.Chat.Platform, ID: m.Chat.ID}.String()
}

// WorkspacePath is the folder with the files of an owner.
func WorkspacePath(dataDir, owner string) string {
	return filepath.Join(dataDir, "workspaces", url.PathEscape(owner))
}

// Conversation is a session as an owner's history lists it.
type Conversation struct {
	Owner      string    `json:"owner"`
	Chat       Chat      `json:"chat"`
	Generation int       `json:"generation"`
	Task       string    `json:"task,omitempty"`
	Title      string    `json:"title"`
	Begun      time.Time `json:"begun"`
}

// Log is the name of the log that holds the conversation.
func (c Conversation) Log() string {
	return Session{Chat: c.Chat, Generation: c.Generation, Task: c.Task}.Log()
}

const conversationPrefix = "conversation/"

// conversationKey sorts by owner. A slash ends the owner, who has none in it.
func conversationKey(owner, log string) string { return conversationPrefix + owner + "/" + log }

// enter lists a conversation under its owner; doing it again changes nothing.
func (c Conversation) enter(ctx context.Context, kv storage.KV) error {
	data, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("encode conversation %s: %w", c.Log(), err)
	}
	_, err = kv.Put(ctx, conversationKey(c.Owner, c.Log()), data, storage.Absent)
	if err != nil && !errors.Is(err, storage.ErrConflict) {
		return fmt.Errorf("store conversation %s: %w", c.Log(), err)
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
		if err := json.Unmarshal(entry.Value, &c); err != nil {
			return nil, fmt.Errorf("decode %s: %w", entry.Key, err)
		}
		all = append(all, c)
	}
	return all, nil
}

// FindConversation returns a conversation of an owner by its log; storage.ErrNotFound
// where it has not begun.
func FindConversation(ctx context.Context, kv storage.KV, owner, log string) (Conversation, error) {
	var c Conversation
	entry, err := kv.Get(ctx, conversationKey(owner, log))
	if err != nil {
		return c, fmt.Errorf("find conversation %s: %w", log, err)
	}
	if err := json.Unmarshal(entry.Value, &c); err != nil {
		return c, fmt.Errorf("decode conversation %s: %w", log, err)
	}
	return c, nil
}
