package database

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"oneclaw/storage"
	"oneclaw/storage/bolt"
	"oneclaw/storage/folder"
)

// Backup writes a complete, checked copy of a database to a
// file. It is a snapshot of one moment, even while bots write.
// A sealed backup exists unencrypted only beside the database.
func Backup(ctx context.Context, at Place, file string, o Options) (size int64, err error) {
	to, err := parseRecipients(o.Recipients)
	if err != nil {
		return 0, err
	}
	database := filepath.Join(at.Dir, Name)
	if _, err := os.Stat(database); err != nil && !at.Address.Shared() {
		return 0, noDatabaseError(at)
	}
	if err := checkWritable(file, database, o.Force); err != nil {
		return 0, err
	}
	write := backupFile
	if at.Address.Shared() {
		write = backupShared
	}
	dir := filepath.Dir(file)
	if len(to) > 0 {
		dir = at.Dir
	}
	removeAbandoned(dir, backupPattern)
	removeAbandoned(filepath.Dir(file), backupPattern)
	copied, err := write(ctx, at, dir)
	if err != nil {
		return 0, fmt.Errorf("write the backup: %w", err)
	}
	defer func() { _ = os.Remove(copied) }()
	if len(to) > 0 {
		plain := copied
		if copied, err = writeTemp(filepath.Dir(file), backupPattern, func(f *os.File) error { return seal(f, plain, to) }); err != nil {
			return 0, fmt.Errorf("seal the backup: %w", err)
		}
		defer func() { _ = os.Remove(copied) }()
	}
	info, err := os.Stat(copied)
	if err != nil {
		return 0, err
	}
	return info.Size(), publish(copied, file, o.Force)
}

func noDatabaseError(at Place) error {
	return fmt.Errorf("there is no database in %s: set ONECLAW_DATA_DIR to the bot's data directory", at.Dir)
}

// backupFile writes the database of a data directory to a new file in a folder.
func backupFile(ctx context.Context, at Place, dir string) (name string, err error) {
	info, err := os.Stat(filepath.Join(at.Dir, Name))
	if err == nil {
		err = checkRoom(dir, 2*info.Size()) // a copy, and one without its unused space or the one of the running bot
	}
	if err == nil {
		name, err = writeTemp(dir, backupPattern, func(f *os.File) error { return copyDatabase(ctx, at.Dir, f) })
	}
	if err != nil {
		return "", err
	}
	if err = bolt.Verify(ctx, name); err == nil {
		// Removed data may remain in unused space.
		_, err = bolt.Compact(ctx, bolt.Config{Path: name}, true)
	}
	if err == nil {
		err = appendChecksum(name)
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("the copy cannot be used and was deleted: %w", err), os.Remove(name))
	}
	return name, nil
}

// minFree is how much of a disk a backup leaves free, in bytes.
const minFree = 64 << 20

// checkRoom refuses files of so many bytes that would fill the disk of a folder: if the database is on
// it, a bot that runs could store nothing.
func checkRoom(dir string, bytes int64) error {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		return nil //nolint:nilerr // writing to it reports the reason
	}
	if free := int64(disk.Bavail) * int64(disk.Bsize); free-minFree < bytes {
		return fmt.Errorf("the disk of %s has %d MiB left, and a backup needs %d MiB there: make room", dir, free>>20, (bytes+minFree)>>20)
	}
	return nil
}

// writeTemp writes a new file in a folder, and deletes it on an error.
func writeTemp(dir, pattern string, fill func(*os.File) error) (name string, err error) {
	f, err := os.CreateTemp(dir, pattern)
	if err != nil {
		return "", err
	}
	if err = fill(f); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// checkWritable refuses to overwrite a file without force, and to write to a folder or the database.
func checkWritable(file, database string, force bool) error {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("write %s: %w", file, err)
	case info.IsDir():
		return fmt.Errorf("%s is a folder: name a file in it", file)
	}
	if err := checkRegular(file, info, database); err != nil {
		return err
	}
	if !force {
		return fmt.Errorf("%s is there already: name another file, or replace it with --force", file)
	}
	return nil
}

// copyDatabase copies the current database: from a running bot, if there is one.
func copyDatabase(ctx context.Context, dir string, w io.Writer) error {
	asked, err := SendOrder(ctx, dir, "backup", nil, func(body io.Reader) error {
		name, err := io.ReadAll(body)
		if err != nil {
			return err
		}
		copied := filepath.Join(dir, filepath.Base(string(name)))
		return errors.Join(copyFileTo(copied, w), os.Remove(copied))
	})
	if asked || err != nil {
		return err
	}
	err = View(ctx, Place{Dir: dir}, func(store *Store) error {
		return cmp.Or(checkFinished(ctx, store), store.Store.(*bolt.Store).Backup(ctx, w))
	})
	if errors.Is(err, storage.ErrLocked) {
		return fmt.Errorf("%w, which does not answer on %s: stop it and try again", err, filepath.Join(dir, ControlName))
	}
	return withRepairHint(err)
}

func publish(from, to string, force bool) error {
	if !force {
		// A link does not replace a file that appeared meanwhile. Some systems do not support
		// links.
		err := os.Link(from, to)
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%s is there already: name another file, or replace it with --force", to)
		}
		if err == nil {
			return folder.Sync(filepath.Dir(to))
		}
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return folder.Sync(filepath.Dir(to))
}

