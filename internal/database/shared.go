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
	"sync/atomic"

	"oneclaw/storage"
	"oneclaw/storage/bolt"
	"oneclaw/storage/postgres"
	"oneclaw/storage/replicas"
)

// shared is a database on a server, with the steps to the newest format that this program
// knows.
type shared struct {
	*postgres.Store
	cfg Config
	// format is what the database had when this program last looked.
	format atomic.Int64
}

func (s *shared) newest() int { return Newest(s.cfg.Migrations) }

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
// the newest format, if all replicas know that.
func openShared(ctx context.Context, cfg Config) (*Store, error) {
	store, err := cfg.connect(ctx, false, cfg.Logger)
	if err != nil {
		return nil, err
	}
	s := &shared{Store: store, cfg: cfg}
	if err := s.begin(ctx); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return &Store{store, s}, nil
}

// begin is what a program does before it joins: it works with the newest format, or with the
// one before it as long as there are replicas that do not know a newer one.
func (s *shared) begin(ctx context.Context) error {
	done, err := s.upgrade(ctx)
	if err != nil || done {
		return err
	}
	if behind := s.newest() - int(s.format.Load()); behind == 1 {
		s.cfg.Logger.Info("other replicas do not know the newest format of the database, which waits for them", "format", s.format.Load())
		return nil
	}
	if err = replicas.RemoveDead(ctx, s.Store, s.cfg.TTL); err == nil {
		done, err = s.upgrade(ctx)
	}
	if err == nil && !done {
		err = fmt.Errorf("the database has format %d, this oneclaw knows %d, and older replicas are running: "+
			"update them one release after another, or stop them all first", s.format.Load(), s.newest())
	}
	return err
}

// upgrade brings the database to the newest format, unless there is a replica that does not
// know it. It reports whether the database has that now.
func (s *shared) upgrade(ctx context.Context) (done bool, err error) {
	waiting := func() error {
		s.cfg.Logger.Info("another process changes the whole database, such as its format: waiting for its end")
		return nil
	}
	err = s.Alone(ctx, waiting, func(ctx context.Context) error {
		if err := CheckEmpty(ctx, s.Store); err != nil {
			return err
		}
		f, err := readFormat(ctx, s.Store)
		if err == nil {
			err = checkFormat(f, s.newest())
		}
		s.format.Store(int64(f.Version))
		if err != nil {
			return err
		}
		if f.Version < s.newest() && f.rev > 0 {
			if others, err := s.announce(ctx, &f); err != nil || others < 0 {
				return err
			}
		}
		backup := func() (string, error) {
			return keepShared(ctx, s.Store, filepath.Join(s.cfg.Dir, Name), "before-update")
		}
		if err = upgrade(ctx, s.Store, s.cfg.Migrations, backup, s.cfg.Logger); err == nil {
			done = true
			s.format.Store(int64(s.newest()))
		}
		return err
	})
	return done, err
}

// announce says in the database that it gets the newest format, and returns how many
// replicas there are, -1 where one does not know it. A replica looks at the format when it
// has joined, so none comes that was not seen here.
func (s *shared) announce(ctx context.Context, f *format) (others int, err error) {
	if others, err = s.others(ctx); err != nil || others < 0 {
		return others, err
	}
	f.Next = s.newest()
	if err := writeFormat(ctx, s.Store, f); err != nil {
		return 0, err
	}
	if others, err = s.others(ctx); err == nil && others < 0 {
		f.Next = 0
		err = writeFormat(ctx, s.Store, f)
	}
	return others, err
}

// others counts the replicas: -1 where one does not know the newest format.
func (s *shared) others(ctx context.Context) (int, error) {
	members, err := replicas.List(ctx, s.Store)
	for _, m := range members {
		if m.Format < s.newest() {
			return -1, err
		}
	}
	return len(members), err
}

// Shared reports whether other programs may have the database open, too.
func (s *Store) Shared() bool { return s.shared != nil }

// Format is the format of the data: what is written has to be of it.
func (s *Store) Format() int {
	if s.shared == nil {
		return 0
	}
	return int(s.shared.format.Load())
}

// Known is the newest format that this program knows.
func (s *Store) Known() int {
	if s.shared == nil {
		return 0
	}
	return s.shared.newest()
}

// Check refuses a database that has, or is about to get, a format that this program does not
// know, with replicas.ErrRefused. A replica asks when it has joined.
func (s *Store) Check(ctx context.Context) error {
	f, err := readFormat(ctx, s.Store)
	if err != nil {
		return err
	}
	if err := checkFormat(f, s.Known()); err != nil {
		return fmt.Errorf("%w: %w", replicas.ErrRefused, err)
	}
	return nil
}

// Upgrade brings a database of which older replicas held up the newest format to it when the
// last of them is gone. It returns then, or when ctx ends.
func (s *Store) Upgrade(ctx context.Context) error {
	for ctx.Err() == nil && s.Format() < s.Known() {
		due := true // one may have gone before the watch began
		for event, err := range replicas.WatchMembers(ctx, s.Store) {
			if errors.Is(err, storage.ErrClosed) {
				return nil
			}
			if err != nil {
				break // watch again
			}
			// Signs of life come again and again. Another replica may have done it.
			f, err := readFormat(ctx, s.Store)
			if due = due || event.Deleted || f.Version == s.Known(); due && err == nil {
				var done bool
				if done, err = s.shared.upgrade(ctx); done {
					return nil
				}
			}
			if due = err != nil; due && ctx.Err() == nil {
				s.shared.cfg.Logger.Error("the database does not get its new format; trying again", "err", err)
			}
		}
	}
	return nil
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
type settled struct{ Source }

// List implements Source.
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
		// It is made here, so that no other process has it.
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
		_, err := MoveStore(ctx, settled{moment}, file, nil)
		return err
	})
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return cmp.Or(syncFile(name), bolt.Verify(ctx, name), sign(name))
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
	if err := CheckEmpty(ctx, store); err != nil {
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
		begun := CheckEmpty(ctx, store)
		used, err := holds(ctx, store)
		if err != nil {
			return err
		}
		// What a restore that broke off has left is no database to keep.
		if used && !errors.Is(begun, ErrUnfinished) {
			if kept, err = keepShared(ctx, store, filepath.Join(at.Dir, Name), "before-restore"); err != nil {
				return fmt.Errorf("keep the database as it is: %w", err)
			}
		}
		if err := ClearStore(ctx, store); err != nil {
			return err
		}
		_, err = MoveStore(ctx, file, store, nil)
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
