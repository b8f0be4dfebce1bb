package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

const (
	// maxQueued bounds the events that wait for a slow watcher, in bytes, including eventSize for each.
	maxQueued = 16 << 20
	eventSize = 128
)

var errWatchUsed = errors.New("a watch can be iterated only once")

// Watchers are the watches of an engine: it publishes the events of its writes to them. The zero value
// has none.
type Watchers struct {
	mu  sync.Mutex // guards all
	all map[*watcher]struct{}
}

// Watch returns a sequence for [KV.Watch]. The engine's begin calls add at the revision at which
// the watch begins. The sequence can be iterated once.
func (h *Watchers) Watch(ctx context.Context, prefixes []string, begin func(add func()) error) iter.Seq2[Event, error] {
	w := &watcher{prefixes: slices.Clone(prefixes), wake: make(chan struct{}, 1)}
	err := begin(func() { h.add(w) })
	// The caller may never iterate, so the end of ctx alone must free the watcher.
	stop := context.AfterFunc(ctx, func() { h.remove(w) })
	return func(yield func(Event, error) bool) {
		defer h.remove(w)
		defer stop()
		err := err
		if err == nil && w.used.Swap(true) {
			err = errWatchUsed
		}
		for err == nil && ctx.Err() == nil {
			var events []Event
			events, err = w.take(ctx)
			for _, e := range events {
				if ctx.Err() != nil || !yield(e, nil) {
					return
				}
			}
		}
		if ctx.Err() == nil {
			yield(Event{}, fmt.Errorf("watch: %w", err))
		}
	}
}

func (h *Watchers) add(w *watcher) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all == nil {
		h.all = map[*watcher]struct{}{}
	}
	h.all[w] = struct{}{}
}

func (h *Watchers) remove(w *watcher) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.all, w)
}

// Prefixes returns what is watched, each prefix once.
func (h *Watchers) Prefixes() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	prefixes := map[string]bool{}
	for w := range h.all {
		for _, prefix := range w.prefixes {
			prefixes[prefix] = true
		}
	}
	return slices.Collect(maps.Keys(prefixes))
}

// Publish gives each watcher copies of the events under its prefixes.
func (h *Watchers) Publish(events []Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.all {
		for _, e := range events {
			if slices.ContainsFunc(w.prefixes, func(prefix string) bool { return strings.HasPrefix(e.Key, prefix) }) {
				e.Value = bytes.Clone(e.Value)
				w.put(e)
			}
		}
	}
}

// End ends all watches with err; [ErrLagged] means that they may have missed changes.
func (h *Watchers) End(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.all {
		w.end(err)
	}
	clear(h.all)
}

// watcher is the queue between the writer and the consumer of a watch.
type watcher struct {
	prefixes []string
	used     atomic.Bool
	wake     chan struct{} // has a token when the queue is not empty

	mu    sync.Mutex // guards the fields below
	queue []Event
	size  int
	err   error // the error that ends the sequence after the queue
}

// put adds an event. If the queue is full, this event and all later ones are lost.
func (w *watcher) put(e Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return
	}
	if w.size > maxQueued {
		w.err = ErrLagged
	} else {
		w.queue = append(w.queue, e)
		w.size += len(e.Key) + len(e.Value) + eventSize
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
func (w *watcher) take(ctx context.Context) ([]Event, error) {
	select {
	case <-w.wake:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	events := w.queue
	w.queue, w.size = nil, 0
	return events, w.err
}
