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
	// SubQueue names a queue of its own beside that of the chat; empty where there is none.
	// It begins with a slash: no thread of a platform has one.
	SubQueue string
	// Barrier says that it waits for no message: those wait for it.
	Barrier bool
	// NeedsSlot says that the agent runs for it.
	NeedsSlot bool
	// Pinned says that it stays where it is when its chat moves.
	Pinned bool
	// Joinable says that it can become part of the turn that runs before it.
	Joinable bool
	// Partial says that more of it may come, for which its turn waits. Bare says the same of what
	// passes something on without a word, as long as none came with it.
	Partial, Bare bool
	// Overtakes says that it waits no longer than a moment for the commands before it that yield:
	// those are ended then.
	Overtakes, Yields bool
	// Said says that a user said it: it counts among what that one has waiting in shared chats, and
	// what is said while a turn runs may be added to its question.
	Said bool
	// Unknown says that a later program wrote it, which alone can run it: until one has, what is
	// behind it waits.
	Unknown bool
}

// Workers say where jobs wait, and bring them to their ends. What they say about a job may change
// with it: they are asked each time.
type Workers interface {
	// Placement returns where a job waits.
	Placement(j *Run) Placement
	// Pieces returns how many of some messages are the first one: those that continue it.
	Pieces(some []*Run) int
	// Accepts reports whether a message that waits can become part of a job that runs.
	Accepts(running, waiting *Run) bool
	// Decisions returns the cards that a job waits for, and which tools they are about.
	Decisions(j *Run) (cards, tools []string)
	// Work brings a job to its end, or leaves it open where work ends. Its own context ends
	// also where a command ends the job.
	Work(work, ctx context.Context, j *Run)
	// Suspended is told that a job waits for a decision from now on, and which message, if
	// any, is next behind it. The decision may have come meanwhile: see [Queue.Resume].
	Suspended(h *Suspended, next *Run)
	// Waits is told that a job which was queued has to wait for its slot. It waits for nothing and
	// calls no function here.
	Waits(j *Run)
	// Superseded is given the commands that waited and were ended, see [Placement].
	Superseded(some []*Run)
}

// Config is what a [Queue] is made of.
type Config struct {
	Workers Workers
	// MaxTurns bounds the turns that run at the same time.
	MaxTurns int
	// Now is the clock.
	Now func() time.Time
	// Log is for the operator.
	Log *slog.Logger
}

// ErrShutdown is the cause with which what runs is cancelled at the end: it goes on after
// the next start.
var ErrShutdown = errors.New("queue: shutting down")

// Queue holds all jobs that are open. It has one goroutine for each job that runs: at most
// one message and one command of a chat; [Queue.Close] waits for all.
type Queue struct {
	cfg Config
	// work is what jobs run under: it outlives the call that queues them.
	work context.Context //nolint:containedctx // Close ends it
	end  context.CancelCauseFunc
	// Running is what Close waits for. A job that runs may add to it.
	Running sync.WaitGroup
	// moves says that a chat has moved or moves.
	moves atomic.Bool

	mu sync.Mutex // guards the rest and all chat queues; no caller waits while they hold it
	// open holds the keys of the jobs that are queued or worked on, and when they were
	// accepted.
	open    map[string]time.Time
	byChat  map[chats.Chat]*chatQueue
	closing bool // no job begins any more
	members members
	free    int  // how many more turns may run
	line    line // no job stands here while one is free
	// over are the moves that were carried out, pending both ends of those that were not,
	// with where they lead. Ended is closed, and replaced, when something ended for which
	// a caller may wait: in a chat that moves, or because it was cut short.
	over, pending map[chats.Chat]chats.Chat
	ended         chan struct{}
}

// New returns a queue without jobs.
func New(cfg Config) *Queue {
	s := &Queue{
		cfg: cfg, open: make(map[string]time.Time), byChat: make(map[chats.Chat]*chatQueue), members: make(members),
		free: cfg.MaxTurns,
		over: make(map[chats.Chat]chats.Chat), pending: make(map[chats.Chat]chats.Chat), ended: make(chan struct{}),
	}
	s.work, s.end = context.WithCancelCause(context.Background())
	return s
}

