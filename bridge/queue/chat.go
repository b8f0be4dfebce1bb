package queue

import (
	"cmp"
	"context"
	"slices"
	"time"

	"oneclaw/bridge/chats"
)

// chatQueue holds the jobs of one chat. Messages are answered one after another in the order of their
// Seq. Commands are run likewise, concurrently with messages: a command waits for no message, but a
// message waits for the commands before it.
type chatQueue struct {
	chat               chats.Chat
	messages, commands queue
	// held is the job that waits for a decision. No message behind it is answered.
	held *Suspended
	// parked is the running job while one of its tools waits for a user's answer, otherwise nil. The
	// sender of a message that comes meanwhile gets a notice.
	parked *Suspended
	// moving says that the chat is being moved. No message is answered meanwhile.
	moving bool
	// evictions counts the callers of [Queue.Evict] that have not resumed. Until they do, no job begins.
	evictions int
	// request is the request for a slot that waits; nil if there is none.
	request *slotRequest
}

// queue is a list of jobs, of which one runs at a time.
type queue struct {
	waiting []*Run
	running *Run
	cancel  context.CancelCauseFunc
	// survivesStop is [Placement.SurvivesStop] of the running job, whose placement must not be read.
	survivesStop bool
	// burstStart is the Seq of the first job that was added when the list was last empty.
	burstStart int64
	// joinedCount is the number of messages that became part of the running job.
	joinedCount int
	// startedAt is when the running job began, backlogEnd the Seq of the last job that waited then.
	// onAdded, if not nil, is called for later messages; see [Queue.OnAdded].
	startedAt  time.Time
	backlogEnd int64
	onAdded    func(partial bool)
}

// Suspended describes a job that waits for a decision. Its fields do not change during the wait.
type Suspended struct {
	job *Run
	// Chat is the chat that the job blocks.
	Chat chats.Chat
	// Cards are the tokens of the cards that ask for decisions, Tools the tools concerned.
	Cards, Tools []string
}

func newSuspended(s *Queue, l *chatQueue, j *Run) *Suspended {
	h := &Suspended{job: j, Chat: l.chat}
	h.Cards, h.Tools = s.cfg.Workers.PendingDecisions(j)
	return h
}

// Key returns the key of the job that waits.
func (h *Suspended) Key() string { return h.job.Key() }

func (l *chatQueue) current() *Run {
	if l.held != nil {
		return l.held.job
	}
	return l.messages.running
}

// cancelRunning cancels the running turn, which then no longer waits for a user's answer.
func (l *chatQueue) cancelRunning(cause error) {
	l.messages.cancel(cause)
	l.parked = nil
}

// releaseHeld queues the job that waits for a decision again, if pass accepts it. With a cause, the job
// ends when it runs. The caller wakes the chat queue.
func (l *chatQueue) releaseHeld(pass func(*Run) bool, cause error) bool {
	if l.held == nil || !pass(l.held.job) {
		return false
	}
	j := l.held.job
	l.held = nil
	j.Suspended, j.endCause = false, cause
	l.messages.waiting = append(l.messages.waiting, j)
	slices.SortFunc(l.messages.waiting, Compare)
	return true
}

// Status is the state of a chat queue.
type Status struct {
	// Waiting counts the waiting messages; pieces of one count as one. Joined counts the messages that
	// became part of the running one.
	Waiting, Joined int
	// Running says that a message is being answered or waits for a decision. AwaitsSlot says that the
	// first waiting message waits for a slot. Held is the job that waits for a decision.
	Running, AwaitsSlot bool
	Held                *Suspended
}

// Status returns the state of a chat's queue.
func (q *Queue) Status(chat chats.Chat) Status {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.byChat[chat]
	if l == nil {
		return Status{}
	}
	return Status{Waiting: q.CountMessages(l.messages.waiting), Joined: l.messages.joinedCount, Running: l.current() != nil, AwaitsSlot: l.request != nil, Held: cmp.Or(l.held, l.parked)}
}

// Park records that a running job waits for a user's answer, until Unpark is called, and frees its slot
// for another turn. It returns the suspended job, or nil if the job no longer runs or ctx, the job's, is
// cancelled, and the next message behind it, if there is one.
func (q *Queue) Park(ctx context.Context, j *Run) (h *Suspended, next *Run) {
	q.ReleaseSlot(j)
	chat := q.ChatOf(j)
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.byChat[chat]
	if l == nil || l.messages.running != j || ctx.Err() != nil {
		return nil, nil
	}
	l.parked = newSuspended(q, l, j)
	if q.closing {
		l.messages.cancel(ErrShutdown)
	}
	if len(l.messages.waiting) > 0 {
		next = l.messages.waiting[0]
	}
	return l.parked, next
}

// Unpark records that a job no longer waits for a user's answer.
func (q *Queue) Unpark(j *Run) {
	chat := q.ChatOf(j)
	q.mu.Lock()
	defer q.mu.Unlock()
	if l := q.byChat[chat]; l != nil && l.parked != nil && l.parked.job == j {
		l.parked = nil
	}
}

// HasPending reports whether a message of a chat that a command can end waits or runs, and has a number
// between after and before.
func (q *Queue) HasPending(chat chats.Chat, after, before int64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.byChat[chat]
	between := func(j *Run) bool { return j.Seq > after && j.Seq < before }
	if l == nil {
		return false
	}
	if j := l.current(); j != nil && between(j) && (j != l.messages.running || !l.messages.survivesStop) {
		return true
	}
	return slices.ContainsFunc(l.messages.waiting, func(j *Run) bool { return between(j) && !q.cfg.Workers.Placement(j).SurvivesStop })
}

// Serves reports whether a chat works on a message of a user, or begins with one next, and no other user's waits.
func (q *Queue) Serves(chat chats.Chat, user string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.byChat[chat]
	if l == nil {
		return false
	}
	j := l.current()
	if j == nil && len(l.messages.waiting) > 0 {
		j = l.messages.waiting[0]
	}
	other := func(j *Run) bool { return j.Message.SenderID() != user }
	return j != nil && !other(j) && !slices.ContainsFunc(l.messages.waiting, other)
}

// FindWaiting returns a waiting message of a chat that pass accepts, or nil, and a copy of it to change.
// As soon as FindWaiting returns, a worker may begin with the original.
func (q *Queue) FindWaiting(chat chats.Chat, pass func(*Run) bool) (waiting, copied *Run) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l := q.byChat[chat]; l != nil {
		if i := slices.IndexFunc(l.messages.waiting, pass); i >= 0 {
			return l.messages.waiting[i], l.messages.waiting[i].Clone()
		}
	}
	return nil, nil
}

// IsWaiting reports whether the message with the given key waits in a chat.
func (q *Queue) IsWaiting(chat chats.Chat, key string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.byChat[chat]
	return l != nil && slices.ContainsFunc(l.messages.waiting, func(j *Run) bool { return j.Key() == key })
}

// ReplaceWaiting replaces a waiting message by a changed copy. It returns false if it no longer waits.
func (q *Queue) ReplaceWaiting(chat chats.Chat, j, changed *Run) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.byChat[chat]
	if l == nil {
		return false
	}
	i := slices.Index(l.messages.waiting, j)
	if i >= 0 {
		changed.complete = j.complete
		l.messages.waiting[i] = changed
	}
	return i >= 0
}
