package database

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

	"oneclaw/storage"
	"oneclaw/storage/bolt"
	"oneclaw/storage/postgres/pgtest"
)

// onServer is a place on a server that is stopped with the test.
func onServer(t *testing.T) Place {
	t.Helper()
	server := &pgtest.Server{}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return Place{Dir: t.TempDir(), Address: Address(server.Database(t))}
}

// TestProcessesThatStartTogetherMigrateOnce has some open a database in an old format.
func TestProcessesThatStartTogetherMigrateOnce(t *testing.T) {
	at := onServer(t)
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	err := Look(t.Context(), at, func(s *Store) error {
		_, err := s.Put(t.Context(), "k", []byte("kept"), storage.Absent)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var runs atomic.Int32
	steps := []Migration{func(ctx context.Context, store storage.Store) error {
		runs.Add(1)
		_, err := store.Put(ctx, "migrated", nil, storage.Absent)
		return err
	}}
	var group errgroup.Group
	for range 4 {
		group.Go(func() error {
			store, err := Open(t.Context(), Config{Place: at, Migrations: steps, Logger: log})
			if err != nil {
				return err
			}
			f, err := readFormat(t.Context(), store)
			if err == nil && (f.Version != 1 || f.Backup != "") {
				err = errors.New("it was opened in another format")
			}
			return errors.Join(err, store.Close())
		})
	}
	if err := group.Wait(); err != nil || runs.Load() != 1 {
		t.Errorf("%d runs: %v", runs.Load(), err)
	}
	files, err := os.ReadDir(at.Dir)
	if err != nil || len(files) != 1 {
		t.Fatalf("%v: %v", files, err)
	}
	if err := bolt.Verify(t.Context(), at.Dir+"/"+files[0].Name()); err != nil {
		t.Error(err)
	}
}

func TestAddressesAreShownWithoutTheirPassword(t *testing.T) {
	for address, want := range map[Address]string{
		"":     "",
		"bolt": "bolt",
		"postgres://u:s%40same@h:1,i:2/d?sslmode=disable": "postgres://u:xxxxx@h:1,i:2/d?sslmode=disable",
		"postgresql://h/d?password=s%40same&user=u":       "postgresql://h/d?password=xxxxx&user=u",
	} {
		if err := address.Check(); err != nil || address.String() != want {
			t.Errorf("%v (%v), want %s", address, err, want)
		}
		if got := address.Password(); address.Shared() && got != "s@same" {
			t.Errorf("%v: the password is %q", address, got)
		}
	}
	for _, wrong := range []Address{"mysql://u@h/d", "Bolt", "postgres://u:%zz@h/d", "host=h password=p"} {
		if wrong.Check() == nil {
			t.Errorf("%s is taken", string(wrong))
		}
	}
}
