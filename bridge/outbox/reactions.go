package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/internal/rescue"
	"oneclaw/internal/retry"
	"oneclaw/storage"
)

const (
	// prefix begins the keys of the records; the keys of jobs follow.
	prefix = "sign/"
	// patience is how long a message waits before it gets a reaction: one that is answered soon needs
	// none, nor one that is joined from pieces.
	patience = 1500 * time.Millisecond
	// callTimeout bounds a request, minRetry and maxRetry the pauses between attempts.
	callTimeout      = 10 * time.Second
	minReactionRetry = time.Second
	maxReactionRetry = 10 * time.Minute
)

// ReactionsConfig configures [Reactions]. All fields are required.
type ReactionsConfig struct {
	// Platforms are all platforms, by name.
	Platforms map[string]chats.Platform
	// Owns reports whether this process owns a chat.
	Owns  func(chat chats.Chat) bool
	Log   *slog.Logger
	Store storage.Store
	// Jobs knows which chats another process owns.
	Jobs queue.Store
	// Sender knows whether a platform accepts messages now.
	Sender *Sender
	// Queue has the waiting messages.
	Queue Queue
}

// Reactions adds and removes reactions in the chats that this process owns.
type Reactions struct {
	cfg ReactionsConfig
	// Any says that there may be a reaction to end: see [Reactions.End].
	Any atomic.Bool

	mu    sync.Mutex // guards the rest; never held while waiting
	known map[string]*reaction
}

// reaction is the reaction to one message.
type reaction struct {
	key    string
	queue  chats.Chat // the queue of its job
	chat   chats.Chat // the chat of the message
	id     string
	timer  *time.Timer // next step; nil for none
	pauses *retry.Pauses
	// noted: there is a record. shown: the reaction may be there. busy: a goroutine handles it. over:
	// it has to be removed.
	noted, shown, busy, over bool
}

// NewReactions returns Reactions.
func NewReactions(cfg ReactionsConfig) *Reactions {
	return &Reactions{cfg: cfg, known: make(map[string]*reaction)}
}

