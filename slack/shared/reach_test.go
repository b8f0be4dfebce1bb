package shared

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/storage"
)

func chatOf(channel, thread string) chats.Chat {
	return chats.Chat{Platform: platform, ID: channel, Thread: thread}
}

func TestReachIsBounded(t *testing.T) {
	store := openStore(t)
	r := NewProgress(store, &Clock{})
	for i := range maxLive + 50 {
		r.Touch(chatOf("C1", strconv.Itoa(i)))
	}
	if n := len(r.Threads()["C1"]); n != maxLive {
		t.Errorf("%d threads", n)
	}
	r.threads[chatOf("C1", "old")] = time.Now().Add(-2 * maxIdle)
	if err := r.Save(t.Context()); err != nil {
		t.Fatal(err)
	}
	before, err := store.Get(t.Context(), marksKey)
	if err != nil || strings.Contains(string(before.Value), "old") {
		t.Errorf("%v: %s", err, before.Value)
	}
	if err := r.Save(t.Context()); err != nil {
		t.Error(err)
	}
	if after, err := store.Get(t.Context(), marksKey); err != nil || after.Revision != before.Revision {
		t.Errorf("written although nothing has changed: %v", err)
	}
	again := NewProgress(store, &Clock{})
	if err := again.Load(t.Context()); err != nil || len(again.Threads()["C1"]) != maxLive {
		t.Errorf("%v, %d threads", err, len(again.Threads()["C1"]))
	}
}

// With the agent view each direct message is a thread: of too many those are searched
// first in which somebody wrote last.
func TestTheLatestThreadsAreSearchedFirst(t *testing.T) {
	r := NewProgress(nil, &Clock{})
	for i := range 50 {
		r.threads[chatOf("D1", fmt.Sprint(i))] = time.Unix(int64(i), 0)
	}
	if got := r.Threads()["D1"]; len(got) != 50 || got[0] != "49" || got[49] != "0" {
		t.Errorf("got %v", got)
	}
}

