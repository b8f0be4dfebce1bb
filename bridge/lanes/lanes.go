// Package lanes runs the jobs of each chat one after another and those of different chats
// side by side, bounds how many turns run at once, and carries what waits along when a
// chat moves.
package lanes

import (
	"context"
	"errors"
	"sync"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
)

// Place says where a job waits, and for what.
type Place struct {
	// Lane is its chat, or a lane of its own beside that: no thread of a platform has a
	// slash.
	Lane chats.Chat
	// Beside says that it waits for no message: those wait for it.
	Beside bool
	// Turn says that the agent runs for it.
	Turn bool
	// Member says that it counts among what its sender has waiting in shared chats.
	Member bool
	// Fixed says that it stays where it is when its chat moves.
	Fixed bool
}

// Config is what [Lanes] are made of.
type Config struct {
	// Place says where a job waits. It is asked each time.
	Place func(*jobs.Job) Place
	// Run brings a job to its end, or leaves it open where its context ends.
	Run func(context.Context, *jobs.Job)
	// Holds is told that a job waits for a decision from now on, and which message, if
	// any, is next behind it. The decision may have come meanwhile: see [Lanes.Free].
	Holds func(l *Lane, h *Held, next *jobs.Job)
	// MaxTurns bounds the turns that run at the same time.
	MaxTurns int
}

// ErrShutdown is the cause with which what runs is cancelled at the end: it goes on after
// the next start.
var ErrShutdown = errors.New("bridge: shutting down")

// Lanes hold all jobs that are open. They have one goroutine for each chat with a message
// that is being answered and one for each with commands; [Lanes.Close] waits for all.
type Lanes struct {
	cfg Config
	// work is what jobs run under: it outlives the call that queues them.
	work    context.Context //nolint:containedctx // Close ends it
	end     context.CancelCauseFunc
	running sync.WaitGroup
	turns   turns
	// open holds the keys of the jobs that are queued or worked on, and when they were
	// accepted.
	open sync.Map

	mu      sync.Mutex
	byChat  map[chats.Chat]*Lane
	closing bool           // no lane begins another job
	members map[string]int // what waits in shared chats, by who wrote it
	moves   moves
}

// New returns lanes without jobs.
func New(cfg Config) *Lanes {
	s := &Lanes{
		cfg: cfg, turns: turns{free: cfg.MaxTurns}, byChat: make(map[chats.Chat]*Lane), members: make(map[string]int),
		moves: newMoves(),
	}
	s.work, s.end = context.WithCancelCause(context.Background())
	return s
}

// Work is the context that jobs run under.
func (s *Lanes) Work() context.Context { return s.work }

// Close begins no job any more. It gives those that run so much time, then cancels them, and
// returns when they have ended. It reports whether the time was enough.
func (s *Lanes) Close(drain time.Duration) bool {
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	done := make(chan struct{})
	go func() { s.running.Wait(); close(done) }()
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

// Go runs a function that Close waits for.
func (s *Lanes) Go(f func()) { s.running.Go(f) }

// Of returns the lane of a chat, to be given back with Leave.
func (s *Lanes) Of(chat chats.Chat) *Lane {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.byChat[chat]
	if l == nil {
		l = &Lane{Chat: chat, moving: s.moves.barred(chat), gone: s.moves.gone(chat)}
		s.byChat[chat] = l
	}
	l.users++
	return l
}

// Leave gives a lane back.
func (s *Lanes) Leave(l *Lane) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// What waits in a chat that moves has no worker that would need the lane.
	if l.users--; l.users == 0 && !s.moves.barred(l.Chat) {
		delete(s.byChat, l.Chat)
	}
}

// Has reports whether a job is queued or worked on.
func (s *Lanes) Has(key string) bool {
	_, has := s.open.Load(key)
	return has
}

// Answers reports whether the message of a job is being answered in a chat.
func (s *Lanes) Answers(chat chats.Chat, key string) bool {
	l := s.Of(chat)
	defer s.Leave(l)
	return l.answers(key)
}

// Done forgets a job that is closed.
func (s *Lanes) Done(key string) { s.open.Delete(key) }

// Queue puts a job in its lane, once.
func (s *Lanes) Queue(j *jobs.Job) {
	if _, twice := s.open.LoadOrStore(j.Key(), j.Accepted); twice {
		return
	}
	if s.cfg.Place(j).Member && !j.Waits {
		s.mu.Lock()
		s.members[j.By()]++
		j.Waits = true
		s.mu.Unlock()
	}
	s.line(j)
}

// line puts a job in the lane of its chat as it is called now.
func (s *Lanes) line(j *jobs.Job) {
	for lined := false; !lined; {
		place := s.cfg.Place(j)
		if !place.Fixed && s.relocate(j) {
			place = s.cfg.Place(j)
		}
		l := s.Of(place.Lane)
		l.mu.Lock()
		lined = !l.gone // else its chat has just moved
		switch {
		case !lined:
		case place.Beside:
			l.commands.insert(j)
		default:
			l.messages.insert(j)
		}
		l.mu.Unlock()
		if lined {
			s.wake(l)
		}
		s.Leave(l)
	}
}

// TakeRoom counts a job among what its sender has waiting, unless so much waits already. It
// returns how much did: others of that sender may be on their way to other chats.
func (s *Lanes) TakeRoom(j *jobs.Job, bound int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting := s.members[j.By()]
	if waiting < bound {
		s.members[j.By()]++
		j.Waits = true
	}
	return waiting
}

// GiveRoom takes back what TakeRoom or Queue counted.
func (s *Lanes) GiveRoom(j *jobs.Job) {
	if !j.Waits {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	j.Waits = false
	if s.members[j.By()]--; s.members[j.By()] == 0 {
		delete(s.members, j.By())
	}
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
func (s *Lanes) Load() Load {
	var load Load
	s.open.Range(func(_, value any) bool {
		load.Open++
		if at, ok := value.(time.Time); ok && (load.Oldest.IsZero() || at.Before(load.Oldest)) {
			load.Oldest = at
		}
		return true
	})
	for _, l := range s.all(nil) {
		waiting, _ := l.Load()
		load.Waiting += waiting + l.Deciding()
	}
	return load
}

// all returns the lanes that pass; nil lets all pass.
func (s *Lanes) all(pass func(chats.Chat) bool) []*Lane {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*Lane
	for chat, l := range s.byChat {
		if pass == nil || pass(chat) {
			all = append(all, l)
		}
	}
	return all
}
