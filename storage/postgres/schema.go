package postgres

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"oneclaw/storage"
)

// layoutVersion is the version of the tables that this package reads and writes, minServer the oldest
// supported server, as server_version_num.
const (
	layoutVersion = 1
	minServer     = 140000
)

//go:embed schema.sql
var schema string

// upgrades holds at index n the statements that turn layout n into n+1; 0 means no tables.
var upgrades = [layoutVersion]string{schema}

// schemaLock is held while tables are created or upgraded, so that processes that start at the same time
// do so one after another.
const schemaLock = 0x6f6e65636c6177 // "oneclaw"

// prepare checks the server, and creates or upgrades the tables. If existing is true, the tables have to
// exist.
func (s *Store) prepare(ctx context.Context, existing bool) error {
	if err := s.inspect(ctx); err != nil {
		return err
	}
	if existing {
		version, err := tableVersion(ctx, s.pool)
		if err == nil && version == 0 {
			err = fmt.Errorf("%w: there are no tables of oneclaw", storage.ErrNotFound)
		}
		return cmp.Or(err, checkLayout(version))
	}
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1::bigint)", int64(schemaLock)); err != nil {
			return err
		}
		if err := upgrade(ctx, tx); err != nil {
			return err
		}
		return repairRestored(ctx, tx)
	})
}

// serverFacts are the properties that decide whether a server is suitable for a store.
type serverFacts struct {
	number            int // server_version_num
	version, name     string
	standby, readOnly bool
	isolation         string
	commit, fsync     string
}

// inspect rejects an unsuitable server.
func (s *Store) inspect(ctx context.Context) error {
	var f serverFacts
	// Nothing is prepared: PGlite would refuse a statement that an earlier connection has prepared.
	err := s.pool.QueryRow(ctx, `SELECT current_setting('server_version_num')::int, current_setting('server_version'), version(),
		pg_is_in_recovery(), current_setting('default_transaction_read_only')::bool, current_setting('default_transaction_isolation'),
		current_setting('synchronous_commit'), current_setting('fsync')`, pgx.QueryExecModeExec).
		Scan(&f.number, &f.version, &f.name, &f.standby, &f.readOnly, &f.isolation, &f.commit, &f.fsync)
	if err != nil {
		return err
	}
	if f.fsync == "off" {
		s.log.Warn("fsync is off: a crash of the server's machine destroys the data")
	}
	return f.check()
}

func (f serverFacts) check() error {
	switch {
	case strings.Contains(f.name, "CockroachDB") || strings.Contains(f.name, "-YB-"):
		return fmt.Errorf("the server (%.60s) is not PostgreSQL: it lacks the locks and snapshots that the store needs", f.name)
	case strings.Contains(f.name, "PGlite"):
		return fmt.Errorf("the server (%.40s) is PGlite, which serves one connection: the store needs several", f.name)
	case f.number < minServer:
		return fmt.Errorf("the server is PostgreSQL %s, which is too old: %d or newer is needed", f.version, minServer/10000)
	case f.standby:
		return errors.New("the server is a read-only standby: name the primary, or all servers (postgres://user@one,two/database)")
	case f.readOnly:
		return errors.New("the database is read-only: default_transaction_read_only is on for this user or database")
	case f.isolation != "read committed":
		return fmt.Errorf("default_transaction_isolation is %q for this user or database, it must be \"read committed\"", f.isolation)
	case f.commit == "off":
		return errors.New("synchronous_commit is off for this user or database: confirmed writes could be lost; turn it on")
	}
	return nil
}

// upgrade upgrades the tables to the layout of this package.
func upgrade(ctx context.Context, tx pgx.Tx) error {
	version, err := tableVersion(ctx, tx)
	if err = cmp.Or(err, checkLayout(version)); err != nil || version == layoutVersion {
		return err
	}
	for ; version < layoutVersion; version++ {
		if _, err := tx.Conn().PgConn().Exec(ctx, upgrades[version]).ReadAll(); err != nil {
			return err
		}
	}
	_, err = tx.Exec(ctx, "UPDATE oneclaw_meta SET version = $1::int WHERE one", layoutVersion)
	return err
}

// tableVersion returns the layout of the tables, 0 if there are none.
func tableVersion(ctx context.Context, db querier) (version int, err error) {
	var exists bool
	err = db.QueryRow(ctx, "SELECT to_regclass('oneclaw_meta') IS NOT NULL").Scan(&exists)
	if err == nil && exists {
		err = db.QueryRow(ctx, "SELECT version FROM oneclaw_meta WHERE one").Scan(&version)
	}
	return version, err
}

func checkLayout(version int) error {
	if version > layoutVersion {
		return fmt.Errorf("made by a newer version of the program (layout %d, this one knows %d): update the program", version, layoutVersion)
	}
	return nil
}

// repairRestored repairs tables that were restored from a dump of another server, if they contain
// transaction numbers that this server has not reached yet.
func repairRestored(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `UPDATE oneclaw_kv SET tx = pg_current_xact_id() WHERE tx >= pg_snapshot_xmax(pg_current_snapshot())`)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `UPDATE oneclaw_meta SET swept = '0' WHERE one AND swept >= pg_snapshot_xmax(pg_current_snapshot())`)
	return err
}
