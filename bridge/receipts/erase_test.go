package receipts_test

import (
	"path/filepath"
	"testing"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/receipts"
	"oneclaw/storage"
	"oneclaw/storage/bolt"
)

// An erasure of some receipts erases what a user said, and how the user rated the answers to others. It
// leaves the other receipts alone.
func TestAnErasureOfSomeReceiptsLeavesTheOthers(t *testing.T) {
	t.Parallel()
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "db"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	key := func(chat, user string) string {
		m := chats.Message{Chat: chats.Chat{Platform: "telegram", ID: chat, Thread: "2"}, ID: "of" + user, Kind: chats.KindText, User: user, Text: "hello"}
		r := &receipts.Receipt{Message: m, State: receipts.Done, Closed: time.Now(), Turn: receipts.Turn{Feedback: []receipts.Feedback{{By: "telegram:7"}}}}
		if err := receipts.Put(t.Context(), store, r, storage.Absent); err != nil {
			t.Fatal(err)
		}
		return receipts.Prefix + r.Key()
	}
	var all []string
	for _, chat := range []string{"-5", "-6", "-8"} {
		all = append(all, key(chat, "7"), key(chat, "9"))
	}
	before, err := storage.GetMany(t.Context(), store, all)
	if err != nil {
		t.Fatal(err)
	}
	if err := receipts.EraseBy(t.Context(), store, "telegram:7", func(r *receipts.Receipt) bool { return r.Message.Chat.ID != "-8" }); err != nil {
		t.Fatal(err)
	}
	after, err := storage.GetMany(t.Context(), store, all)
	if err != nil {
		t.Fatal(err)
	}
	for i, key := range all {
		if changed, want := after[key].Revision != before[key].Revision, i < 4; changed != want {
			t.Errorf("%s is changed: %v; want %v", key, changed, want)
		}
	}
}
