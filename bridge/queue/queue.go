package queue

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/internal/rescue"
)

// Placement says in which queue a job waits, and which jobs it waits for.
type Placement struct {
	// SubQueue names a queue of its own beside that of the chat; empty for none. It begins with a slash,
	// so that it differs from all threads.
	SubQueue string
	// Barrier: the job waits for no message, and later messages wait for it.
	Barrier bool
	// NeedsSlot: the job needs one of the slots for turns, because the agent runs for it. Background:
	// jobs of this kind get at most half of the slots.
	NeedsSlot, Background bool
	// Pinned: the job stays in its chat when the chat moves.
	Pinned bool
	// Joinable: the job can become part of the turn that runs before it.
	Joinable bool
	// Partial: more pieces of the message may come, and its turn waits for them. ForwardOnly: the
	// message has only forwarded messages, or a command whose question is still to come, and its turn
	// waits for the rest.
	Partial, ForwardOnly bool
	// Overtakes: the command waits only briefly for earlier commands with Yields, and then ends them.
	Overtakes, Yields bool
	// SurvivesStop: no /stop, no /clear and no loss of access ends the job.
	SurvivesStop bool
	// FromUser: a user wrote the message. It counts among that user's waiting messages in shared chats,
	// and may be added to the question of a running turn.
	FromUser bool
	// UnknownKind: only a later version of the program, which wrote the job, can run it. Later jobs wait
	// for it.
	UnknownKind bool
}

// Workers place and run jobs. The placement of a job may change with the job, so it is not cached.
type Workers interface {
	// Placement returns where a job waits.
	Placement(j *Run) Placement
	// CountPieces returns how many of some messages, from the first on, are pieces of the first one, at
	// least 1.
	CountPieces(some []*Run) int
	// CanJoin reports whether a waiting message can become part of a running job.
	CanJoin(running, waiting *Run) bool
	// PendingDecisions returns the cards that a job waits for, and the tools concerned.
	PendingDecisions(j *Run) (cards, tools []string)
	// Work runs a job to its end, or leaves it open when work ends. ctx also ends when a command ends
	// the job.
	Work(work, ctx context.Context, j *Run)
	// OnSuspended is called when a job begins to wait for a decision, with the next message behind it, if
	// any. The decision may have come meanwhile: see [Queue.Resume].
	OnSuspended(h *Suspended, next *Run)
	// OnWaiting is called when a queued job has to wait for its slot. It must not block or call the queue.
	OnWaiting(j *Run)
	// OnSuperseded is called with waiting commands that a later one has ended; see [Placement].
	OnSuperseded(some []*Run)
}

// Config configures a [Queue].
type Config struct {
	Workers Workers
	// MaxTurns bounds the turns that run at the same time.
	MaxTurns int
	// Now is the clock.
	Now func() time.Time
	// Log is for the operator.
	Log *slog.Logger
}

// ErrShutdown is the cause with which running jobs are cancelled at shutdown: they continue after the
// next start.
var ErrShutdown = errors.New("queue: shutting down")

// Queue holds all open jobs. It has one goroutine for each running job: at most one message and one
// command of a chat; [Queue.Close] waits for all.
type Queue struct {
	cfg Config
	// jobsContext is the context of jobs, which outlive the calls that queue them.
	jobsContext context.Context //nolint:containedctx // Close ends it
	cancelJobs  context.CancelCauseFunc
	// Running counts the goroutines that Close waits for. A running job may add to it.
	Running sync.WaitGroup
	// hasMoves says that a chat has moved or is moving.
	hasMoves atomic.Bool

	mu sync.Mutex // guards the rest and all chat queues; never held while waiting
	// open maps the keys of queued and running jobs to the time of their acceptance.
	open      map[string]time.Time
	byChat    map[chats.Chat]*chatQueue
	closing   bool // no job begins any more
	members   members
	freeSlots int      // unused slots
	slotLine  slotLine // while a slot is free, only background jobs wait in it
	// freeBackground is the number of slots that more background jobs may take.
	freeBackground int
	// moved maps the old chats of completed moves to the new ones; moving maps the old and the new chat
	// of an unfinished move to the new one. ended is closed, and replaced, when a job ends that was
	// cancelled, or whose chat is moving.
	moved, moving map[chats.Chat]chats.Chat
	ended         chan struct{}
}

