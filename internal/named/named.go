// Package named has semaphores by name, which exist only while they are used.
package named

import (
	"context"
	"sync"
)

// Semaphores are semaphores by name. They may be used concurrently.
type Semaphores struct {
	width int

	mu   sync.Mutex
	held map[string]*semaphore
}

type semaphore struct {
	places chan struct{}
	users  int // includes those that wait
}

// New returns semaphores with width places for each name.
func New(width int) *Semaphores {
	return &Semaphores{width: width, held: map[string]*semaphore{}}
}

// Acquire waits for a place, first come first served, until ctx ends. Calling release returns
// the place.
func (s *Semaphores) Acquire(ctx context.Context, name string) (release func(), err error) {
	s.mu.Lock()
	one := s.held[name]
	if one == nil {
		one = &semaphore{places: make(chan struct{}, s.width)}
		s.held[name] = one
	}
	one.users++
	s.mu.Unlock()
	leave := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if one.users--; one.users == 0 {
			delete(s.held, name)
		}
	}
	if err := Take(ctx, one.places); err != nil {
		leave()
		return nil, err
	}
	return func() { <-one.places; leave() }, nil
}

// Take takes a place in a channel: a free one, even if ctx has ended, or else the next.
func Take(ctx context.Context, places chan struct{}) error {
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
