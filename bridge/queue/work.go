package queue

import (
	"context"
	"errors"
	"slices"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/internal/rescue"
)

// wake starts the jobs of a chat queue that may run now, and removes the chat queue if it is idle. It is
// called, with the queue locked, after each change of a chat queue.
func (q *Queue) wake(l *chatQueue) {
	for _, list := range []*queue{&l.commands, &l.messages} {
		if l.evictions > 0 || q.closing || !q.tryStart(l, list) {
			continue
		}
		j := list.waiting[0]
		list.waiting = slices.Delete(list.waiting, 0, 1)
		if j.isCounted {
			q.members.remove(j)
		}
		collectPieces(q, list, j)
		ctx, cancel := context.WithCancelCause(q.jobsContext)
		if j.endCause != nil {
			cancel(j.endCause)
		}
		list.running, list.cancel, list.joinedCount, list.startedAt, list.backlogEnd = j, cancel, len(j.Joined), q.cfg.Now(), 0
		list.survivesStop = q.cfg.Workers.Placement(j).SurvivesStop
		if n := len(list.waiting); n > 0 {
			list.backlogEnd = list.waiting[n-1].Seq
		}
		q.Running.Add(1)
		go q.run(ctx, l, list)
	}
	l.notifyListener(q)
	busy := l.commands.running != nil || l.messages.running != nil || l.held != nil
	if !busy && len(l.commands.waiting)+len(l.messages.waiting) == 0 && l.request == nil && l.evictions == 0 {
		delete(q.byChat, l.chat)
	}
}

// tryStart reports whether the first job of a queue may run now. If the job needs a slot, tryStart takes
// one, or requests one and returns false.
func (q *Queue) tryStart(l *chatQueue, list *queue) bool {
	if list.running != nil || len(list.waiting) == 0 {
		return false
	}
	if list == &l.commands {
		return !q.mustAwaitMove(l)
	}
	j := list.waiting[0]
	place := q.cfg.Workers.Placement(j)
	if place.UnknownKind || l.moving || l.held != nil || l.waitsForCommand(j) || !isComplete(q, list.waiting) {
		return false
	}
	if !place.NeedsSlot || j.endCause != nil || q.takeSlot(j, place.Background) { // a job that is ended needs no slot
		return true
	}
	requestSlot(q, l, j, place.Background)
	return false
}

func requestSlot(q *Queue, l *chatQueue, j *Run, background bool) {
	if l.request == nil {
		l.request = &slotRequest{j.Seq, background, func() { l.request = nil; q.wake(l) }}
		q.slotLine.add(l.request)
	}
}