// several are processes that share a store, at a time that the test moves.
func several(t *testing.T, n int) (all []*Progress, store storage.Store, pass func(time.Duration)) {
	t.Helper()
	store = openStore(t)
	now := time.Now()
	at := &Clock{date: now, receivedAt: now}
	for range n {
		r := NewProgress(store, at)
		if err := r.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all, store, func(d time.Duration) { at.date = at.date.Add(d) }
}

func save(t *testing.T, all ...*Progress) {
	t.Helper()
	for _, r := range all {
		if err := r.Save(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMarksOfSeveral has processes that save in turn lose nothing of each other.
func TestMarksOfSeveral(t *testing.T) {
	all, store, pass := several(t, 3)
	for i, r := range all {
		pass(time.Second)
		r.RecordConnection(true)
		r.Touch(chatOf("C1", strconv.Itoa(i)))
		save(t, r)
	}
	seen := all[2].lastAlive
	save(t, all...)
	next := NewProgress(store, all[0].clock)
	if err := next.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, r := range append(all, next) {
		if got := r.Threads()["C1"]; len(got) != 3 || !r.lastAlive.Equal(seen) {
			t.Errorf("%d knows %v, alive %v; want %v", i, got, r.lastAlive, seen)
		}
	}
}

// TestAGapIsFilledOnceForAll opens gaps in two processes: one that fills them closes them
// for all, but not one that came while it was at it.
func TestAGapIsFilledOnceForAll(t *testing.T) {
	all, store, pass := several(t, 3)
	for _, r := range all {
		r.RecordConnection(true)
	}
	save(t, all...)
	save(t, all...)
	begin := all[0].lastAlive
	pass(time.Hour) // nobody is connected
	all[0].RecordConnection(true)
	pass(time.Minute)
	all[1].RecordConnection(true)
	save(t, all...)
	save(t, all...)
	for i, r := range all {
		if since, name := r.Gap(); !since.Equal(begin) || name == "" {
			t.Fatalf("%d knows of a gap since %v, want %v", i, since, begin)
		}
	}
	// A process that comes now, after all others were killed, knows of it too.
	next := NewProgress(store, all[0].clock)
	if err := next.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	since, name := next.Gap()
	if !since.Equal(begin) {
		t.Errorf("the next knows of a gap since %v, want %v", since, begin)
	}
	all[0].RecordConnection(true) // what came before this is fetched, what comes now may not be
	save(t, all[0])
	next.CloseGap(name)
	save(t, next)
	if again, other := next.Gap(); !again.Equal(begin) || other == name {
		t.Errorf("a gap that came meanwhile: since %v", again)
	}
	_, name = next.Gap()
	next.CloseGap(name)
	save(t, next)
	save(t, all...)
	for i, r := range append(all, next) {
		if since, _ := r.Gap(); !since.IsZero() {
			t.Errorf("%d still knows of a gap since %v", i, since)
		}
	}
}

// TestEventsThatCouldNotBeStoredWidenTheGap has an event be refused by the store of one process, and the gap
// be known to all once it can be saved.
func TestEventsThatCouldNotBeStoredWidenTheGap(t *testing.T) {
	all, _, pass := several(t, 2)
	all[0].RecordConnection(true)
	pass(time.Hour)
	all[0].RecordConnection(false) // it is alive
	now := all[0].lastAlive
	for _, ago := range []time.Duration{time.Minute, time.Hour / 2, 0} {
		all[0].RecordMissed(now.Add(-ago))
	}
	save(t, all...)
	want := now.Add(-time.Hour / 2)
	for i, r := range all {
		if since, name := r.Gap(); !since.Equal(want) || name == "" {
			t.Errorf("%d knows of a gap since %v, want %v", i, since, want)
		}
	}
	_, name := all[0].Gap()
	all[0].RecordMissed(now)
	all[0].CloseGap(name)
	if since, _ := all[0].Gap(); !since.Equal(want) {
		t.Errorf("a gap that grew meanwhile: since %v, want %v", since, want)
	}
}

// TestDebtsOfSeveral has the debt of one process be settled by another.
func TestDebtsOfSeveral(t *testing.T) {
	all, store, _ := several(t, 3)
	thread := chatOf("C1", "1.000001")
	for i, since := range []string{"5.000000", "3.000000", "4.000000"} {
		if err := all[i].Postpone(t.Context(), thread, Postponement{Since: since, Kind: "channel"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := all[0].LoadPostponed(t.Context()); err != nil {
		t.Fatal(err)
	}
	oldest := Postponement{Since: "3.000000", Kind: "channel"}
	if got := all[0].Postponed()[thread]; got != oldest {
		t.Errorf("of three is known %+v", got)
	}
	// A younger one is settled here, the older one stays.
	if err := all[2].Resolve(t.Context(), thread, all[2].Postponed()[thread]); err != nil || len(stored(t, store, postponedPrefix)) != 1 {
		t.Errorf("%v, kept %v", err, stored(t, store, postponedPrefix))
	}
	for _, r := range []*Progress{all[0], all[1]} {
		if err := r.Resolve(t.Context(), thread, oldest); err != nil || len(r.Postponed()) != 0 {
			t.Errorf("%v, debts %v", err, r.Postponed())
		}
	}
	if kept := stored(t, store, postponedPrefix); len(kept) != 0 {
		t.Errorf("kept %v", kept)
	}
}

func TestThreadsOfSeveral(t *testing.T) {
	all, store, pass := several(t, 2)
	thread := chatOf("C1", "1.000001")
	if _, joined, err := all[1].Joined(t.Context(), thread); joined || err != nil {
		t.Errorf("joined %v, %v", joined, err)
	}
	if err := all[0].Join(t.Context(), thread, "U1"); err != nil {
		t.Fatal(err)
	}
	if opener, joined, err := all[1].Joined(t.Context(), thread); opener != "U1" || !joined || err != nil {
		t.Errorf("opener %q, joined %v, %v", opener, joined, err)
	}
	for range 2 {
		if err := all[1].Prune(t.Context()); err != nil {
			t.Error(err)
		}
		pass(threadAge + time.Second)
	}
	if err := all[1].Prune(t.Context()); err != nil || len(stored(t, store, threadPrefix)) != 0 {
		t.Errorf("not pruned: %v", err)
	}
}

func FuzzMarks(f *testing.F) {
	f.Add([]byte(`{"alive":"2026-11-01T10:00:00Z","threads":{"slack:C1:1.000001":"2026-11-01T10:00:00Z","telegram:1:2":"2026-11-01T10:00:00Z","x":"2026-11-01T10:00:00Z"}}`))
	f.Add([]byte(`{"alive":"9999-11-01T10:00:00Z"}`))
	f.Add([]byte(`{"missing":"2026-11-01T10:00:00Z","alive":"2026-11-01T11:00:00Z","gap":"X"}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, state []byte) {
		r := NewProgress(nil, &Clock{})
		m, err := r.decode(state)
		if err != nil {
			return
		}
		r.adopt(m, "")
		if r.lastAlive.After(time.Now()) || len(r.threads) > maxLive {
			t.Errorf("got %v, %d threads", r.lastAlive, len(r.threads))
		}
		for chat := range r.threads {
			if chat.Platform != platform || chat.ID == "" || chat.Thread == "" {
				t.Errorf("got %+v", chat)
			}
		}
	})
}
