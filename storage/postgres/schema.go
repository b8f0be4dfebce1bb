package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// layout is the version of the tables that this package reads and writes, minServer the
// oldest server it knows, as server_version_num.
const (
	layout    = 1
	minServer = 140000
)

//go:embed schema.sql
var schema string

// upgrades holds at n what turns layout n into layout n+1; 0 is no tables at all.
var upgrades = [layout]string{schema}

// schemaLock is held while tables are made or upgraded, so that processes which start at
// the same time do so one after another.
const schemaLock = 0x6f6e65636c6177 // "oneclaw"

// aloneLock is held by [Store.Alone].
const aloneLock = schemaLock + 1

// Alone runs do while no other process, on whichever machine, does so on this database. It
// waits for its turn. Where the connection is lost meanwhile another one may begin, so what
// do writes has to expect revisions.
func (s *Store) Alone(ctx context.Context, do func(context.Context) error) error {
	if err := s.enter(ctx); err != nil {
		return fmt.Errorf("postgres: wait to be alone: %w", err)
	}
	defer s.leave()
	tx, err := s.pool.Begin(ctx)
	if err != nil {
		return fmt.Errorf("postgres: wait to be alone: %w", explain(err))
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // it has written nothing
	if _, err = tx.Exec(ctx, "SET LOCAL idle_in_transaction_session_timeout = 0"); err == nil {
		_, err = tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1::bigint)", int64(aloneLock))
	}
	if err != nil {
		return fmt.Errorf("postgres: wait to be alone: %w", explain(err))
	}
	return do(ctx)
}

// prepare looks at the server and makes or upgrades the tables.
func (s *Store) prepare(ctx context.Context) error {
	if err := s.inspect(ctx); err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1::bigint)", int64(schemaLock)); err != nil {
			return err
		}
		if err := upgrade(ctx, tx); err != nil {
			return err
		}
		return adopt(ctx, tx)
	})
}

// facts are what decides whether a server can keep what the contract promises.
type facts struct {
	number            int // of the version
	version, name     string
	standby, readOnly bool
	isolation         string
	commit, fsync     string
}

// inspect refuses a server that cannot be used.
func (s *Store) inspect(ctx context.Context) error {
	var f facts
	err := s.pool.QueryRow(ctx, `SELECT current_setting('server_version_num')::int, current_setting('server_version'), version(),
		pg_is_in_recovery(), current_setting('default_transaction_read_only')::bool, current_setting('default_transaction_isolation'),
		current_setting('synchronous_commit'), current_setting('fsync')`).
		Scan(&f.number, &f.version, &f.name, &f.standby, &f.readOnly, &f.isolation, &f.commit, &f.fsync)
	if err != nil {
		return err
	}
	if f.fsync == "off" {
		s.log.Warn("fsync is off: a crash of the database's machine destroys the data")
	}
	return f.check()
}

func (f facts) check() error {
	switch {
	case strings.Contains(f.name, "CockroachDB") || strings.Contains(f.name, "-YB-"):
		return fmt.Errorf("the server (%.60s) is not PostgreSQL: it lacks the locks and snapshots that the store needs", f.name)
	case f.number < minServer:
		return fmt.Errorf("the server is PostgreSQL %s, which is too old: %d or newer is needed", f.version, minServer/10000)
	case f.standby:
		return errors.New("the server is a read-only standby: name the primary, or all servers (postgres://user@one,two/database)")
	case f.readOnly:
		return errors.New("the database is read-only: default_transaction_read_only is on for this user or database")
	case f.isolation != "read committed":
		return fmt.Errorf("default_transaction_isolation is %q for this user or database, it must be \"read committed\"", f.isolation)
	case f.commit == "off":
		return errors.New("synchronous_commit is off for this user or database: what was confirmed could be lost; turn it on")
	}
	return nil
}

// upgrade brings the tables to the layout of this package.
func upgrade(ctx context.Context, tx pgx.Tx) error {
	version := 0
	var exists bool
	err := tx.QueryRow(ctx, "SELECT to_regclass('oneclaw_meta') IS NOT NULL").Scan(&exists)
	if err == nil && exists {
		err = tx.QueryRow(ctx, "SELECT version FROM oneclaw_meta WHERE one").Scan(&version)
	}
	if err != nil {
		return err
	}
	if version > layout {
		return fmt.Errorf("made by a newer version of the program (layout %d, this one knows %d): update the program", version, layout)
	}
	if version == layout {
		return nil
	}
	for ; version < layout; version++ {
		if _, err := tx.Conn().PgConn().Exec(ctx, upgrades[version]).ReadAll(); err != nil {
			return err
		}
	}
	_, err = tx.Exec(ctx, "UPDATE oneclaw_meta SET version = $1::int WHERE one", layout)
	return err
}

// adopt mends what a dump brought along that was restored on another server: numbers of
// transactions that this server has not had yet.
func adopt(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `UPDATE oneclaw_kv SET tx = pg_current_xact_id() WHERE tx >= pg_snapshot_xmax(pg_current_snapshot())`)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `UPDATE oneclaw_meta SET swept = '0' WHERE one AND swept >= pg_snapshot_xmax(pg_current_snapshot())`)
	return err
}
