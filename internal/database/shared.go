package database

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"oneclaw/storage"
	"oneclaw/storage/bolt"
	"oneclaw/storage/postgres"
	"oneclaw/storage/replicas"
)

// sharedDatabase is a database on a server, with the migrations that this program knows.
type sharedDatabase struct {
	*postgres.Store
	cfg Config
	// format is the format of the database when last read.
	format atomic.Int64
}

func (s *sharedDatabase) newestFormat() int { return NewestFormat(s.cfg.Migrations) }

// connect opens the tables of a server. Missing ones are created unless existing is set; then
// the error is storage.ErrNotFound.
func (p Place) connect(ctx context.Context, existing bool, log *slog.Logger) (*postgres.Store, error) {
	cfg := postgres.Config{URL: string(p.Address), Existing: existing, Channel: ChannelOf, Logger: log}
	if p.Address.Password() == "" {
		cfg.Password, cfg.PasswordFile = p.Password, p.PasswordFile
	}
	store, err := postgres.Open(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open %s (ONECLAW_STORE): %w", p.Address, cmp.Or(errors.Unwrap(err), err))
	}
	return store, nil
}

// noticePrefix begins the keys of notices; the share of the chat follows.
const noticePrefix = "new/"

// unwatched are the prefixes of keys that each message changes, and that replicas watch rarely if at all.
var unwatched = []string{"job/", "finished/", "account/", "conversation/", "asked/", "session/"}

// ChannelOf returns the channel on which replicas are notified of changes of a key, or "" if they are not
// notified. The notices of each share have a channel of their own.
func ChannelOf(key string) string {
	if share, ok := strings.CutPrefix(key, noticePrefix); ok {
		share, _, _ = strings.Cut(share, "/")
		return "oneclaw_" + share
	}
	if slices.ContainsFunc(unwatched, func(prefix string) bool { return strings.HasPrefix(key, prefix) }) {
		return ""
	}
	return "oneclaw"
}

// openShared opens the database of a server. One of the replicas that start
// together upgrades it to the newest format, if all of them know that format.
func openShared(ctx context.Context, cfg Config) (*Store, error) {
	store, err := cfg.connect(ctx, false, cfg.Logger)
	if err != nil {
		return nil, err
	}
	s := &sharedDatabase{Store: store, cfg: cfg}
	if err := s.prepare(ctx); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return &Store{store, s}, nil
}

// prepare settles the format before a program joins the replicas: the newest,
// or the previous one while there are replicas that do not know the newest.
func (s *sharedDatabase) prepare(ctx context.Context) error {
	done, err := s.upgrade(ctx)
	if err != nil || done {
		return err
	}
	if behind := s.newestFormat() - int(s.format.Load()); behind == 1 {
		s.cfg.Logger.Info("the database keeps its format until all replicas know the newest one", "format", s.format.Load())
		return nil
	}
	if err = replicas.RemoveDead(ctx, s.Store, s.cfg.TTL); err == nil {
		done, err = s.upgrade(ctx)
	}
	if err == nil && !done {
		err = fmt.Errorf("the database has format %d, this oneclaw knows %d, and older replicas are running: "+
			"update them one release after another, or stop them all first", s.format.Load(), s.newestFormat())
	}
	return err
}

// upgrade upgrades the database to the newest format, unless a replica does not know it. It
// reports whether the database has that format now.
func (s *sharedDatabase) upgrade(ctx context.Context) (done bool, err error) {
	waiting := func() error {
		s.cfg.Logger.Info("waiting for another process that changes the whole database, such as its format")
		return nil
	}
	err = s.RunAlone(ctx, waiting, func(ctx context.Context) error {
		if err := checkFinished(ctx, s.Store); err != nil {
			return err
		}
		f, err := readFormat(ctx, s.Store)
		if err == nil {
			err = checkFormat(f, s.newestFormat())
		}
		s.format.Store(int64(f.Version))
		if err != nil {
			return err
		}
		if f.Version < s.newestFormat() && f.rev > 0 {
			if others, err := s.announceFormat(ctx, &f); err != nil || others < 0 {
				return err
			}
		}
		backup := func() (string, error) {
			return keepSharedCopy(ctx, s.Store, filepath.Join(s.cfg.Dir, Name), "before-update")
		}
		if err = upgrade(ctx, s.Store, s.cfg.Migrations, backup, s.cfg.Logger); err == nil {
			done = true
			s.format.Store(int64(s.newestFormat()))
		}
		return err
	})
	return done, err
}

// announceFormat records that the database gets the newest format, and returns the number of replicas,
// or -1 if one does not know it. A replica checks the format after joining, so none is missed.
func (s *sharedDatabase) announceFormat(ctx context.Context, f *format) (others int, err error) {
	if others, err = s.countReplicas(ctx); err != nil || others < 0 {
		return others, err
	}
	f.Next = s.newestFormat()
	if err := writeFormat(ctx, s.Store, f); err != nil {
		return 0, err
	}
	if others, err = s.countReplicas(ctx); err == nil && others < 0 {
		f.Next = 0
		err = writeFormat(ctx, s.Store, f)
	}
	return others, err
}

// countReplicas counts the replicas. It returns -1 if one does not know the newest format.
func (s *sharedDatabase) countReplicas(ctx context.Context) (int, error) {
	members, err := replicas.List(ctx, s.Store)
	for _, m := range members {
		if m.Format < s.newestFormat() {
			return -1, err
		}
	}
	return len(members), err
}

// Shared reports whether other processes may also have the database open.
func (s *Store) Shared() bool { return s.shared != nil }

