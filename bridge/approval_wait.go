package bridge

import (
	"context"
	"encoding/json"
	"slices"

	"oneclaw/agent"
	"oneclaw/bridge/cards"
	"oneclaw/bridge/jobs"
	"oneclaw/bridge/wording"
)

// suspend puts on disk that a job waits for a decision. Its lane is held for it, without
// a goroutine.
func (b *Bridge) suspend(j *jobs.Job) error {
	j.State = jobs.StateWaiting
	err := b.jobs.SaveAlways(b.work, j)
	j.Suspended = err == nil
	if err != nil {
		j.State = jobs.StateOpen
		b.log.Error("a turn that waits for an approval can not be stored, trying again", "job", j.Key(), "err", err)
	}
	return err
}

// awake returns nil where there is something to do for a job: it does not wait for an
// approval, or has one. From then on a restart that finds it counts again.
func (b *Bridge) awake(ctx context.Context, j *jobs.Job) error {
	if j.State != jobs.StateWaiting {
		return nil
	}
	j.Counted = true
	moved, err := b.movedOn(ctx, j.Undecided())
	if err != nil {
		return err
	}
	if !moved {
		return agent.ErrSuspended
	}
	j.State = jobs.StateOpen
	if err := b.jobs.Save(ctx, j); err != nil {
		j.State = jobs.StateWaiting
		return err
	}
	return nil
}

// held is a job that waits for an approval, with what does not change while it does.
type held struct {
	job *jobs.Job
	// cards ask for the decisions, about these tools.
	cards, tools []string
}

func newHeld(j *jobs.Job) *held {
	h := &held{job: j, cards: j.Undecided()}
	for _, a := range j.Approvals {
		if name := wording.Code(a.Tool); a.Decision == nil && !slices.Contains(h.tools, name) {
			h.tools = append(h.tools, name)
		}
	}
	return h
}

// hold keeps the lane for a job that ran and waits now. The decision, or the command
// that ends it, may have come meanwhile.
func (b *Bridge) hold(ran context.Context, l *lane, j *jobs.Job) {
	h := newHeld(j)
	b.mu.Lock()
	l.users++
	b.mu.Unlock()
	l.mu.Lock()
	l.messages.held = h
	cause := context.Cause(ran)
	l.messages.done()
	var next *jobs.Job
	if cause != nil {
		l.unhold(cause)
	} else if len(l.messages.waiting) > 0 {
		next = l.messages.waiting[0]
	}
	l.mu.Unlock()
	if cause != nil {
		b.leave(l)
		return
	}
	ctx, cancel := context.WithTimeout(b.work, storeTimeout)
	defer cancel()
	if moved, err := b.movedOn(ctx, h.cards); moved || err != nil {
		b.free(l, j.Key())
	} else if next != nil {
		b.hint(ctx, l, next)
	}
}

// free lets a job that waits run again, where it still does.
func (b *Bridge) free(l *lane, key string) {
	l.mu.Lock()
	h := l.messages.held
	waits := h != nil && h.job.Key() == key
	if waits {
		l.unhold(nil)
	}
	l.mu.Unlock()
	if waits {
		b.wake(l)
		b.leave(l)
	}
}

// unhold lets the job that waits run again; with a cause it ends then. It is called with
// the lock held, and whoever calls it leaves the lane.
func (l *lane) unhold(cause error) {
	j := l.messages.held.job
	l.messages.held = nil
	j.Suspended, j.Ended = false, cause
	l.messages.insert(j)
}

// release lets the turn go on that waits for a card.
func (b *Bridge) release(kept *cards.Kept) {
	var r request
	if kept.Kind != kindApproval || json.Unmarshal(kept.Data, &r) != nil {
		return
	}
	b.mu.Lock()
	l := b.byChat[b.homeOf(r.Lane)]
	b.mu.Unlock()
	if l != nil {
		b.free(l, r.Job)
	}
}

// waits is the job that waits for an approval; nil where none does.
func (l *lane) waits() *held {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.messages.held
}

// hint tells somebody who writes while a decision is due that their message waits, once
// for each wait.
func (b *Bridge) hint(ctx context.Context, l *lane, j *jobs.Job) {
	held := l.waits()
	if held == nil || held.job.Seq >= j.Seq || len(held.cards) == 0 || // its own turn may wait already
		b.isCommand(j) || ofCard(j) || j.Message.Kind == jobs.KindLoad || j.Notice != "" {
		return
	}
	err := b.Post(ctx, "wait/"+held.cards[0], j.Message.Chat, cards.Card{
		ReplyTo: j.Message.ID,
		Text:    "I am waiting for the decision above. Your message is next after that; /stop ends what waits.",
	})
	if err != nil {
		b.log.Warn("nobody could be told that a message waits for an approval", "job", j.Key(), "err", err)
	}
}
