package lanes

import (
	"context"
	"errors"
	"slices"
	"time"

	"oneclaw/bridge/jobs"
	"oneclaw/internal/rescue"
)

const (
	// pieceWait is how long a turn waits for the next piece of its message, and foundWait the
	// same where a restart found the piece: what the platform has of it comes only then.
	pieceWait = time.Second
	foundWait = 3 * time.Second
	// ripenStep is how often that wait looks at the clock: where much more time has passed, the
	// process was paused and has not read what came meanwhile, so the wait begins anew. maxPauses
	// bounds how often.
	ripenStep = pieceWait / 4
	maxPauses = 20
	// maxPieces bounds those that become one message.
	maxPieces = 32
)

// pieces returns how many of the messages that wait are the first one: all that continue it.
func pieces(s *Lanes, waiting []*jobs.Job) int {
	n := 1
	for n < min(len(waiting), maxPieces) && jobs.Continues(waiting[n-1], waiting[n]) && s.cfg.Place(waiting[n]).Joins {
		n++
	}
	return n
}

// whole reports whether nothing more is waited for of the first message that waits: its last
// piece is there, time is over, or something else was said.
func whole(s *Lanes, waiting []*jobs.Job) bool {
	n := pieces(s, waiting)
	last := waiting[n-1]
	return n < len(waiting) || n == maxPieces || last.Ripe || !s.cfg.Place(last).Loose
}

// ripen has a turn wait for the piece behind j no longer than that may take. It is called
// with the lanes locked.
func ripen(s *Lanes, l *lane, j *jobs.Job) {
	wait := pieceWait
	if j.Found {
		wait = foundWait
	}
	ripenIn(s, l, j.Key(), wait, wait, maxPauses, s.cfg.Now())
}

// ripenIn is ripen for a wait of which so much is left; last is when that was looked at.
func ripenIn(s *Lanes, l *lane, key string, wait, left time.Duration, pauses int, last time.Time) {
	time.AfterFunc(ripenStep, func() {
		now := s.cfg.Now()
		if left -= ripenStep; now.Sub(last) > 2*ripenStep && pauses > 0 {
			left, pauses = wait, pauses-1
		}
		if left > 0 {
			ripenIn(s, l, key, wait, left, pauses, now)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		// It may have been edited meanwhile, which puts another in its place.
		if i := slices.IndexFunc(l.messages.waiting, func(j *jobs.Job) bool { return j.Key() == key }); i >= 0 {
			l.messages.waiting[i].Ripe = true
			s.wake(l)
		}
	})
}

// collect takes the pieces of a message out of the queue that it was taken out of.
func collect(s *Lanes, q *queue, j *jobs.Job) {
	n := pieces(s, append([]*jobs.Job{j}, q.waiting...)) - 1
	j.Pieces = append(j.Pieces, q.waiting[:n]...)
	for _, piece := range j.Pieces {
		s.members.give(piece)
	}
	q.waiting = slices.Delete(q.waiting, 0, n)
}

// Count counts messages: pieces of one are one.
func Count(waiting []*jobs.Job) int {
	n := 0
	for i, j := range waiting {
		if i == 0 || !jobs.Continues(waiting[i-1], j) {
			n++
		}
	}
	return n
}

// Joins lets messages become part of the turn that runs before them.
type Joins struct{ *Lanes }

// Join gives the messages that can become part of a job that runs to join, in their order,
// which makes them part of it. The others stay where they are, and all do after an error.
func (s Joins) Join(ctx context.Context, j *jobs.Job, join func(some []*jobs.Job) (joined, gone []*jobs.Job, err error)) error {
	l, some := s.claim(ctx, j)
	if len(some) == 0 {
		return nil
	}
	var joined, gone []*jobs.Job
	err := rescue.Do(func() (err error) { joined, gone, err = join(some); return err })
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(err, jobs.ErrLost) {
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
	slices.SortFunc(l.messages.waiting, jobs.Order)
	return err
}

// commanded reports whether a message waits for a command.
func (l *lane) commanded(j *jobs.Job) bool {
	c := &l.commands
	return c.running != nil && c.running.Seq < j.Seq || len(c.waiting) > 0 && c.waiting[0].Seq < j.Seq
}

// claim takes the messages out of the queue that can become part of a job that runs: those of
// its sender, up to the first that cannot. What belongs before them comes first, and where a
// command has ended the job there are none.
func (s Joins) claim(ctx context.Context, j *jobs.Job) (*lane, []*jobs.Job) {
	chat := s.Lane(j)
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.byChat[chat]
	if l == nil || l.messages.running != j || l.moving || l.shut > 0 || ctx.Err() != nil {
		return nil, nil
	}
	q := &l.messages
	n, step := 0, 0
	for ; n < len(q.waiting); n += step {
		o := q.waiting[n]
		place := s.cfg.Place(o)
		if l.commanded(o) || !place.Joins || !j.Takes(o) {
			break
		}
		if step = 1; !place.Loose {
			continue
		}
		if step = pieces(s.Lanes, q.waiting[n:]); !whole(s.Lanes, q.waiting[n:]) {
			break
		}
	}
	some := slices.Clone(q.waiting[:n])
	q.waiting = slices.Delete(q.waiting, 0, n)
	for _, o := range some {
		s.members.give(o)
	}
	return l, some
}
