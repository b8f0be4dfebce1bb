package bridge_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/storage"
)

// kindOfLater is a kind of jobs that only a later program knows.
const kindOfLater chats.Kind = "dance"

// writeLater writes a job of a later program in chat 7, under a lease token; unclaimed where that is empty.
func writeLater(t *testing.T, store storage.Store, token string) *queue.Run {
	t.Helper()
	later := queue.Store{Store: store, LeaseToken: func(chats.Chat) string { return token }, Base: new(atomic.Int64)}
	m := in("7", "later", "hello")
	m.Kind = kindOfLater
	j := &queue.Run{Job: queue.Job{Message: m, State: receipts.Open, LeaseToken: token, Unclaimed: token == "", Unstarted: true}}
	if added, err := later.Add(t.Context(), j); !added || err != nil {
		t.Fatal(added, err)
	}
	return j
}

// writeLaterText is writeLater for a text that the later program has claimed as something of its own.
func writeLaterText(t *testing.T, store storage.Store) *queue.Run {
	t.Helper()
	later := queue.Store{Store: store, Base: new(atomic.Int64)}
	j := &queue.Run{Job: queue.Job{Message: in("7", "later", "hello"), Kind: kindOfLater, State: receipts.Open, LeaseToken: "later", Unstarted: true}}
	if added, err := later.Add(t.Context(), j); !added || err != nil {
		t.Fatal(added, err)
	}
	return j
}

// wantUntouched checks that nothing was written about a job.
func wantUntouched(t *testing.T, store storage.Store, j *queue.Run) {
	t.Helper()
	t.Helper()
	entry, err := store.Get(t.Context(), queue.OpenPrefix+j.Key())
	if err != nil || entry.Revision != j.Rev {
		t.Errorf("the job of the later program is %s, %v", entry.Value, err)
	}
}

func wantOneLine(t *testing.T, log *bytes.Buffer, j *queue.Run) {
	t.Helper()
	if n := strings.Count(log.String(), j.Key()); n != 1 {
		t.Errorf("%d lines of the log name the job: %s", n, log)
	}
}

// During a rolling upgrade a replica meets jobs that only later programs know.
func TestAJobOfAnUnknownKindIsLeftAloneAndHoldsItsChat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&log, nil))
		all := newSeveral(t, 2, echo, func(cfg *bridge.Config) { cfg.Logger = logger })
		owner, other := all.sides(t, "7")
		j := writeLater(t, owner.cfg.Store, "")
		pass(t, 10)
		owner.accept(in("7", "1", "one"))
		other.accept(in("7", "2", "two"))
		owner.accept(in("8", "1", "eight"))
		pass(t, 10)
		all.once(t, "re: eight")
		if got := all.texts(); slices.Contains(got, "re: one") || slices.Contains(got, "re: two") || slices.Contains(got, "re: hello") {
			t.Errorf("answers: %q", got)
		}
		owner.accept(in("7", "3", "/stop"))
		pass(t, 10)
		all.once(t, "Stopped. 2 waiting messages were dropped.")
		other.accept(in("7", "4", "/stop"))
		pass(t, 10)
		all.once(t, "There is nothing to stop.")
		owner.accept(in("7", "5", "/clear"), in("7", "6", "six"))
		pass(t, 10)
		if wantUntouched(t, owner.cfg.Store, j); slices.Contains(all.texts(), "re: six") {
			t.Errorf("answers: %q", all.texts())
		}
		// Who knows it closes it.
		if err := owner.cfg.Store.Delete(t.Context(), queue.OpenPrefix+j.Key(), j.Rev); err != nil {
			t.Fatal(err)
		}
		pass(t, 10)
		all.once(t, "re: six")
		all.stop(t)
		wantOneLine(t, &log, j)
	})
}

// A program that takes the place of a later one finds what that has left open.
func TestAJobOfAnUnknownKindIsLeftAloneByARestart(t *testing.T) {
	for _, write := range []func(store storage.Store) *queue.Run{
		func(store storage.Store) *queue.Run { return writeLater(t, store, "") },
		func(store storage.Store) *queue.Run { return writeLater(t, store, "later") },
		func(store storage.Store) *queue.Run { return writeLaterText(t, store) },
	} {
		var log bytes.Buffer
		r := newHarness(t, echo, func(cfg *bridge.Config) { cfg.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		r.stop()
		j := write(r.cfg.Store)
		r.start()
		r.accept(in("7", "1", "one"), in("8", "1", "eight"))
		waitAnswered(t, r.platform, "re: eight")
		r.accept(in("7", "2", "/stop"))
		waitAnswered(t, r.platform, "Stopped. One waiting message was dropped.")
		r.accept(in("7", "3", "three"))
		r.stop()
		wantUntouched(t, r.cfg.Store, j)
		wantOneLine(t, &log, j)
		if err := r.cfg.Store.Delete(t.Context(), queue.OpenPrefix+j.Key(), j.Rev); err != nil {
			t.Fatal(err)
		}
		r.start()
		waitAnswered(t, r.platform, "re: three")
		r.stop()
		if got := r.platform.texts(); slices.Contains(got, "re: hello") || slices.Contains(got, "re: one") {
			t.Errorf("answers: %q", got)
		}
	}
}
