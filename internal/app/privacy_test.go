package app

import (
	"errors"
	"testing"

	"oneclaw/bridge/chats"
	"oneclaw/internal/config"
	"oneclaw/storage"
)

// An administrator who is forgotten leaves no name in the record of their sign-ins.
func TestForgetDeletesSignIns(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.DataDir, cfg.Telegram.Token = t.TempDir(), "1:x"
	b := newTestBot(t, cfg)
	const key = "admin/seat/telegram:1"
	if _, err := b.store.Put(t.Context(), key, []byte(`{"user":"telegram:1","name":"Ann","link":"hash"}`), storage.Absent); err != nil {
		t.Fatal(err)
	}
	if err := b.newExporter(cfg).Forget(t.Context(), "telegram:1", chats.Chat{Platform: "telegram", ID: "1"}); err != nil {
		t.Fatal(err)
	}
	if entry, err := b.store.Get(t.Context(), key); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("%s, %v", entry.Value, err)
	}
}
