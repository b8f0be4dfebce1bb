package queue

import (
	"cmp"
	"context"
	"slices"
	"time"

	"oneclaw/bridge/chats"
)

// chatQueue holds the jobs of one chat. Messages are answered one after another in the order of their
// Seq, and commands likewise, concurrently: a command waits for no message, but a message waits for the
// commands before it.
type chatQueue struct {
	chat               chats.Chat
	messages, commands queue
	// held waits for a decision: no message behind it is answered.
	held *Suspended
	// parked waits for the user's answer to a question of the running turn's tool; nil if there is none.
	// The sender of a message that comes meanwhile is told so.
	parked *Suspended
	// moving says that the chat is being moved: no message is answered meanwhile.
	moving bool
	// evictions counts the callers that keep everything in it from beginning; see [Queue.Evict].
	evictions int
	// request waits for a slot; nil if the messages need none now.
	request *slotRequest
}

// queue is a list of jobs, of which one runs at a time.
type queue struct {
	waiting []*Run
	running *Run
	cancel  context.CancelCauseFunc
	// burst is the Seq of the first job that waits since the list was last empty.
	burst int64
	// joined is how many messages became part of the running one.
	joined int
	// begun is when the running job began, backlog the Seq of the last one that waited then; added, if
	// not nil, is called with later ones: see [Queue.Listen].
	begun   time.Time
	backlog int64
	added   func(partial bool)
}

// Suspended is a job that waits for a decision, with what does not change meanwhile.
type Suspended struct {
	job *Run
	// Chat is the chat that it blocks.
	Chat chats.Chat
	// Cards ask for the decisions; Tools are the tools concerned.
	Cards, Tools []string
}

func newHeld(s *Queue, l *chatQueue, j *Run) *Suspended {
	h := &Suspended{job: j, Chat: l.chat}
	h.Cards, h.Tools = s.cfg.Workers.Decisions(j)
	return h
}

// Key returns the key of its job.
func (h *Suspended) Key() string { return h.job.Key() }

func (l *chatQueue) at() *Run {
	if l.held != nil {
		return l.held.job
	}
	return l.messages.running
}

// unhold resumes the job that waits for a decision, if pass accepts it; with a cause it ends then. The
// caller wakes the chat queue.
func (l *chatQueue) unhold(pass func(*Run) bool, cause error) bool {
	if l.held == nil || !pass(l.held.job) {
		return false
	}
	j := l.held.job
	l.held = nil
	j.Suspended, j.endCause = false, cause
	l.messages.waiting = append(l.messages.waiting, j)
	slices.SortFunc(l.messages.waiting, Order)
	return true
}

// Status is the state of a chat queue.
type Status struct {
	// Waiting counts the waiting messages; pieces of one count as one. Joined counts those that became
	// part of the running one.
	Waiting, Joined int
	// Running says that a message is being answered or waits for a decision; Queues that the first
	// waiting one waits for a slot. Held is the job that waits for a decision.
	Running, Queues bool
	Held            *Suspended
}

// Status returns the state of a chat's queue.
func (s *Queue) Status(chat chats.Chat) Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.byChat[chat]
	if l == nil {
		return Status{}
	}
	return Status{Waiting: s.Count(l.messages.waiting), Joined: l.messages.joined, Running: l.at() != nil, Queues: l.request != nil, Held: cmp.Or(l.held, l.parked)}
}

// Park records that a running job waits for a user's answer, until Unpark, and returns the next message
// behind it, if any. Another turn may run meanwhile.
func (s *Queue) Park(j *Run) (h *Suspended, next *Run) {
	s.ReleaseSlot(j)
	chat := s.ChatOf(j)
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.byChat[chat]
	if l == nil || l.messages.running != j {
		return nil, nil
	}
	l.parked = newHeld(s, l, j)
	if s.closing {
		l.messages.cancel(ErrShutdown)
	}
	if len(l.messages.waiting) > 0 {
		next = l.messages.waiting[0]
	}
	return l.parked, next
}

// Unpark ends what Park began.
func (s *Queue) Unpark(j *Run) {
	chat := s.ChatOf(j)
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.byChat[chat]; l != nil {
		l.parked = nil
	}
}

// Pending reports whether a message of a chat between two numbers waits or is being answered.
func (s *Queue) Pending(chat chats.Chat, after, before int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.byChat[chat]
	between := func(j *Run) bool { return j.Seq > after && j.Seq < before }
	waits := func(j *Run) bool { return between(j) && !s.cfg.Workers.Placement(j).Unknown }
	// The running job is of a known kind, and only its worker may read it.
	return l != nil && (l.at() != nil && between(l.at()) || slices.ContainsFunc(l.messages.waiting, waits))
}

// Waiting returns a waiting message of a chat that pass accepts, nil if there is none, and a copy to
// change: as soon as it returns, the job belongs to its worker.
func (s *Queue) Waiting(chat chats.Chat, pass func(*Run) bool) (waiting, copied *Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.byChat[chat]; l != nil {
		if i := slices.IndexFunc(l.messages.waiting, pass); i >= 0 {
			return l.messages.waiting[i], l.messages.waiting[i].Clone()
		}
	}
	return nil, nil
}

// IsWaiting reports whether the message with a key waits in a chat.
func (s *Queue) IsWaiting(chat chats.Chat, key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.byChat[chat]
	return l != nil && slices.ContainsFunc(l.messages.waiting, func(j *Run) bool { return j.Key() == key })
}

// Replace replaces a waiting message by a changed copy. It returns false if it does not wait any more.
func (s *Queue) Replace(chat chats.Chat, j, changed *Run) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.byChat[chat]
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
