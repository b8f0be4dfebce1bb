package queue

import (
	"context"
	"errors"
	"slices"
	"time"

	"oneclaw/internal/rescue"
)

const (
	// pieceWait is how long a turn waits for the next piece of its message, and foundWait the
	// same where a restart found the piece: what the platform has of it comes only then.
	pieceWait = time.Second
	foundWait = 3 * time.Second
	// pieceStep is how often that wait looks at the clock: where much more time has passed, the
	// process was paused and has not read what came meanwhile, so the wait begins anew. maxPauses
	// bounds how often.
	pieceStep = pieceWait / 4
	maxPauses = 20
)

// pieces returns how many of the messages that wait are the first one.
func pieces(s *Queue, waiting []*Run) int {
	n := s.cfg.Workers.Pieces(waiting)
	for i := 1; i < n; i++ {
		if !s.cfg.Workers.Placement(waiting[i]).Joinable {
			return i
		}
	}
	return n
}

// isComplete reports whether nothing more is waited for of the first message that waits: its last
// piece is there, time is over, or something else was said.
func isComplete(s *Queue, waiting []*Run) bool {
	n := pieces(s, waiting)
	last := waiting[n-1]
	if n < len(waiting) || last.complete {
		return true
	}
	hasWords := func(j *Run) bool { return !s.cfg.Workers.Placement(j).Bare }
	return !s.cfg.Workers.Placement(last).Partial && slices.ContainsFunc(waiting[:n], hasWords)
}

// awaitPiece has a turn wait for the piece behind j no longer than that may take. It is called
// with the queue locked.
func awaitPiece(s *Queue, l *chatQueue, j *Run) {
	wait := pieceWait
	if j.Found {
		wait = foundWait
	}
	awaitPieceFor(s, l, j.Key(), wait, wait, maxPauses, s.cfg.Now())
}

// awaitPieceFor is awaitPiece for a wait of which so much is left; last is when that was looked at.
func awaitPieceFor(s *Queue, l *chatQueue, key string, wait, left time.Duration, pauses int, last time.Time) {
	time.AfterFunc(pieceStep, func() {
		now := s.cfg.Now()
		if left -= pieceStep; now.Sub(last) > 2*pieceStep && pauses > 0 {
			left, pauses = wait, pauses-1
		}
		if left > 0 {
			awaitPieceFor(s, l, key, wait, left, pauses, now)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		// It may have been edited meanwhile, which puts another in its place.
		if i := slices.IndexFunc(l.messages.waiting, func(j *Run) bool { return j.Key() == key }); i >= 0 {
			l.messages.waiting[i].complete = true
			s.wake(l)
		}
	})
}

// collect takes the pieces of a message out of the queue that it was taken out of.
func collect(s *Queue, q *queue, j *Run) {
	n := pieces(s, append([]*Run{j}, q.waiting...)) - 1
	j.Pieces = append(j.Pieces, q.waiting[:n]...)
	for _, piece := range j.Pieces {
		s.members.give(piece)
	}
	q.waiting = slices.Delete(q.waiting, 0, n)
}

// Count counts messages: pieces of one are one.
func (s *Queue) Count(waiting []*Run) int {
	n := 0
	for ; len(waiting) > 0; n++ {
		waiting = waiting[s.cfg.Workers.Pieces(waiting):]
	}
	return n
}

// Join gives the messages that can become part of a job that runs to join, in their order,
// which makes them part of it. The others stay where they are, and all do after an error.
func (s *Queue) Join(ctx context.Context, j *Run, join func(some []*Run) (joined, gone []*Run, err error)) error {
	l, some := s.claim(ctx, j)
	if len(some) == 0 {
		return nil
	}
	var joined, gone []*Run
	err := rescue.Do(func() (err error) { joined, gone, err = join(some); return err })
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(err, ErrLost) {
		gone = some // who has the job has the chat
	}
	for _, o := range slices.Concat(joined, gone) {
		delete(s.open, o.Key())
	}
	l.messages.joined += len(joined)
	for _, o := range some {
		if _, open := s.open[o.Key()]; open {
			l.messages.waiting = append(l.messages.waiting, o)
		}
	}
	slices.SortFunc(l.messages.waiting, Order)
	return err
}

// commanded reports whether a message waits for a command.
func (l *chatQueue) commanded(j *Run) bool {
	c := &l.commands
	return c.running != nil && c.running.Seq < j.Seq || len(c.waiting) > 0 && c.waiting[0].Seq < j.Seq
}

// claim takes the messages out of the queue that can become part of a job that runs: those of
// its sender, up to the first that cannot. What belongs before them comes first, and where a
// command has ended the job there are none.
func (s *Queue) claim(ctx context.Context, j *Run) (*chatQueue, []*Run) {
	chat := s.ChatOf(j)
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.byChat[chat]
	if l == nil || l.messages.running != j || l.moving || l.shut > 0 || ctx.Err() != nil {
		return nil, nil
	}
	q := &l.messages
	n, _ := l.joinable(s, j)
	some := slices.Clone(q.waiting[:n])
	q.waiting = slices.Delete(q.waiting, 0, n)
	for _, o := range some {
		s.members.give(o)
	}
	return l, some
}

// joinable returns how many of the messages that wait can become part of a job that runs, and
// whether more of what comes behind them is waited for.
func (l *chatQueue) joinable(s *Queue, j *Run) (n int, partial bool) {
	waiting, step := l.messages.waiting, 0
	for ; n < len(waiting); n += step {
		o := waiting[n]
		place := s.cfg.Workers.Placement(o)
		if l.commanded(o) || !place.Joinable || !s.cfg.Workers.Accepts(j, o) {
			break
		}
		if step = 1; !place.Partial {
			continue
		}
		if step = pieces(s, waiting[n:]); !isComplete(s, waiting[n:]) {
			return n, true
		}
	}
	return n, false
}

// Listen has added called, with the queue locked, when something waits that its sender wrote soon
// after a job began to run and that can become part of it, until the job ends or stop is called.
// It is told whether more of that is waited for.
func (s *Queue) Listen(j *Run, added func(partial bool)) (stop func()) {
	chat := s.ChatOf(j)
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.byChat[chat]
	if l == nil || l.messages.running != j {
		return func() {}
	}
	l.messages.added = added
	l.tellAdded(s)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if l.messages.running == j {
			l.messages.added = nil
		}
	}
}

// tellAdded tells what listens what was added. It is called with the queue locked.
func (l *chatQueue) tellAdded(s *Queue) {
	q := &l.messages
	if q.added == nil || l.moving || l.shut > 0 {
		return
	}
	n, partial := l.joinable(s, q.running)
	some := q.waiting[:n]
	if partial {
		some = q.waiting[:n+1]
	}
	isSaid := func(o *Run) bool { return s.cfg.Workers.Placement(o).Said }
	if slices.ContainsFunc(some, isSaid) && !slices.ContainsFunc(some, func(o *Run) bool { return !q.isSoon(o) }) {
		q.added(partial)
	}
}

// soonAfter is how long after a turn began a message was written soon after that, by the time of
// the platform: what piled up while nothing was received is no such message.
const soonAfter = 5 * time.Second

// isSoon reports whether a message was written soon after the one that runs began, and not before.
// What a restart found was.
func (q *queue) isSoon(o *Run) bool {
	j := q.running
	waited := max(0, q.begun.Sub(j.Accepted))
	return !o.Found && o.Seq > q.backlog && o.Message.Time.Sub(j.Message.Time) <= waited+soonAfter
}
