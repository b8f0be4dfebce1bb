package postgres_test

import (
	"cmp"
	"flag"
	"fmt"
	"net/url"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"oneclaw/storage"
	"oneclaw/storage/postgres"
	"oneclaw/storage/postgres/pgtest"
	"oneclaw/storage/storetest"
)

// patience bounds what comes at once unless something is wrong.
const patience = 2 * time.Minute

// server is that of the tests that do it no harm.
var server pgtest.Server

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8") // they wait more than they compute
	code := m.Run()
	err := server.Stop()
	if err == nil && code == 0 {
		err = goleak.Find()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// exec runs a statement, as the superuser.
func exec(t testing.TB, url, statement string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	_, err = conn.Exec(t.Context(), statement, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// with returns a URL with a parameter.
func with(t testing.TB, base, name, value string) string {
	t.Helper()
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set(name, value)
	u.RawQuery = q.Encode()
	return u.String()
}

// schemas makes a place for a store again and again: a schema takes much less time than a
// database.
type schemas struct {
	base  string
	count atomic.Int32
}

func (s *schemas) next(t testing.TB) string {
	t.Helper()
	name := fmt.Sprint("s", s.count.Add(1))
	exec(t, s.base, "CREATE SCHEMA "+name)
	return with(t, s.base, "search_path", name)
}

func open(t testing.TB, cfg postgres.Config) *postgres.Store {
	t.Helper()
	cfg.Timeout = cmp.Or(cfg.Timeout, patience)
	s, err := postgres.Open(t.Context(), cfg)
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

// located is a store that knows where it is.
type located struct {
	*postgres.Store
	url string
}

func TestStore(t *testing.T) {
	t.Parallel()
	places := schemas{base: server.Database(t)}
	at := func(t testing.TB, url string) storage.Store {
		return located{open(t, postgres.Config{URL: url}), url}
	}
	storetest.Run(t, storetest.Config{
		Open:   func(t testing.TB) storage.Store { return at(t, places.next(t)) },
		Reopen: func(t testing.TB, s storage.Store) storage.Store { return at(t, s.(located).url) },
		Second: func(t testing.TB, s storage.Store) storage.Store { return at(t, s.(located).url) },
	})
}

// TestStoreBehindPooler has a pooler give each transaction another connection of the server,
// and changes be found by the poll alone. It takes no search_path, so all stores are made in
// one place, one after another.
func TestStoreBehindPooler(t *testing.T) {
	t.Parallel()
	direct := server.Database(t)
	pooled := postgres.Config{URL: server.Pooler(t, direct), Pooler: true}
	at := func(t testing.TB) storage.Store { return open(t, pooled) }
	for range 3 {
		wantOpenError(t, postgres.Config{URL: pooled.URL}, "add pooler=true to the address")
	}
	storetest.Run(t, storetest.Config{
		Open: func(t testing.TB) storage.Store {
			exec(t, direct, "DROP SCHEMA public CASCADE; CREATE SCHEMA public")
			return at(t)
		},
		Reopen: func(t testing.TB, _ storage.Store) storage.Store { return at(t) },
		Second: func(t testing.TB, _ storage.Store) storage.Store { return at(t) },
	})
}
