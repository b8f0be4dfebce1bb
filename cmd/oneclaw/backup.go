package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"oneclaw/internal/folder"
	"oneclaw/storage"
	"oneclaw/storage/bolt"
)

// beside is what a backup leaves out.
const beside = "Not in it, so copy them as well: the folders workspaces, skills and tools, " +
	"the settings in oneclaw.yaml, and secret.key, without which stored keys and accounts can not be read."

func backupCommand(load func() (Config, error)) *cobra.Command {
	var force bool
	command := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write the database to a file, also while the bot runs",
		Long: "Write the database to a file and check it, also while the bot runs. The file holds conversations, " +
			"memory, tasks, what was set up in chats, and accounts (keys and tokens encrypted). " + beside,
		Args: oneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := load()
			if err != nil {
				return err
			}
			size, err := backup(cmd.Context(), cfg, args[0], force)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "Backup written to %s and checked (%s).\nIt holds the database in %s. %s\n",
				args[0], bytesInWords(size), cfg.DataDir, beside)
			return err
		},
	}
	command.Flags().BoolVar(&force, "force", false, "replace the file if it is there")
	return command
}

func restoreCommand(load func() (Config, error)) *cobra.Command {
	return &cobra.Command{
		Use:   "restore FILE",
		Short: "Put a backup in the place of the database (stop the bot first)",
		Long: "Check a backup and put it in the place of the database, which is kept beside it under another name. " +
			"Stop the bot first. What the backup says is still unanswered is answered at the next start. " + beside,
		Args: oneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := load()
			if err != nil {
				return err
			}
			kept, err := restore(cmd.Context(), cfg, args[0])
			if err != nil {
				return err
			}
			text := fmt.Sprintf("Restored %s into %s.\n", args[0], cfg.DataDir)
			if kept != "" {
				text += fmt.Sprintf("The database as it was is kept in %s; delete it when you do not need it.\n", kept)
			}
			_, err = io.WriteString(cmd.OutOrStdout(), text)
			return err
		},
	}
}

// backup writes the database to a file. The file appears once it is whole and checked.
func backup(ctx context.Context, cfg Config, file string, force bool) (size int64, err error) {
	database := filepath.Join(cfg.DataDir, databaseName)
	if _, err := os.Stat(database); err != nil {
		return 0, fmt.Errorf("there is no database in %s: set ONECLAW_DATA_DIR to the bot's data directory", cfg.DataDir)
	}
	if err := mayWrite(file, database, force); err != nil {
		return 0, err
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".oneclaw-backup-*")
	if err != nil {
		return 0, fmt.Errorf("write the backup: %w", err)
	}
	defer func() { _ = os.Remove(f.Name()) }()
	err = copyDatabase(ctx, cfg, f)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return 0, fmt.Errorf("write the backup: %w", err)
	}
	if err := bolt.Verify(ctx, f.Name()); err != nil {
		return 0, fmt.Errorf("the copy is not good, so it was not kept: %w", err)
	}
	info, err := os.Stat(f.Name())
	if err != nil {
		return 0, fmt.Errorf("write the backup: %w", err)
	}
	return info.Size(), place(f.Name(), file, force)
}

// mayWrite refuses what would be lost.
func mayWrite(file, database string, force bool) error {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("write the backup: %w", err)
	case info.IsDir():
		return fmt.Errorf("%s is a folder: name a file in it", file)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", file)
	}
	if own, err := os.Stat(database); err == nil && os.SameFile(own, info) {
		return fmt.Errorf("%s is the database itself: name another file", file)
	}
	if !force {
		return fmt.Errorf("%s is there already: name another file, or replace it with --force", file)
	}
	return nil
}

