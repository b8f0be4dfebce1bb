package postgres

import (
	"context"
	"crypto/rand"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"oneclaw/storage"
)

// defaultChannel is the channel on which stores notify each other of changed keys; see [Config].
const defaultChannel = "oneclaw"

// sweepEvery is the interval at which tombstones, the rows of deleted keys, are removed, and their minimum
// age.
const sweepEvery = 15 * time.Second

func newID() string { return rand.Text() }

// notices holds the channels on which other stores have to be notified.
type notices struct {
	mu       sync.Mutex
	channels map[string]bool
	needed   chan struct{} // has a token when there are channels
}

func (n *notices) add(channel string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.channels[channel] = true
	signal(n.needed)
}

func (n *notices) take() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := slices.Collect(maps.Keys(n.channels))
	clear(n.channels)
	return all
}

// notifyWatchers wakes the watchers and notifies other stores, after a group that changed keys.
func (s *Store) notifyWatchers(g *group) {
	prefixes := s.hub.watchers.Prefixes()
	for _, w := range g.writes {
		for _, op := range w.ops {
			if op.Kind != storage.KindPut && op.Kind != storage.KindDelete {
				continue
			}
			if channel := s.channel(op.Key); channel != "" {
				s.notices.add(channel)
			}
			if slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(op.Key, prefix) }) {
				signal(s.hub.changed)
			}
		}
	}
}

// pollChanges passes changes to the watchers until ctx ends, on notifications and at an interval.
func (s *Store) pollChanges(ctx context.Context, every time.Duration) {
	poll := time.NewTicker(every)
	defer poll.Stop()
	health := health{log: s.log, what: "changes are not found"}
	for sleep(ctx, lookPause) {
		select {
		case <-s.hub.changed:
		case <-poll.C:
		case <-ctx.Done():
			return
		}
		health.record(ctx, s.withTimeout(ctx, func(ctx context.Context) error { return s.publishChanges(ctx, nil) }))
	}
}

// notifyQuery notifies on channels. The server need not wait for the disk, since nothing is stored.
const notifyQuery = "SELECT set_config('synchronous_commit', 'off', true), pg_notify(c, $2::text) FROM unnest($1::text[]) AS c"

// notify notifies other stores until ctx ends. If a notification fails, the other stores find the change
// when they poll.
func (s *Store) notify(ctx context.Context) {
	for sleep(ctx, tellPause) {
		select {
		case <-s.notices.needed:
		case <-ctx.Done():
			return
		}
		_ = s.withTimeout(ctx, func(ctx context.Context) error {
			_, err := s.pool.Exec(ctx, notifyQuery, s.notices.take(), s.id)
			return err
		})
	}
}

// listen receives notifications until ctx ends, on a connection of its own.
func (s *Store) listen(ctx context.Context, pc *pgxpool.Config) {
	health := health{log: s.log, what: "changes by other processes are found only by polling"}
	for ctx.Err() == nil {
		health.record(ctx, s.listenOnce(ctx, pc, func() { health.record(ctx, nil) }))
		sleep(ctx, pollEvery)
	}
}

// listenOnce listens on one connection until the connection ends. It calls begun once it listens.
func (s *Store) listenOnce(ctx context.Context, pc *pgxpool.Config, begun func()) error {
	cc := pc.ConnConfig.Copy()
	if pc.BeforeConnect != nil {
		if err := pc.BeforeConnect(ctx, cc); err != nil {
			return err
		}
	}
	conn, err := pgx.ConnectConfig(ctx, cc)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	heard := map[string]bool{}
	for {
		// A new watch interrupts the wait.
		waiting, interrupt := context.WithCancel(ctx)
		wanted := s.hub.onWatch(interrupt, s.channel)
		if err := listenTo(ctx, conn, heard, wanted); err != nil {
			interrupt()
			return err
		}
		if !maps.Equal(heard, wanted) {
			signal(s.hub.changed) // earlier notifications were missed
		}
		heard = wanted
		begun()
		n, err := conn.WaitForNotification(waiting)
		interrupted := waiting.Err() != nil && ctx.Err() == nil && !conn.IsClosed()
		interrupt()
		if err != nil && !interrupted {
			return err
		}
		if err == nil && n.Payload != s.id {
			signal(s.hub.changed)
		}
	}
}

// listenTo changes the channels of a connection from heard to wanted.
func listenTo(ctx context.Context, conn *pgx.Conn, heard, wanted map[string]bool) error {
	var all []string
	for channel := range wanted {
		if !heard[channel] {
			all = append(all, "LISTEN "+pgx.Identifier{channel}.Sanitize())
		}
	}
	for channel := range heard {
		if !wanted[channel] {
			all = append(all, "UNLISTEN "+pgx.Identifier{channel}.Sanitize())
		}
	}
	if len(all) == 0 {
		return nil
	}
	_, err := conn.PgConn().Exec(ctx, strings.Join(all, ";")).ReadAll()
	return err
}

// sweepLoop removes tombstones until ctx ends.
func (s *Store) sweepLoop(ctx context.Context) {
	before := ""
	health := health{log: s.log, what: "tombstones are not removed"}
	for sleep(ctx, sweepEvery) {
		health.record(ctx, s.withTimeout(ctx, func(ctx context.Context) (err error) {
			before, err = s.sweep(ctx, before)
			return err
		}))
	}
}

// sweepAtOnce bounds how many tombstones one request removes.
const sweepAtOnce = 10000

const sweepQuery = `WITH gone AS (
		DELETE FROM oneclaw_kv WHERE key IN (
			SELECT key FROM oneclaw_kv WHERE value IS NULL AND tx < $1::text::xid8 ORDER BY tx LIMIT $2::int FOR UPDATE SKIP LOCKED)
		RETURNING 1), noted AS (
		UPDATE oneclaw_meta SET swept = greatest(swept, $1::text::xid8) WHERE one AND EXISTS (SELECT FROM gone))
	SELECT count(*) FROM gone`

// sweep removes the tombstones from before a transaction, if before is set. It returns the oldest
// running transaction: the next sweep can remove tombstones from before that one, because by then every
// working watcher has seen them. A watcher that has not notices this by the column swept.
func (s *Store) sweep(ctx context.Context, before string) (oldest string, err error) {
	for count := sweepAtOnce; before != "" && count == sweepAtOnce; {
		if err := s.pool.QueryRow(ctx, sweepQuery, before, sweepAtOnce).Scan(&count); err != nil {
			return before, err
		}
	}
	err = s.pool.QueryRow(ctx, "SELECT pg_snapshot_xmin(pg_current_snapshot())::text").Scan(&oldest)
	return oldest, err
}

// health logs when a part of the store stops working, and when it works again.
type health struct {
	log  *slog.Logger
	what string // describes the failing part
	bad  bool
}

func (h *health) record(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil:
	case err != nil && !h.bad:
		h.log.Warn("requests to the database fail", "so", h.what, "err", explain(err))
	case err == nil && h.bad:
		h.log.Info("requests to the database succeed again", "before", h.what)
	}
	h.bad = err != nil
}

// sleep waits for d and reports whether ctx is still alive.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
