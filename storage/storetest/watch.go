package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sync/errgroup"

	"oneclaw/storage"
)

func watchProperties() []property {
	return []property{
		{name: "WatchTellsAll", sentence: "Watch yields each change of a key with its prefix, and no other, in order, with its revision.", check: watchTellsAll},
		{name: "WatchConcurrentWrites", sentence: "Watch misses nothing of many concurrent writes and keeps the order of each key.", check: watchConcurrentWrites},
		{name: "WatchCancelled", sentence: "Watch ends without an error when its context ends.", check: watchCancelled},
		{name: "WatchClosed", sentence: "Watch yields ErrClosed when the store is closed.", check: watchClosed},
		{name: "WatchLagged", sentence: "A slow consumer gets the changes from the first on without a gap, and ErrLagged if some are lost.", check: watchLagged},
		{name: "WatchOwnBytes", sentence: "No two consumers share the memory of a value.", check: watchOwnBytes},
	}
}

// watchUntil returns the events up to that of the key last.
func watchUntil(t testing.TB, what string, seq func(func(storage.Event, error) bool), last string) []storage.Event {
	t.Helper()
	var events []storage.Event
	for e, err := range seq {
		if err != nil {
			t.Fatalf("%s: after %d events: %v", what, len(events), err)
		}
		events = append(events, e)
		if e.Key == last {
			return events
		}
	}
	t.Fatalf("%s: ended after %d events without %q", what, len(events), last)
	return nil
}

func watchTellsAll(t testing.TB, s storage.Store) {
	ctx, cancel := within(t)
	defer cancel()
	mustPut(t, s, "job/before", "", storage.Absent)
	seq, all := s.Watch(ctx, "job/"), s.Watch(ctx, "")
	rev1 := mustPut(t, s, "job/1", "a", storage.Absent)
	rev2 := mustPut(t, s, "job", "not", storage.Absent)
	rev3 := mustPut(t, s, "job/1", "b", rev1)
	if _, err := s.Put(t.Context(), "job/1", []byte("conflict"), rev1); err == nil {
		t.Fatal("Put over a past revision: no error")
	}
	mustDelete(t, s, "job/none", storage.Any)
	mustDelete(t, s, "job/1", rev3)
	mustAppend(t, s, "job/log", 0, record("", "no event"))
	rev4 := mustPut(t, s, "job/1", "", storage.Absent)
	rev5 := mustPut(t, s, "job/\xff", "end", storage.Absent)
	want := []storage.Event{
		{Entry: storage.Entry{Key: "job/1", Value: []byte("a"), Revision: rev1}},
		{Entry: storage.Entry{Key: "job", Value: []byte("not"), Revision: rev2}},
		{Entry: storage.Entry{Key: "job/1", Value: []byte("b"), Revision: rev3}},
		{Entry: storage.Entry{Key: "job/1"}, Deleted: true},
		{Entry: storage.Entry{Key: "job/1", Revision: rev4}},
		{Entry: storage.Entry{Key: "job/\xff", Value: []byte("end"), Revision: rev5}},
	}
	check := func(what string, got, want []storage.Event) {
		t.Helper()
		for i, e := range got {
			if e.Deleted {
				if e.Revision <= rev3 || e.Revision >= rev4 {
					t.Errorf("%s: the deletion has revision %d, want one between %d and %d", what, e.Revision, rev3, rev4)
				}
				got[i].Revision = 0
			}
		}
		equal(t, what, got, want)
	}
	check("events of all keys", watchUntil(t, "all", all, "job/\xff"), want)
	check("events of a prefix", watchUntil(t, "job/", seq, "job/\xff"), append(want[:1:1], want[2:]...))
}

