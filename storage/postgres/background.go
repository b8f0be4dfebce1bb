package postgres

import (
	"context"
	"crypto/rand"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// channel is the channel on which stores notify each other of changed keys.
const channel = "oneclaw"

// sweepEvery is the interval at which tombstones are removed, and their minimum age.
const sweepEvery = 15 * time.Second

func newID() string { return rand.Text() }

// notifyWatchers wakes the watchers and notifies other stores, after a group that changed keys.
func (s *Store) notifyWatchers(g *group) {
	signal(s.notifyNeeded)
	for _, prefix := range s.hub.prefixes() {
		for _, w := range g.writes {
			for _, op := range w.ops {
				if op.Key != "" && strings.HasPrefix(op.Key, string(prefix)) {
					signal(s.hub.changed)
					return
				}
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

// notify notifies other stores until ctx ends. If a notification fails, the other stores find the change
// when they poll.
func (s *Store) notify(ctx context.Context) {
	for sleep(ctx, tellPause) {
		select {
		case <-s.notifyNeeded:
		case <-ctx.Done():
			return
		}
		_ = s.withTimeout(ctx, func(ctx context.Context) error {
			_, err := s.pool.Exec(ctx, "SELECT pg_notify($1::text, $2::text)", channel, s.id)
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
	if _, err := conn.Exec(ctx, "LISTEN "+channel); err != nil {
		return err
	}
	begun()
	signal(s.hub.changed) // earlier notifications were missed
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		if n.Payload != s.id {
			signal(s.hub.changed)
		}
	}
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
