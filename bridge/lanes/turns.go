package lanes

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"oneclaw/bridge/jobs"
)

// turns bounds how many turns run at the same time. The others stand in line in the order
// in which their messages were accepted, without a goroutine; a turn that waits for a
// decision or for its delivery is not counted.
type turns struct {
	mu   sync.Mutex
	free int
	line []*place // nobody stands here while one is free
}

// place is a place in the line.
type place struct {
	seq   int64
	grant func()
}

// take returns nil where a turn may run now. Otherwise it calls grant later, once, when
// the turn may run.
func (t *turns) take(seq int64, grant func()) *place {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.free > 0 {
		t.free--
		return nil
	}
	p := &place{seq, grant}
	at, _ := slices.BinarySearchFunc(t.line, p, func(a, b *place) int { return cmp.Compare(a.seq, b.seq) })
	t.line = slices.Insert(t.line, at, p)
	return p
}

// release ends a turn: the first in line may run.
func (t *turns) release() {
	t.mu.Lock()
	if len(t.line) == 0 {
		t.free++
		t.mu.Unlock()
		return
	}
	first := t.line[0]
	t.line = slices.Delete(t.line, 0, 1)
	t.mu.Unlock()
	first.grant()
}

// leave gives up a place. It reports false where that was granted already.
func (t *turns) leave(p *place) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.Index(t.line, p)
	if i >= 0 {
		t.line = slices.Delete(t.line, i, i+1)
	}
	return i >= 0
}

// takeTurn reports whether the first message of a lane may be answered now; otherwise the
// lane stands in line. It is called with the lane locked.
func (s *Lanes) takeTurn(l *Lane) bool {
	if l.place != nil {
		return false
	}
	l.place = s.turns.take(l.messages.waiting[0].Seq, func() { s.granted(l) })
	if l.place == nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l.users++
	return false
}

// granted lets a lane that stood in line go on, or the next one where there is nothing to
// do any more.
func (s *Lanes) granted(l *Lane) {
	l.mu.Lock()
	l.place = nil
	begins := !l.messages.worker && l.ready(&l.messages) && s.enter(l)
	if begins {
		l.messages.worker = true
		go s.workOn(l, &l.messages, true)
	}
	l.mu.Unlock()
	if !begins {
		s.turns.release()
	}
	s.Leave(l)
}

// AwaitTurn waits until a job that has a goroutine may run, or ctx ends.
func (s *Lanes) AwaitTurn(ctx context.Context, j *jobs.Job) {
	granted := make(chan struct{})
	if p := s.turns.take(j.Seq, func() { close(granted) }); p != nil {
		select {
		case <-granted:
		case <-ctx.Done():
			if s.turns.leave(p) {
				return
			}
		}
	}
	j.Turn = true
}

// EndTurn lets another turn run, where the job has one.
func (s *Lanes) EndTurn(j *jobs.Job) {
	if j.Turn {
		j.Turn = false
		s.turns.release()
	}
}
