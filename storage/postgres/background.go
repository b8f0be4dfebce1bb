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

// sweepEvery is the interval at which tombstones are removed, and their least age.
const sweepEvery = 15 * time.Second

func newID() string { return rand.Text() }

// changed makes the watchers look and notifies other stores, after a group that changed keys.
func (s *Store) changed(g *group) {
	signal(s.told)
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

// follow looks for changes until ctx ends, on notifications and at an interval.
func (s *Store) follow(ctx context.Context, every time.Duration) {
	poll := time.NewTicker(every)
	defer poll.Stop()
	health := health{log: s.log, what: "changes are not seen"}
	for wait(ctx, lookPause) {
		select {
		case <-s.hub.changed:
		case <-poll.C:
		case <-ctx.Done():
			return
		}
		health.note(ctx, s.ask(ctx, func(ctx context.Context) error { return s.look(ctx, nil) }))
	}
}

// notify notifies other stores until ctx ends. If that fails, their poll finds the change.
func (s *Store) notify(ctx context.Context) {
	for wait(ctx, tellPause) {
		select {
		case <-s.told:
		case <-ctx.Done():
			return
		}
		_ = s.ask(ctx, func(ctx context.Context) error {
			_, err := s.pool.Exec(ctx, "SELECT pg_notify($1::text, $2::text)", channel, s.id)
			return err
		})
	}
}

// listen receives notifications until ctx ends, on a connection of its own.
func (s *Store) listen(ctx context.Context, pc *pgxpool.Config) {
	health := health{log: s.log, what: "changes of others are seen by the poll alone"}
	for ctx.Err() == nil {
		health.note(ctx, s.listenOnce(ctx, pc, func() { health.note(ctx, nil) }))
		wait(ctx, pollEvery)
	}
}

// listenOnce listens on one connection until that ends. It calls begun once it listens.
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

// sweepAll removes tombstones until ctx ends.
func (s *Store) sweepAll(ctx context.Context) {
	before := ""
	health := health{log: s.log, what: "traces of deletions stay"}
	for wait(ctx, sweepEvery) {
		health.note(ctx, s.ask(ctx, func(ctx context.Context) (err error) {
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

// sweep removes the tombstones from before a transaction, if before is set, and returns the oldest
// transaction that still runs: earlier tombstones can be removed the next time, when every working
// watcher has seen them. A watcher that has not notices by the column swept.
func (s *Store) sweep(ctx context.Context, before string) (oldest string, err error) {
	for count := sweepAtOnce; before != "" && count == sweepAtOnce; {
		if err := s.pool.QueryRow(ctx, sweepQuery, before, sweepAtOnce).Scan(&count); err != nil {
			return before, err
		}
	}
	err = s.pool.QueryRow(ctx, "SELECT pg_snapshot_xmin(pg_current_snapshot())::text").Scan(&oldest)
	return oldest, err
}

// health logs when something stops working, and when it works again.
type health struct {
	log  *slog.Logger
	what string // describes the failing part
	bad  bool
}

func (h *health) note(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil:
	case err != nil && !h.bad:
		h.log.Warn("the database does not answer as it should", "so", h.what, "err", explain(err))
	case err == nil && h.bad:
		h.log.Info("the database answers again", "before", h.what)
	}
	h.bad = err != nil
}

// wait waits and reports whether ctx is still alive.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
