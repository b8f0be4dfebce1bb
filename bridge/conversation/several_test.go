package conversation

import (
	"path/filepath"
	"testing"

	"oneclaw/agent"
	"oneclaw/storage"
	"oneclaw/storage/bolt"
)

// A chat that was answered elsewhere meanwhile comes back: its history is read again, also
// where a turn of the time before gives its copy back late.
func TestAHistoryThatWasForgottenIsReadAgain(t *testing.T) {
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "db"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	here, other := NewCache(store, 1000), NewCache(store, 1000)
	say := func(c *Cache, text string) storage.Position {
		t.Helper()
		h, err := c.Take(t.Context(), "fake:1/1")
		if err == nil {
			_, err = h.Append(t.Context(), nil, agent.Message{Role: agent.RoleUser, Text: text})
		}
		if err != nil {
			t.Fatal(err)
		}
		c.Put(h)
		return h.Last
	}
	say(here, "one")
	late, err := here.Take(t.Context(), "fake:1/1")
	if err != nil {
		t.Fatal(err)
	}
	say(other, "two")
	here.Clear()
	here.Put(late)
	if last := say(here, "three"); last != 3 {
		t.Errorf("the log ends at %d", last)
	}
	other.Clear()
	h, err := other.Take(t.Context(), "fake:1/1")
	if err != nil || len(h.Messages) != 3 {
		t.Errorf("%d messages (%v)", len(h.Messages), err)
	}
}
