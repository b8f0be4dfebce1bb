package app

import (
	"errors"
	"log/slog"
	"path/filepath"
	"testing"

	"oneclaw/bridge/chats"
	"oneclaw/internal/config"
	"oneclaw/internal/database"
	"oneclaw/storage"
	"oneclaw/storage/bolt"
)

// An administrator who is forgotten leaves no name in the record of their sign-ins.
func TestForgetDeletesSignIns(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.DataDir, cfg.Telegram.Token = t.TempDir(), "1:x"
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(cfg.DataDir, database.Name), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	b, err := New(t.Context(), cfg, &database.Store{Store: store}, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	const key = "admin/seat/telegram:1"
	if _, err := store.Put(t.Context(), key, []byte(`{"user":"telegram:1","name":"Ann","link":"hash"}`), storage.Absent); err != nil {
		t.Fatal(err)
	}
	if err := b.newExporter(cfg).Forget(t.Context(), "telegram:1", chats.Chat{Platform: "telegram", ID: "1"}); err != nil {
		t.Fatal(err)
	}
	if entry, err := store.Get(t.Context(), key); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("%s, %v", entry.Value, err)
	}
}
