package postgres_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"oneclaw/storage"
	"oneclaw/storage/postgres"
)

// never is longer than any test.
const never = time.Hour

// openSlowly opens a store that looks for changes only when somebody tells of them.
func openSlowly(t *testing.T, cfg postgres.Config) *postgres.Store {
	t.Helper()
	cfg.Timeout = cmp.Or(cfg.Timeout, patience)
	s, err := postgres.OpenPolling(t.Context(), cfg, never)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func put(t *testing.T, s storage.Store, key, value string) storage.Revision {
	t.Helper()
	rev, err := s.Put(t.Context(), key, []byte(value), storage.Any)
	if err != nil {
		t.Fatal(err)
	}
	return rev
}

// following pulls the events of a watch one by one.
func following(t *testing.T, s storage.Store) func() storage.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	next, stop := iter.Pull2(s.Watch(ctx, ""))
	t.Cleanup(stop)
	t.Cleanup(cancel)
	return func() storage.Event {
		t.Helper()
		e, err, ok := next()
		if !ok || err != nil {
			t.Fatalf("watch ends: %v", err)
		}
		return e
	}
}

// TestOthersAreTold has one store learn of the writes of another by notifications alone.
func TestOthersAreTold(t *testing.T) {
	t.Parallel()
	at := (&schemas{base: server.Database(t)}).next(t)
	one, two := openSlowly(t, postgres.Config{URL: at}), openSlowly(t, postgres.Config{URL: at})
	next := following(t, one)
	for i := range 20 {
		key := fmt.Sprint(i)
		put(t, two, key, "")
		if e := next(); e.Key != key {
			t.Fatalf("event of %q, want %q", e.Key, key)
		}
	}
}

