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
	// prefix is that of the records, which have the keys of jobs behind it.
	prefix = "sign/"
	// patience is how long a message waits before it gets a reaction: one that is answered soon
	// needs none, nor does what is put together from several.
	patience = 1500 * time.Millisecond
	// callTimeout bounds a request; minRetry and maxRetry the pauses between them.
	callTimeout      = 10 * time.Second
	minReactionRetry = time.Second
	maxReactionRetry = 10 * time.Minute
)

// ReactionsConfig is what [Reactions] are made of. All of it is needed.
type ReactionsConfig struct {
	// Platforms are all there are, by name.
	Platforms map[string]chats.Platform
	// Owns reports whether this process answers in a chat.
	Owns  func(chat chats.Chat) bool
	Log   *slog.Logger
	Store storage.Store
	// Jobs know in which chats another process answers.
	Jobs queue.Store
	// Sender knows whether a platform takes messages at the moment.
	Sender *Sender
	// Queue has the messages that wait.
	Queue Queue
}

// Reactions are those of the chats in which this process answers.
type Reactions struct {
	cfg ReactionsConfig
	// Any says that there may be one to end: see [Reactions.End].
	Any atomic.Bool

	mu    sync.Mutex // guards the rest; nothing is waited for while it is held
	known map[string]*reaction
}

// reaction is that of one message.
type reaction struct {
	key    string
	queue  chats.Chat // where its job waits
	chat   chats.Chat // where it stands
	id     string
	timer  *time.Timer // for what is done next; nil for nothing
	pauses *retry.Pauses
	// noted says that there is a record, shown that the reaction may be there, busy that a goroutine
	// looks after it, over that it has to go.
	noted, shown, busy, over bool
}

// NewReactions returns reactions of which none is there.
func NewReactions(cfg ReactionsConfig) *Reactions {
	return &Reactions{cfg: cfg, known: make(map[string]*reaction)}
}

// Wait is told that a job waits for its turn. It does not block, and calls no function of the queue.
func (s *Reactions) Wait(j *queue.Run) {
	if _, can := s.cfg.Platforms[j.Message.Chat.Platform].(chats.Acknowledger); !can {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := j.Key()
	if s.known[key] == nil {
		one := &reaction{key: key, queue: j.Message.Chat, chat: j.Origin(), id: j.Message.Shown(), pauses: retry.New(minReactionRetry, maxReactionRetry)}
		s.known[key] = one
		s.later(one, patience)
	}
	s.Any.Store(true)
}

// later looks after a reaction in a while. The lock is held.
func (s *Reactions) later(one *reaction, in time.Duration) {
	one.timer = time.AfterFunc(in, func() { s.look(one) })
}

// End takes the reactions of a job and of what became part of it away. It waits for nothing.
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

// look has a goroutine look after a reaction, unless one does or the bridge is ending.
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
		one.busy = false // the next run of the program finds the record
		s.mu.Unlock()
	}
}

// work does what is next for a reaction, until there is nothing, or a pause is due.
func (s *Reactions) work(one *reaction) {
	for {
		s.mu.Lock()
		over := one.over
		s.mu.Unlock()
		pause, gone := time.Duration(0), false
		switch {
		case s.cfg.Jobs.LeaseToken(one.chat) == "": // another process finds the record
			gone = true
		case !s.cfg.Owns(one.chat): // not surely this one's
			pause = one.pauses.Next(0)
		case over:
			pause, gone = s.takeAway(one)
		case !one.shown:
			pause, gone = s.put(one)
		}
		s.mu.Lock()
		again := one.over && !over && !gone // it is over since
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

// put puts a reaction on a message that waits still. It returns after what time to try again, or
// that there is nothing more to do.
func (s *Reactions) put(one *reaction) (pause time.Duration, gone bool) {
	switch {
	case !s.cfg.Queue.IsWaiting(one.queue, one.key):
		return 0, s.drop(one)
	case !s.cfg.Sender.IsUp(one.chat.Platform):
		return one.pauses.Next(0), false
	}
	if !one.noted {
		// Any process that works on the chat may write it: it says no more than that it is there.
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

// takeAway takes a reaction away. It returns as put does.
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

// pause is how long to wait before the next try: what the platform says, where it does.
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

// drop removes the record of a reaction that is not there. It reports whether none is left.
func (s *Reactions) drop(one *reaction) bool {
	if !one.noted {
		return true
	}
	// No other process has written anything in it.
	err := s.cfg.Store.Delete(s.cfg.Queue.Context(), prefix+one.key, storage.Any)
	if err != nil {
		s.cfg.Log.Warn("the record of a reaction is not removed yet", "job", one.key, "err", err)
	}
	return err == nil
}

// forget drops what is remembered of a reaction. The lock is held.
func (s *Reactions) forget(one *reaction) {
	if s.known[one.key] == one {
		delete(s.known, one.key)
		s.Any.Store(len(s.known) > 0)
	}
}

// Drop forgets the reactions of chats in which another process answers now.
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

// Load learns which reactions may be there in some chats that this process is about to answer in,
// and which jobs are open there. It returns what takes those away that belong to none.
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
