package database

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"oneclaw/internal/replicas"
	"oneclaw/internal/transfer"
	"oneclaw/storage"
	"oneclaw/storage/bolt"
	"oneclaw/storage/postgres"
)

// connect opens the tables of a server. Those that do not exist are made, unless they have to
// exist; then the error is storage.ErrNotFound.
func (p Place) connect(ctx context.Context, existing bool, log *slog.Logger) (*postgres.Store, error) {
	cfg := postgres.Config{URL: string(p.Address), Existing: existing, Logger: log}
	if p.Address.Password() == "" {
		cfg.Password, cfg.PasswordFile = p.Password, p.PasswordFile
	}
	store, err := postgres.Open(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open %s (ONECLAW_STORE): %w", p.Address, cmp.Or(errors.Unwrap(err), err))
	}
	return store, nil
}

// openShared opens the database of a server. Of those that start together one brings it to
// the newest format.
func openShared(ctx context.Context, cfg Config) (*Store, error) {
	store, err := cfg.connect(ctx, false, cfg.Logger)
	if err != nil {
		return nil, err
	}
	waiting := func() error {
		cfg.Logger.Info("another process changes the whole database, such as its format: waiting for its end")
		return nil
	}
	err = store.Alone(ctx, waiting, func(ctx context.Context) error {
		if err := transfer.Check(ctx, store); err != nil {
			return err
		}
		backup := func() (string, error) {
			if err := checkUnserved(ctx, store); err != nil {
				return "", fmt.Errorf("they cannot read the new format: %w", err)
			}
			return keepShared(ctx, store, filepath.Join(cfg.Dir, Name), "before-update")
		}
		return upgrade(ctx, store, cfg.Migrations, backup, cfg.Logger)
	})
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return &Store{store}, nil
}

// checkUnserved refuses a database that bots serve.
func checkUnserved(ctx context.Context, store storage.KV) error {
	members, err := replicas.Alive(ctx, store, 0)
	if err != nil || len(members) == 0 {
		return err
	}
	var hosts []string
	for _, m := range members {
		hosts = append(hosts, m.Host)
	}
	return fmt.Errorf("bots run with this database (%s): stop them first", strings.Join(hosts, ", "))
}

// CheckUnserved refuses a database on a server that bots serve. A file is locked by the one
// that does.
func (s *Store) CheckUnserved(ctx context.Context) error {
	if _, ok := s.Store.(*postgres.Store); !ok {
		return nil
	}
	return checkUnserved(ctx, s)
}

// exclusively runs do on the database of a server while no bot serves it or begins to.
func exclusively(ctx context.Context, store *postgres.Store, do func(context.Context) error) error {
	busy := func() error {
		return errors.New("another process changes the whole database just now: try again when it is done")
	}
	return store.Alone(ctx, busy, func(ctx context.Context) error {
		if err := checkUnserved(ctx, store); err != nil {
			return err
		}
		return do(ctx)
	})
}

// settled is a source without the records of replicas: who they are is no data.
type settled struct{ transfer.Source }

// List implements transfer.Source.
func (s settled) List(ctx context.Context, r storage.Range) iter.Seq2[storage.Entry, error] {
	return func(yield func(storage.Entry, error) bool) {
		for entry, err := range s.Source.List(ctx, r) {
			if err == nil && strings.HasPrefix(entry.Key, replicas.Prefix) {
				continue
			}
			if !yield(entry, err) {
				return
			}
		}
	}
}

// keepShared copies the database of a server to a file beside where one of the data
// directory would be.
func keepShared(ctx context.Context, store *postgres.Store, path, why string) (string, error) {
	return keepAs(path, why, func(name string) error {
		// It is made here, so that nobody else has it.
		file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		if err = cmp.Or(file.Close(), download(ctx, store, name)); err != nil {
			err = errors.Join(err, os.Remove(name))
		}
		return err
	})
}

// download copies the database of a server, as it is at this moment, into an empty file, and
// checks that.
func download(ctx context.Context, store *postgres.Store, name string) error {
	file, err := bolt.Open(bolt.Config{Path: name, NoSync: true})
	if err != nil {
		return err
	}
	err = store.Snapshot(ctx, func(moment *postgres.Snapshot) error {
		_, err := transfer.Move(ctx, settled{moment}, file, nil)
		return err
	})
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return cmp.Or(syncFile(name), bolt.Verify(ctx, name))
}

func syncFile(name string) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// backupShared writes the database of a server to a new file in a folder.
func backupShared(ctx context.Context, at Place, dir string) (name string, size int64, err error) {
	store, err := at.connect(ctx, true, nil)
	if err != nil {
		return "", 0, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := transfer.Check(ctx, store); err != nil {
		return "", 0, err
	}
	name, _, err = spool(dir, backupPattern, func(io.Writer) error { return nil })
	if err != nil {
		return "", 0, err
	}
	err = download(ctx, store, name)
	info, statErr := os.Stat(name)
	if err = errors.Join(err, statErr); err != nil {
		return "", 0, errors.Join(err, os.Remove(name))
	}
	return name, info.Size(), nil
}

// restoreShared puts what a checked file holds in the place of the database of a server,
// which is kept as a file before.
func restoreShared(ctx context.Context, at Place, name string) (kept string, err error) {
	store, err := at.connect(ctx, false, nil)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	file, err := bolt.Open(bolt.Config{Path: name})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	err = exclusively(ctx, store, func(ctx context.Context) error {
		begun := transfer.Check(ctx, store)
		used, err := holds(ctx, store)
		if err != nil {
			return err
		}
		// What a restore that broke off has left is no database to keep.
		if used && !errors.Is(begun, transfer.ErrUnfinished) {
			if kept, err = keepShared(ctx, store, filepath.Join(at.Dir, Name), "before-restore"); err != nil {
				return fmt.Errorf("keep the database as it is: %w", err)
			}
		}
		if err := transfer.Clear(ctx, store); err != nil {
			return err
		}
		_, err = transfer.Move(ctx, file, ahead{store}, nil)
		return err
	})
	return kept, err
}

// holds reports whether there is anything in a store.
func holds(ctx context.Context, store storage.Store) (bool, error) {
	for _, err := range store.List(ctx, storage.Range{Limit: 1}) {
		return true, err
	}
	for _, err := range store.Logs(ctx, storage.Range{Limit: 1}) {
		return true, err
	}
	return false, nil
}

// ahead is a database of a server whose revisions go on above the present time in
// nanoseconds: a bot that works alone numbers messages by that, those that share a store by
// revisions.
type ahead struct{ *postgres.Store }

// Raise implements transfer.Target.
func (a ahead) Raise(ctx context.Context, rev storage.Revision) error {
	return a.Store.Raise(ctx, max(rev, storage.Revision(time.Now().UnixNano())))
}