// Restore replaces the database by a backup atomically, and returns where the old one is kept,
// which is a file for a database on a server, too. A backup in a format above known, or below
// [LowestFormat], is refused. A sealed one is decrypted with the keys in a file.
func Restore(ctx context.Context, at Place, file, identities string, known int) (kept string, err error) {
	dir := at.Dir
	database := filepath.Join(dir, Name)
	if err := checkReadable(file, database); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("data directory (ONECLAW_DATA_DIR): %w", err)
	}
	copied, err := copyBackup(ctx, dir, file, identities, known)
	if err != nil {
		return "", err
	}
	defer func() { _ = os.Remove(copied) }()
	defer func() {
		if err != nil && kept != "" {
			err = fmt.Errorf("%w; the database as it was is kept in %s", err, kept)
		}
	}()
	if at.Address.Shared() {
		return restoreShared(ctx, at, copied)
	}
	if _, err := os.Stat(database); errors.Is(err, fs.ErrNotExist) {
		return "", publish(copied, database, false)
	}
	// An open database is locked; a damaged one cannot be served.
	store, err := bolt.Open(bolt.Config{Path: database})
	if errors.Is(err, storage.ErrLocked) {
		return "", fmt.Errorf("the bot is running with %s: stop it first", dir)
	}
	if err == nil {
		defer func() { err = errors.Join(err, store.Close()) }()
	}
	if kept, err = keepCopy(database, database, "before-restore"); err != nil {
		return "", err
	}
	if err = publish(copied, database, true); err != nil {
		return kept, err
	}
	return kept, appendChecksum(kept) // no process serves this database now
}

func checkReadable(file, database string) error {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no file %s", file)
	case err != nil:
		return fmt.Errorf("read the backup: %w", err)
	}
	return checkRegular(file, info, database)
}

// checkRegular refuses a path that is not a regular file, or is the database itself.
func checkRegular(file string, info fs.FileInfo, database string) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a file: name a file", file)
	}
	if own, err := os.Stat(database); err == nil && os.SameFile(own, info) {
		return fmt.Errorf("%s is the database itself: name another file", file)
	}
	return nil
}

func copyBackup(ctx context.Context, dir, file, identities string, known int) (string, error) {
	name, err := writeTemp(dir, restorePattern, func(f *os.File) error { return unseal(file, identities, f) })
	if err != nil {
		return "", fmt.Errorf("copy the backup: %w", err)
	}
	if err := checkBackup(ctx, name, known); err != nil {
		return "", errors.Join(fmt.Errorf("%s is not restored: %w", file, err), os.Remove(name))
	}
	return name, nil
}

func copyFileTo(name string, w io.Writer) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	_, err = io.Copy(w, f)
	return err
}

// checkBackup refuses a backup with which the bot could not start, or that differs
// from what was written. Errors that an operator can do something about come first.
func checkBackup(ctx context.Context, path string, known int) (err error) {
	changed := removeChecksum(path)
	if err := bolt.Verify(ctx, path); errors.Is(err, bolt.ErrDamaged) {
		return fmt.Errorf("it is no whole backup of oneclaw (%w)", errors.Unwrap(err))
	} else if err != nil {
		return err
	}
	store, err := bolt.Open(bolt.Config{Path: path})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := checkFinished(ctx, store); errors.Is(err, errUnfinished) {
		return errors.New("it is a copy of a database whose move was unfinished: name another backup")
	} else if err != nil {
		return err
	}
	f, err := readFormat(ctx, store)
	if err != nil {
		return err
	}
	return cmp.Or(checkFormat(f, known), changed)
}

// keepCopy gives a file a second, free name beside the database that contains
// the reason and the time, or copies the file if links are not supported.
func keepCopy(file, database, why string) (string, error) {
	begin := database + "." + why + time.Now().Format("-20060102-150405")
	name := begin
	for n := 2; ; n++ {
		err := os.Link(file, name)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			err = copyFile(file, name)
		}
		if !errors.Is(err, fs.ErrExist) {
			return name, errors.Join(err, folder.Sync(filepath.Dir(name)))
		}
		name = fmt.Sprintf("%s-%d", begin, n)
	}
}

func copyFile(from, to string) error {
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = copyFileTo(from, out)
	return errors.Join(err, out.Sync(), out.Close())
}

// BackupHandler writes a copy of the current database beside it, one at a time, and answers with its name.
// Who asked for it deletes it.
func (s *Store) BackupHandler(log *slog.Logger) http.Handler {
	var one sync.Mutex
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !one.TryLock() {
			http.Error(w, "another backup is being made: try again when it is done", http.StatusConflict)
			return
		}
		defer one.Unlock()
		name, err := s.writeCopy(r.Context())
		if err == nil {
			_, _ = io.WriteString(w, filepath.Base(name))
			return
		}
		http.Error(w, err.Error(), http.StatusInsufficientStorage)
		if r.Context().Err() == nil {
			log.Error("backup failed", "err", err)
		}
	})
}

// writeCopy copies a database file to a new file beside it.
func (s *Store) writeCopy(ctx context.Context) (string, error) {
	file, ok := s.Store.(*bolt.Store)
	if !ok {
		return "", errors.ErrUnsupported // the server is asked instead
	}
	dir := filepath.Dir(file.Path())
	size, err := s.Size(ctx)
	if err == nil {
		err = checkRoom(dir, size)
	}
	if err != nil {
		return "", err
	}
	return writeTemp(dir, backupPattern, func(f *os.File) error { return file.Backup(ctx, f) })
}
