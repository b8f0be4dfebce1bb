package database

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

	"oneclaw/storage"
	"oneclaw/storage/bolt"
	"oneclaw/storage/postgres/pgtest"
	"oneclaw/storage/replicas"
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
	t.Parallel()
	at := onServer(t)
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	old, err := at.connect(t.Context(), false, log)
	if err != nil {
		t.Fatal(err)
	}
	_, err = old.Put(t.Context(), "k", []byte("kept"), storage.Absent)
	if err = errors.Join(err, writeFormat(t.Context(), old, &format{Version: LowestFormat}), old.Close()); err != nil {
		t.Fatal(err)
	}
	var runs atomic.Int32
	steps := []Migration{func(ctx context.Context, store storage.Store, _ *slog.Logger) error {
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
			if err == nil && (f.Version != LowestFormat+1 || f.Backup != "") {
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
		"postgres://u:s%40same@h:1,i:2/d?sslmode=disable":          "postgres://u:xxxxx@h:1,i:2/d?sslmode=disable",
		"postgresql://h/d?password=s%40same&user=u":                "postgresql://h/d?password=xxxxx&user=u",
		"postgres://u:s%40same@h/d?sslkey=k&sslpassword=s%40same2": "postgres://u:xxxxx@h/d?sslkey=k&sslpassword=xxxxx",
	} {
		if err := address.Check(); err != nil || address.String() != want {
			t.Errorf("%v (%v), want %s", address, err, want)
		}
		if got := address.Password(); address.Shared() && got != "s@same" {
			t.Errorf("%v: the password is %q", address, got)
		}
		if strings.Contains(string(address), "sslpassword") && !slices.Contains(address.Secrets(), "s@same2") {
			t.Errorf("%v: the secrets are %q", address, address.Secrets())
		}
	}
	for _, wrong := range []Address{"mysql://u@h/d", "Bolt", "postgres://u:%zz@h/d", "host=h password=p"} {
		if wrong.Check() == nil {
			t.Errorf("%s is taken", string(wrong))
		}
	}
}

// TestABotThatRunsKeepsItsDatabase has a replica serve a database, which is backed up
// meanwhile and neither moved nor replaced.
func TestABotThatRunsKeepsItsDatabase(t *testing.T) {
	t.Parallel()
	ctx, at := t.Context(), onServer(t)
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	store, err := Open(ctx, Config{Place: at, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	if _, err := store.Put(ctx, "k", []byte("kept"), storage.Absent); err != nil {
		t.Fatal(err)
	}
	serving, stop := context.WithCancel(ctx)
	joined, taken := make(chan error, 1), make(chan struct{})
	replica := replicas.New(replicas.Config{
		Store: store, Leases: []string{"l"}, Host: "box-1", OnLost: func(string) {},
		OnTaken: func(context.Context, map[string]storage.Op) error { close(taken); return nil },
	})
	go func() { joined <- replica.Run(serving) }()
	<-taken
	file := filepath.Join(t.TempDir(), "backup")
	if _, err := Backup(ctx, at, file, Options{}); err != nil {
		t.Fatal(err)
	}
	elsewhere := Place{Dir: t.TempDir(), Address: Bolt}
	_, moved := Move(ctx, at, elsewhere, nil)
	_, restored := Restore(ctx, at, file, "", LowestFormat)
	for _, err := range []error{moved, restored, store.CheckUnserved(ctx)} {
		if err == nil || !strings.Contains(err.Error(), "bots run with this database (box-1): stop them first") {
			t.Errorf("beside a bot: %v", err)
		}
	}
	stop()
	if err := <-joined; err != nil {
		t.Fatal(err)
	}
	if _, err := Move(ctx, at, elsewhere, nil); err != nil {
		t.Error(err)
	}
	if kept, err := Restore(ctx, at, file, "", LowestFormat); err != nil || kept == "" {
		t.Errorf("kept %q: %v", kept, err)
	}
	for _, name := range []string{file, filepath.Join(elsewhere.Dir, Name)} {
		copied, err := bolt.Open(bolt.Config{Path: name})
		if err != nil {
			t.Fatal(err)
		}
		for entry, err := range copied.List(ctx, storage.Range{}) {
			if err != nil || entry.Key != "k" && entry.Key != formatKey {
				t.Errorf("%s has %s, %v", name, entry.Key, err)
			}
		}
		if err := copied.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestARestoreThatBrokeOffServesNobody leaves a database as a restore does that was killed.
func TestARestoreThatBrokeOffServesNobody(t *testing.T) {
	t.Parallel()
	ctx, at := t.Context(), onServer(t)
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	open := func() (*Store, error) { return Open(ctx, Config{Place: at, Logger: log}) }
	store, err := open()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "backup")
	_, err = store.Append(ctx, "log", 0, storage.Record{Data: []byte("whole")})
	if err == nil {
		_, err = Backup(ctx, at, file, Options{})
	}
	if err == nil {
		err = clearStore(ctx, store)
	}
	if refused := store.CheckFormat(ctx); !errors.Is(refused, replicas.ErrRefused) {
		t.Errorf("a replica that joins meanwhile: %v", refused)
	}
	if err = errors.Join(err, store.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := open(); !errors.Is(err, errUnfinished) {
		t.Errorf("half a database was opened: %v", err)
	}
	if kept, err := Restore(ctx, at, file, "", LowestFormat); err != nil || kept != "" {
		t.Fatalf("kept %q: %v", kept, err)
	}
	if store, err = open(); err != nil {
		t.Fatal(err)
	}
	for r, err := range store.Records(ctx, "log", storage.Query{}) {
		if err != nil || string(r.Data) != "whole" {
			t.Errorf("%q, %v", r.Data, err)
		}
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}
