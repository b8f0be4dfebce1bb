// Package database opens, upgrades, checks, backs up, restores and moves the database, in a data
// directory or on a server, and sends orders to the bot that has it open.
package database

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"oneclaw/storage"
	"oneclaw/storage/bolt"
)

// Name is the database file in the data directory.
const Name = "oneclaw.db"

// Patterns of the names of incomplete files. They are in the data directory, unless a comment says
// otherwise.
const (
	spoolPattern   = ".backup-*"
	backupPattern  = ".oneclaw-backup-*" // beside the backup, and if it is sealed, beside the database, too
	restorePattern = ".restore-*"
	secretPattern  = ".secret-*"
)

// abandonedPatterns are the names of the files that commands write in a data directory.
var abandonedPatterns = []string{restorePattern, backupPattern}

const (
	// abandonedAge is the age from which a file that a command writes counts as incomplete: it was
	// interrupted.
	abandonedAge = time.Hour
	// abandonedInterval is the time between two looks for such files.
	abandonedInterval = 15 * time.Minute
)

const (
	// startCheckTime bounds the check of the database at the start.
	startCheckTime = 30 * time.Millisecond
	// minCompactSize is the size from which a database is
	// compacted at the start if more than half of it is free.
	minCompactSize = 64 << 20
)

// Store is an open database.
type Store struct {
	storage.Store
	// shared is set for a database on a server.
	shared *sharedDatabase
}

// GetMany implements [storage.ManyGetter].
func (s *Store) GetMany(ctx context.Context, keys []string) (map[string]storage.Entry, error) {
	return storage.GetMany(ctx, s.Store, keys)
}

// WriteDeferred implements [storage.Deferrer].
func (s *Store) WriteDeferred(ctx context.Context, due <-chan struct{}, ops ...storage.Op) (storage.Revision, error) {
	return storage.WriteDeferred(ctx, s.Store, due, ops...)
}

// path returns the file of the database, or "".
func (s *Store) path() string {
	if file, ok := s.Store.(*bolt.Store); ok {
		return file.Path()
	}
	return ""
}

// Place says where a database is.
type Place struct {
	// Dir is the data directory, which [Open] creates if it is missing.
	Dir string
	// Address selects the engine.
	Address Address
	// Password, or the content of PasswordFile, is the password for a server whose address has none.
	Password, PasswordFile string
	// Secret is the key that encrypts tokens at rest; empty for that of the data directory.
	Secret string
}

// String returns the place without a password.
func (p Place) String() string {
	if p.Address.Shared() {
		return p.Address.String()
	}
	return p.Dir
}

// Config configures [Open].
type Config struct {
	Place
	// Migrations are all steps: the first upgrades from format [LowestFormat] to the next, and so on.
	Migrations []Migration
	// TTL is how long a replica may miss heartbeats; 0 means replicas.DefaultTTL.
	TTL    time.Duration
	Logger *slog.Logger
}

// Open opens a database and upgrades it to the newest format. A shared database keeps the previous format
// while there are replicas that do not know the newest; see [Store.Upgrade].
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("data directory (ONECLAW_DATA_DIR): %w", err)
	}
	for _, pattern := range abandonedPatterns {
		removeAbandoned(cfg.Dir, pattern)
	}
	if cfg.Address.Shared() {
		return openShared(ctx, cfg)
	}
	return openFile(ctx, cfg)
}

// openFile opens the database of a data directory.
func openFile(ctx context.Context, cfg Config) (*Store, error) {
	log, path := cfg.Logger, filepath.Join(cfg.Dir, Name)
	if err := checkNotTruncated(path); err != nil {
		return nil, err
	}
	_ = compactLarge(ctx, path, minCompactSize, false, log) // opening it reports the reason
	store, err := openBolt(path, log)
	if errors.Is(err, storage.ErrLocked) {
		return nil, fmt.Errorf("%w: another oneclaw runs with this data directory; stop it, or set ONECLAW_DATA_DIR to another folder", err)
	}
	if err != nil {
		return nil, withRepairHint(err)
	}
	removeTemporary(cfg.Dir)
	if store, err = rewriteIfErased(ctx, store, log); err != nil {
		return nil, err
	}
	if err = checkFinished(ctx, store); err == nil {
		err = upgrade(ctx, store, cfg.Migrations, func() (string, error) { return backUpBeforeUpgrade(ctx, store) }, log)
	}
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return &Store{Store: store}, nil
}

func openBolt(path string, log *slog.Logger) (*bolt.Store, error) {
	return bolt.Open(bolt.Config{Path: path, CheckTime: startCheckTime, Logger: log})
}

// wipeKey exists while the unused space of the database file may contain data that a user wanted
// deleted.
const wipeKey = "wipe"

// RecordErasure records that a user's data was deleted. The next start
// rewrites the file without the data; a server reclaims its space itself.
func (s *Store) RecordErasure(ctx context.Context) error {
	if s.Shared() {
		return nil
	}
	if _, err := s.Put(ctx, wipeKey, nil, storage.Any); err != nil {
		return fmt.Errorf("record that the file has to be rewritten: %w", err)
	}
	return nil
}