func watchConcurrentWrites(t testing.TB, s storage.Store) {
	const writers, writes = 8, 20
	ctx, cancel := within(t)
	defer cancel()
	seq := s.Watch(ctx, "w/")
	var g errgroup.Group
	for w := range writers {
		g.Go(func() error {
			for i := range writes {
				if _, err := s.Put(ctx, fmt.Sprintf("w/%d", w), []byte(fmt.Sprint(i)), storage.Any); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatalf("Put: %v", err)
	}
	mustPut(t, s, "w/end", "", storage.Absent)
	next, last := map[string]int{}, map[string]storage.Revision{}
	for _, e := range watchUntil(t, "w/", seq, "w/end") {
		if want := fmt.Sprint(next[e.Key]); e.Key != "w/end" && string(e.Value) != want {
			t.Fatalf("%s: value %s, want %s", e.Key, e.Value, want)
		}
		if e.Revision <= last[e.Key] {
			t.Fatalf("%s: revision %d follows %d", e.Key, e.Revision, last[e.Key])
		}
		next[e.Key]++
		last[e.Key] = e.Revision
	}
	for w := range writers {
		if key := fmt.Sprintf("w/%d", w); next[key] != writes {
			t.Errorf("%s: %d events, want %d", key, next[key], writes)
		}
	}
}

// consume ranges over a watch in another goroutine. It sends each key, then the
// error (or nil) with which the watch ended.
func consume(seq func(func(storage.Event, error) bool)) (keys chan string, end chan error) {
	keys, end = make(chan string, 100), make(chan error, 1)
	go func() {
		var last error
		for e, err := range seq {
			if err != nil {
				last = err
				continue
			}
			keys <- e.Key
		}
		end <- last
	}()
	return keys, end
}

// await receives from c and fails the test where nothing comes.
func await[T any](t testing.TB, what string, c <-chan T) T {
	t.Helper()
	ctx, cancel := within(t)
	defer cancel()
	select {
	case v := <-c:
		return v
	case <-ctx.Done():
		t.Fatalf("%s: nothing happened", what)
		panic("not reached")
	}
}

func watchCancelled(t testing.TB, s storage.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	got, end := consume(s.Watch(ctx, ""))
	unused := s.Watch(ctx, "")
	mustPut(t, s, "k", "", storage.Any)
	if key := await(t, "the event", got); key != "k" {
		t.Fatalf("event of %q, want k", key)
	}
	cancel()
	if err := await(t, "the end of a cancelled watch", end); err != nil {
		t.Errorf("cancelled watch: %v, want no error", err)
	}
	mustPut(t, s, "k", "", storage.Any)
	for e, err := range unused {
		t.Fatalf("cancelled watch yields %+v, %v", e, err)
	}
	for e, err := range s.Watch(ctx, "") {
		t.Fatalf("watch with an ended context yields %+v, %v", e, err)
	}
}

func watchClosed(t testing.TB, s storage.Store) {
	ctx, cancel := within(t)
	defer cancel()
	got, end := consume(s.Watch(ctx, ""))
	mustPut(t, s, "k", "", storage.Any)
	await(t, "the event", got)
	closeStore(t, s)
	wantError(t, "watch of a closed store", await(t, "the end of a closed watch", end), storage.ErrClosed)
	n := 0
	for _, err := range s.Watch(ctx, "") {
		wantError(t, "watch after Close", err, storage.ErrClosed)
		n++
	}
	if n != 1 {
		t.Errorf("watch after Close yields %d times, want once", n)
	}
}

func watchLagged(t testing.TB, s storage.Store) {
	const writes = 1500
	ctx, cancel := within(t)
	defer cancel()
	seq := s.Watch(ctx, "")
	for i := range writes {
		mustPut(t, s, "k", fmt.Sprint(i), storage.Any)
	}
	n := 0
	for e, err := range seq {
		if errors.Is(err, storage.ErrLagged) {
			break
		}
		if err != nil {
			t.Fatalf("after %d events: %v", n, err)
		}
		if string(e.Value) != fmt.Sprint(n) {
			t.Fatalf("event %d has the value %s: changes were lost silently", n, e.Value)
		}
		if n++; n == writes {
			break
		}
	}
	if ctx.Err() != nil {
		t.Fatalf("%d of %d events, then neither events nor ErrLagged", n, writes)
	}
}

func watchOwnBytes(t testing.TB, s storage.Store) {
	ctx, cancel := within(t)
	defer cancel()
	one, two := s.Watch(ctx, ""), s.Watch(ctx, "")
	value := []byte("data")
	if _, err := s.Put(ctx, "k", value, storage.Any); err != nil {
		t.Fatalf("Put: %v", err)
	}
	copy(value, "XXXX")
	for _, seq := range []func(func(storage.Event, error) bool){one, two} {
		events := watchUntil(t, "k", seq, "k")
		if string(events[0].Value) != "data" {
			t.Fatalf("event has the value %q", events[0].Value)
		}
		copy(events[0].Value, "YYYY")
	}
	if e, err := s.Get(ctx, "k"); err != nil || string(e.Value) != "data" {
		t.Fatalf("Get = %q, %v", e.Value, err)
	}
}
