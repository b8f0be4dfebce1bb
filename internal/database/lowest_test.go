package database

import (
	"errors"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oneclaw/storage"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8") // they wait more than they compute
	os.Exit(m.Run())
}

// What was written before the first release is refused as it is, in a file, on a server, and as a
// backup of either.
func TestAFormatBelowTheLowestIsRefusedUnchanged(t *testing.T) {
	t.Parallel()
	inFile := func(t *testing.T) Place { return Place{Dir: t.TempDir(), Address: Bolt} }
	for name, place := range map[string]func(*testing.T) Place{"file": inFile, "server": onServer} {
		for record, version := range map[string]string{"of an older format": `{"version":3}`, "without a format": ""} {
			t.Run(name+" "+record, func(t *testing.T) {
				ctx, at := t.Context(), place(t)
				cfg := Config{Place: at, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}
				store, err := Open(ctx, cfg)
				if err != nil {
					t.Fatal(err)
				}
				good := filepath.Join(t.TempDir(), "good")
				_, err = store.Put(ctx, "k", []byte("kept"), storage.Absent)
				if err = errors.Join(err, store.Close()); err == nil {
					_, err = Backup(ctx, at, good, Options{})
				}
				if err != nil {
					t.Fatal(err)
				}
				write := func(s *Store) error {
					if version == "" {
						return s.Delete(ctx, formatKey, storage.Any)
					}
					_, err := s.Put(ctx, formatKey, []byte(version), storage.Any)
					return err
				}
				if err := View(ctx, at, write); err != nil {
					t.Fatal(err)
				}
				contents := func() (all string) {
					t.Helper()
					err := View(ctx, at, func(s *Store) error {
						for e, err := range s.List(ctx, storage.Range{}) {
							if err != nil {
								return err
							}
							all += e.Key + "=" + string(e.Value) + " "
						}
						return nil
					})
					if err != nil {
						t.Fatal(err)
					}
					return all
				}
				before := contents()
				old := filepath.Join(t.TempDir(), "old")
				if _, err := Backup(ctx, at, old, Options{}); err != nil {
					t.Fatal(err)
				}
				_, opened := Open(ctx, cfg)
				_, restored := Restore(ctx, at, old, "", LowestFormat)
				for _, err := range []error{opened, restored} {
					if err == nil || !strings.Contains(err.Error(), "the program of commit "+lastReaderCommit+" reads it") || strings.Contains(err.Error(), "\n") {
						t.Errorf("refused with %v", err)
					}
				}
				if after := contents(); after != before {
					t.Errorf("a refusal has made %q of %q", after, before)
				}
				if files, err := os.ReadDir(at.Dir); err != nil || len(files) > 1 {
					t.Errorf("a refusal leaves %v, %v", files, err)
				}
				if _, err := Restore(ctx, at, good, "", LowestFormat); err != nil {
					t.Error(err)
				}
				if store, err = Open(ctx, cfg); err != nil {
					t.Fatal(err)
				}
				if err := store.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}
