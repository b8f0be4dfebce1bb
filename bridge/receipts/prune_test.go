package receipts_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/receipts"
	"oneclaw/storage"
	"oneclaw/storage/bolt"
)

// meddled is a store in which somebody changes a receipt right before it is removed.
type meddled struct {
	storage.Store

	meddle func()
	writes int
}

func (m *meddled) Write(ctx context.Context, ops ...storage.Op) (storage.Revision, error) {
	if m.meddle != nil {
		m.meddle()
		m.meddle = nil
	}
	m.writes++
	return m.Store.Write(ctx, ops...)
}

// What is too old goes, many entries with one write, and what has changed meanwhile stays until
// the next time.
func TestPruneRemovesManyWithOneWrite(t *testing.T) {
	t.Parallel()
	engine, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "db"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	now := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	store := &meddled{Store: engine}
	const old, young = 520, 30
	for i := range old + young {
		closed := now.Add(-receipts.Age - time.Duration(i+1)*time.Second)
		if i >= old {
			closed = now.Add(-time.Duration(i) * time.Second)
		}
		m := chats.Message{Chat: chats.Chat{Platform: "telegram", ID: "5"}, ID: fmt.Sprintf("%04d", i), Kind: chats.KindText}
		if err := receipts.Put(t.Context(), store, &receipts.Receipt{Message: m, State: receipts.Done, Closed: closed}, storage.Absent); err != nil {
			t.Fatal(err)
		}
	}
	left := func() (n int) {
		t.Helper()
		for _, prefix := range []string{receipts.Prefix, "finished/"} {
			for _, err := range engine.List(t.Context(), storage.Range{Prefix: prefix}) {
				if n++; err != nil {
					t.Fatal(err)
				}
			}
		}
		return n
	}
	store.writes, store.meddle = 0, func() {
		key := receipts.Prefix + "telegram:5/0007/text"
		entry, err := engine.Get(t.Context(), key)
		if err == nil {
			_, err = engine.Put(t.Context(), key, entry.Value, entry.Revision)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []struct{ removed, left int }{{old, 2*young + 1}, {1, 2 * young}} {
		removed, err := receipts.Prune(t.Context(), store, now, nil)
		if got := left(); err != nil || removed != want.removed || got != want.left {
			t.Errorf("%d are removed, %d are left, %v; want %d and %d", removed, got, err, want.removed, want.left)
		}
	}
	if store.writes > 15 {
		t.Errorf("%d writes remove %d entries", store.writes, 2*old)
	}
}
