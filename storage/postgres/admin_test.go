package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"oneclaw/storage"
	"oneclaw/storage/postgres"
)

// TestSnapshotIsOfOneMoment reads a store page by page while all of it changes.
func TestSnapshotIsOfOneMoment(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := open(t, postgres.Config{URL: (&schemas{base: server.Database(t)}).next(t)})
	const keys = 600 // of several pages
	fill := func(value string) {
		var ops []storage.Op
		for i := range keys {
			ops = append(ops, storage.Put(fmt.Sprintf("k%03d", i), []byte(value), storage.Any))
		}
		if _, err := s.Write(ctx, ops...); err != nil {
			t.Fatal(err)
		}
	}
	fill("old")
	if _, err := s.Append(ctx, "log", 0, storage.Record{Data: []byte("old")}); err != nil {
		t.Fatal(err)
	}
	before, err := s.NewestRevision(ctx)
	if err != nil {
		t.Fatal(err)
	}
	err = s.Snapshot(ctx, func(moment *postgres.Snapshot) error {
		n := 0
		for entry, err := range moment.List(ctx, storage.Range{}) {
			if err != nil || string(entry.Value) != "old" || entry.Revision > before {
				return fmt.Errorf("%s is %q (%w)", entry.Key, entry.Value, err)
			}
			if n++; n == 1 {
				fill("new")
				if err := errors.Join(s.Drop(ctx, "log"), s.Delete(ctx, "k599", storage.Any)); err != nil {
					return err
				}
			}
		}
		if n != keys {
			return fmt.Errorf("%d keys", n)
		}
		for name, err := range moment.Logs(ctx, storage.Range{}) {
			for r, err := range moment.Records(ctx, name, storage.Query{}) {
				if n++; err != nil || string(r.Data) != "old" {
					return fmt.Errorf("record %q (%w)", r.Data, err)
				}
			}
			if err != nil {
				return err
			}
		}
		if n != keys+1 {
			return fmt.Errorf("%d records", n-keys)
		}
		entry, err := moment.Get(ctx, "k599")
		if string(entry.Value) != "old" {
			return fmt.Errorf("k599 is %q (%w)", entry.Value, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if entry, err := s.Get(ctx, "k000"); err != nil || string(entry.Value) != "new" {
		t.Errorf("behind the snapshot: %q, %v", entry.Value, err)
	}
}

// TestAloneIsOneAfterAnother has two handles of a database want to be alone.
func TestAloneIsOneAfterAnother(t *testing.T) {
	ctx := t.Context()
	at := (&schemas{base: server.Database(t)}).next(t)
	one, two := open(t, postgres.Config{URL: at}), open(t, postgres.Config{URL: at})
	var order []string
	begun, ended := make(chan struct{}), make(chan error, 1)
	err := one.RunAlone(ctx, func() error { return errors.New("nobody else is there") }, func(ctx context.Context) error {
		busy := errors.New("busy")
		if err := two.RunAlone(ctx, func() error { return busy }, func(context.Context) error { return nil }); !errors.Is(err, busy) {
			t.Errorf("beside another: %v", err)
		}
		go func() {
			err := two.RunAlone(ctx, func() error { close(begun); return nil }, func(context.Context) error {
				order = append(order, "two")
				return nil
			})
			ended <- err
		}()
		<-begun
		_, err := one.Put(ctx, "k", nil, storage.Absent) // the store goes on for all
		order = append(order, "one")
		return err
	})
	if err := errors.Join(err, <-ended); err != nil || !slices.Equal(order, []string{"one", "two"}) {
		t.Errorf("%v: %v", order, err)
	}
}

func TestRaisedRevisions(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := open(t, postgres.Config{URL: (&schemas{base: server.Database(t)}).next(t)})
	for _, c := range []struct{ raise, want storage.Revision }{{1 << 60, 1<<60 + 1}, {5, 1<<60 + 2}} {
		if err := s.RaiseRevisions(ctx, c.raise); err != nil {
			t.Fatal(err)
		}
		if rev, err := s.Put(ctx, "k", nil, storage.Any); err != nil || rev != c.want {
			t.Errorf("raised to %d: revision %d (%v), want %d", c.raise, rev, err, c.want)
		}
	}
}

// TestWhatTheAddressSays about the connections is not sent to the server.
func TestWhatTheAddressSays(t *testing.T) {
	at := (&schemas{base: server.Database(t)}).next(t)
	s := open(t, postgres.Config{URL: with(t, with(t, at, "pooler", "true"), "pool_max_conns", "2")})
	if most := s.MaxConns(); most != 2 {
		t.Errorf("%d connections, want 2", most)
	}
	var all []error
	for i := range 20 {
		_, err := s.Put(t.Context(), fmt.Sprint(i), nil, storage.Absent)
		all = append(all, err)
	}
	v, err := s.Server(t.Context())
	if err := errors.Join(append(all, err)...); err != nil || v.Size == 0 || v.Version == "" || !slices.ContainsFunc(v.Warnings, func(w string) bool { return w[:5] == "fsync" }) {
		t.Errorf("%+v: %v", v, err)
	}
	wantOpenError(t, postgres.Config{URL: with(t, at, "pooler", "perhaps")}, "pooler is true or false")
}
