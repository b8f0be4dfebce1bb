package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"oneclaw/bridge/queue"
	"oneclaw/internal/app"
	"oneclaw/internal/database"
	"oneclaw/internal/doctor"
	"oneclaw/internal/emulator/openai"
	"oneclaw/storage"
	"oneclaw/storage/bolt"
)

// deadLettersRow is the row of doctor about dead letters.
const deadLettersRow = "dead letters"

// TestDoctorListsDeadLetters asks doctor beside a running bot and without one.
func TestDoctorListsDeadLetters(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	w.env["ONECLAW_ALLOW"] = "telegram:1"
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(w.env["ONECLAW_DATA_DIR"], databaseName)})
	if err != nil {
		t.Fatal(err)
	}
	put(t, store, "format", map[string]int{"version": database.LowestFormat})
	for n := range app.MaxDeadLetters + 3 {
		data, err := json.Marshal(queue.DeadLetter{
			Key: fmt.Sprintf("job/open/telegram:7/%d/text", n), Chat: "telegram:7", Reason: "not sent", Incident: fmt.Sprintf("INC%d", n),
			Time: time.Now().Add(time.Duration(n) * time.Second), Data: []byte("what Ann wrote"),
		})
		if err == nil {
			_, err = store.Put(t.Context(), fmt.Sprint("aside/", n), data, storage.Absent)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	look := func() {
		t.Helper()
		all, ok := examined(t, w.env)
		got := all[deadLettersRow]
		if !ok || got.Status != doctor.VerdictWarn {
			t.Errorf("got %+v", got)
		}
		wantIn(t, got.Text, "23 given up", "telegram:7/22/text", "incident INC22", "and 3 before them")
		if strings.Contains(got.Text, "INC2)") || strings.Contains(got.Text, "Ann") {
			t.Errorf("it says %s", got.Text)
		}
	}
	look()
	bot := w.run()
	look()
	bot.kill(syscall.SIGTERM)
}