// Context is the context that jobs run under.
func (s *Queue) Context() context.Context { return s.work }

// WriteContext is for one write about a job that has to happen although the job, or all of them, are
// being ended. It lasts for [WriteTimeout].
func (s *Queue) WriteContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(s.work), WriteTimeout)
}

// Close begins no job any more. It gives those that run so much time, then cancels them, and
// returns when they have ended. It reports whether the time was enough.
func (s *Queue) Close(drain time.Duration) bool {
	s.mu.Lock()
	s.closing = true
	for _, l := range s.byChat {
		if l.asks != nil {
			l.messages.cancel(ErrShutdown) // no person answers soon enough
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

// TryGo runs a function that Close waits for, for who may come when the queue is closing:
// then it reports false, and the caller does it.
func (s *Queue) TryGo(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closing {
		s.Running.Go(func() { rescue.Go(s.cfg.Log, "work beside the jobs", f) })
	}
	return !s.closing
}

// ChatOf names the chat queue that a job waits in: its chat, or a sub-queue beside that.
func (s *Queue) ChatOf(j *Run) chats.Chat {
	chat := j.Message.Chat
	chat.Thread += s.cfg.Workers.Placement(j).SubQueue
	return chat
}

// Has reports whether a job is queued or worked on.
func (s *Queue) Has(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, has := s.open[key]
	return has
}

// Change changes of a job that runs what the rules of workers read: they are asked under the same lock.
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

// Remove forgets a job that is closed.
func (s *Queue) Remove(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, key)
}

// Enqueue puts a job in the queue of its chat as that is called now, once. It returns what
// stands in front of it and waits for a decision; nil where nothing does.
func (s *Queue) Enqueue(j *Run) *Suspended {
	key := j.Key()
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, twice := s.open[key]; twice {
		s.members.give(j)
		return nil
	}
	s.open[key] = j.Accepted
	if len(s.over) > 0 {
		s.relocate(j)
	}
	place, chat := s.cfg.Workers.Placement(j), j.Message.Chat
	if place.Said && !j.Message.Direct && !j.waits {
		s.members.take(j)
	}
	chat.Thread += place.SubQueue
	l := s.byChat[chat]
	if l == nil {
		_, moving := s.pending[chats.Chat{Platform: chat.Platform, ID: chat.ID}]
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
	if (place.Partial || place.Bare) && !j.complete {
		awaitPiece(s, l, j)
	}
	if place.Overtakes {
		overtake(s, l, j)
	}
	s.wake(l)
	if place.NeedsSlot && slices.Contains(q.waiting, j) {
		s.cfg.Workers.Waits(j)
	}
	if held := cmp.Or(l.held, l.asks); held != nil && !place.Barrier && Order(held.job, j) < 0 {
		return held
	}
	return nil
}

// Occupancy is how much waits; Burst tells it from what waited before, when it was gone.
type Occupancy struct {
	Waiting int
	Burst   int64
}

// Reserve returns how much waits where a job would wait, and what its sender has waiting in
// all shared chats. It counts the job among that, unless so much waits already: others of
// that sender may be on their way to other chats.
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
	if place.Said && !j.Message.Direct {
		if known := s.members[j.Message.By()]; known != nil {
			sender = *known
		}
		if sender.Waiting < bound {
			s.members.take(j)
		}
	}
	return there, sender
}

// members count what waits in shared chats, by who wrote it.
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

// Release takes back what Reserve or Enqueue counted.
func (s *Queue) Release(j *Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.members.give(j)
}

// Load is how much there is to do.
type Load struct {
	// Open are the jobs that are not closed, Waiting those of them in the queues of their
	// chats.
	Open, Waiting int
	// Oldest is when the oldest open job was accepted; zero without one.
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
