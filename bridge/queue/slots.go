package queue

import (
	"cmp"
	"context"
	"slices"
)

// A turn needs a slot to run. Turns without a slot wait in line in the order in which their messages
// were accepted, without a goroutine. A turn that waits for a decision, or for delivery, needs no slot.

// slotRequest is a request for a slot that waits in line. When a slot is free, grant is called once,
// with the queue locked, and takes the slot.
type slotRequest struct {
	seq   int64
	grant func()
}

// slotLine holds the waiting requests for slots, ordered by seq.
type slotLine []*slotRequest

func (l *slotLine) add(seq int64, grant func()) *slotRequest {
	p := &slotRequest{seq, grant}
	at, _ := slices.BinarySearchFunc(*l, p, func(a, b *slotRequest) int { return cmp.Compare(a.seq, b.seq) })
	*l = slices.Insert(*l, at, p)
	return p
}

// ReleaseSlot frees the slot of a job, if it has one.
func (q *Queue) ReleaseSlot(j *Run) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !j.HasSlot {
		return
	}
	j.HasSlot = false
	q.freeSlots++
	for q.freeSlots > 0 && len(q.slotLine) > 0 {
		first := q.slotLine[0]
		q.slotLine = slices.Delete(q.slotLine, 0, 1)
		first.grant()
	}
}

// AwaitSlot waits until a running job gets a slot, or until ctx ends.
func (q *Queue) AwaitSlot(ctx context.Context, j *Run) {
	granted := make(chan struct{})
	take := func() { q.freeSlots--; close(granted) }
	q.mu.Lock()
	var p *slotRequest
	if q.freeSlots > 0 {
		take()
	} else {
		p = q.slotLine.add(j.Seq, take)
	}
	q.mu.Unlock()
	select {
	case <-granted:
	case <-ctx.Done():
		q.mu.Lock()
		defer q.mu.Unlock()
		if i := slices.Index(q.slotLine, p); i >= 0 {
			q.slotLine = slices.Delete(q.slotLine, i, i+1)
			return
		}
	}
	j.HasSlot = true
}