// copyDatabase writes the database as it is now: a running bot is asked for it.
func copyDatabase(ctx context.Context, cfg Config, w io.Writer) (err error) {
	if asked, err := askForBackup(ctx, cfg.DataDir, w); asked || err != nil {
		return err
	}
	path := filepath.Join(cfg.DataDir, databaseName)
	if err := checkEmptied(path); err != nil {
		return err
	}
	store, err := bolt.Open(bolt.Config{Path: path})
	if errors.Is(err, storage.ErrLocked) {
		return fmt.Errorf("%w, which does not answer on %s: stop it and try again", err, filepath.Join(cfg.DataDir, controlName))
	}
	if err != nil {
		return damagedDatabase(err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return store.Backup(ctx, w)
}

// place gives a whole file its name.
func place(from, to string, force bool) error {
	if !force {
		// A link does not replace what came meanwhile. Some systems have none.
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

// restore puts a backup in the place of the database and returns where that is kept.
// There is one or the other at every moment.
func restore(ctx context.Context, cfg Config, file string) (kept string, err error) {
	database := filepath.Join(cfg.DataDir, databaseName)
	if err := mayRead(file, database); err != nil {
		return "", err
	}
	if err := os.MkdirAll(cfg.DataDir, 0o700); err != nil {
		return "", fmt.Errorf("data directory (ONECLAW_DATA_DIR): %w", err)
	}
	copied, err := copyBackup(ctx, file, cfg)
	if err != nil {
		return "", err
	}
	defer func() { _ = os.Remove(copied) }()
	if _, err := os.Stat(database); errors.Is(err, fs.ErrNotExist) {
		return "", place(copied, database, false)
	}
	// Whoever has the database open keeps others out; one that is damaged nobody serves.
	store, err := bolt.Open(bolt.Config{Path: database})
	if errors.Is(err, storage.ErrLocked) {
		return "", fmt.Errorf("the bot is running with %s: stop it first", cfg.DataDir)
	}
	if err == nil {
		defer func() { err = errors.Join(err, store.Close()) }()
	}
	if kept, err = keep(database); err != nil {
		return "", err
	}
	return kept, place(copied, database, true)
}

func mayRead(file, database string) error {
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no file %s", file)
	}
	if err != nil {
		return fmt.Errorf("read the backup: %w", err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a file", file)
	}
	if own, err := os.Stat(database); err == nil && os.SameFile(own, info) {
		return fmt.Errorf("%s is the database itself: name a backup", file)
	}
	return nil
}

// copyBackup copies a backup into the data directory and checks the copy.
func copyBackup(ctx context.Context, file string, cfg Config) (name string, err error) {
	from, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("read the backup: %w", err)
	}
	defer func() { _ = from.Close() }()
	to, err := os.CreateTemp(cfg.DataDir, restorePattern)
	if err != nil {
		return "", fmt.Errorf("copy the backup: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(to.Name())
		}
	}()
	_, err = io.Copy(to, from)
	if err == nil {
		err = to.Sync()
	}
	if err = errors.Join(err, to.Close()); err != nil {
		return "", fmt.Errorf("copy the backup: %w", err)
	}
	if err := checkBackup(ctx, to.Name(), len(cfg.outside.migrations)); err != nil {
		return "", fmt.Errorf("%s is not restored: %w", file, err)
	}
	return to.Name(), nil
}

// checkBackup refuses what the bot could not be started with.
func checkBackup(ctx context.Context, path string, known int) (err error) {
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
	f, err := readFormat(ctx, store)
	if err != nil {
		return err
	}
	return checkFormat(f, known)
}

// keep gives the database a second name, or copies it where files have one name only.
func keep(database string) (string, error) {
	name := database + ".before-restore-" + time.Now().Format("20060102-150405")
	for n := 2; ; n++ {
		err := os.Link(database, name)
		if err == nil {
			return name, folder.Sync(filepath.Dir(name))
		}
		if !errors.Is(err, fs.ErrExist) {
			return name, copyFile(database, name)
		}
		name = fmt.Sprintf("%s.before-restore-%s-%d", database, time.Now().Format("20060102-150405"), n)
	}
}

func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}

// bytesInWords says a size as people do.
func bytesInWords(n int64) string {
	switch {
	case n < 10<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 10<<20:
		return fmt.Sprintf("%d KB", n>>10)
	}
	return fmt.Sprintf("%d MB", n>>20)
}
