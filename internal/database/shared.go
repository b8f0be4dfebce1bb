package database

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync/atomic"

	"oneclaw/internal/replicas"
	"oneclaw/internal/transfer"
	"oneclaw/storage"
	"oneclaw/storage/bolt"
	"oneclaw/storage/postgres"
)

// shared is a database on a server, with the steps to the newest format that this program
// knows.
type shared struct {
	*postgres.Store
	cfg Config
	// format is what the database had when this program last looked.
	format atomic.Int64
}

// connect opens the tables of a server.
func (p Place) connect(ctx context.Context, log *slog.Logger) (*postgres.Store, error) {
	return postgres.Open(ctx, postgres.Config{URL: string(p.Address), Password: p.Password, PasswordFile: p.PasswordFile, Logger: log})
}

// openShared opens the database of a server. Of those that start together one brings it to
// the newest format, if all replicas know that.
func openShared(ctx context.Context, cfg Config) (*Store, error) {
	store, err := cfg.connect(ctx, cfg.Logger)
	if err != nil {
		return nil, err
	}
	s := &shared{Store: store, cfg: cfg}
	if err = transfer.Check(ctx, store); err == nil {
		err = s.begin(ctx)
	}
	if err != nil {
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
	if behind := len(s.cfg.Migrations) - int(s.format.Load()); behind == 1 {
		s.cfg.Logger.Info("other replicas do not know the newest format of the database, which waits for them", "format", s.format.Load())
		return nil
	}
	if err = replicas.Bury(ctx, s.Store, s.cfg.TTL); err == nil {
		done, err = s.upgrade(ctx)
	}
	if err == nil && !done {
		err = fmt.Errorf("the database has format %d, this oneclaw knows %d, and older replicas are running: "+
			"update them one release after another, or stop them all first", s.format.Load(), len(s.cfg.Migrations))
	}
	return err
}

// upgrade brings the database to the newest format, unless there is a replica that does not
// know it. It reports whether the database has that now.
func (s *shared) upgrade(ctx context.Context) (done bool, err error) {
	err = s.Alone(ctx, func(ctx context.Context) error {
		f, err := readFormat(ctx, s.Store)
		if err == nil {
			err = checkFormat(f, len(s.cfg.Migrations))
		}
		s.format.Store(int64(f.Version))
		if err != nil {
			return err
		}
		others := 0
		if f.Version < len(s.cfg.Migrations) && f.rev > 0 {
			if others, err = s.announce(ctx, &f); err != nil || others < 0 {
				return err
			}
		}
		backup := func() (string, error) { return keepShared(ctx, s.Store, filepath.Join(s.cfg.Dir, Name)) }
		if others > 0 {
			// A copy cannot be made while they write.
			backup = func() (string, error) { return "the backup of the server", nil }
		}
		if err = upgrade(ctx, s.Store, s.cfg.Migrations, backup, s.cfg.Logger); err == nil {
			done = true
			s.format.Store(int64(len(s.cfg.Migrations)))
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
	f.Next = len(s.cfg.Migrations)
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
		if m.Format < len(s.cfg.Migrations) {
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
	return len(s.shared.cfg.Migrations)
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
		for event, err := range replicas.Watch(ctx, s.Store) {
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

// keepShared backs the database of a server up that is about to get a new format.
func keepShared(ctx context.Context, store *postgres.Store, path string) (string, error) {
	return keepAs(path, "before-update", func(name string) error {
		file, err := bolt.Open(bolt.Config{Path: name})
		if err != nil {
			return err
		}
		_, err = transfer.Move(ctx, store, file, nil)
		return errors.Join(err, file.Close())
	})
}
