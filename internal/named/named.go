// Package named provides semaphores by name, which exist only while they are in use.
package named

import (
	"context"
	"sync"
)

// Semaphores is a set of semaphores by name. It may be used concurrently.
type Semaphores struct {
	limit int

	mu     sync.Mutex
	byName map[string]*semaphore
}

type semaphore struct {
	slots chan struct{}
	users int // callers that hold a slot or wait for one
}

// New returns semaphores that each have width slots.
func New(width int) *Semaphores {
	return &Semaphores{limit: width, byName: map[string]*semaphore{}}
}

// Acquire waits for a slot, in the order of the calls, until ctx ends. The caller must call release to
// return the slot.
func (s *Semaphores) Acquire(ctx context.Context, name string) (release func(), err error) {
	s.mu.Lock()
	one := s.byName[name]
	if one == nil {
		one = &semaphore{slots: make(chan struct{}, s.limit)}
		s.byName[name] = one
	}
	one.users++
	s.mu.Unlock()
	leave := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if one.users--; one.users == 0 {
			delete(s.byName, name)
		}
	}
	if err := AcquireSlot(ctx, one.slots); err != nil {
		leave()
		return nil, err
	}
	return func() { <-one.slots; leave() }, nil
}

// AcquireSlot acquires a slot of places: a free one, even if ctx has ended, or else the next one freed.
func AcquireSlot(ctx context.Context, places chan struct{}) error {
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