// New returns a queue without jobs.
func New(cfg Config) *Queue {
	s := &Queue{
		cfg: cfg, open: make(map[string]time.Time), byChat: make(map[chats.Chat]*chatQueue), members: make(members),
		freeSlots: cfg.MaxTurns, freeBackground: max(1, cfg.MaxTurns/2),
		moved: make(map[chats.Chat]chats.Chat), moving: make(map[chats.Chat]chats.Chat), ended: make(chan struct{}),
	}
	s.jobsContext, s.cancelJobs = context.WithCancelCause(context.Background())
	return s
}

// Context returns the context of jobs.
func (q *Queue) Context() context.Context { return q.jobsContext }

// WriteContext returns a context for one write that has to happen even if the jobs are cancelled. It
// ends after [WriteTimeout].
func (q *Queue) WriteContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(q.jobsContext), WriteTimeout)
}

// Close stops starting jobs. It waits up to drain for the running jobs, then cancels them, and returns
// when they have ended. It reports whether all ended in time, and true if drain is 0.
func (q *Queue) Close(drain time.Duration) bool {
	q.mu.Lock()
	q.closing = true
	for _, l := range q.byChat {
		if l.parked != nil {
			l.messages.cancel(ErrShutdown) // do not wait for the user's answer
		}
	}
	q.mu.Unlock()
	done := make(chan struct{})
	go func() { q.Running.Wait(); close(done) }()
	inTime := true
	if drain > 0 {
		timer := time.NewTimer(drain)
		defer timer.Stop()
		select {
		case <-done:
		case <-timer.C:
			inTime = false
		}
	}
	q.cancelJobs(ErrShutdown)
	<-done
	return inTime
}

// TryGo calls f in a goroutine that Close waits for. If the queue is closing, it returns false without
// calling f.
func (q *Queue) TryGo(f func()) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closing {
		q.Running.Go(func() { rescue.Go(q.cfg.Log, "background work", f) })
	}
	return !q.closing
}

// ChatOf returns the chat whose queue holds a job, with the sub-queue in the Thread, if there is one.
func (q *Queue) ChatOf(j *Run) chats.Chat {
	chat := j.Message.Chat
	chat.Thread += q.cfg.Workers.Placement(j).SubQueue
	return chat
}

// Has reports whether a job is queued or running.
func (q *Queue) Has(key string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, has := q.open[key]
	return has
}

// WithLock calls change, which may change a running job, with the queue locked.
func (q *Queue) WithLock(change func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	change()
}

// IsAnswering reports whether the message of a job is being answered in a chat.
func (q *Queue) IsAnswering(chat chats.Chat, key string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.byChat[chat]
	return l != nil && l.messages.running != nil && l.messages.running.Key() == key
}

// Remove removes a closed job.
func (q *Queue) Remove(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.open, key)
}

