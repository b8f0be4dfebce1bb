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

// Placement says where a job waits, and for what.
type Placement struct {
	// SubQueue names a queue beside that of the chat; empty for none. It begins with a slash, unlike
	// any thread of a platform.
	SubQueue string
	// Barrier: it waits for no message, and later messages wait for it.
	Barrier bool
	// NeedsSlot: the agent runs for it.
	NeedsSlot bool
	// Pinned: it stays in its chat when that moves.
	Pinned bool
	// Joinable: it can become part of the turn that runs before it.
	Joinable bool
	// Partial: more pieces of it may come, for which its turn waits. Bare: the same for a message that
	// only forwards, until a text comes with it.
	Partial, ForwardOnly bool
	// Overtakes: it waits only a moment for earlier commands that yield, and then ends them.
	Overtakes, Yields bool
	// FromUser: a user said it. It counts among that user's waiting messages in shared chats, and if a turn
	// is running, it may be added to its question.
	FromUser bool
	// Unknown: a later version of the program wrote it, and only that can run it: until then, later
	// jobs wait.
	Unknown bool
}

// Workers place and run jobs. Their answers about a job may change with it: they are asked each time.
type Workers interface {
	// Placement returns where a job waits.
	Placement(j *Run) Placement
	// Pieces returns how many of some messages make up the first one.
	Pieces(some []*Run) int
	// Accepts reports whether a waiting message can become part of a running job.
	Accepts(running, waiting *Run) bool
	// Decisions returns the cards that a job waits for, and the tools concerned.
	Decisions(j *Run) (cards, tools []string)
	// Work runs a job to its end, or leaves it open when work ends. ctx also ends when a command ends
	// the job.
	Work(work, ctx context.Context, j *Run)
	// Suspended is called when a job begins to wait for a decision, with the next message behind it, if
	// any. The decision may have come meanwhile: see [Queue.Resume].
	Suspended(h *Suspended, next *Run)
	// Waits is called when a queued job has to wait for its slot. It must not block or call the queue.
	Waits(j *Run)
	// Superseded is called with the waiting commands that were ended; see [Placement].
	Superseded(some []*Run)
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
	// work is the context of jobs: it outlives the call that queues them.
	work context.Context //nolint:containedctx // Close ends it
	end  context.CancelCauseFunc
	// Running is waited for by Close. A running job may add to it.
	Running sync.WaitGroup
	// moves says that a chat has moved or is moving.
	moves atomic.Bool

	mu sync.Mutex // guards the rest and all chat queues; never held while waiting
	// open maps the keys of queued and running jobs to the time of their acceptance.
	open    map[string]time.Time
	byChat  map[chats.Chat]*chatQueue
	closing bool // no job begins any more
	members members
	free    int  // unused slots
	line    line // empty while a slot is free
	// moved maps the old ids of completed moves to the new ones, pending both ends of the others to the
	// new one. ended is closed, and replaced, when a job ended for which a caller may wait: in a chat
	// that is moving, or because it was cut short.
	moved, moving map[chats.Chat]chats.Chat
	ended         chan struct{}
}

// New returns a queue without jobs.
func New(cfg Config) *Queue {
	s := &Queue{
		cfg: cfg, open: make(map[string]time.Time), byChat: make(map[chats.Chat]*chatQueue), members: make(members),
		free:  cfg.MaxTurns,
		moved: make(map[chats.Chat]chats.Chat), moving: make(map[chats.Chat]chats.Chat), ended: make(chan struct{}),
	}
	s.work, s.end = context.WithCancelCause(context.Background())
	return s
}

// Context returns the context of jobs.
func (s *Queue) Context() context.Context { return s.work }

// WriteContext returns a context for one write that has to happen although its job, or all jobs, are
// being ended. It lasts for [WriteTimeout].
func (s *Queue) WriteContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(s.work), WriteTimeout)
}

// Close starts no more jobs. It waits drain for the running ones, then cancels them, and returns when
// they have ended. It reports whether the time was enough.
func (s *Queue) Close(drain time.Duration) bool {
	s.mu.Lock()
	s.closing = true
	for _, l := range s.byChat {
		if l.parked != nil {
			l.messages.cancel(ErrShutdown) // no user answers soon enough
		}
	}
	s.mu.Unlock()
	done := make(chan struct{})
	go func() { s.Running.Wait(); close(done) }()
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
	s.end(ErrShutdown)
	<-done
	return inTime
}

// TryGo runs a function in a goroutine that Close waits for. If the queue is closing, it returns false,
// and the caller runs it.
func (s *Queue) TryGo(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closing {
		s.Running.Go(func() { rescue.Go(s.cfg.Log, "work beside the jobs", f) })
	}
	return !s.closing
}

