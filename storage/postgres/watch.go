package postgres

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
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
	// maxFound bounds the events that one look may find, in bytes, including eventSize for each.
	maxFound  = 16 << 20
	eventSize = 128
)

// Watch implements storage.KV. The sequence can be iterated once.
func (s *Store) Watch(ctx context.Context, prefixes ...string) iter.Seq2[storage.Event, error] {
	return s.hub.watchers.Watch(ctx, prefixes, func(add func()) error {
		return s.read(ctx, func(ctx context.Context) error { return s.publishChanges(ctx, add) })
	})
}

// hub holds the watchers and what they have seen.
type hub struct {
	watchers storage.Watchers
	changed  chan struct{} // has a token when something may have changed
	looking  chan struct{} // holds a token during a look; its holder owns snapshot and server
	// snapshot is the snapshot of the last look, server identifies the server and its start.
	snapshot, server string

	mu      sync.Mutex // guards onAdded
	onAdded func()     // is called for each new watcher
}

func newHub() hub {
	return hub{changed: make(chan struct{}, 1), looking: make(chan struct{}, 1), onAdded: func() {}}
}

// onWatch returns the channels of the current watchers. The hub calls added for each later watcher.
func (h *hub) onWatch(added func(), channel func(prefix string) string) map[string]bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.onAdded = added
	all := map[string]bool{}
	for _, prefix := range h.watchers.Prefixes() {
		if name := channel(prefix); name != "" {
			all[name] = true
		}
	}
	return all
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

// publishChanges passes the changes since the last look to the watchers, and then adds one if add is not nil.
func (s *Store) publishChanges(ctx context.Context, add func()) error {
	h := &s.hub
	select {
	case h.looking <- struct{}{}:
		defer func() { <-h.looking }()
	case <-ctx.Done():
		return ctx.Err()
	}
	prefixes := h.watchers.Prefixes()
	if add == nil && len(prefixes) == 0 {
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
		h.watchers.End(storage.ErrLagged)
	} else {
		h.watchers.Publish(found.events)
	}
	h.snapshot, h.server = found.snapshot, found.server
	if add != nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		add()
		h.onAdded()
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
		c.lost = c.lost || swept || size > maxFound
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

// signal puts a token into a channel if it has room.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
