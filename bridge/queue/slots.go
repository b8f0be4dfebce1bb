package queue

import (
	"cmp"
	"context"
	"slices"
)

// A turn needs a slot to run. The others wait in line, in the order in which their messages were
// accepted, without a goroutine; a turn that waits for a decision or for its delivery needs no slot.

// slotRequest waits in line for a slot. grant is called once, with the queue locked, when a slot is
// free; the job takes the slot then.
type slotRequest struct {
	seq   int64
	grant func()
}

// line holds the requests, ordered by seq.
type line []*slotRequest

func (l *line) add(seq int64, grant func()) *slotRequest {
	p := &slotRequest{seq, grant}
	at, _ := slices.BinarySearchFunc(*l, p, func(a, b *slotRequest) int { return cmp.Compare(a.seq, b.seq) })
	*l = slices.Insert(*l, at, p)
	return p
}

// ReleaseSlot frees the slot of a job, if it has one.
func (s *Queue) ReleaseSlot(j *Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !j.HasSlot {
		return
	}
	j.HasSlot = false
	s.free++
	for s.free > 0 && len(s.line) > 0 {
		first := s.line[0]
		s.line = slices.Delete(s.line, 0, 1)
		first.grant()
	}
}

// AwaitSlot waits until a job with a goroutine has a slot, or ctx ends.
func (s *Queue) AwaitSlot(ctx context.Context, j *Run) {
	granted := make(chan struct{})
	take := func() { s.free--; close(granted) }
	s.mu.Lock()
	var p *slotRequest
	if s.free > 0 {
		take()
	} else {
		p = s.line.add(j.Seq, take)
	}
	s.mu.Unlock()
	select {
	case <-granted:
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		if i := slices.Index(s.line, p); i >= 0 {
			s.line = slices.Delete(s.line, i, i+1)
			return
		}
	}
	j.HasSlot = true
}
