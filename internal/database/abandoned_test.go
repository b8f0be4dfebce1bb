package database

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/storage"
	"oneclaw/storage/bolt"
)

// TestWhatAKilledCommandLeftIsDeleted: those files have all conversations, unencrypted. The files of a command
// that runs stay.
func TestWhatAKilledCommandLeftIsDeleted(t *testing.T) {
	at, beside := Place{Dir: t.TempDir()}, t.TempDir()
	write := func(dir, name string, age time.Duration) {
		path, then := filepath.Join(dir, name), time.Now().Add(-age)
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chtimes(path, then, then)); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{at.Dir, beside} {
		for _, name := range []string{".oneclaw-backup-1", ".oneclaw-backup-1.compact", ".restore-1"} {
			write(dir, name, 2*abandonedAge)
			write(dir, name+".new", 0)
		}
	}
	hidden := func(dir string) (names []string) {
		all, err := filepath.Glob(filepath.Join(dir, ".*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range all {
			names = append(names, filepath.Base(path))
		}
		return names
	}
	store, err := Open(t.Context(), Config{Place: at, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if got, want := hidden(at.Dir), []string{".oneclaw-backup-1.compact.new", ".oneclaw-backup-1.new", ".restore-1.new"}; !slices.Equal(got, want) {
		t.Errorf("a start leaves %q, want %q", got, want)
	}
	if _, err := Backup(t.Context(), at, filepath.Join(beside, "backup"), Options{}); err != nil {
		t.Fatal(err)
	}
	if got, want := hidden(beside), []string{".oneclaw-backup-1.compact.new", ".oneclaw-backup-1.new", ".restore-1", ".restore-1.new"}; !slices.Equal(got, want) {
		t.Errorf("the next backup leaves %q, want %q", got, want)
	}
}

// smallDisk names the data directory of a process in which no file may become larger than its database.
const smallDisk = "TEST_ONECLAW_SMALL_DISK"

// A restore that fails after it has kept the former database says where that is.
func TestARestoreThatFailsSaysWhereTheFormerDatabaseIs(t *testing.T) {
	if dir := os.Getenv(smallDisk); dir != "" {
		info, err := os.Stat(filepath.Join(dir, Name))
		if err != nil {
			t.Fatal(err)
		}
		size := uint64(info.Size())
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: size, Max: size}); err != nil {
			t.Skip("no limit for the size of files:", err)
		}
		kept, err := Restore(t.Context(), Place{Dir: dir}, filepath.Join(dir, "backup"), "", LowestFormat)
		if kept == "" || !errors.Is(err, syscall.EFBIG) || !strings.Contains(err.Error(), "the database as it was is kept in "+kept) {
			t.Errorf("kept %q: %v", kept, err)
		}
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	at := Place{Dir: t.TempDir()}
	store, err := Open(t.Context(), Config{Place: at, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	_, err = store.Put(t.Context(), "k", nil, storage.Absent)
	if err = errors.Join(err, store.Close()); err == nil {
		_, err = Backup(t.Context(), at, filepath.Join(at.Dir, "backup"), Options{})
	}
	if err != nil {
		t.Fatal(err)
	}
	large, err := bolt.Open(bolt.Config{Path: filepath.Join(at.Dir, Name)})
	if err != nil {
		t.Fatal(err)
	}
	_, err = large.Put(t.Context(), "large", make([]byte, 1<<20), storage.Absent)
	if err := errors.Join(err, large.Close()); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), smallDisk+"="+at.Dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// What a command was writing when it was killed was not old when the bot began.
func TestABotThatRunsDeletesWhatAKilledCommandLeft(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		for _, name := range []string{".restore-1", ".oneclaw-backup-1", ".restore-2"} {
			changed := now
			if name == ".restore-2" {
				changed = now.Add(30 * time.Minute) // a command writes to it
			}
			path := filepath.Join(dir, name)
			if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chtimes(path, changed, changed)); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 61*time.Minute)
		defer cancel()
		if err := RemoveAbandoned(ctx, dir); err != nil {
			t.Error(err)
		}
	})
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || left[0].Name() != ".restore-2" {
		t.Errorf("there are %v (%v)", left, err)
	}
}
