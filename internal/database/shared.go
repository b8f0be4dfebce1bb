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

// shared is a database on a server, with the migrations that this program knows.
type shared struct {
	*postgres.Store
	cfg Config
	// format is the format of the database when last read.
	format atomic.Int64
}

func (s *shared) newest() int { return Newest(s.cfg.Migrations) }

// connect opens the tables of a server. Missing ones are created unless existing is set; then
// the error is storage.ErrNotFound.
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

// openShared opens the database of a server. One of the replicas that start together upgrades it
// to the newest format, if all know that.
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

// begin prepares a program before it joins: it uses the newest format, or the previous one while
// there are replicas that do not know a newer one.
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

// upgrade upgrades the database to the newest format, unless a replica does not know it. It
// reports whether the database has that format now.
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

// announce records that the database gets the newest format, and returns the number of replicas,
// -1 if one does not know it. A replica checks the format after joining, so none is missed.
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

// others counts the replicas: -1 if one does not know the newest format.
func (s *shared) others(ctx context.Context) (int, error) {
	members, err := replicas.List(ctx, s.Store)
	for _, m := range members {
		if m.Format < s.newest() {
			return -1, err
		}
	}
	return len(members), err
}

// Shared reports whether other processes may have the database open, too.
func (s *Store) Shared() bool { return s.shared != nil }

// Format returns the format in which data has to be written.
func (s *Store) Format() int {
	if s.shared == nil {
		return 0
	}
	return int(s.shared.format.Load())
}

// Known returns the newest format that this program knows.
func (s *Store) Known() int {
	if s.shared == nil {
		return 0
	}
	return s.shared.newest()
}

// Check refuses a database that has, or is about to get, a format that this program does not
// know, with replicas.ErrRefused. A replica calls it after joining.
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

// Upgrade waits for the last replica that does not know the newest format to end, and upgrades
// the database then. It also returns when ctx ends.
func (s *Store) Upgrade(ctx context.Context) error {
	for ctx.Err() == nil && s.Format() < s.Known() {
		due := true // one may have ended before the watch began
		for event, err := range replicas.WatchMembers(ctx, s.Store) {
			if errors.Is(err, storage.ErrClosed) {
				return nil
			}
			if err != nil {
				break // watch again
			}
			// Heartbeats repeat. Another replica may have upgraded it.
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

// CheckUnserved refuses a database on a server that bots serve. A file is locked by the bot.
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

// withoutReplicas is a source without the records of replicas, which are not data.
type withoutReplicas struct{ Source }

// List implements Source.
func (s withoutReplicas) List(ctx context.Context, r storage.Range) iter.Seq2[storage.Entry, error] {
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

// keepShared copies the database of a server to a file, beside where the one of the data
// directory would be.
func keepShared(ctx context.Context, store *postgres.Store, path, why string) (string, error) {
	return keepAs(path, why, func(name string) error {
		// O_EXCL: no other process has it.
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

// download copies a snapshot of the database of a server into an empty file, and checks it.
func download(ctx context.Context, store *postgres.Store, name string) error {
	file, err := bolt.Open(bolt.Config{Path: name, NoSync: true})
	if err != nil {
		return err
	}
	err = store.Snapshot(ctx, func(moment *postgres.Snapshot) error {
		_, err := MoveStore(ctx, withoutReplicas{moment}, file, nil)
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

// restoreShared replaces the database of a server by the content of a checked file; the old one
// is kept as a file.
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
		// What an interrupted restore has left is not worth keeping.
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

// holds reports whether a store has any key.
func holds(ctx context.Context, store storage.Store) (bool, error) {
	for _, err := range store.List(ctx, storage.Range{Limit: 1}) {
		return true, err
	}
	for _, err := range store.Logs(ctx, storage.Range{Limit: 1}) {
		return true, err
	}
	return false, nil
}
