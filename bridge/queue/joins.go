package queue

import (
	"context"
	"errors"
	"slices"
	"time"

	"oneclaw/internal/rescue"
)

const (
	// pieceWait is how long a turn waits for the next piece of its message, foundWait the same after a
	// restart found the piece: the platform delivers the rest only then.
	pieceWait = time.Second
	foundWait = 3 * time.Second
	// pieceStep is the interval at which that wait checks the clock: if much more time has passed, the
	// process was paused and has not read what came meanwhile, so the wait starts again. maxPauses
	// bounds how often.
	pieceStep = pieceWait / 4
	maxPauses = 20
)

// pieces returns how many of the waiting messages make up the first one.
func pieces(s *Queue, waiting []*Run) int {
	n := s.cfg.Workers.Pieces(waiting)
	for i := 1; i < n; i++ {
		if !s.cfg.Workers.Placement(waiting[i]).Joinable {
			return i
		}
	}
	return n
}

// isComplete reports whether the first waiting message waits for no more pieces: its last piece is
// there, the time is over, or something else was said.
func isComplete(s *Queue, waiting []*Run) bool {
	n := pieces(s, waiting)
	last := waiting[n-1]
	if n < len(waiting) || last.complete {
		return true
	}
	hasWords := func(j *Run) bool { return !s.cfg.Workers.Placement(j).ForwardOnly }
	return !s.cfg.Workers.Placement(last).Partial && slices.ContainsFunc(waiting[:n], hasWords)
}

// awaitPiece makes a turn wait, for a bounded time, for the piece that follows j. The queue is locked.
func awaitPiece(s *Queue, l *chatQueue, j *Run) {
	wait := pieceWait
	if j.Found {
		wait = foundWait
	}
	awaitPieceFor(s, l, j.Key(), wait, wait, maxPauses, s.cfg.Now())
}

// awaitPieceFor is awaitPiece with the remaining time; last is when the clock was last checked.
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
		// An edit may have replaced it meanwhile.
		if i := slices.IndexFunc(l.messages.waiting, func(j *Run) bool { return j.Key() == key }); i >= 0 {
			l.messages.waiting[i].complete = true
			s.wake(l)
		}
	})
}

// collect moves the pieces of a message from its queue into the job.
func collect(s *Queue, q *queue, j *Run) {
	n := pieces(s, append([]*Run{j}, q.waiting...)) - 1
	j.Pieces = append(j.Pieces, q.waiting[:n]...)
	for _, piece := range j.Pieces {
		s.members.give(piece)
	}
	q.waiting = slices.Delete(q.waiting, 0, n)
}

// Count counts messages: the pieces of one count as one.
func (s *Queue) Count(waiting []*Run) int {
	n := 0
	for ; len(waiting) > 0; n++ {
		waiting = waiting[s.cfg.Workers.Pieces(waiting):]
	}
	return n
}

// Join passes the messages that can become part of a running job to join, in their order, which makes
// them part of it. The others stay in the queue, and all stay after an error.
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
		gone = some // the job's new owner has the chat's jobs
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

// claim removes from the queue the messages that can become part of a running job: those of its sender,
// up to the first that cannot. Earlier pieces come first, and there are none if a command has ended the
// job.
func (s *Queue) claim(ctx context.Context, j *Run) (*chatQueue, []*Run) {
	chat := s.ChatOf(j)
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.byChat[chat]
	if l == nil || l.messages.running != j || l.moving || l.evictions > 0 || ctx.Err() != nil {
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

// joinable returns how many of the waiting messages can become part of a running job, and whether a
// further piece is awaited.
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

// Listen calls added, with the queue locked, when a message waits that its sender wrote soon after a
// job began to run and that can become part of it, until the job ends or stop is called. partial says
// that a further piece is awaited.
func (s *Queue) Listen(j *Run, added func(partial bool)) (stop func()) {
	chat := s.ChatOf(j)
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.byChat[chat]
	if l == nil || l.messages.running != j {
		return func() {}
	}
	l.messages.added = added
	l.notifyListener(s)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if l.messages.running == j {
			l.messages.added = nil
		}
	}
}

// notifyListener calls the listener. The queue is locked.
func (l *chatQueue) notifyListener(s *Queue) {
	q := &l.messages
	if q.added == nil || l.moving || l.evictions > 0 {
		return
	}
	n, partial := l.joinable(s, q.running)
	some := q.waiting[:n]
	if partial {
		some = q.waiting[:n+1]
	}
	isSaid := func(o *Run) bool { return s.cfg.Workers.Placement(o).FromUser }
	if slices.ContainsFunc(some, isSaid) && !slices.ContainsFunc(some, func(o *Run) bool { return !q.isSoon(o) }) {
		q.added(partial)
	}
}

// soonAfter is how long after its start a turn still counts messages as written soon after it, by the
// platform's time: a backlog does not count.
const soonAfter = 5 * time.Second

// isSoon reports whether a message was written soon after the running one began, and not before.
// Messages that a restart found were not.
func (q *queue) isSoon(o *Run) bool {
	j := q.running
	waited := max(0, q.begun.Sub(j.Accepted))
	return !o.Found && o.Seq > q.backlog && o.Message.Time.Sub(j.Message.Time) <= waited+soonAfter
}
