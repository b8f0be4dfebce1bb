package postgres

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"oneclaw/storage"
)

const (
	// pollEvery is the interval at which changes are polled.
	pollEvery = time.Second
	// lookPause is the minimum time between two looks, tellPause between two notifications, each of
	// which makes all other processes look.
	lookPause = 5 * time.Millisecond
	tellPause = 20 * time.Millisecond
	// maxQueued bounds the events queued for a slow watcher, and those that one look may find, in bytes.
	maxQueued = 16 << 20
	// eventSize is the overhead of an event in addition to its key and value, in bytes.
	eventSize = 128
)

var errWatchUsed = errors.New("a watch can be iterated only once")

// Watch implements storage.KV. The sequence can be iterated once.
func (s *Store) Watch(ctx context.Context, prefix string) iter.Seq2[storage.Event, error] {
	return s.WatchMany(ctx, []string{prefix})
}

// WatchMany implements storage.ManyWatcher. The sequence can be iterated once.
func (s *Store) WatchMany(ctx context.Context, prefixes []string) iter.Seq2[storage.Event, error] {
	w := &watcher{prefixes: slices.Clone(prefixes), wake: make(chan struct{}, 1)}
	err := s.read(ctx, func(ctx context.Context) error { return s.publishChanges(ctx, w) })
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
			yield(storage.Event{}, fmt.Errorf("postgres: watch: %w", err))
		}
	}
}

// hub holds the watchers and their state.
type hub struct {
	changed chan struct{} // has a token when something may have changed
	looking chan struct{} // holds a token during a look; its holder owns snapshot and server
	// snapshot is the snapshot of the last look, server identifies the server and its start.
	snapshot, server string

	mu       sync.Mutex // guards the fields below
	watchers map[*watcher]struct{}
	onAdded  func() // is called for each new watcher
}

func newHub() hub {
	return hub{changed: make(chan struct{}, 1), looking: make(chan struct{}, 1), watchers: map[*watcher]struct{}{}, onAdded: func() {}}
}

// onWatch returns the channels of the current watchers. The hub calls added for each later watcher.
func (h *hub) onWatch(added func(), channel func(prefix string) string) map[string]bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.onAdded = added
	all := map[string]bool{}
	for w := range h.watchers {
		for _, prefix := range w.prefixes {
			if name := channel(prefix); name != "" {
				all[name] = true
			}
		}
	}
	return all
}

func (h *hub) remove(w *watcher) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.watchers, w)
}

// end ends all watchers.
func (h *hub) end(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.watchers {
		w.end(err)
	}
	clear(h.watchers)
}

// prefixes returns the prefixes of the watchers, each once.
func (h *hub) prefixes() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := map[string]bool{}
	for w := range h.watchers {
		for _, prefix := range w.prefixes {
			all[prefix] = true
		}
	}
	return slices.Collect(maps.Keys(all))
}

// publish gives each watcher copies of the events for its prefix.
func (h *hub) publish(events []storage.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.watchers {
		for _, e := range events {
			if slices.ContainsFunc(w.prefixes, func(prefix string) bool { return strings.HasPrefix(e.Key, prefix) }) {
				e.Value = bytes.Clone(e.Value)
				w.put(e)
			}
		}
	}
}

const nowQuery = "SELECT pg_current_snapshot()::text, pg_postmaster_start_time()::text"

// changesQuery finds the keys whose newest version the snapshot $1 does not show, under the prefixes $2,
// which have the lengths $3. At least one row has the current snapshot. A transaction of the future comes
// from a dump of another server and is ignored.
const changesQuery = `SELECT pg_current_snapshot()::text, pg_postmaster_start_time()::text,
		m.swept > pg_snapshot_xmin($1::text::pg_snapshot), c.key, c.value, c.revision
	FROM oneclaw_meta m LEFT JOIN LATERAL (
		SELECT key, value, revision FROM oneclaw_kv
		WHERE tx >= pg_snapshot_xmin($1::text::pg_snapshot) AND tx < pg_snapshot_xmax(pg_current_snapshot())
			AND NOT pg_visible_in_snapshot(tx, $1::text::pg_snapshot)
			AND EXISTS (SELECT FROM unnest($3::int[]) AS n WHERE substr(key, 1, n) = ANY ($2::bytea[]))) AS c ON true
	WHERE m.one`

