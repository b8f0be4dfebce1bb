package storetest

import (
	"bytes"
	"context"
	"iter"
	"slices"
	"strings"

	"oneclaw/storage"
)

// memoryLag is how far behind a consumer may be.
const memoryLag = 1024

// memoryEvent is an event and the handle that caused it.
type memoryEvent struct {
	storage.Event
	by *memory
}

// tell notes an event and wakes the watchers. The store is locked.
func (m *memory) tell(e storage.Event) {
	e.Value = bytes.Clone(e.Value)
	m.events = append(m.events, memoryEvent{e, m})
	if n := len(m.events); m.is("swaps events") && n%2 == 0 {
		m.events[n-1], m.events[n-2] = m.events[n-2], m.events[n-1]
	}
	close(m.wake)
	m.wake = make(chan struct{})
}

// told returns the events from number next on.
func (m *memory) told(next int) (events []memoryEvent, wake chan struct{}, closed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.events[next:], m.wake, m.closed && !m.is("leaves watches open on Close")
}

func (m *memory) Watch(ctx context.Context, prefixes ...string) iter.Seq2[storage.Event, error] {
	before, _, _ := m.told(0)
	next := len(before)
	return func(yield func(storage.Event, error) bool) {
		if m.is("watches from the iteration on") {
			before, _, _ := m.told(0)
			next = len(before)
		}
		for ctx.Err() == nil {
			events, wake, closed := m.told(next)
			if len(events) > memoryLag {
				if !m.is("loses events of slow consumers silently") {
					yield(storage.Event{}, storage.ErrLagged)
					return
				}
				events = events[len(events)-memoryLag:]
			}
			next += len(events)
			if !m.hand(ctx, prefixes, events, yield) {
				return
			}
			switch {
			case len(events) > 0:
			case closed:
				yield(storage.Event{}, storage.ErrClosed)
				return
			default:
				select {
				case <-wake:
				case <-ctx.Done():
				}
			}
		}
		if m.is("yields the end of the context") {
			yield(storage.Event{}, ctx.Err())
		}
	}
}

// hand yields the events under the prefixes and reports whether to go on.
func (m *memory) hand(ctx context.Context, prefixes []string, events []memoryEvent, yield func(storage.Event, error) bool) bool {
	for i, e := range events {
		watched := slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(e.Key, prefix) })
		if !watched && !m.is("watches all keys") {
			continue
		}
		same := func(other memoryEvent) bool { return other.Key == e.Key }
		if m.is(leavesOutVersions) && slices.ContainsFunc(events[i+1:], same) ||
			m.is("leaves out the newest version") && slices.ContainsFunc(events[:i], same) ||
			m.is("tells a handle of its own changes only") && e.by != m {
			continue
		}
		e.Value = m.bytes(e.Value, "shares values between watches")
		if m.is("watches without revisions") {
			e.Revision = 0
		}
		if ctx.Err() != nil || !yield(e.Event, nil) {
			return false
		}
	}
	return true
}
