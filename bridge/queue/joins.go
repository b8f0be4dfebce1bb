package queue

import (
	"context"
	"errors"
	"slices"
	"time"

	"oneclaw/internal/rescue"
)

const (
	// pieceWait is how long a turn waits for the next piece of its message. foundWait is used instead
	// after a restart, because the platform delivers the rest of the pieces only then.
	pieceWait = time.Second
	foundWait = 3 * time.Second
	// pieceStep is the interval at which this wait checks the clock. If much more time has passed, the
	// process was paused and has not read the messages that came meanwhile, so the wait starts again, at
	// most maxPauses times.
	pieceStep = pieceWait / 4
	maxPauses = 20
)

// countPieces returns how many of the waiting messages are pieces of the first one.
func countPieces(s *Queue, waiting []*Run) int {
	n := s.cfg.Workers.CountPieces(waiting)
	for i := 1; i < n; i++ {
		if !s.cfg.Workers.Placement(waiting[i]).Joinable {
			return i
		}
	}
	return n
}

// isComplete reports whether the first waiting message needs no more pieces: its last piece has come,
// the wait is over, or another message has come.
func isComplete(s *Queue, waiting []*Run) bool {
	n := countPieces(s, waiting)
	last := waiting[n-1]
	if n < len(waiting) || last.complete {
		return true
	}
	hasWords := func(j *Run) bool { return !s.cfg.Workers.Placement(j).ForwardOnly }
	return !s.cfg.Workers.Placement(last).Partial && slices.ContainsFunc(waiting[:n], hasWords)
}

// awaitPiece delays a turn for a bounded time, until the piece after j comes. The queue is locked.
func awaitPiece(s *Queue, l *chatQueue, j *Run) {
	wait := pieceWait
	if j.Found {
		wait = foundWait
	}
	awaitPieceFor(s, l, j.Key(), wait, wait, maxPauses, s.cfg.Now())
}

// awaitPieceFor is awaitPiece for the remaining time left; last is when the clock was last checked.
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
		// An edit may have replaced the message meanwhile.
		if i := slices.IndexFunc(l.messages.waiting, func(j *Run) bool { return j.Key() == key }); i >= 0 {
			l.messages.waiting[i].complete = true
			s.wake(l)
		}
	})
}

// collectPieces moves the pieces of a message from its queue into the job.
func collectPieces(s *Queue, q *queue, j *Run) {
	n := countPieces(s, append([]*Run{j}, q.waiting...)) - 1
	j.Pieces = append(j.Pieces, q.waiting[:n]...)
	for _, piece := range j.Pieces {
		s.members.remove(piece)
	}
	q.waiting = slices.Delete(q.waiting, 0, n)
}

// CountMessages counts messages. The pieces of a message count as one.
func (q *Queue) CountMessages(waiting []*Run) int {
	n := 0
	for ; len(waiting) > 0; n++ {
		waiting = waiting[q.cfg.Workers.CountPieces(waiting):]
	}
	return n
}

// Join calls join with the messages that can become part of a running job, in their order. join makes
// them part of the job. The others stay in the queue; after an error, all stay.
func (q *Queue) Join(ctx context.Context, j *Run, join func(some []*Run) (joined, gone []*Run, err error)) error {
	l, some := q.claimJoinable(ctx, j)
	if len(some) == 0 {
		return nil
	}
	var joined, gone []*Run
	err := rescue.Do(func() (err error) { joined, gone, err = join(some); return err })
	q.mu.Lock()
	defer q.mu.Unlock()
	if errors.Is(err, ErrLost) {
		gone = some // the job's new owner has the chat's jobs
	}
	for _, o := range slices.Concat(joined, gone) {
		delete(q.open, o.Key())
	}
	l.messages.joinedCount += len(joined)
	for _, o := range some {
		if _, open := q.open[o.Key()]; open {
			l.messages.waiting = append(l.messages.waiting, o)
		}
	}
	slices.SortFunc(l.messages.waiting, Compare)
	return err
}

// waitsForCommand reports whether a message has to wait for an earlier command.
func (l *chatQueue) waitsForCommand(j *Run) bool {
	c := &l.commands
	return c.running != nil && c.running.Seq < j.Seq || len(c.waiting) > 0 && c.waiting[0].Seq < j.Seq
}

// claimJoinable removes the messages from the queue that can become part of a running job: the first
// ones, up to one that cannot. It returns none if a command has ended the job, or if the chat is
// moving.
func (q *Queue) claimJoinable(ctx context.Context, j *Run) (*chatQueue, []*Run) {
	chat := q.ChatOf(j)
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.byChat[chat]
	if l == nil || l.messages.running != j || l.moving || l.evictions > 0 || ctx.Err() != nil {
		return nil, nil
	}
	list := &l.messages
	n, _ := l.countJoinable(q, j)
	some := slices.Clone(list.waiting[:n])
	list.waiting = slices.Delete(list.waiting, 0, n)
	for _, o := range some {
		q.members.remove(o)
	}
	return l, some
}

// countJoinable returns how many of the waiting messages can become part of a running job, and whether
// another piece of the next one is awaited.
func (l *chatQueue) countJoinable(s *Queue, j *Run) (n int, partial bool) {
	waiting, step := l.messages.waiting, 0
	for ; n < len(waiting); n += step {
		o := waiting[n]
		place := s.cfg.Workers.Placement(o)
		if l.waitsForCommand(o) || !place.Joinable || !s.cfg.Workers.CanJoin(j, o) {
			break
		}
		if step = 1; !place.Partial {
			continue
		}
		if step = countPieces(s, waiting[n:]); !isComplete(s, waiting[n:]) {
			return n, true
		}
		if slices.ContainsFunc(waiting[n:n+step], func(piece *Run) bool { return !s.cfg.Workers.CanJoin(j, piece) }) {
			break
		}
	}
	return n, false
}

// OnAdded calls added, with the queue locked, when a message that can become part of a running job comes
// soon after the job began, until the job ends or stop is called. partial says that another piece of
// the message is awaited.
func (q *Queue) OnAdded(j *Run, added func(partial bool)) (stop func()) {
	chat := q.ChatOf(j)
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.byChat[chat]
	if l == nil || l.messages.running != j {
		return func() {}
	}
	l.messages.onAdded = added
	l.notifyListener(q)
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if l.messages.running == j {
			l.messages.onAdded = nil
		}
	}
}

// notifyListener calls the function passed to OnAdded, if one waits. The queue is locked.
func (l *chatQueue) notifyListener(s *Queue) {
	q := &l.messages
	if q.onAdded == nil || l.moving || l.evictions > 0 {
		return
	}
	n, partial := l.countJoinable(s, q.running)
	some := q.waiting[:n]
	if partial {
		some = q.waiting[:n+1]
	}
	isSaid := func(o *Run) bool { return s.cfg.Workers.Placement(o).FromUser }
	if slices.ContainsFunc(some, isSaid) && !slices.ContainsFunc(some, func(o *Run) bool { return !q.isSoon(o) }) {
		q.onAdded(partial)
	}
}

// soonAfter is the time after the start of a turn in which messages count as written soon after it, by
// the platform's clock.
const soonAfter = 5 * time.Second

// isSoon reports whether a message came soon after the running job began, and not before. It is false
// for messages from before a restart.
func (q *queue) isSoon(o *Run) bool {
	j := q.running
	waited := max(0, q.startedAt.Sub(j.Accepted))
	return !o.Found && o.Seq > q.backlogEnd && o.Message.Time.Sub(j.Message.Time) <= waited+soonAfter
}