// publishChanges passes the changes since the last look to the watchers. If w is not nil, it becomes a
// watcher.
func (s *Store) publishChanges(ctx context.Context, w *watcher) error {
	h := &s.hub
	select {
	case h.looking <- struct{}{}:
		defer func() { <-h.looking }()
	case <-ctx.Done():
		return ctx.Err()
	}
	prefixes := h.prefixes()
	if w == nil && len(prefixes) == 0 {
		return nil
	}
	found := changes{server: h.server}
	var err error
	if len(prefixes) == 0 {
		err = s.pool.QueryRow(ctx, nowQuery).Scan(&found.snapshot, &found.server)
	} else {
		err = found.read(ctx, s, h.snapshot, prefixes)
	}
	if err != nil {
		return err
	}
	// The snapshot of another server says nothing about this one.
	if len(prefixes) > 0 && (found.lost || found.server != h.server) {
		h.end(storage.ErrLagged)
	} else {
		h.publish(found.events)
	}
	h.snapshot, h.server = found.snapshot, found.server
	if w != nil {
		h.mu.Lock()
		h.watchers[w] = struct{}{}
		h.onAdded()
		h.mu.Unlock()
	}
	return nil
}

// changes is the result of one look.
type changes struct {
	snapshot, server string
	events           []storage.Event
	lost             bool // some changes could not be found or kept
}

func (c *changes) read(ctx context.Context, s *Store, since string, prefixes []string) error {
	names, lengths := make([][]byte, len(prefixes)), map[int32]bool{}
	for i, prefix := range prefixes {
		names[i] = []byte(prefix)
		lengths[int32(len(prefix))] = true //nolint:gosec // a prefix is not longer than a key
	}
	rows, _ := s.pool.Query(ctx, changesQuery, since, names, slices.Collect(maps.Keys(lengths)))
	var key, value []byte
	var rev *int64
	var swept bool
	size := 0
	_, err := pgx.ForEachRow(rows, []any{&c.snapshot, &c.server, &swept, &key, &value, &rev}, func() error {
		c.lost = c.lost || swept || size > maxQueued
		if rev != nil && !c.lost {
			e := storage.Entry{Key: string(key), Value: value, Revision: storage.Revision(*rev)}
			c.events = append(c.events, storage.Event{Entry: e, Deleted: value == nil})
			size += len(key) + len(value) + eventSize
		}
		value = nil
		return nil
	})
	// A write that begins after another has returned must come after it.
	slices.SortFunc(c.events, func(a, b storage.Event) int { return cmp.Compare(a.Revision, b.Revision) })
	return err
}

// watcher is the queue between the looks and the consumer of a Watch.
type watcher struct {
	prefixes []string
	used     atomic.Bool
	wake     chan struct{} // has a token when the queue is not empty

	mu    sync.Mutex // guards the fields below
	queue []storage.Event
	size  int
	err   error // the error that ends the sequence after the queue
}

// put adds an event. If the queue is full, this event and all later ones are lost.
func (w *watcher) put(e storage.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return
	}
	if w.size > maxQueued {
		w.err = storage.ErrLagged
	} else {
		w.queue = append(w.queue, e)
		w.size += len(e.Key) + len(e.Value) + eventSize
	}
	signal(w.wake)
}

func (w *watcher) end(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
	signal(w.wake)
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
	w.queue, w.size = nil, 0
	return events, w.err
}

// signal puts a token into a channel if it has room.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
