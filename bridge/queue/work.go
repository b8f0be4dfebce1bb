package queue

import (
	"context"
	"errors"
	"slices"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/internal/rescue"
)

// wake starts the jobs that may run now, and drops an idle chat queue. It is called, with the queue
// locked, whenever something has changed in one.
func (s *Queue) wake(l *chatQueue) {
	for _, q := range []*queue{&l.commands, &l.messages} {
		if l.evictions > 0 || s.closing || !s.takes(l, q) {
			continue
		}
		j := q.waiting[0]
		q.waiting = slices.Delete(q.waiting, 0, 1)
		if j.waits {
			s.members.give(j)
		}
		collect(s, q, j)
		ctx, cancel := context.WithCancelCause(s.work)
		if j.endCause != nil {
			cancel(j.endCause)
		}
		q.running, q.cancel, q.joined, q.begun, q.backlog = j, cancel, len(j.Joined), s.cfg.Now(), 0
		if n := len(q.waiting); n > 0 {
			q.backlog = q.waiting[n-1].Seq
		}
		s.Running.Add(1)
		go s.run(ctx, l, q)
	}
	l.notifyListener(s)
	busy := l.commands.running != nil || l.messages.running != nil || l.held != nil
	if !busy && len(l.commands.waiting)+len(l.messages.waiting) == 0 && l.request == nil && l.evictions == 0 {
		delete(s.byChat, l.chat)
	}
}

// takes reports whether the first job of a queue may run now. If it needs a slot, it then has one, or
// waits in line.
func (s *Queue) takes(l *chatQueue, q *queue) bool {
	if q.running != nil || len(q.waiting) == 0 {
		return false
	}
	if q == &l.commands {
		return !s.blocks(l)
	}
	j := q.waiting[0]
	place := s.cfg.Workers.Placement(j)
	if place.Unknown || l.moving || l.held != nil || l.commanded(j) || !isComplete(s, q.waiting) {
		return false
	}
	if j.HasSlot = place.NeedsSlot && s.free > 0; j.HasSlot {
		s.free--
	} else if place.NeedsSlot {
		standInLine(s, l, j)
	}
	return j.HasSlot == place.NeedsSlot
}

func standInLine(s *Queue, l *chatQueue, j *Run) {
	if l.request == nil {
		l.request = s.line.add(j.Seq, func() { l.request = nil; s.wake(l) })
	}
}

