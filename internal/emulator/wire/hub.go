package wire

import (
	"context"
	"fmt"
	"sync"
)

// Hub tells those who look on what happens in an emulator, as events of the type E. All
// of it is guarded by the lock of the [Lifecycle]: [Hub.Subscribe] and [Hub.WaitFor]
// take it, for everything else the caller holds it.
type Hub[E any] struct {
	life        *Lifecycle
	change      chan struct{}
	subscribers map[*subscriber[E]]struct{}
	calls       map[string]int
}

type subscriber[E any] struct {
	events chan E
	missed int
}

// NewHub makes the hub of an emulator.
func NewHub[E any](life *Lifecycle) *Hub[E] {
	return &Hub[E]{life: life, subscribers: map[*subscriber[E]]struct{}{}, calls: map[string]int{}}
}

// maxMethods bounds the names counted, which a client could make up.
const maxMethods = 200

// Count counts a call of a method.
func (h *Hub[E]) Count(method string) {
	if _, known := h.calls[method]; known || len(h.calls) < maxMethods {
		h.calls[method]++
	}
}

// Calls says how often each method was called. The map is not to be changed, nor kept
// beyond the lock.
func (h *Hub[E]) Calls() map[string]int { return h.calls }

// Changed wakes those who wait for a condition.
func (h *Hub[E]) Changed() {
	if h.change != nil {
		close(h.change)
		h.change = nil
	}
}

// Watched says whether anyone would get an event.
func (h *Hub[E]) Watched() bool { return len(h.subscribers) > 0 }

// Emit gives every subscriber the event made for it, which is told how many events the
// subscriber lost just before.
func (h *Hub[E]) Emit(event func(missed int) E) {
	for sub := range h.subscribers {
		select {
		case sub.events <- event(sub.missed):
			sub.missed = 0
		default:
			sub.missed++
		}
	}
}

// Close wakes those who wait and ends the subscriptions.
func (h *Hub[E]) Close() {
	h.Changed()
	for sub := range h.subscribers {
		close(sub.events)
	}
	clear(h.subscribers)
}

// Subscribe returns the events from now on. At most buffer of them wait; what does not
// fit is dropped and counted in the next one. The channel is closed by cancel, which
// must be called, and by [Hub.Close].
func (h *Hub[E]) Subscribe(buffer int) (events <-chan E, cancel func()) {
	sub := &subscriber[E]{events: make(chan E, max(buffer, 1))}
	h.life.mu.Lock()
	defer h.life.mu.Unlock()
	if h.life.closed {
		close(sub.events)
		return sub.events, func() {}
	}
	h.subscribers[sub] = struct{}{}
	return sub.events, sync.OnceFunc(func() {
		h.life.mu.Lock()
		defer h.life.mu.Unlock()
		if _, ok := h.subscribers[sub]; ok {
			delete(h.subscribers, sub)
			close(sub.events)
		}
	})
}

// WaitFor returns once cond holds, which it looks at after every change, with the lock
// held. When the emulator is closed it returns the error that [NewLifecycle] was given.
func (h *Hub[E]) WaitFor(ctx context.Context, cond func() bool) error {
	for {
		change := h.unless(cond)
		if change == nil {
			return nil
		}
		select {
		case <-change:
		case <-ctx.Done():
			return fmt.Errorf("%s: wait: %w", h.life.name, context.Cause(ctx))
		case <-h.life.done:
			return h.life.ended
		}
	}
}

// unless returns what tells of the next change, or nil where cond holds.
func (h *Hub[E]) unless(cond func() bool) <-chan struct{} {
	h.life.mu.Lock()
	defer h.life.mu.Unlock()
	if cond() {
		return nil
	}
	if h.change == nil {
		h.change = make(chan struct{})
	}
	return h.change
}