// ChatOf names the chat queue of a job: its chat, or a sub-queue of it.
func (s *Queue) ChatOf(j *Run) chats.Chat {
	chat := j.Message.Chat
	chat.Thread += s.cfg.Workers.Placement(j).SubQueue
	return chat
}

// Has reports whether a job is queued or running.
func (s *Queue) Has(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, has := s.open[key]
	return has
}

// Change changes a running job under the lock under which workers are asked about it.
func (s *Queue) Change(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// IsAnswering reports whether the message of a job is being answered in a chat.
func (s *Queue) IsAnswering(chat chats.Chat, key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.byChat[chat]
	return l != nil && l.messages.running != nil && l.messages.running.Key() == key
}

// Remove removes a closed job.
func (s *Queue) Remove(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, key)
}

// Enqueue puts a job into the queue of its chat, which may have moved, once. It returns the job ahead
// of it that waits for a decision; nil if there is none.
func (s *Queue) Enqueue(j *Run) *Suspended {
	key := j.Key()
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, twice := s.open[key]; twice {
		s.members.give(j)
		return nil
	}
	s.open[key] = j.Accepted
	if len(s.moved) > 0 {
		s.relocate(j)
	}
	place, chat := s.cfg.Workers.Placement(j), j.Message.Chat
	if place.FromUser && !j.Message.Direct && !j.waits {
		s.members.take(j)
	}
	chat.Thread += place.SubQueue
	l := s.byChat[chat]
	if l == nil {
		_, moving := s.moving[chats.Chat{Platform: chat.Platform, ID: chat.ID}]
		l = &chatQueue{chat: chat, moving: moving}
		s.byChat[chat] = l
	}
	q := &l.messages
	if place.Barrier {
		q = &l.commands
	}
	if len(q.waiting) == 0 {
		q.burst = j.Seq
	}
	at, _ := slices.BinarySearchFunc(q.waiting, j, Order)
	q.waiting = slices.Insert(q.waiting, at, j)
	if (place.Partial || place.ForwardOnly) && !j.complete {
		awaitPiece(s, l, j)
	}
	if place.Overtakes {
		overtake(s, l, j)
	}
	s.wake(l)
	if place.NeedsSlot && slices.Contains(q.waiting, j) {
		s.cfg.Workers.Waits(j)
	}
	if held := cmp.Or(l.held, l.parked); held != nil && !place.Barrier && Order(held.job, j) < 0 {
		return held
	}
	return nil
}

// Occupancy is how many jobs wait; Burst identifies the backlog since the queue was last empty.
type Occupancy struct {
	Waiting int
	Burst   int64
}

// Reserve returns how many jobs wait in the job's queue, and how many of its sender wait in all shared
// chats. It counts the job among these, unless there are bound of them already: other messages of that
// sender may be on their way to other chats.
func (s *Queue) Reserve(j *Run, bound int) (there, sender Occupancy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	place, chat := s.cfg.Workers.Placement(j), j.Message.Chat
	chat.Thread += place.SubQueue
	if l := s.byChat[chat]; l != nil {
		there = Occupancy{len(l.messages.waiting), l.messages.burst}
		if place.Barrier {
			there = Occupancy{len(l.commands.waiting), l.commands.burst}
		}
	}
	if place.FromUser && !j.Message.Direct {
		if known := s.members[j.Message.By()]; known != nil {
			sender = *known
		}
		if sender.Waiting < bound {
			s.members.take(j)
		}
	}
	return there, sender
}

// members counts waiting jobs in shared chats by sender.
type members map[string]*Occupancy

func (m members) take(j *Run) {
	by := j.Message.By()
	if m[by] == nil {
		m[by] = &Occupancy{Burst: j.Accepted.UnixNano()}
	}
	m[by].Waiting++
	j.waits = true
}

func (m members) give(j *Run) {
	if !j.waits {
		return
	}
	j.waits = false
	by := j.Message.By()
	if m[by].Waiting--; m[by].Waiting == 0 {
		delete(m, by)
	}
}

// Release undoes the counting of Reserve or Enqueue.
func (s *Queue) Release(j *Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.members.give(j)
}

// Load holds the numbers of open jobs.
type Load struct {
	// Open counts the jobs that are not closed, Waiting those of them that wait in queues.
	Open, Waiting int
	// Oldest is when the oldest open job was accepted; zero if there is none.
	Oldest time.Time
}

// Load counts the open jobs.
func (s *Queue) Load() Load {
	s.mu.Lock()
	defer s.mu.Unlock()
	load := Load{Open: len(s.open)}
	for _, at := range s.open {
		if load.Oldest.IsZero() || at.Before(load.Oldest) {
			load.Oldest = at
		}
	}
	for _, l := range s.byChat {
		load.Waiting += len(l.messages.waiting) + len(l.commands.waiting)
	}
	return load
}
