package database_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oneclaw/internal/database"
	"oneclaw/storage"
)

// TestABackupWithAFlippedByteIsRefused flips bytes of a backup one by one, all over it and each of
// its last ones, cuts some off and adds some. Nothing is replaced by any of it.
func TestABackupWithAFlippedByteIsRefused(t *testing.T) {
	place := database.Place{Dir: t.TempDir()}
	store, err := database.Open(t.Context(), database.Config{Place: place, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Put(t.Context(), "memory/telegram:1", bytes.Repeat([]byte("what I remember "), 1000), storage.Any); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "backup")
	if _, err := database.Backup(t.Context(), place, file, database.Options{}); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(place.Dir, database.Name)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what string, content []byte) {
		t.Helper()
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		kept, err := database.Restore(t.Context(), place, file, "", database.LowestFormat)
		if err == nil || kept != "" || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "no whole backup") {
			t.Errorf("%s: %v (kept %q)", what, err, kept)
		}
	}
	flipped := bytes.Clone(good)
	step := len(good) / 150
	for i := range good {
		if i%step != 0 && i < len(good)-100 {
			continue
		}
		flipped[i] ^= 0x20
		refused("a flipped byte", flipped)
		flipped[i] = good[i]
	}
	refused("cut off", good[:len(good)-1])
	refused("cut off before the checksum", good[:len(good)/4096*4096])
	refused("something added", append(bytes.Clone(good), '\n'))
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the database has changed (%v)", err)
	}
	if err := os.WriteFile(file, good, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time what the first has kept
		if file, err = database.Restore(t.Context(), place, file, "", database.LowestFormat); err != nil || file == "" {
			t.Fatalf("the backup as it was written: %v (kept %q)", err, file)
		}
	}
}
