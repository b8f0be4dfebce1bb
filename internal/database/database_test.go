package database

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oneclaw/storage"
	"oneclaw/storage/bolt"
)

// crashStore fails the write at which a process would have died.
type crashStore struct {
	storage.Store
	left int
}

func (s *crashStore) Put(ctx context.Context, key string, value []byte, rev storage.Revision) (storage.Revision, error) {
	if s.left--; s.left < 0 {
		return 0, io.ErrUnexpectedEOF
	}
	return s.Store.Put(ctx, key, value, rev)
}

// TestMigrationsRunInOrderWhereverACrashCutsThemOff adds a letter in each step.
func TestMigrationsRunInOrderWhereverACrashCutsThemOff(t *testing.T) {
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	add := func(letter string) Migration {
		return func(ctx context.Context, store storage.Store, _ *slog.Logger) error {
			entry, err := store.Get(ctx, "k")
			if err != nil || strings.HasSuffix(string(entry.Value), letter) {
				return err
			}
			_, err = store.Put(ctx, "k", append(entry.Value, letter...), entry.Revision)
			return err
		}
	}
	steps := []Migration{add("a"), add("b"), add("c")}
	for writes := 0; ; writes++ {
		store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "db"), NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		if _, err := store.Put(t.Context(), "k", []byte("0"), storage.Absent); err != nil {
			t.Fatal(err)
		}
		if err := writeFormat(t.Context(), store, &format{Version: LowestFormat}); err != nil {
			t.Fatal(err)
		}
		backups := []string{}
		backup := func() (string, error) {
			entry, err := store.Get(t.Context(), "k")
			backups = append(backups, string(entry.Value))
			return fmt.Sprint("backup ", len(backups)), err
		}
		crashed := upgrade(t.Context(), &crashStore{store, writes}, steps, backup, log)
		if crashed != nil && !errors.Is(crashed, io.ErrUnexpectedEOF) {
			t.Fatal(crashed)
		}
		if err := upgrade(t.Context(), store, steps, backup, log); err != nil {
			t.Fatal(err)
		}
		entry, err := store.Get(t.Context(), "k")
		f, formatErr := readFormat(t.Context(), store)
		if string(entry.Value) != "0abc" || f.Version != LowestFormat+3 || f.Backup != "" || err != nil || formatErr != nil {
			t.Errorf("after a crash at write %d: %q, format %v (%v, %v)", writes, entry.Value, f, err, formatErr)
		}
		for _, b := range backups {
			if b != "0" {
				t.Errorf("after a crash at write %d a backup has %q, want the data of before", writes, b)
			}
		}
		if crashed == nil {
			if writes < 6 {
				t.Errorf("only %d writes: the test does not see them", writes)
			}
			return
		}
	}
}

func TestALargeDatabaseThatIsMostlyFreeIsCompacted(t *testing.T) {
	database := filepath.Join(t.TempDir(), Name)
	store, err := bolt.Open(bolt.Config{Path: database, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Put(t.Context(), "k", []byte("kept"), storage.Any); err != nil {
		t.Fatal(err)
	}
	for n := range 40 {
		if _, err := store.Put(t.Context(), fmt.Sprint("big", n), make([]byte, 100_000), storage.Any); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 40 {
		if err := store.Delete(t.Context(), fmt.Sprint("big", n), storage.Any); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(database)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	if err := compactLarge(t.Context(), database, before.Size()+1, false, log); err != nil {
		t.Fatal(err)
	}
	if same, err := os.Stat(database); err != nil || same.Size() != before.Size() {
		t.Errorf("a small file was compacted (%v)", err)
	}
	if err := compactLarge(t.Context(), database, before.Size(), false, log); err != nil {
		t.Fatal(err)
	}
	if after, err := os.Stat(database); err != nil || after.Size() > before.Size()/4 {
		t.Errorf("%d bytes of %d are left (%v)", after.Size(), before.Size(), err)
	}
	if store, err = bolt.Open(bolt.Config{Path: database}); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	if entry, err := store.Get(t.Context(), "k"); err != nil || string(entry.Value) != "kept" {
		t.Errorf("the value is %q (%v)", entry.Value, err)
	}
}

// TestBackupsOfOneSecondAreKept: a backup never takes the name of one that was made a moment
// before.
func TestBackupsOfOneSecondAreKept(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(dir, Name)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	kept := map[string]bool{}
	for range 5 {
		name, err := backUpBeforeUpgrade(ctx, store)
		if err == nil {
			err = bolt.Verify(ctx, name)
		}
		if err != nil {
			t.Fatal(err)
		}
		kept[name] = true
	}
	if files, err := os.ReadDir(dir); err != nil || len(kept) != 5 || len(files) != 6 {
		t.Errorf("%d names, %d files, %v", len(kept), len(files), err)
	}
}

// A database into which a move is unfinished is not backed up, and a copy of it is not restored.
func TestAHalfMovedDatabaseIsNoBackup(t *testing.T) {
	at, file := Place{Dir: t.TempDir()}, filepath.Join(t.TempDir(), "backup")
	database := filepath.Join(at.Dir, Name)
	store, err := bolt.Open(bolt.Config{Path: database})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(clearStore(t.Context(), store), store.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := Backup(t.Context(), at, file, Options{}); !errors.Is(err, errUnfinished) {
		t.Errorf("backed up: %v", err)
	}
	if err := errors.Join(copyFile(database, file), appendChecksum(file)); err != nil {
		t.Fatal(err)
	}
	elsewhere := Place{Dir: t.TempDir()}
	if _, err := Restore(t.Context(), elsewhere, file, "", LowestFormat); err == nil || !strings.Contains(err.Error(), "whose move was unfinished: name another backup") {
		t.Errorf("restored: %v", err)
	}
	if left, err := os.ReadDir(elsewhere.Dir); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}