// Format returns the format in which data has to be written; 0 for a file, which always has the newest.
func (s *Store) Format() int {
	if s.shared == nil {
		return 0
	}
	return int(s.shared.format.Load())
}

// NewestKnown returns the newest format that this program knows; 0 for a file.
func (s *Store) NewestKnown() int {
	if s.shared == nil {
		return 0
	}
	return s.shared.newestFormat()
}

// CheckFormat refuses a database that has, or is about to get, a format that this program does not
// know, or that is being restored, with replicas.ErrRefused. A replica calls it after joining.
func (s *Store) CheckFormat(ctx context.Context) error {
	err := checkFinished(ctx, s.Store)
	if err != nil && !errors.Is(err, errUnfinished) {
		return err
	}
	if err == nil {
		var f format
		if f, err = readFormat(ctx, s.Store); err != nil {
			return err
		}
		err = checkFormat(f, s.NewestKnown())
	}
	if err != nil {
		return fmt.Errorf("%w: %w", replicas.ErrRefused, err)
	}
	return nil
}

// watchPause is the pause after a watch has ended, which may be because the server cannot be reached.
const watchPause = time.Second

// Upgrade waits until all replicas know the newest format, and
// then upgrades the database. It also returns when ctx ends.
func (s *Store) Upgrade(ctx context.Context) error {
	for ctx.Err() == nil && s.Format() < s.NewestKnown() {
		due := true // a replica may have ended before the watch began
		for event, err := range replicas.WatchMembers(ctx, s.Store) {
			if errors.Is(err, storage.ErrClosed) {
				return nil
			}
			if err != nil {
				select { // then watch again
				case <-ctx.Done():
				case <-time.After(watchPause):
				}
				break
			}
			// Heartbeats are events, too. Another replica may have upgraded the database.
			f, err := readFormat(ctx, s.Store)
			if due = due || event.Deleted || f.Version == s.NewestKnown(); due && err == nil {
				var done bool
				if done, err = s.shared.upgrade(ctx); done {
					return nil
				}
			}
			if due = err != nil; due && ctx.Err() == nil {
				s.shared.cfg.Logger.Error("the database cannot be upgraded to its new format; trying again", "err", err)
			}
		}
	}
	return nil
}

// CheckUnserved refuses a database on a server that bots serve. A file is locked by the bot.
func (s *Store) CheckUnserved(ctx context.Context) error {
	members, err := replicas.FindAlive(ctx, s, 0)
	if err != nil || len(members) == 0 {
		return err
	}
	var hosts []string
	for _, m := range members {
		hosts = append(hosts, m.Host)
	}
	return fmt.Errorf("bots run with this database (%s): stop them first", strings.Join(hosts, ", "))
}

// RunAlone runs do while no bot serves the database or begins to. A file is locked by this process.
func (s *Store) RunAlone(ctx context.Context, do func(context.Context) error) error {
	server, ok := s.Store.(*postgres.Store)
	if !ok {
		return do(ctx)
	}
	busy := func() error {
		return errors.New("another process changes the whole database just now: try again when it is done")
	}
	return server.RunAlone(ctx, busy, func(ctx context.Context) error {
		if err := s.CheckUnserved(ctx); err != nil {
			return err
		}
		return do(ctx)
	})
}

// keepSharedCopy copies the database of a server to a file, in the
// folder where the database file of the data directory would be.
func keepSharedCopy(ctx context.Context, store *postgres.Store, path, why string) (string, error) {
	copied, err := copySnapshot(ctx, store, filepath.Dir(path))
	if err != nil {
		return "", err
	}
	defer func() { _ = os.Remove(copied) }()
	return keepCopy(copied, path, why)
}

// copySnapshot copies a snapshot of the database of a server to a new file in a folder, and checks it.
func copySnapshot(ctx context.Context, store *postgres.Store, dir string) (string, error) {
	return writeTemp(dir, backupPattern, func(f *os.File) error {
		file, err := bolt.Open(bolt.Config{Path: f.Name(), NoSync: true})
		if err != nil {
			return err
		}
		err = store.Snapshot(ctx, func(moment *postgres.Snapshot) error {
			_, err := replaceStore(ctx, moment, file, nil)
			return err
		})
		return cmp.Or(errors.Join(err, file.Close()), bolt.Verify(ctx, f.Name()), appendChecksum(f.Name()))
	})
}

// backupShared writes the database of a server to a new file in a folder.
func backupShared(ctx context.Context, at Place, dir string) (name string, err error) {
	store, err := at.connect(ctx, true, nil)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return copySnapshot(ctx, store, dir)
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
	err = (&Store{Store: store}).RunAlone(ctx, func(ctx context.Context) error {
		begun := checkFinished(ctx, store)
		used, err := hasData(ctx, store)
		if err != nil {
			return err
		}
		// What an interrupted restore has left is not worth keeping.
		if used && !errors.Is(begun, errUnfinished) {
			if kept, err = keepSharedCopy(ctx, store, filepath.Join(at.Dir, Name), "before-restore"); err != nil {
				return fmt.Errorf("back up the current database: %w", err)
			}
		}
		_, err = replaceStore(ctx, file, store, nil)
		return err
	})
	return kept, err
}

// hasData reports whether a store has a key or a log.
func hasData(ctx context.Context, store storage.Store) (bool, error) {
	for _, err := range store.List(ctx, storage.Range{Limit: 1}) {
		return true, err
	}
	for _, err := range store.Logs(ctx, storage.Range{Limit: 1}) {
		return true, err
	}
	return false, nil
}
