package storetest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"oneclaw/storage"
)

func watchProperties() []property {
	return []property{
		{name: "WatchNewest", sentence: "Watch yields, for each change of a key with its prefix, an event with that version or a newer one, and no version that was not written.", check: testWatchNewest, shared: true},
		{name: "WatchConcurrentWrites", sentence: "Watch yields the newest version of each key that is written concurrently, and the versions of a key in order.", check: testWatchConcurrentWrites, shared: true},
		{name: "WatchMirrors", sentence: "A client that watches, then lists, and then follows the watch knows the current state, even during concurrent writes and deletions.", check: testWatchMirrors, shared: true},
		{name: "WatchMany", sentence: "Watching several prefixes yields the changes of the keys that have one of them, in order, and no others.", check: testWatchMany, shared: true},
		{name: "WatchCancelled", sentence: "Watch ends without an error when its context ends.", check: testWatchCancelled},
		{name: "WatchClosed", sentence: "Watch yields ErrClosed when the store is closed.", check: testWatchClosed},
		{name: "WatchLagged", sentence: "A slow consumer gets the newest version of each key that has changed, or ErrLagged.", check: testWatchLagged},
		{name: "WatchOwnBytes", sentence: "Two consumers never share the memory of a value.", check: testWatchOwnBytes},
	}
}

// watchUntil returns the events up to the first one for the key last.
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

// versions maps each key to its versions, in the order in which they were written.
type versions map[string][]storage.Event

// put writes a key and records the version.
func (v versions) put(t testing.TB, s storage.Store, key, value string) {
	t.Helper()
	e := storage.Entry{Key: key, Value: []byte(value), Revision: mustPut(t, s, key, value, storage.Any)}
	v[key] = append(v[key], storage.Event{Entry: e})
}

func (v versions) remove(t testing.TB, s storage.Store, key string) {
	t.Helper()
	rev := mustWrite(t, s, storage.Delete(key, storage.Any))
	v[key] = append(v[key], storage.Event{Entry: storage.Entry{Key: key, Revision: rev}, Deleted: true})
}

// check checks that events are versions of keys with the prefix, in order, and include the last version
// of each such key.
func (v versions) check(t testing.TB, prefix string, events []storage.Event) {
	t.Helper()
	for key, all := range v {
		left := all
		for _, e := range events {
			if e.Key != key {
				continue
			}
			same := func(version storage.Event) bool {
				return version.Revision == e.Revision && version.Deleted == e.Deleted && bytes.Equal(version.Value, e.Value)
			}
			i := slices.IndexFunc(left, same)
			if i < 0 || !strings.HasPrefix(key, prefix) {
				t.Fatalf("watch of %q: the event %+v is none of the changes that can follow", prefix, e)
			}
			left = left[i+1:]
		}
		if strings.HasPrefix(key, prefix) && len(left) > 0 {
			t.Fatalf("watch of %q: no event for the last version of %q", prefix, key)
		}
	}
	for _, e := range events {
		if v[e.Key] == nil {
			t.Fatalf("watch of %q: the event %+v is for a key that has not changed", prefix, e)
		}
	}
}

func testWatchNewest(t testing.TB, s storage.Store) {
	ctx, cancel := withPatience(t)
	defer cancel()
	before := mustPut(t, s, "job/before", "", storage.Absent)
	seq, all := s.Watch(ctx, "job/"), s.Watch(ctx, "")
	written := versions{}
	written.put(t, s, "job/1", "a")
	written.put(t, s, "job", "not")
	written.put(t, s, "job/1", "b")
	_, err := s.Put(t.Context(), "job/1", []byte("conflict"), storage.Absent)
	wantError(t, "Put", err, storage.ErrConflict)
	mustDelete(t, s, "job/none", storage.Any)
	mustWrite(t, s, storage.Check("job/before", before), storage.Append("job/log", 0, record("", "no event")))
	written.put(t, s, "job/2", "a")
	written.remove(t, s, "job/2")
	written.remove(t, s, "job/1")
	written.put(t, s, "job/1", "")
	written.put(t, s, "job/\xff", "end")
	written.check(t, "", watchUntil(t, "all", all, "job/\xff"))
	written.check(t, "job/", watchUntil(t, "job/", seq, "job/\xff"))
}

func testWatchConcurrentWrites(t testing.TB, s storage.Store) {
	const writers, writes = 8, 20
	ctx, cancel := withPatience(t)
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
	newest, last := map[string]string{}, map[string]storage.Revision{}
	for _, e := range watchUntil(t, "w/", seq, "w/end") {
		if e.Revision <= last[e.Key] {
			t.Fatalf("%s: revision %d follows %d", e.Key, e.Revision, last[e.Key])
		}
		newest[e.Key], last[e.Key] = string(e.Value), e.Revision
	}
	for w := range writers {
		if key := fmt.Sprintf("w/%d", w); newest[key] != fmt.Sprint(writes-1) {
			t.Errorf("%s: the last event has the value %q, want %d", key, newest[key], writes-1)
		}
	}
}

// consume ranges over a watch in another goroutine. It sends each key, then the error (or nil) with
// which the watch ended.
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

// await receives from c and fails the test if nothing arrives.
func await[T any](t testing.TB, what string, c <-chan T) T {
	t.Helper()
	ctx, cancel := withPatience(t)
	defer cancel()
	select {
	case v := <-c:
		return v
	case <-ctx.Done():
		t.Fatalf("%s: nothing happened", what)
		panic("not reached")
	}
}

func testWatchCancelled(t testing.TB, s storage.Store) {
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

func testWatchClosed(t testing.TB, s storage.Store) {
	ctx, cancel := withPatience(t)
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

func testWatchLagged(t testing.TB, s storage.Store) {
	const writes = 1500
	ctx, cancel := withPatience(t)
	defer cancel()
	seq := s.Watch(ctx, "")
	missing := map[string]bool{}
	for i := range writes {
		key := fmt.Sprint("k", i)
		mustPut(t, s, key, "", storage.Any)
		missing[key] = true
	}
	for e, err := range seq {
		if errors.Is(err, storage.ErrLagged) {
			return
		}
		if err != nil {
			t.Fatalf("%d of %d keys are missing: %v", len(missing), writes, err)
		}
		if delete(missing, e.Key); len(missing) == 0 {
			return
		}
	}
	t.Fatalf("no events of %d of %d keys, and no ErrLagged", len(missing), writes)
}

func testWatchOwnBytes(t testing.TB, s storage.Store) {
	ctx, cancel := withPatience(t)
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

func testWatchMany(t testing.TB, s storage.Store) {
	ctx, cancel := withPatience(t)
	defer cancel()
	all := versions{}
	changes := s.Watch(ctx, "new/17/", "new/18/", "n")
	few := s.Watch(ctx, "new/17/", "new/180/")
	for i := range 20 {
		for _, key := range []string{"new/17/a", "new/18/b", "new/19/c", "mew/17/a", "n"} {
			all.put(t, s, key, fmt.Sprint(i))
		}
	}
	all.put(t, s, "new/17/z", "")
	events := watchUntil(t, "watch of several prefixes", changes, "new/17/z")
	if !slices.IsSortedFunc(events, func(a, b storage.Event) int { return cmp.Compare(a.Revision, b.Revision) }) {
		t.Errorf("the events are out of order: %+v", events)
	}
	delete(all, "mew/17/a")
	all.check(t, "n", events)
	for _, e := range watchUntil(t, "watch of one prefix of two", few, "new/17/z") {
		if !strings.HasPrefix(e.Key, "new/17/") {
			t.Errorf("the event %+v is not of a watched key", e)
		}
	}
}
