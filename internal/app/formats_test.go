package app

import (
	"errors"
	"log/slog"
	"path/filepath"
	"testing"

	"oneclaw/bridge/conversation"
	"oneclaw/internal/config"
	"oneclaw/storage"
	"oneclaw/storage/bolt"
)

// A person whom an older version was erasing chat by chat is left to the next sweep.
func TestAnOpenErasureOfAnOlderVersionIsLeftToTheSweep(t *testing.T) {
	t.Parallel()
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "db"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	const key = "job/open/telegram:-5/x/erase"
	if _, err := store.Put(t.Context(), key, []byte(`{"message":{"chat":{"platform":"telegram","id":"-5"},"id":"x","kind":"erase","user":"7"},"state":"open"}`), storage.Absent); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := Migrations(config.Config{})[0](t.Context(), store, slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := store.Get(t.Context(), key); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("the job is still there: %v", err)
	}
	entry, err := store.Get(t.Context(), conversation.ForgottenPrefix+"telegram:7")
	if _, f := conversation.DecodeForgotten(entry); err != nil || f.Seq != 1 || !f.Done || !f.At.IsZero() {
		t.Errorf("the record is %+v: %v", f, err)
	}
}