// run runs a job and then wakes its chat queue.
func (q *Queue) run(ctx context.Context, l *chatQueue, list *queue) {
	defer q.Running.Done()
	j := list.running
	rescue.Go(q.cfg.Log, "a job", func() { q.cfg.Workers.Work(q.jobsContext, ctx, j) })
	if j.HasSlot {
		q.ReleaseSlot(j)
	}
	if j.Suspended {
		rescue.Go(q.cfg.Log, "a job that waits for a decision", func() { q.suspend(ctx, l, j) })
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if l.moving || ctx.Err() != nil {
		q.notifyEnded()
	}
	list.cancel(nil)
	list.running, list.cancel, list.onAdded = nil, nil, nil
	if list == &l.messages {
		l.parked = nil
	}
	q.wake(l)
}

// suspend blocks a chat queue while a job that ran waits for a decision, without a goroutine. If a
// command has ended the job meanwhile, the job is queued again at once.
func (q *Queue) suspend(ran context.Context, l *chatQueue, j *Run) {
	h := newSuspended(q, l, j)
	var next *Run
	q.mu.Lock()
	l.held = h
	cause := context.Cause(ran)
	if cause != nil {
		l.releaseHeld(func(*Run) bool { return true }, cause)
	} else if len(l.messages.waiting) > 0 {
		next = l.messages.waiting[0]
	}
	q.mu.Unlock()
	if cause == nil {
		q.cfg.Workers.OnSuspended(h, next)
	}
}

// Resume continues a job if it waits for a decision. chat names the queue of the job, and may have moved
// since.
func (q *Queue) Resume(chat chats.Chat, key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l := q.byChat[q.currentChat(chat)]; l != nil && l.releaseHeld(func(j *Run) bool { return j.Key() == key }, nil) {
		q.wake(l)
	}
}

// ResumeCard continues the job that waits for the decision of a card, if there is one.
func (q *Queue) ResumeCard(token string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range q.byChat {
		if l.held == nil || !slices.Contains(l.held.Cards, token) {
			continue
		}
		l.releaseHeld(func(*Run) bool { return true }, nil)
		q.wake(l)
		return
	}
}

// InterruptJob cancels one message, whether it runs, is suspended or waits, and no other job. It returns
// false if the queue does not have the message.
func (q *Queue) InterruptJob(chat chats.Chat, key string, cause error) bool {
	its := func(j *Run) bool { return j.Key() == key }
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.byChat[chat]
	if l == nil {
		return false
	}
	if r := l.messages.running; r != nil && its(r) {
		l.cancelRunning(cause)
		return true
	}
	if i := slices.IndexFunc(l.messages.waiting, its); i >= 0 {
		l.messages.waiting[i].endCause = cause
		q.wake(l)
		return true
	}
	ended := l.releaseHeld(its, cause)
	q.wake(l)
	return ended
}

// ErrSuperseded is the cause with which a command is cancelled that delays a later /stop or /clear.
var ErrSuperseded = errors.New("queue: superseded by a later command")

// yieldWait is how long a command with Overtakes waits for earlier commands with Yields.
const yieldWait = time.Second

// overtake cancels the commands with Yields that delay j for more than yieldWait. The queue is locked.
func overtake(s *Queue, l *chatQueue, j *Run) {
	time.AfterFunc(yieldWait, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		q := &l.commands
		if s.closing || !slices.Contains(q.waiting, j) {
			return
		}
		older := func(o *Run) bool { return o.Seq < j.Seq && s.cfg.Workers.Placement(o).Yields }
		var gone []*Run
		q.waiting = slices.DeleteFunc(q.waiting, func(o *Run) bool {
			if !older(o) {
				return false
			}
			s.members.remove(o)
			gone = append(gone, o)
			return true
		})
		if j.Dropped += len(gone); q.running != nil && older(q.running) {
			j.Interrupted = true
			q.cancel(ErrSuperseded)
		}
		if len(gone) > 0 {
			s.Running.Go(func() { rescue.Go(s.cfg.Log, "commands that were ended", func() { s.cfg.Workers.OnSuperseded(gone) }) })
		}
		s.wake(l)
	})
}

// Interrupt cancels the running or suspended turn of a chat, if its number is lower than before, and
// removes waiting messages with lower numbers from the queue, except jobs that survive it. running
// reports whether there was a turn; waiting are the removed messages.
func (q *Queue) Interrupt(chat chats.Chat, before int64, cause error) (running bool, waiting []*Run) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l := q.byChat[chat]; l != nil {
		running, waiting = q.interrupt(l, func(j *Run) bool { return j.Seq < before }, cause)
	}
	return running, waiting
}

// InterruptAll is Interrupt for the jobs of all chats that pass accepts.
func (q *Queue) InterruptAll(pass func(*Run) bool, cause error) (waiting []*Run) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range q.byChat {
		_, removed := q.interrupt(l, pass, cause)
		waiting = append(waiting, removed...)
	}
	return waiting
}

func (q *Queue) interrupt(l *chatQueue, pass func(*Run) bool, cause error) (running bool, waiting []*Run) {
	ends := func(j *Run) bool { return pass(j) && !q.cfg.Workers.Placement(j).SurvivesStop }
	if r := l.messages.running; r != nil && pass(r) && !l.messages.survivesStop {
		l.cancelRunning(cause)
		running = true
	}
	l.messages.waiting = slices.DeleteFunc(l.messages.waiting, func(j *Run) bool {
		switch {
		case !ends(j):
			return false
		case !j.Unstarted:
			// The approval of the job was decided, and the job has not resumed yet.
			j.endCause, running = cause, true
			return false
		}
		q.members.remove(j)
		waiting = append(waiting, j)
		return true
	})
	running = l.releaseHeld(ends, cause) || running
	q.wake(l)
	return running, waiting
}
