package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"oneclaw/storage"
)

// Snapshot is the content of a store at one moment. It has the store's methods for reading.
type Snapshot struct{ reader }

// Snapshot calls read with the current state of the store, unaffected by later writes. Until read
// returns, the server keeps replaced versions.
func (s *Store) Snapshot(ctx context.Context, read func(*Snapshot) error) error {
	return s.inTransaction(ctx, "take a snapshot", pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		return read(&Snapshot{reader{db: tx, request: s.withTimeout}})
	})
}

// aloneLock is held during [Store.RunAlone].
const aloneLock = schemaLock + 1

// RunAlone runs do while no other process, on any machine, is in RunAlone on this database. If one is,
// RunAlone calls waiting, and waits unless that returns an error. If the connection is lost, another
// process may begin before do has returned, so do must make its writes conditional on revisions.
func (s *Store) RunAlone(ctx context.Context, waiting func() error, do func(context.Context) error) error {
	return s.inTransaction(ctx, "wait to be alone", pgx.TxOptions{}, func(tx pgx.Tx) error {
		free := false
		err := tx.QueryRow(ctx, "SELECT pg_try_advisory_xact_lock($1::bigint)", int64(aloneLock)).Scan(&free)
		if err == nil && !free {
			if err := waiting(); err != nil {
				return err
			}
			_, err = tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1::bigint)", int64(aloneLock))
		}
		if err != nil {
			return fmt.Errorf("postgres: wait to be alone: %w", explain(err))
		}
		return do(ctx)
	})
}

// inTransaction runs do within a transaction that writes nothing.
func (s *Store) inTransaction(ctx context.Context, what string, options pgx.TxOptions, do func(pgx.Tx) error) error {
	if err := s.enter(ctx); err != nil {
		return fmt.Errorf("postgres: %s: %w", what, err)
	}
	defer s.leave()
	tx, err := s.pool.BeginTx(ctx, options)
	if err != nil {
		return fmt.Errorf("postgres: %s: %w", what, explain(err))
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // nothing was written
	if _, err := tx.Exec(ctx, "SET LOCAL idle_in_transaction_session_timeout = 0"); err != nil {
		return fmt.Errorf("postgres: %s: %w", what, explain(err))
	}
	return do(tx)
}

// Server describes the server of a store to administrators.
type Server struct {
	Version string
	// Size is the size of the tables, in bytes.
	Size int64
	// Time is the server's time.
	Time time.Time
	// Warnings say which settings should be changed, and how.
	Warnings []string
}

const serverQuery = `SELECT current_setting('server_version'), now(),
	current_setting('fsync') = 'off', current_setting('full_page_writes') = 'off',
	current_setting('synchronous_commit'), current_setting('synchronous_standby_names') <> '',
	(SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'), current_setting('max_connections')::int,
	coalesce(NOT (SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()) AND NOT inet_server_addr() <<= '127.0.0.0/8' AND inet_server_addr() <> '::1', false)`

// Server asks the server for its description.
func (s *Store) Server(ctx context.Context) (v Server, err error) {
	var noSync, noPages, standbys, plain bool
	var commit string
	var connections, most int
	err = s.read(ctx, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, serverQuery).
			Scan(&v.Version, &v.Time, &noSync, &noPages, &commit, &standbys, &connections, &most, &plain)
	})
	if err != nil {
		return v, fmt.Errorf("postgres: ask for the server's settings: %w", err)
	}
	for _, w := range []struct {
		wrong bool
		words string
	}{
		{noSync, "fsync is off: a crash of the server's machine destroys the data; turn it on"},
		{noPages, "full_page_writes is off: a crash of the server's machine can destroy the data; turn it on"},
		{standbys && (commit == "local" || commit == "remote_write"), "synchronous_commit is " + commit + ": a failover to a standby can lose confirmed writes; set it to on"},
		{connections*10 >= most*9, fmt.Sprintf("%d of %d connections are in use: raise max_connections, or put a pooler in front", connections, most)},
		{plain, "the connection is not encrypted: set sslmode=verify-full in ONECLAW_STORE"},
	} {
		if w.wrong {
			v.Warnings = append(v.Warnings, w.words)
		}
	}
	v.Size, err = s.Size(ctx)
	return v, err
}

// Size returns the size of the tables and their indexes on the server, in bytes.
func (s *Store) Size(ctx context.Context) (size int64, err error) {
	err = s.read(ctx, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, `SELECT sum(pg_total_relation_size(name::regclass))::bigint
			FROM unnest('{oneclaw_kv,oneclaw_logs,oneclaw_records,oneclaw_meta}'::text[]) AS t(name)`).Scan(&size)
	})
	if err != nil {
		return 0, fmt.Errorf("postgres: ask for the size: %w", err)
	}
	return size, nil
}

// NewestRevision returns a revision that is at least as high as all revisions that can be read here.
func (s reader) NewestRevision(ctx context.Context) (storage.Revision, error) {
	var last int64
	err := s.request(ctx, func(ctx context.Context) error {
		return s.db.QueryRow(ctx, "SELECT last_value FROM oneclaw_revision").Scan(&last)
	})
	if err != nil {
		return 0, fmt.Errorf("postgres: read the newest revision: %w", err)
	}
	return storage.Revision(last), nil
}

// RaiseRevisions makes all later revisions higher than rev. No process may write at the same time.
func (s *Store) RaiseRevisions(ctx context.Context, rev storage.Revision) error {
	err := s.read(ctx, func(ctx context.Context) error {
		_, err := s.pool.Exec(ctx, "SELECT setval('oneclaw_revision', greatest(last_value, $1::bigint)) FROM oneclaw_revision", int64(rev))
		return err
	})
	if err != nil {
		return fmt.Errorf("postgres: raise the revisions: %w", err)
	}
	return nil
}
