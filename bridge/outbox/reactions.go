package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
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
	// reactionPrefix begins the keys of the records of reactions; the keys of their jobs follow.
	reactionPrefix = "sign/"
	// reactionDelay is how long a message waits before it gets a reaction. A message that is answered
	// soon, or joined with another, needs none.
	reactionDelay = 1500 * time.Millisecond
	// callTimeout bounds a request, minReactionRetry and maxReactionRetry the pauses between attempts.
	callTimeout      = 10 * time.Second
	minReactionRetry = time.Second
	maxReactionRetry = 10 * time.Minute
)

// ReactionTrackerConfig configures [ReactionTracker]. All fields are required.
type ReactionTrackerConfig struct {
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
	// Queue knows which messages wait.
	Queue Queue
}

// ReactionTracker adds and removes reactions to waiting messages in the chats that this process owns.
type ReactionTracker struct {
	cfg ReactionTrackerConfig
	// HasAny says that there may be a reaction to remove; see [ReactionTracker.End].
	HasAny atomic.Bool

	mu    sync.Mutex // guards the rest; never held while waiting
	known map[string]*reaction
}

// reaction is the reaction to one message.
type reaction struct {
	key    string
	queue  chats.Chat // the queue of the message's job
	chat   chats.Chat // the chat of the message
	id     string
	timer  *time.Timer // next step; nil for none
	pauses *retry.Backoff
	// isStored: there is a record. maybeShown: the reaction may be visible. isHandled: a goroutine
	// handles the reaction. mustRemove: the reaction has to be removed.
	isStored, maybeShown, isHandled, mustRemove bool
}

// NewReactionTracker returns a tracker without reactions.
func NewReactionTracker(cfg ReactionTrackerConfig) *ReactionTracker {
	return &ReactionTracker{cfg: cfg, known: make(map[string]*reaction)}
}

