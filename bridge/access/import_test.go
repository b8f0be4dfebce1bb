package access_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"oneclaw/bridge/access"
	"oneclaw/storage/bolt"
)

// People from elsewhere become requests, once and not without end, and get no role.
func TestImportedPeopleAreRequests(t *testing.T) {
	t.Parallel()
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "db"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	people := []access.Person{{User: "telegram:*"}, {User: "telegram"}, {User: "telegram:1", Name: "Ann"}, {User: "telegram:1"}}
	for i := range 20 {
		people = append(people, access.Person{User: fmt.Sprint("slack:U", i)})
	}
	now := time.Date(2026, 11, 1, 9, 0, 0, 0, time.UTC)
	for _, write := range []bool{false, true} {
		reasons, err := access.Import(t.Context(), store, people, now, write)
		if err != nil {
			t.Fatal(err)
		}
		for i, reason := range reasons {
			want := map[int]error{0: access.ErrNoPerson, 1: access.ErrNoPerson, 3: access.ErrKnown, len(people) - 1: access.ErrTooMany}[i]
			if !errors.Is(reason, want) || want == nil && reason != nil {
				t.Errorf("write %t: %s: %v, want %v", write, people[i].User, reason, want)
			}
		}
	}
	r := access.New(access.Config{Store: store, Now: func() time.Time { return now }})
	if err := r.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := r.ListPeople()
	for _, p := range all {
		if p.Standing != "asked" || p.Role > 0 || !p.Until.After(now) {
			t.Errorf("%+v", p)
		}
	}
	if len(all) != 20 {
		t.Errorf("%d people", len(all))
	}
	if reasons, err := access.Import(t.Context(), store, people[2:3], now.Add(8*24*time.Hour), false); err != nil || reasons[0] != nil {
		t.Errorf("a request that has ended cannot be made again: %v, %v", reasons, err)
	}
}
