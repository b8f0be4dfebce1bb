package app

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"oneclaw/internal/database"
	"oneclaw/storage/bolt"
)

// TestTheControlSocketOfALongPath is about a data directory whose name is longer than
// that of a socket may be.
func TestTheControlSocketOfALongPath(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no way round the limit here")
	}
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(dir, database.Name)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	if asked, err := database.SendOrder(t.Context(), dir, "backup", nil, func(io.Reader) error { return nil }); asked || err != nil {
		t.Fatalf("a bot that does not run was asked: %v", err)
	}
	b := &Bot{store: &database.Store{Store: store}, dataDir: dir, log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	l, err := database.ListenControl(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, database.ControlName))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket: %v (%v), want mode 0600", info.Mode(), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, l, controlHandler(b.store, time.Now, b.log)) }()
	var file []byte // the name of the backup in the folder
	asked, err := database.SendOrder(t.Context(), dir, "backup", nil, func(body io.Reader) (err error) {
		file, err = io.ReadAll(body)
		return err
	})
	if err != nil || !asked {
		t.Fatalf("asked %v: %v", asked, err)
	}
	if err := bolt.Verify(t.Context(), filepath.Join(dir, filepath.Base(string(file)))); err != nil {
		t.Error(err)
	}
	cancel()
	if err := errors.Join(<-done, l.Close()); err != nil && !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}
