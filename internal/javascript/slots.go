package javascript

import (
	"context"
	"sync"
)

// slots bound how many scripts run at once: of one owner, and of all. Who waits for
// scripts of their own takes no place among all, so that others get theirs.
type slots struct {
	all   chan struct{}
	width int // of one owner

	mu     sync.Mutex
	owners map[string]*lane
}

// lane is the scripts of one owner, those that wait among them.
type lane struct {
	running chan struct{}
	users   int
}

func newSlots(all, owner int) *slots {
	return &slots{all: make(chan struct{}, all), width: owner, owners: map[string]*lane{}}
}

// take waits for a slot, in the order in which it was asked for. The slot must be given
// back by calling release.
func (s *slots) take(ctx context.Context, owner string) (release func(), err error) {
	l := s.join(owner)
	if err := wait(ctx, l.running); err != nil {
		s.leave(owner, l)
		return nil, err
	}
	done := func() {
		<-l.running
		s.leave(owner, l)
	}
	if err := wait(ctx, s.all); err != nil {
		done()
		return nil, err
	}
	return func() {
		<-s.all
		done()
	}, nil
}

// wait takes a place that is free, or the next one.
func wait(ctx context.Context, places chan struct{}) error {
	select {
	case places <- struct{}{}:
		return nil
	default:
	}
	select {
	case places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// join returns the lane of an owner, which stays until its last user leaves.
func (s *slots) join(owner string) *lane {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.owners[owner]
	if l == nil {
		l = &lane{running: make(chan struct{}, s.width)}
		s.owners[owner] = l
	}
	l.users++
	return l
}

func (s *slots) leave(owner string, l *lane) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(s.owners, owner)
	}
}