// Wait notes that a job waits for its turn. It does not block, and calls no function of the queue.
func (s *Reactions) Wait(j *queue.Run) {
	if _, can := s.cfg.Platforms[j.Message.Chat.Platform].(chats.Acknowledger); !can {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := j.Key()
	if s.known[key] == nil {
		one := &reaction{key: key, queue: j.Message.Chat, chat: j.Origin(), id: j.Message.ReplyTarget(), pauses: retry.New(minReactionRetry, maxReactionRetry)}
		s.known[key] = one
		s.later(one, patience)
	}
	s.Any.Store(true)
}

// later schedules the next step of a reaction. The lock is held.
func (s *Reactions) later(one *reaction, in time.Duration) {
	one.timer = time.AfterFunc(in, func() { s.look(one) })
}

// End removes the reactions to a job and to the messages that joined it. It does not block.
func (s *Reactions) End(j *queue.Run) {
	var over []*reaction
	s.mu.Lock()
	for _, key := range append([]string{j.Key()}, j.Joined...) {
		if one := s.known[key]; one != nil {
			over = append(over, one)
		}
	}
	s.mu.Unlock()
	s.end(over)
}

func (s *Reactions) end(over []*reaction) {
	for _, one := range over {
		s.mu.Lock()
		one.over = true
		if one.timer != nil {
			one.timer.Stop()
		}
		if !one.noted && !one.busy {
			s.forget(one)
		}
		s.mu.Unlock()
		s.look(one)
	}
}

// look starts a goroutine for a reaction, unless it has one or the bridge is ending.
func (s *Reactions) look(one *reaction) {
	s.mu.Lock()
	mine := s.known[one.key] == one && !one.busy
	one.busy = one.busy || mine
	s.mu.Unlock()
	if mine && !s.cfg.Queue.TryGo(func() {
		if err := rescue.Do(func() error { s.work(one); return nil }); err != nil {
			s.cfg.Log.Error("a reaction is left to the next start", "incident", queue.NewIncident(), "job", one.key, "err", err)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.forget(one)
		}
	}) {
		s.mu.Lock()
		one.busy = false // the next run finds the record
		s.mu.Unlock()
	}
}

// work does the steps of a reaction until there are none, or a pause is due.
func (s *Reactions) work(one *reaction) {
	for {
		s.mu.Lock()
		over := one.over
		s.mu.Unlock()
		pause, gone := time.Duration(0), false
		switch {
		case s.cfg.Jobs.LeaseToken(one.chat) == "": // another process finds the record
			gone = true
		case !s.cfg.Owns(one.chat): // not certainly this one's
			pause = one.pauses.Next(0)
		case over:
			pause, gone = s.takeAway(one)
		case !one.shown:
			pause, gone = s.put(one)
		}
		s.mu.Lock()
		again := one.over && !over && !gone // ended meanwhile
		if !again {
			if one.busy = false; gone {
				s.forget(one)
			} else if pause > 0 && s.known[one.key] == one {
				s.later(one, pause)
			}
		}
		s.mu.Unlock()
		if !again {
			return
		}
	}
}

// put adds a reaction to a message that still waits. It returns the pause before the next attempt, or
// gone if nothing is left to do.
func (s *Reactions) put(one *reaction) (pause time.Duration, gone bool) {
	switch {
	case !s.cfg.Queue.IsWaiting(one.queue, one.key):
		return 0, s.drop(one)
	case !s.cfg.Sender.IsUp(one.chat.Platform):
		return one.pauses.Next(0), false
	}
	if !one.noted {
		// Any process that works on the chat may write it: the key is all that is read.
		if _, err := s.cfg.Store.Put(s.cfg.Queue.Context(), prefix+one.key, []byte("{}"), storage.Any); err != nil {
			s.cfg.Log.Warn("a message that waits gets no reaction", "job", one.key, "err", err)
			return 0, true
		}
		s.mu.Lock()
		one.noted = true
		s.mu.Unlock()
	}
	failure := s.react(one, true)
	switch {
	case failure == nil || failure.Outcome == chats.Unknown:
		one.shown = true
		return 0, false
	case failure.Outcome == chats.Later:
		return one.pause(failure), false
	}
	s.cfg.Log.Debug("a message that waits gets no reaction", "job", one.key, "err", failure)
	return 0, s.drop(one)
}

// takeAway removes a reaction. It returns as put does.
func (s *Reactions) takeAway(one *reaction) (pause time.Duration, gone bool) {
	if one.shown {
		failure := s.react(one, false)
		if failure != nil && failure.Outcome != chats.Refused {
			s.cfg.Log.Debug("a reaction is not taken away yet", "job", one.key, "err", failure)
			return one.pause(failure), false
		}
	}
	if s.drop(one) {
		return 0, true
	}
	return one.pauses.Next(0), false
}

// pause returns how long to wait before the next attempt: what the platform asks for, if it does.
func (one *reaction) pause(failure *chats.SendError) time.Duration {
	if failure.RetryAfter > 0 {
		return failure.RetryAfter
	}
	return one.pauses.Next(0)
}

func (s *Reactions) react(one *reaction, on bool) *chats.SendError {
	signer, can := s.cfg.Platforms[one.chat.Platform].(chats.Acknowledger)
	if !can {
		return &chats.SendError{Outcome: chats.Refused, Err: errors.New("outbox: the platform has none")}
	}
	ctx, cancel := context.WithTimeout(s.cfg.Queue.Context(), callTimeout)
	defer cancel()
	err := signer.Acknowledge(ctx, one.chat, one.id, on)
	if err == nil {
		return nil
	}
	if failure, is := errors.AsType[*chats.SendError](err); is {
		return failure
	}
	return &chats.SendError{Outcome: chats.Unknown, Err: err}
}

// drop deletes the record of a reaction that is not there. It reports whether it succeeded.
func (s *Reactions) drop(one *reaction) bool {
	if !one.noted {
		return true
	}
	// No other process writes other content.
	err := s.cfg.Store.Delete(s.cfg.Queue.Context(), prefix+one.key, storage.Any)
	if err != nil {
		s.cfg.Log.Warn("the record of a reaction is not removed yet", "job", one.key, "err", err)
	}
	return err == nil
}

// forget forgets a reaction. The lock is held.
func (s *Reactions) forget(one *reaction) {
	if s.known[one.key] == one {
		delete(s.known, one.key)
		s.Any.Store(len(s.known) > 0)
	}
}

// Drop forgets the reactions of chats that another process now owns.
func (s *Reactions) Drop(in func(chats.Chat) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.known {
		if in(one.chat) {
			if one.timer != nil {
				one.timer.Stop()
			}
			s.forget(one)
		}
	}
}

// Load reads which reactions may be there in chats that this process is about to own, and which jobs
// are open there. It returns a function that removes reactions without a job.
func (s *Reactions) Load(ctx context.Context, in func(chats.Chat) bool, open []*queue.Run) (sweep func(), err error) {
	s.Drop(in)
	var found, over []*reaction
	for entry, err := range s.cfg.Store.List(ctx, storage.Range{Prefix: prefix}) {
		if err != nil {
			return nil, fmt.Errorf("list reactions: %w", err)
		}
		m, ok := queue.MessageOf(entry.Key, prefix)
		if !ok || !in(m.Chat) {
			continue
		}
		found = append(found, &reaction{
			key: entry.Key[len(prefix):], queue: m.Chat, chat: m.Chat, id: m.ID, pauses: retry.New(minReactionRetry, maxReactionRetry), noted: true, shown: true,
		})
	}
	if len(found) == 0 {
		return func() {}, nil
	}
	wanted := make(map[string]bool, len(open))
	for _, j := range open {
		for _, key := range append([]string{j.Key()}, j.Joined...) {
			wanted[key] = true
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Any.Store(true)
	for _, one := range found {
		s.known[one.key] = one
		if !wanted[one.key] {
			over = append(over, one)
		}
	}
	return func() { s.end(over) }, nil
}