// Enqueue puts a job into the queue of its chat, unless it is queued already. If the chat has moved, the
// job moves along. Enqueue returns the job ahead of it that waits for a decision; nil if there is none.
func (q *Queue) Enqueue(j *Run) *Suspended {
	key := j.Key()
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, twice := q.open[key]; twice {
		q.members.remove(j)
		return nil
	}
	q.open[key] = j.Accepted
	if len(q.moved) > 0 {
		q.relocate(j)
	}
	place, chat := q.cfg.Workers.Placement(j), j.Message.Chat
	if place.FromUser && !j.Message.Direct && !j.isCounted {
		q.members.add(j)
	}
	chat.Thread += place.SubQueue
	l := q.byChat[chat]
	if l == nil {
		_, moving := q.moving[chats.Chat{Platform: chat.Platform, ID: chat.ID}]
		l = &chatQueue{chat: chat, moving: moving}
		q.byChat[chat] = l
	}
	list := &l.messages
	if place.Barrier {
		list = &l.commands
	}
	if len(list.waiting) == 0 {
		list.burstStart = j.Seq
	}
	at, _ := slices.BinarySearchFunc(list.waiting, j, Compare)
	list.waiting = slices.Insert(list.waiting, at, j)
	if (place.Partial || place.ForwardOnly) && !j.complete {
		awaitPiece(q, l, j)
	}
	if place.Overtakes {
		overtake(q, l, j)
	}
	q.wake(l)
	if place.NeedsSlot && slices.Contains(list.waiting, j) {
		q.cfg.Workers.OnWaiting(j)
	}
	if held := cmp.Or(l.held, l.parked); held != nil && !place.Barrier && Compare(held.job, j) < 0 {
		return held
	}
	return nil
}

// Occupancy is the number of waiting jobs. Burst identifies the period since none last waited.
type Occupancy struct {
	Waiting int
	Burst   int64
}

// Reserve returns how many jobs wait in the job's queue, and how many jobs of its sender wait in shared
// chats. It counts the job among the sender's, unless there are at least bound of them, because other
// messages from the sender may be accepted in other chats at the same time.
func (q *Queue) Reserve(j *Run, bound int) (there, sender Occupancy) {
	q.mu.Lock()
	defer q.mu.Unlock()
	place, chat := q.cfg.Workers.Placement(j), j.Message.Chat
	chat.Thread += place.SubQueue
	if l := q.byChat[chat]; l != nil {
		there = Occupancy{len(l.messages.waiting), l.messages.burstStart}
		if place.Barrier {
			there = Occupancy{len(l.commands.waiting), l.commands.burstStart}
		}
	}
	if place.FromUser && !j.Message.Direct {
		if known := q.members[j.Message.SenderID()]; known != nil {
			sender = *known
		}
		if sender.Waiting < bound {
			q.members.add(j)
		}
	}
	return there, sender
}

// members counts waiting jobs in shared chats by sender.
type members map[string]*Occupancy

func (m members) add(j *Run) {
	by := j.Message.SenderID()
	if m[by] == nil {
		m[by] = &Occupancy{Burst: j.Accepted.UnixNano()}
	}
	m[by].Waiting++
	j.isCounted = true
}

func (m members) remove(j *Run) {
	if !j.isCounted {
		return
	}
	j.isCounted = false
	by := j.Message.SenderID()
	if m[by].Waiting--; m[by].Waiting == 0 {
		delete(m, by)
	}
}

// Unreserve undoes the counting of Reserve or Enqueue.
func (q *Queue) Unreserve(j *Run) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.members.remove(j)
}

// Stats holds the numbers of open jobs.
type Stats struct {
	// Open counts the open jobs, and Waiting the open jobs that wait in queues.
	Open, Waiting int
	// Oldest is when the oldest open job was accepted, and OldestDue when the oldest one was that is
	// neither suspended nor behind a suspended job; zero if there is none.
	Oldest, OldestDue time.Time
}

// Stats counts the open jobs.
func (q *Queue) Stats() Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	load := Stats{Open: len(q.open)}
	suspended := make(map[string]bool)
	for _, l := range q.byChat {
		load.Waiting += len(l.messages.waiting) + len(l.commands.waiting)
		held := cmp.Or(l.held, l.parked)
		if held == nil {
			continue
		}
		suspended[held.Key()] = true
		for _, j := range l.messages.waiting {
			suspended[j.Key()] = true
		}
	}
	for key, at := range q.open {
		if load.Oldest.IsZero() || at.Before(load.Oldest) {
			load.Oldest = at
		}
		if !suspended[key] && (load.OldestDue.IsZero() || at.Before(load.OldestDue)) {
			load.OldestDue = at
		}
	}
	return load
}
