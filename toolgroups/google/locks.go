package google

import (
	"context"
	"sync"
)

// locks has a lock for each name that is in use.
type locks struct {
	mu   sync.Mutex
	held map[string]*lock
}

type lock struct {
	slot  chan struct{}
	users int
}

// lock waits for the lock of a name, but no longer than ctx.
func (l *locks) lock(ctx context.Context, name string) (unlock func(), err error) {
	l.mu.Lock()
	k := l.held[name]
	if k == nil {
		k = &lock{slot: make(chan struct{}, 1)}
		l.held[name] = k
	}
	k.users++
	l.mu.Unlock()
	leave := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if k.users--; k.users == 0 {
			delete(l.held, name)
		}
	}
	select {
	case k.slot <- struct{}{}:
		return func() { <-k.slot; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}