// OnWaiting records that a job waits for its turn. It does not block or call the queue.
func (s *ReactionTracker) OnWaiting(j *queue.Run) {
	if _, can := s.cfg.Platforms[j.Message.Chat.Platform].(chats.Acknowledger); !can {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := j.Key()
	if s.known[key] == nil {
		one := &reaction{key: key, queue: j.Message.Chat, chat: j.Origin(), id: j.Message.ReplyTarget(), pauses: retry.New(minReactionRetry, maxReactionRetry)}
		s.known[key] = one
		s.scheduleStep(one, reactionDelay)
	}
	s.HasAny.Store(true)
}

// scheduleStep schedules the next step of a reaction. The lock is held.
func (s *ReactionTracker) scheduleStep(one *reaction, in time.Duration) {
	one.timer = time.AfterFunc(in, func() { s.startSteps(one) })
}

// End removes the reactions to a job and to the messages that joined it. It does not block.
func (s *ReactionTracker) End(j *queue.Run) {
	var over []*reaction
	s.mu.Lock()
	for _, key := range append([]string{j.Key()}, j.Joined...) {
		if one := s.known[key]; one != nil {
			over = append(over, one)
		}
	}
	s.mu.Unlock()
	s.endAll(over)
}

func (s *ReactionTracker) endAll(over []*reaction) {
	for _, one := range over {
		s.mu.Lock()
		one.mustRemove = true
		if one.timer != nil {
			one.timer.Stop()
		}
		if !one.isStored && !one.isHandled {
			s.forget(one)
		}
		s.mu.Unlock()
		s.startSteps(one)
	}
}

// startSteps starts a goroutine for a reaction, unless the reaction has one or the bridge shuts down.
func (s *ReactionTracker) startSteps(one *reaction) {
	s.mu.Lock()
	mine := s.known[one.key] == one && !one.isHandled
	one.isHandled = one.isHandled || mine
	s.mu.Unlock()
	if mine && !s.cfg.Queue.TryGo(func() {
		if err := rescue.Do(func() error { s.runSteps(one); return nil }); err != nil {
			s.cfg.Log.Error("a reaction cannot be updated before the next start", "incident", queue.NewIncident(), "job", one.key, "err", err)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.forget(one)
		}
	}) {
		s.mu.Lock()
		one.isHandled = false // the next run of the program reads the record
		s.mu.Unlock()
	}
}

// runSteps adds or removes a reaction, and schedules the next attempt if that fails.
func (s *ReactionTracker) runSteps(one *reaction) {
	for {
		s.mu.Lock()
		over := one.mustRemove
		s.mu.Unlock()
		pause, gone := time.Duration(0), false
		switch {
		case s.cfg.Jobs.LeaseToken(one.chat) == "": // another process handles the reaction
			gone = true
		case !s.cfg.Owns(one.chat): // another process may own the chat
			pause = one.pauses.Next(0)
		case over:
			pause, gone = s.removeReaction(one)
		case !one.maybeShown:
			pause, gone = s.addReaction(one)
		}
		s.mu.Lock()
		again := one.mustRemove && !over && !gone // the removal was requested meanwhile
		if !again {
			if one.isHandled = false; gone {
				s.forget(one)
			} else if pause > 0 && s.known[one.key] == one {
				s.scheduleStep(one, pause)
			}
		}
		s.mu.Unlock()
		if !again {
			return
		}
	}
}

// addReaction adds a reaction to a message if it still waits. It returns the pause before the next
// attempt, or 0 if there is none. gone says that the reaction needs no further steps.
func (s *ReactionTracker) addReaction(one *reaction) (pause time.Duration, gone bool) {
	switch {
	case !s.cfg.Queue.IsWaiting(one.queue, one.key):
		return 0, s.deleteRecord(one)
	case !s.cfg.Sender.isUp(one.chat.Platform):
		return one.pauses.Next(0), false
	}
	if !one.isStored {
		// Any process that works on the chat may write the record, since only its key is read.
		if _, err := s.cfg.Store.Put(s.cfg.Queue.Context(), reactionPrefix+one.key, []byte("{}"), storage.Any); err != nil {
			s.cfg.Log.Warn("the record of a reaction cannot be stored", "job", one.key, "err", err)
			return 0, true
		}
		s.mu.Lock()
		one.isStored = true
		s.mu.Unlock()
	}
	failure := s.setReaction(one, true)
	switch {
	case failure == nil || failure.Outcome == chats.Unknown:
		one.maybeShown = true
		return 0, false
	case failure.Outcome == chats.Later:
		return one.retryDelay(failure), false
	}
	s.cfg.Log.Debug("a reaction cannot be added", "job", one.key, "err", failure)
	return 0, s.deleteRecord(one)
}

// removeReaction removes a reaction. Its results are those of addReaction.
func (s *ReactionTracker) removeReaction(one *reaction) (pause time.Duration, gone bool) {
	if one.maybeShown {
		failure := s.setReaction(one, false)
		if failure != nil && failure.Outcome != chats.Refused {
			s.cfg.Log.Debug("a reaction cannot be removed yet", "job", one.key, "err", failure)
			return one.retryDelay(failure), false
		}
	}
	if s.deleteRecord(one) {
		return 0, true
	}
	return one.pauses.Next(0), false
}

// retryDelay returns the pause before the next attempt: the one that the platform requests, if it does.
func (one *reaction) retryDelay(failure *chats.SendError) time.Duration {
	if failure.RetryAfter > 0 {
		return failure.RetryAfter
	}
	return one.pauses.Next(0)
}

func (s *ReactionTracker) setReaction(one *reaction, on bool) *chats.SendError {
	signer, can := s.cfg.Platforms[one.chat.Platform].(chats.Acknowledger)
	if !can {
		return &chats.SendError{Outcome: chats.Refused, Err: errors.New("outbox: the platform has no reactions")}
	}
	ctx, cancel := context.WithTimeout(s.cfg.Queue.Context(), callTimeout)
	defer cancel()
	ctx = chats.WithPrecondition(ctx, func() error { return s.checkOwnership(one) })
	err := signer.Acknowledge(ctx, one.chat, one.id, on)
	if err == nil {
		return nil
	}
	if failure, is := errors.AsType[*chats.SendError](err); is {
		return failure
	}
	return &chats.SendError{Outcome: chats.Unknown, Err: err}
}

// checkOwnership returns an error if another process may own the chat of a reaction, or has owned it since this
// process began to handle the reaction.
func (s *ReactionTracker) checkOwnership(one *reaction) error {
	s.mu.Lock()
	isKnown := s.known[one.key] == one
	s.mu.Unlock()
	if !isKnown || !s.cfg.Owns(one.chat) {
		return errMaybeLost
	}
	return nil
}

// deleteRecord deletes the record of a reaction, if there is one. It reports whether it succeeded.
func (s *ReactionTracker) deleteRecord(one *reaction) bool {
	if !one.isStored {
		return true
	}
	// Any revision: all processes write the same content.
	err := s.cfg.Store.Delete(s.cfg.Queue.Context(), reactionPrefix+one.key, storage.Any)
	if err != nil {
		s.cfg.Log.Warn("the record of a reaction cannot be deleted", "job", one.key, "err", err)
	}
	return err == nil
}

// forget removes a reaction from memory. The lock is held.
func (s *ReactionTracker) forget(one *reaction) {
	if s.known[one.key] == one {
		delete(s.known, one.key)
		s.HasAny.Store(len(s.known) > 0)
	}
}

// DropChats forgets the reactions in chats that another process now owns. It calls in without holding the
// lock, because in may wait for the queue, which calls OnWaiting while it is locked.
func (s *ReactionTracker) DropChats(in func(chats.Chat) bool) {
	s.mu.Lock()
	lost := slices.Collect(maps.Values(s.known))
	s.mu.Unlock()
	lost = slices.DeleteFunc(lost, func(one *reaction) bool { return !in(one.chat) })
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range lost {
		if one.timer != nil {
			one.timer.Stop()
		}
		s.forget(one)
	}
}

// Load reads the records of reactions in chats that this process is about to own. open are the open jobs
// there. It returns a function that removes the reactions to other messages.
func (s *ReactionTracker) Load(ctx context.Context, in func(chats.Chat) bool, open []*queue.Run) (sweep func(), err error) {
	s.DropChats(in)
	var found, over []*reaction
	for entry, err := range s.cfg.Store.List(ctx, storage.Range{Prefix: reactionPrefix}) {
		if err != nil {
			return nil, fmt.Errorf("list reactions: %w", err)
		}
		m, ok := queue.MessageOf(entry.Key, reactionPrefix)
		if !ok || !in(m.Chat) {
			continue
		}
		found = append(found, &reaction{
			key: entry.Key[len(reactionPrefix):], queue: m.Chat, chat: m.Chat, id: m.ID, pauses: retry.New(minReactionRetry, maxReactionRetry), isStored: true, maybeShown: true,
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
	s.HasAny.Store(true)
	for _, one := range found {
		s.known[one.key] = one
		if !wanted[one.key] {
			over = append(over, one)
		}
	}
	return func() { s.endAll(over) }, nil
}