// run runs a job and then wakes its chat queue.
func (s *Queue) run(ctx context.Context, l *chatQueue, q *queue) {
	defer s.Running.Done()
	j := q.running
	rescue.Go(s.cfg.Log, "a job", func() { s.cfg.Workers.Work(s.work, ctx, j) })
	if j.HasSlot {
		s.ReleaseSlot(j)
	}
	if j.Suspended {
		rescue.Go(s.cfg.Log, "a job that waits for a decision", func() { s.hold(ctx, l, j) })
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.moving || ctx.Err() != nil {
		s.tellEnded()
	}
	q.cancel(nil)
	q.running, q.cancel, q.added = nil, nil, nil
	if q == &l.messages {
		l.parked = nil
	}
	s.wake(l)
}

// hold suspends the chat queue for a job that ran and now waits, without a goroutine. A command that
// ends it may have come meanwhile.
func (s *Queue) hold(ran context.Context, l *chatQueue, j *Run) {
	h := newHeld(s, l, j)
	var next *Run
	s.mu.Lock()
	l.held = h
	cause := context.Cause(ran)
	if cause != nil {
		l.unhold(func(*Run) bool { return true }, cause)
	} else if len(l.messages.waiting) > 0 {
		next = l.messages.waiting[0]
	}
	s.mu.Unlock()
	if cause == nil {
		s.cfg.Workers.Suspended(h, next)
	}
}

// Resume continues a job that waits for a decision, if it still does. chat names its queue; it may have
// moved.
func (s *Queue) Resume(chat chats.Chat, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.byChat[s.home(chat)]; l != nil && l.unhold(func(j *Run) bool { return j.Key() == key }, nil) {
		s.wake(l)
	}
}

// ResumeCard continues the job that waits for the decision of a card, if there is one, and returns the
// chat that it blocked.
func (s *Queue) ResumeCard(token string) (chats.Chat, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.byChat {
		if l.held == nil || !slices.Contains(l.held.Cards, token) {
			continue
		}
		chat := l.held.Chat
		l.unhold(func(*Run) bool { return true }, nil)
		s.wake(l)
		return chat, true
	}
	return chats.Chat{}, false
}

// InterruptUser ends the turns of a user, platform:id, including suspended ones.
func (s *Queue) InterruptUser(user string, cause error) {
	theirs := func(j *Run) bool { return j.Message.By() == user }
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.byChat {
		if r := l.messages.running; r != nil && theirs(r) {
			l.messages.cancel(cause)
		}
		if l.unhold(theirs, cause) {
			s.wake(l)
		}
	}
}

// InterruptJob ends the turn of one message, running or suspended, and nothing else. It returns false
// if there is none.
func (s *Queue) InterruptJob(chat chats.Chat, key string, cause error) bool {
	its := func(j *Run) bool { return j.Key() == key }
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.byChat[chat]
	if l == nil {
		return false
	}
	if r := l.messages.running; r != nil && its(r) {
		l.messages.cancel(cause)
		return true
	}
	if i := slices.IndexFunc(l.messages.waiting, its); i >= 0 {
		l.messages.waiting[i].endCause = cause
		return true
	}
	ended := l.unhold(its, cause)
	s.wake(l)
	return ended
}

// ErrSuperseded ends a command that a later /stop or /clear has waited for.
var ErrSuperseded = errors.New("queue: a later command has waited for it")

// yieldWait is how long a command waits for earlier ones that yield.
const yieldWait = time.Second

// overtake ends the commands of a chat queue that delay j for more than a moment. The queue is locked.
func overtake(s *Queue, l *chatQueue, j *Run) {
	time.AfterFunc(yieldWait, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		q := &l.commands
		if s.closing || !slices.Contains(q.waiting, j) {
			return
		}
		older := func(o *Run) bool { return o.Seq < j.Seq && s.cfg.Workers.Placement(o).Yields }
		var gone []*Run
		q.waiting = slices.DeleteFunc(q.waiting, func(o *Run) bool {
			if !older(o) {
				return false
			}
			s.members.give(o)
			gone = append(gone, o)
			return true
		})
		if j.Dropped += len(gone); q.running != nil && older(q.running) {
			j.Interrupted = true
			q.cancel(ErrSuperseded)
		}
		if len(gone) > 0 {
			s.Running.Go(func() { rescue.Go(s.cfg.Log, "commands that were ended", func() { s.cfg.Workers.Superseded(gone) }) })
		}
		s.wake(l)
	})
}

// Interrupt ends the running or suspended turn of a chat, if it was accepted before the given number,
// and removes earlier waiting messages from the queue.
func (s *Queue) Interrupt(chat chats.Chat, before int64, cause error) (running bool, waiting []*Run) {
	older := func(j *Run) bool { return j.Seq < before && !s.cfg.Workers.Placement(j).Unknown }
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.byChat[chat]
	if l == nil {
		return false, nil
	}
	if r := l.messages.running; r != nil && r.Seq < before { // of a known kind; only its worker may read it
		l.messages.cancel(cause)
		l.parked, running = nil, true
	}
	l.messages.waiting = slices.DeleteFunc(l.messages.waiting, func(j *Run) bool {
		switch {
		case !older(j):
			return false
		case !j.Unstarted:
			// Its approval was decided, and it has not resumed yet.
			j.endCause, running = cause, true
			return false
		}
		s.members.give(j)
		waiting = append(waiting, j)
		return true
	})
	running = l.unhold(older, cause) || running
	s.wake(l)
	return running, waiting
}
