package shared

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"oneclaw/storage"
	"oneclaw/storage/bolt"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// openStore is the store that several processes share.
func openStore(t *testing.T) storage.Store {
	t.Helper()
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "db"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

// stored is everything that the store has under a prefix.
func stored(t *testing.T, kv storage.KV, prefix string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for entry, err := range kv.List(t.Context(), storage.Range{Prefix: prefix}) {
		if err != nil {
			t.Fatal(err)
		}
		all[entry.Key] = string(entry.Value)
	}
	return all
}

func named(id string) func(Invitation) bool {
	return func(in Invitation) bool { return in.ID == id }
}

func TestInvitationsAreBounded(t *testing.T) {
	store := openStore(t)
	now := time.Now()
	at := &Clock{date: now, receivedAt: now}
	v, err := NewInvitations(store, "xoxb-1", at)
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewInvitations(store, "xoxb-2", at)
	if err != nil {
		t.Fatal(err)
	}
	for i := range maxInvitations + 1 {
		if err := v.Add(t.Context(), "C1", Invitation{ID: fmt.Sprint(i), Address: "https://slack.com/" + fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	for id, want := range map[string]string{"0": "", "1": "https://slack.com/1", "": ""} {
		if got, _, err := v.Take(t.Context(), "C1", named(id)); err != nil || got != want {
			t.Errorf("%q leads to %q, %v; want %q", id, got, err, want)
		}
	}
	if got, _, err := other.Take(t.Context(), "C1", named("1")); err != nil || got != "" {
		t.Errorf("another token opens it: %q, %v", got, err)
	}
	if err := v.Prune(t.Context()); err != nil || len(stored(t, store, invitationPrefix)) != 1 {
		t.Errorf("pruned what is not over: %v", err)
	}
	at.date = now.Add(invitationAge)
	if got, _, err := v.Take(t.Context(), "C1", named("1")); err != nil || got != "" {
		t.Errorf("half an hour later: %q, %v", got, err)
	}
	if err := v.Prune(t.Context()); err != nil || len(stored(t, store, invitationPrefix)) != 0 {
		t.Errorf("not pruned: %v", err)
	}
}
