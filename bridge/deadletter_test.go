package bridge_test

import (
	"encoding/json"
	"testing"

	"oneclaw/bridge/queue"
	"oneclaw/storage"
)

func TestDeadLettersAreListedByTime(t *testing.T) {
	store := openStore(t, t.TempDir()+"/db")
	for key, value := range map[string]string{
		"aside/1": `{"key":"job/open/x","time":"2026-02-02T00:00:00Z","reason":"second"}`,
		"aside/2": `{"key":"job/open/y","time":"2026-02-01T00:00:00Z","reason":"first"}`,
		"aside/3": `{`,
	} {
		if _, err := store.Put(t.Context(), key, []byte(value), storage.Absent); err != nil {
			t.Fatal(err)
		}
	}
	all, err := queue.ListDeadLetters(t.Context(), store)
	if err != nil || len(all) != 3 {
		t.Fatalf("%v, %v", all, err)
	}
	if all[0].Key != "aside/3" || all[1].Reason != "first" || all[2].Reason != "second" {
		got, _ := json.Marshal(all)
		t.Errorf("got %s", got)
	}
}
