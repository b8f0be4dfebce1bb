package lanes

import (
	"context"
	"slices"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
)

// wake starts the workers that are missing.
func (s *Lanes) wake(l *Lane) {
	unused := false
	defer func() {
		if unused { // after the lane is unlocked
			s.turns.release()
		}
	}()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, q := range []*queue{&l.commands, &l.messages} {
		if q.worker || !l.ready(q) {
			continue
		}
		turn := q == &l.messages && s.cfg.Place(q.waiting[0]).Turn
		if turn && !s.takeTurn(l) {
			continue
		}
		if s.enter(l) {
			q.worker = true
			go s.workOn(l, q, turn)
		} else {
			unused = turn
		}
	}
}

// enter counts a worker, unless the lanes are closing.
func (s *Lanes) enter(l *Lane) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return false
	}
	l.users++
	s.running.Add(1)
	return true
}

// exit ends a worker.
func (s *Lanes) exit(l *Lane) {
	s.Leave(l)
	s.running.Done()
}

// workOn runs the jobs of a queue until there is none that may run now. Turn says that
// the first may have a turn.
func (s *Lanes) workOn(l *Lane, q *queue, turn bool) {
	defer s.exit(l)
	for {
		j, ctx := s.next(l, q, turn)
		if j == nil {
			break
		}
		turn = false
		s.cfg.Run(ctx, j)
		s.EndTurn(j)
		if j.Suspended {
			s.hold(ctx, l, j)
		} else {
			l.mu.Lock()
			q.done()
			l.mu.Unlock()
		}
		s.hush(l)
	}
	if turn {
		s.turns.release()
	}
	// The end of the commands may be what a message waited for.
	s.wake(l)
}

// next takes the first job that may run now, or ends the worker.
func (s *Lanes) next(l *Lane, q *queue, turn bool) (*jobs.Job, context.Context) {
	s.mu.Lock()
	closing := s.closing
	s.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if closing || !l.ready(q) {
		q.worker = false
		return nil, nil
	}
	j := q.waiting[0]
	if q == &l.messages && !turn && s.cfg.Place(j).Turn {
		if turn = s.takeTurn(l); !turn {
			q.worker = false
			return nil, nil
		}
	}
	q.waiting = slices.Delete(q.waiting, 0, 1)
	j.Turn = turn
	s.GiveRoom(j)
	ctx, cancel := context.WithCancelCause(s.work)
	if j.Ended != nil {
		cancel(j.Ended)
	}
	q.running, q.cancel = j, cancel
	return j, ctx
}

// hold keeps the lane for a job that ran and waits now, without a goroutine. The command
// that ends it may have come meanwhile.
func (s *Lanes) hold(ran context.Context, l *Lane, j *jobs.Job) {
	h := newHeld(j)
	s.mu.Lock()
	l.users++
	s.mu.Unlock()
	l.mu.Lock()
	l.messages.held = h
	cause := context.Cause(ran)
	l.messages.done()
	var next *jobs.Job
	if cause != nil {
		l.unhold(func(*jobs.Job) bool { return true }, cause)
	} else if len(l.messages.waiting) > 0 {
		next = l.messages.waiting[0]
	}
	l.mu.Unlock()
	if cause != nil {
		s.Leave(l)
		return
	}
	s.cfg.Holds(l, h, next)
}

// Free lets a job go on that waits for a decision, where it still does. Chat names its
// lane; it may have moved.
func (s *Lanes) Free(chat chats.Chat, key string) {
	s.mu.Lock()
	l := s.byChat[s.moves.home(chat)]
	s.mu.Unlock()
	if l == nil {
		return
	}
	l.mu.Lock()
	waits := l.unhold(func(j *jobs.Job) bool { return j.Key() == key }, nil)
	l.mu.Unlock()
	s.freed(l, waits)
}

// freed has somebody work on a job that waited for a decision.
func (s *Lanes) freed(l *Lane, waits bool) {
	if waits {
		s.wake(l)
		s.Leave(l)
	}
}

// Expel ends what is being answered for a user, platform:id, and what waits for a decision.
func (s *Lanes) Expel(user string, cause error) {
	theirs := func(j *jobs.Job) bool { return j.By() == user }
	for _, l := range s.all(nil) {
		l.mu.Lock()
		if r := l.messages.running; r != nil && theirs(r) {
			l.messages.cancel(cause)
		}
		waits := l.unhold(theirs, cause)
		l.mu.Unlock()
		s.freed(l, waits)
	}
}

// Interrupt ends the turn that runs or waits for a decision, if it was accepted before the
// given number, and takes the messages that waited before it out of the queue.
func (s *Lanes) Interrupt(l *Lane, before int64, cause error) (running bool, waiting []*jobs.Job) {
	older := func(j *jobs.Job) bool { return j.Seq < before }
	l.mu.Lock()
	if r := l.messages.running; r != nil && older(r) {
		l.messages.cancel(cause)
		running = true
	}
	l.messages.waiting = slices.DeleteFunc(l.messages.waiting, func(j *jobs.Job) bool {
		switch {
		case !older(j):
			return false
		case j.Begun:
			// Its approval is there, and it has not gone on yet.
			j.Ended, running = cause, true
			return false
		}
		s.GiveRoom(j)
		waiting = append(waiting, j)
		return true
	})
	waits := l.unhold(older, cause)
	l.mu.Unlock()
	s.freed(l, waits)
	return running || waits, waiting
}

// GoIn runs a function that needs a lane and that Close waits for. It reports false where
// the lanes are closing: the caller does it.
func (s *Lanes) GoIn(l *Lane, f func()) bool {
	if !s.enter(l) {
		return false
	}
	go func() {
		defer s.exit(l)
		f()
	}()
	return true
}
