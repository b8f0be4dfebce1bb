package learning_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oneclaw/internal/database"
	"oneclaw/internal/learning"
	"oneclaw/storage/postgres/pgtest"
)

func nobody(context.Context, func(io.Reader) error) (bool, error) { return false, nil }

// TestTheFileAppearsWhole exports from a file, and from a server that is in use.
func TestTheFileAppearsWhole(t *testing.T) {
	t.Parallel()
	t.Run("file", func(t *testing.T) { appears(t, database.Place{Dir: t.TempDir()}) })
	t.Run("server", func(t *testing.T) {
		server := &pgtest.Server{}
		t.Cleanup(func() { _ = server.Stop() })
		appears(t, database.Place{Dir: t.TempDir(), Address: database.Address(server.Database(t))})
	})
}

func appears(t *testing.T, at database.Place) {
	dir := t.TempDir()
	file := learning.ExportFile{Path: filepath.Join(dir, "cases.jsonl"), At: at, ExportFromBot: nobody, Exporter: func(store *database.Store) (learning.Exporter, error) {
		return (&kept{Store: store, t: t}).exporter(), nil
	}}
	if _, err := file.Write(t.Context()); err == nil || !strings.Contains(err.Error(), "there is no database") {
		t.Errorf("without a database: %v", err)
	}
	off := file
	off.Disabled = true
	if _, err := off.Write(t.Context()); !errors.Is(err, learning.ErrOff) {
		t.Errorf("where it is off: %v", err)
	}
	store, err := database.Open(t.Context(), database.Config{Place: at, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	k := &kept{Store: store, t: t}
	k.tell(private("12345678"))
	k.say(private("12345678"), "12345678", "Ann", "hello", good("telegram:12345678"), answer("hi"))
	closed := !at.Address.Shared() // a server is open to all
	if closed {
		err = store.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	broken := file
	broken.ExportFromBot = func(_ context.Context, read func(io.Reader) error) (bool, error) {
		return true, read(strings.NewReader(`{"time":"2026-11-20T12:00:00Z","direction":"begin","version":1}` + "\n"))
	}
	if _, err := broken.Write(t.Context()); !errors.Is(err, learning.ErrTruncated) {
		t.Errorf("a running bot that breaks off: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%v are left behind, %v", left, err)
	}
	counts, err := file.Write(t.Context())
	if err != nil || counts.Cases != 1 {
		t.Fatalf("%+v, %v", counts, err)
	}
	info, err := os.Stat(file.Path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info, err)
	}
	if _, err := file.Write(t.Context()); err == nil || !strings.Contains(err.Error(), "--force") {
		t.Errorf("a file that is there: %v", err)
	}
	if file.Force = true; closed {
		if _, err := file.Write(t.Context()); err != nil {
			t.Error(err)
		}
		return
	}
	// A running bot writes the same for a command, unless the settings do not allow it.
	w := httptest.NewRecorder()
	k.exporter().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", "/export", nil))
	if counts, err := learning.CopyCases(io.Discard, w.Body); err != nil || counts.Cases != 1 {
		t.Errorf("from a running bot: %+v, %v", counts, err)
	}
	w = httptest.NewRecorder()
	learning.Exporter{}.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", "/export", nil))
	if w.Code != 403 || !strings.Contains(w.Body.String(), "ONECLAW_EXPORT_JUDGED") {
		t.Errorf("where it is off: %d, %s", w.Code, w.Body)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}
