package database

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestABackupDoesNotFillTheDisk: the bot that runs could store nothing meanwhile. The file of the database has
// a hole, so that it is larger than the disk.
func TestABackupDoesNotFillTheDisk(t *testing.T) {
	at, log := Place{Dir: t.TempDir()}, slog.New(slog.NewTextHandler(t.Output(), nil))
	store, err := Open(t.Context(), Config{Place: at, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(at.Dir, Name), 1<<42); err != nil {
		t.Skip("no large file with a hole:", err)
	}
	const want = "MiB there: make room"
	answer := httptest.NewRecorder()
	store.BackupHandler(log).ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/backup", nil))
	if text := answer.Body.String(); answer.Code != http.StatusInsufficientStorage || !strings.Contains(text, want) {
		t.Errorf("the bot that runs answers %d: %.200q", answer.Code, text)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	_, err = Backup(t.Context(), at, filepath.Join(dir, "backup"), Options{})
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the command: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Error(errors.Join(err, errors.New("files are left")))
	}
}