// TestNotificationsGoToTheChannelsOfKeys has a store listen on the channels of its watches, also of
// those that begin later.
func TestNotificationsGoToTheChannelsOfKeys(t *testing.T) {
	t.Parallel()
	at := (&schemas{base: server.Database(t)}).next(t)
	channel := func(key string) string {
		name, _, _ := strings.Cut(key, "/")
		return strings.TrimPrefix(name, "unwatched")
	}
	one, two := openSlowly(t, postgres.Config{URL: at, Channel: channel}), openSlowly(t, postgres.Config{URL: at, Channel: channel})
	conn, err := pgx.Connect(t.Context(), at)
	if err == nil {
		_, err = conn.Exec(t.Context(), `LISTEN "B"`)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	for _, prefixes := range [][]string{{"a/"}, {"B/", "c/"}} {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		next, stop := iter.Pull2(one.Watch(ctx, prefixes...))
		defer stop()
		for _, prefix := range prefixes {
			put(t, two, "unwatched/1", "")
			put(t, two, prefix+"1", "")
			if e, err, ok := next(); !ok || err != nil || e.Key != prefix+"1" {
				t.Fatalf("the event %+v, %v, want one of %s", e, err, prefix)
			}
		}
	}
	if n, err := conn.WaitForNotification(t.Context()); err != nil || n.Channel != "B" {
		t.Errorf("the notification %+v, %v", n, err)
	}
}

// TestWatchSeesWhatBecomesVisibleLate has a write with the lower revision become visible
// behind one with a higher.
func TestWatchSeesWhatBecomesVisibleLate(t *testing.T) {
	t.Parallel()
	at := (&schemas{base: server.Database(t)}).next(t)
	s := open(t, postgres.Config{URL: at})
	next := following(t, s)
	conn, err := pgx.Connect(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var early []int64
	err = tx.QueryRow(t.Context(), "SELECT oneclaw_write('{1}', '{false}', '{1}', '{1}', '{late}', '{0}', '{v}', '{0}', '{}', '{}')").Scan(&early)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		rev := put(t, s, fmt.Sprint(i), "v")
		if e := next(); e.Revision != rev || int64(rev) <= early[0] {
			t.Fatalf("event %+v of a write with the revision %d, begun after %d", e, rev, early[0])
		}
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e := next(); e.Key != "late" || int64(e.Revision) != early[0] {
		t.Errorf("event %+v, want that of the revision %d, which became visible last", e, early[0])
	}
}

// TestSweep removes traces of deletions. Who has seen them goes on; who has not is told that
// something is lost.
func TestSweep(t *testing.T) {
	at := (&schemas{base: server.Database(t)}).next(t)
	one, late := open(t, postgres.Config{URL: at}), openSlowly(t, postgres.Config{URL: at, Pooler: true})
	next := following(t, one)
	missing := late.Watch(t.Context(), "")
	put(t, one, "kept", "")
	first := put(t, one, "k", "v")
	if err := one.Delete(t.Context(), "k", first); err != nil {
		t.Fatal(err)
	}
	for e := next(); !e.Deleted; e = next() {
	}
	rows := func() (n int) {
		conn, err := pgx.Connect(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(t.Context()) }()
		if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM oneclaw_kv").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before, err := one.Sweep(t.Context(), "")
	if err != nil || rows() != 2 {
		t.Fatalf("Sweep: %v, %d rows, want 2 after the first", err, rows())
	}
	// Another transaction on the server may have run at its last look, and not at the sweep.
	if err := one.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := one.Sweep(t.Context(), before); err != nil || rows() != 1 {
		t.Fatalf("Sweep: %v, %d rows, want 1 after the second", err, rows())
	}
	if rev := put(t, one, "k", "again"); rev <= first {
		t.Errorf("revision %d follows %d", rev, first)
	}
	if e := next(); e.Key != "k" || e.Deleted {
		t.Errorf("event %+v behind a sweep", e)
	}
	if err := late.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, err := range missing {
		if !errors.Is(err, storage.ErrLagged) {
			t.Errorf("watch that has not seen a deletion: %v, want ErrLagged", err)
		}
		break
	}
}

// TestDumpOfAnotherServer opens tables with numbers of transactions that this server has
// not had yet.
func TestDumpOfAnotherServer(t *testing.T) {
	at := (&schemas{base: server.Database(t)}).next(t)
	s := open(t, postgres.Config{URL: at})
	put(t, s, "old", "")
	const future = "'4000000000000'"
	exec(t, at, "UPDATE oneclaw_kv SET tx = "+future)
	exec(t, at, "UPDATE oneclaw_meta SET swept = "+future)
	s = open(t, postgres.Config{URL: at})
	next := following(t, s)
	for i := range 3 {
		key := fmt.Sprint(i)
		put(t, s, key, "")
		if e := next(); e.Key != key {
			t.Fatalf("event of %q, want %q", e.Key, key)
		}
	}
}

// TestManyOperations has writes of more names than the server has locks for, beside others.
func TestManyOperations(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Config{URL: (&schemas{base: server.Database(t)}).next(t)})
	const many, rounds = 9000, 3
	var g errgroup.Group
	g.Go(func() error {
		for round := range rounds {
			var ops []storage.Op
			for i := range many {
				ops = append(ops, storage.Put(fmt.Sprint(i), []byte(fmt.Sprint("all ", round)), storage.Any))
			}
			if _, err := s.Write(t.Context(), ops...); err != nil {
				return err
			}
		}
		return nil
	})
	for w := range 8 {
		g.Go(func() error {
			for i := range 200 {
				a, b := fmt.Sprint(w*100+i), fmt.Sprint(5000-i)
				if _, err := s.Write(t.Context(), storage.Put(a, nil, storage.Any), storage.Put(b, nil, storage.Any)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err := range s.List(t.Context(), storage.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != many {
		t.Errorf("%d keys, want %d", n, many)
	}
}

func TestWatchIsIteratedOnce(t *testing.T) {
	s := open(t, postgres.Config{URL: (&schemas{base: server.Database(t)}).next(t)})
	seq := s.Watch(t.Context(), "")
	put(t, s, "k", "")
	for _, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	for _, err := range seq {
		if err == nil {
			t.Fatal("a second iteration yields an event")
		}
	}
}
