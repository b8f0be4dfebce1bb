package bolt_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"oneclaw/storage"
	"oneclaw/storage/bolt"
	"oneclaw/storage/storetest"
)

// TestMain is also the program of the child processes that some tests start.
func TestMain(m *testing.M) {
	if role := os.Getenv(childRole); role != "" {
		os.Exit(child(role, os.Getenv(childPath), io.Writer(os.Stdout)))
	}
	goleak.VerifyTestMain(m)
}

func newPath(t testing.TB) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "store.db")
}

// open opens the file without waiting for the disk and closes it with the test.
func open(t testing.TB, path string) *bolt.Store {
	t.Helper()
	s, err := bolt.Open(bolt.Config{Path: path, NoSync: true})
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

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, storetest.Config{
		Open:   func(t testing.TB) storage.Store { return checked{t, open(t, newPath(t))} },
		Reopen: func(t testing.TB, s storage.Store) storage.Store { return checked{t, open(t, s.(checked).Path())} },
		Second: func(_ testing.TB, s storage.Store) storage.Store { return s }, // a file has one handle
	})
}

// checked is a store whose file is checked before it is closed.
type checked struct {
	t testing.TB
	*bolt.Store
}

func (c checked) Close() error {
	// After a first Close there is nothing left to check.
	if err := c.Check(c.t.Context()); err != nil && !isClosed(err) {
		c.t.Errorf("Check: %v", err)
	}
	return c.Store.Close()
}
