package app_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"testing"

	"oneclaw/internal/app"
	"oneclaw/internal/config"
	"oneclaw/internal/database"
	"oneclaw/storage"
	"oneclaw/storage/bolt"
	"oneclaw/storage/postgres"
	"oneclaw/storage/postgres/pgtest"
)

// Beside a bot that stands still, another one does not wait for its answer.
func TestABotThatStandsStillHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.DataDir, cfg.Listen, cfg.Telegram.Token = t.TempDir(), "127.0.0.1:0", "1:x"
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(cfg.DataDir, database.Name), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	socket, err := database.ListenControl(t.Context(), cfg.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	err = app.Run(t.Context(), cfg, slog.New(slog.NewTextHandler(t.Output(), nil)), func(context.Context) error { return nil })
	if !errors.Is(err, storage.ErrLocked) {
		t.Error(err)
	}
	if err := errors.Join(socket.Close(), store.Close()); err != nil {
		t.Error(err)
	}
}

// called calls a function when something is written that contains words.
type called struct {
	words string
	f     func()
}

func (c called) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(c.words)) {
		c.f()
	}
	return len(p), nil
}

// A bot that waits for a database which is moved or restored stops when it is told to.
func TestABotThatWaitsForItsDatabaseStops(t *testing.T) {
	t.Parallel()
	server := &pgtest.Server{}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	at := server.Database(t)
	held, err := postgres.Open(t.Context(), postgres.Config{URL: at})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	cfg := config.Default()
	cfg.DataDir, cfg.Store, cfg.SecretKey = t.TempDir(), database.Address(at), "0123456789abcdef"
	cfg.Listen, cfg.Telegram.Token = "127.0.0.1:0", "1:x"
	log := slog.New(slog.NewTextHandler(io.MultiWriter(t.Output(), called{"waiting for another process", stop}), nil))
	err = held.RunAlone(t.Context(), nil, func(context.Context) error {
		return app.Run(ctx, cfg, log, func(context.Context) error { return nil })
	})
	if err != nil || ctx.Err() == nil {
		t.Errorf("stopped: %v, told to: %v", err, ctx.Err())
	}
	if err := held.Close(); err != nil {
		t.Error(err)
	}
}