// rewriteIfErased rewrites the file of a database if an
// erasure was recorded. It returns the store of the new file.
func rewriteIfErased(ctx context.Context, store *bolt.Store, log *slog.Logger) (*bolt.Store, error) {
	_, err := store.Get(ctx, wipeKey)
	if errors.Is(err, storage.ErrNotFound) {
		return store, nil
	}
	path := store.Path()
	if err = errors.Join(err, store.Close()); err != nil {
		return nil, err
	}
	left := compactLarge(ctx, path, 0, true, log)
	if store, err = openBolt(path, log); err != nil {
		return nil, withRepairHint(err)
	}
	if left != nil {
		return store, nil //nolint:nilerr // the next start tries again
	}
	if err := store.Delete(ctx, wipeKey, storage.Any); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return store, nil
}

// checkNotTruncated refuses a database of 0 bytes beside workspaces. The engine would
// silently create a new one: the bot would have no owner, and could be claimed by anyone.
func checkNotTruncated(path string) error {
	info, err := os.Stat(path)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing || !missing && info.Size() > 0 {
		return nil //nolint:nilerr // opening it reports the reason
	}
	workspaces, err := os.ReadDir(filepath.Join(filepath.Dir(path), "workspaces"))
	if err != nil || len(workspaces) == 0 {
		return nil //nolint:nilerr // none: a first start that was interrupted
	}
	if missing {
		return fmt.Errorf("there is no database %s, but there are workspaces beside it, as after a wrong mount: put the database back, restore a backup with 'oneclaw restore FILE', "+
			"or move the folder workspaces away to begin anew without an owner and without conversations", path)
	}
	return fmt.Errorf("the database %s has 0 bytes, but there are workspaces beside it: restore a backup with 'oneclaw restore FILE', "+
		"or remove the empty file to begin anew without an owner and without conversations", path)
}

// removeTemporary deletes the incomplete files of an earlier process that had the database open.
func removeTemporary(dir string) {
	for _, pattern := range []string{spoolPattern, secretPattern} {
		removeOlder(dir, pattern, 0)
	}
}

// RemoveAbandoned deletes what interrupted commands have left in a data directory until ctx ends, and
// returns nil: these files hold the whole database, unencrypted, and a bot may run for months.
func RemoveAbandoned(ctx context.Context, dir string) error {
	tick := time.NewTicker(abandonedInterval)
	defer tick.Stop()
	for {
		for _, pattern := range abandonedPatterns {
			removeAbandoned(dir, pattern)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// removeAbandoned deletes the incomplete files of commands that were interrupted, but not those of a
// command that runs.
func removeAbandoned(dir, pattern string) { removeOlder(dir, pattern, abandonedAge) }

func removeOlder(dir, pattern string, age time.Duration) {
	names, _ := filepath.Glob(filepath.Join(dir, pattern)) // the pattern is valid
	for _, name := range names {
		if info, err := os.Lstat(name); err == nil && time.Since(info.ModTime()) >= age {
			_ = os.Remove(name)
		}
	}
}

// withRepairHint adds to an error about a damaged file how to repair it.
func withRepairHint(err error) error {
	if errors.Is(err, bolt.ErrDamaged) {
		return fmt.Errorf("%w; to restore a backup: 'oneclaw restore FILE', which keeps the damaged file", err)
	}
	return err
}

// compactLarge compacts a database of at least large bytes if more than half of it is free, or
// always. On failure the database is unchanged, and opening it reports the reason.
func compactLarge(ctx context.Context, path string, large int64, always bool, log *slog.Logger) error {
	info, err := os.Stat(path)
	if err != nil || info.Size() < large {
		return err
	}
	begun := time.Now()
	freed, err := bolt.Compact(ctx, bolt.Config{Path: path}, always)
	switch {
	case err != nil:
		log.Warn("the database cannot be compacted", "size", info.Size(), "err", err)
	case freed > 0:
		log.Info("the database was compacted", "before", info.Size(), "free", freed, "took", time.Since(begun))
	}
	return err
}

// backUpBeforeUpgrade backs up a database before its format changes.
func backUpBeforeUpgrade(ctx context.Context, store *bolt.Store) (string, error) {
	copied, err := writeTemp(filepath.Dir(store.Path()), spoolPattern, func(f *os.File) error {
		return cmp.Or(store.Backup(ctx, f), bolt.Verify(ctx, f.Name()), appendChecksum(f.Name()))
	})
	if err != nil {
		return "", err
	}
	defer func() { _ = os.Remove(copied) }()
	return keepCopy(copied, store.Path(), "before-update")
}

// Verify checks the whole database in a data directory that
// no process uses, and that a bot with these migrations can serve it.
func Verify(ctx context.Context, dir string, steps []Migration) error {
	path := filepath.Join(dir, Name)
	if err := checkNotTruncated(path); err != nil {
		return err
	}
	if err := bolt.Verify(ctx, path); err != nil {
		return withRepairHint(err)
	}
	return View(ctx, Place{Dir: dir}, func(store *Store) error {
		if err := checkFinished(ctx, store); err != nil {
			return err
		}
		f, err := readFormat(ctx, store)
		if err != nil {
			return err
		}
		return checkFormat(f, NewestFormat(steps))
	})
}

// View calls read with a database without changing it. If there is no database, it does nothing.
func View(ctx context.Context, at Place, read func(*Store) error) (err error) {
	if at.Address.Shared() {
		store, err := at.connect(ctx, true, nil)
		if errors.Is(err, storage.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		return errors.Join(read(&Store{Store: store}), store.Close())
	}
	path := filepath.Join(at.Dir, Name)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := checkNotTruncated(path); err != nil {
		return err
	}
	store, err := bolt.Open(bolt.Config{Path: path})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return read(&Store{Store: store})
}
