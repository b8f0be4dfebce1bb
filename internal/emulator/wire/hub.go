package wire

import (
	"context"
	"fmt"
	"net/http"
	"sync"
)

// Kinds of events of every emulator.
const (
	EventCall  = "call"
	EventFault = "fault"
)

// Event is an event in an emulator whose chats have ids of type K and whose messages are of type
// M.
type Event[K comparable, M any] struct {
	// Kind is one of the Event constants of the emulator.
	Kind string `json:"kind"`
	// Chat and Message identify the subject of the event, and Update the update or envelope, if any.
	Chat    K `json:"chat,omitzero"`
	Message K `json:"message,omitzero"`
	Update  K `json:"update,omitzero"`
	// Text is a detail by kind: the kind of an update or envelope, the method of a call, the effect
	// of a fault, a chat action or status, the text of a callback's answer, the payload of an
	// acknowledgement, open or closed.
	Text string `json:"text,omitempty"`
	// Snapshot is the message after the event.
	Snapshot *M `json:"snapshot,omitempty"`
	// Missed counts the events dropped just before this one, because the subscriber was too slow.
	Missed int `json:"missed,omitempty"`
}

// Hub sends the events of an emulator to subscribers. It is guarded by the lock of the [Lifecycle].
// [Hub.Subscribe], [Hub.WaitFor] and [Hub.Intercept] take the lock; for everything else the caller
// must hold it.
type Hub[K comparable, M any] struct {
	life        *Lifecycle
	change      chan struct{}
	subscribers map[*subscriber[K, M]]struct{}
	calls       map[string]int
}

type subscriber[K comparable, M any] struct {
	events chan Event[K, M]
	missed int
}

// NewHub makes the hub of an emulator.
func NewHub[K comparable, M any](life *Lifecycle) *Hub[K, M] {
	return &Hub[K, M]{life: life, subscribers: map[*subscriber[K, M]]struct{}{}, calls: map[string]int{}}
}

// maxMethods bounds the counted method names, because a client could make up any number of them.
const maxMethods = 200

// Intercept counts a call and applies its fault before the call is accepted. over reports whether the
// call is finished.
func (h *Hub[K, M]) Intercept(f *Faults[K], w http.ResponseWriter, r *http.Request, method string, chat K) (met *Fault[K], over bool) {
	h.life.mu.Lock()
	if _, known := h.calls[method]; known || len(h.calls) < maxMethods {
		h.calls[method]++
	}
	h.Emit(Event[K, M]{Kind: EventCall, Chat: chat, Text: method}, nil)
	if met = f.Fire(method, chat); met != nil {
		h.Emit(Event[K, M]{Kind: EventFault, Chat: chat, Text: string(met.Effect)}, nil)
	}
	h.life.mu.Unlock()
	return met, f.applyBeforeCall(w, r, met)
}

// Calls returns how often each method was called. The map must not be changed, nor used without
// the lock.
func (h *Hub[K, M]) Calls() map[string]int { return h.calls }

// Wake wakes all callers of [Hub.WaitFor].
func (h *Hub[K, M]) Wake() {
	if h.change != nil {
		close(h.change)
		h.change = nil
	}
}

// Emit sends an event to every subscriber, and wakes all callers of [Hub.WaitFor]. look returns the
// message in its current state; it is nil if the event has no message.
func (h *Hub[K, M]) Emit(e Event[K, M], look func() M) {
	h.Wake()
	if len(h.subscribers) > 0 && look != nil {
		shown := look()
		e.Snapshot = &shown
	}
	for sub := range h.subscribers {
		e.Missed = sub.missed
		select {
		case sub.events <- e:
			sub.missed = 0
		default:
			sub.missed++
		}
	}
}

// Close wakes all callers of [Hub.WaitFor] and ends the subscriptions.
func (h *Hub[K, M]) Close() {
	h.Wake()
	for sub := range h.subscribers {
		close(sub.events)
	}
	clear(h.subscribers)
}

// Subscribe returns the events from now on. At most buffer events are queued; others are dropped, and
// the next event counts them. The channel is closed by cancel, which must be called, and by
// [Hub.Close].
func (h *Hub[K, M]) Subscribe(buffer int) (events <-chan Event[K, M], cancel func()) {
	sub := &subscriber[K, M]{events: make(chan Event[K, M], max(buffer, 1))}
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

// WaitFor returns once cond holds. It checks cond after every change, with the lock held. When
// the emulator is closed, it returns the error given to [NewLifecycle].
func (h *Hub[K, M]) WaitFor(ctx context.Context, cond func() bool) error {
	for {
		change := h.nextChange(cond)
		if change == nil {
			return nil
		}
		select {
		case <-change:
		case <-ctx.Done():
			return fmt.Errorf("%s: wait: %w", h.life.name, context.Cause(ctx))
		case <-h.life.done:
			return h.life.closedErr
		}
	}
}

// nextChange returns a channel that is closed by the next change, or nil if cond holds.
func (h *Hub[K, M]) nextChange(cond func() bool) <-chan struct{} {
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
