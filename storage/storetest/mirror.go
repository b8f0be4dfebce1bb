package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"golang.org/x/sync/errgroup"

	"oneclaw/storage"
)

func testWatchMirrors(t testing.TB, s storage.Store) {
	const writers, writes = 6, 30
	ctx, cancel := withPatience(t)
	defer cancel()
	for i := range 4 {
		mustPut(t, s, fmt.Sprint("m/", i), "before", storage.Absent)
	}
	seq := s.Watch(ctx, "m/")
	var g errgroup.Group
	for w := range writers {
		g.Go(func() error {
			random := rand.New(rand.NewPCG(2, uint64(w)))
			for n := range writes {
				if err := writeRandom(ctx, s, random, fmt.Sprint(w, "/", n)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	mirror := map[string]storage.Event{}
	for _, e := range listEntries(t, s, storage.Range{Prefix: "m/"}) {
		mirror[e.Key] = storage.Event{Entry: e}
	}
	if err := g.Wait(); err != nil {
		t.Fatalf("Write: %v", err)
	}
	mustPut(t, s, "m/end", "", storage.Absent)
	for _, e := range watchUntil(t, "m/", seq, "m/end") {
		if e.Revision > mirror[e.Key].Revision {
			mirror[e.Key] = e
		}
	}
	got := map[string]storage.Entry{}
	for key, e := range mirror {
		if !e.Deleted {
			got[key] = e.Entry
		}
	}
	want := map[string]storage.Entry{}
	for _, e := range listEntries(t, s, storage.Range{Prefix: "m/"}) {
		want[e.Key] = e
	}
	wantEqual(t, "the state according to the watch", got, want)
}

// writeRandom changes one or two of a few keys.
func writeRandom(ctx context.Context, s storage.Store, random *rand.Rand, value string) error {
	one := random.IntN(8)
	var ops []storage.Op
	for _, n := range []int{one, (one + 1 + random.IntN(7)) % 8}[:1+random.IntN(2)] {
		key := fmt.Sprint("m/", n)
		if random.IntN(3) == 0 {
			ops = append(ops, storage.Delete(key, storage.Any))
		} else {
			ops = append(ops, storage.Put(key, []byte(value), storage.Any))
		}
	}
	_, err := s.Write(ctx, ops...)
	return err
}
