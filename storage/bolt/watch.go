package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"sync/atomic"

	"oneclaw/storage"
)

// Bounds of a slow watcher's queue: a number of events, and the total size of their values.
const (
	maxEvents     = 1024
	maxEventBytes = 16 << 20
)

var errWatchUsed = errors.New("a watch can be iterated only once")

// Watch implements storage.KV. The sequence can be iterated once.
func (s *Store) Watch(ctx context.Context, prefix string) iter.Seq2[storage.Event, error] {
	w := &watcher{prefix: prefix, wake: make(chan struct{}, 1)}
	err := s.enter(ctx)
	if err == nil {
		s.hub.add(w)
		s.leave()
	}
	// The caller may never iterate, so the end of ctx alone must free the watcher.
	stop := context.AfterFunc(ctx, func() { s.hub.remove(w) })
	return func(yield func(storage.Event, error) bool) {
		defer s.hub.remove(w)
		defer stop()
		err := err
		if err == nil && w.used.Swap(true) {
			err = errWatchUsed
		}
		for err == nil && ctx.Err() == nil {
			var events []storage.Event
			events, err = w.take(ctx)
			for _, e := range events {
				if ctx.Err() != nil || !yield(e, nil) {
					return
				}
			}
		}
		if ctx.Err() == nil {
			yield(storage.Event{}, fmt.Errorf("bolt: watch: %w", err))
		}
	}
}

// hub passes the events of committed writes to the watchers.
type hub struct {
	mu       sync.Mutex // guards watchers
	watchers map[*watcher]struct{}
}

func (h *hub) add(w *watcher) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watchers[w] = struct{}{}
}

func (h *hub) remove(w *watcher) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.watchers, w)
}

// publish gives each watcher copies of the events for its prefix.
func (h *hub) publish(events []storage.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.watchers {
		for _, e := range events {
			if strings.HasPrefix(e.Key, w.prefix) {
				e.Value = bytes.Clone(e.Value)
				w.put(e)
			}
		}
	}
}

// end ends all watchers with err; ErrLagged means that they may have missed changes.
func (h *hub) end(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.watchers {
		w.end(err)
	}
	clear(h.watchers)
}

// watcher is the queue between the writer and the consumer of a Watch.
type watcher struct {
	prefix string
	used   atomic.Bool
	wake   chan struct{} // has a token when the queue is not empty

	mu    sync.Mutex // guards the fields below
	queue []storage.Event
	bytes int
	err   error // the error that ends the sequence after the queue
}

// put adds an event. If the queue is full, this event and all later ones are lost.
func (w *watcher) put(e storage.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return
	}
	if len(w.queue) >= maxEvents || w.bytes > maxEventBytes {
		w.err = storage.ErrLagged
	} else {
		w.queue = append(w.queue, e)
		w.bytes += len(e.Value)
	}
	w.signal()
}

func (w *watcher) end(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
	w.signal()
}

func (w *watcher) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// take waits for events and returns all of them. An error comes with the last events.
func (w *watcher) take(ctx context.Context) ([]storage.Event, error) {
	select {
	case <-w.wake:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	events := w.queue
	w.queue, w.bytes = nil, 0
	return events, w.err
}
