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
	seq        int64
	background bool
	grant      func()
}

// slotLine holds the waiting requests for slots, ordered by seq.
type slotLine []*slotRequest

func (l *slotLine) add(p *slotRequest) {
	at, _ := slices.BinarySearchFunc(*l, p, func(a, b *slotRequest) int { return cmp.Compare(a.seq, b.seq) })
	*l = slices.Insert(*l, at, p)
}

// hasSlot reports whether a slot is free. Background jobs get at most half of the slots.
func (q *Queue) hasSlot(background bool) bool {
	return q.freeSlots > 0 && (!background || q.freeBackground > 0)
}

// takeSlot gives a job a slot, if one is free. The queue is locked.
func (q *Queue) takeSlot(j *Run, background bool) bool {
	if !q.hasSlot(background) {
		return false
	}
	if q.freeSlots--; background {
		q.freeBackground--
	}
	j.HasSlot, j.hasBackgroundSlot = true, background
	return true
}

// ReleaseSlot frees the slot of a job, if it has one.
func (q *Queue) ReleaseSlot(j *Run) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !j.HasSlot {
		return
	}
	if q.freeSlots++; j.hasBackgroundSlot {
		q.freeBackground++
	}
	j.HasSlot, j.hasBackgroundSlot = false, false
	for {
		i := slices.IndexFunc(q.slotLine, func(p *slotRequest) bool { return q.hasSlot(p.background) })
		if i < 0 {
			return
		}
		first := q.slotLine[i]
		q.slotLine = slices.Delete(q.slotLine, i, i+1)
		first.grant()
	}
}

// AwaitSlot waits until a running job gets a slot, or until ctx ends.
func (q *Queue) AwaitSlot(ctx context.Context, j *Run) {
	granted := make(chan struct{})
	background := q.cfg.Workers.Placement(j).Background
	p := &slotRequest{j.Seq, background, func() { q.takeSlot(j, background); close(granted) }}
	q.mu.Lock()
	if q.hasSlot(background) {
		p.grant()
	} else {
		q.slotLine.add(p)
	}
	q.mu.Unlock()
	select {
	case <-granted:
	case <-ctx.Done():
		q.mu.Lock()
		defer q.mu.Unlock()
		if i := slices.Index(q.slotLine, p); i >= 0 {
			q.slotLine = slices.Delete(q.slotLine, i, i+1)
		}
	}
}
