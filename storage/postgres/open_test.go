package postgres_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sync/errgroup"

	"oneclaw/storage"
	"oneclaw/storage/postgres"
	"oneclaw/storage/postgres/pgtest"
)

// wantOpenError wants Open to be refused with these words in one line, and without the
// password.
func wantOpenError(t *testing.T, cfg postgres.Config, words string) {
	t.Helper()
	s, err := postgres.Open(t.Context(), cfg)
	if err == nil {
		t.Errorf("%s: opened", words)
		_ = s.Close()
		return
	}
	if text := err.Error(); !strings.Contains(text, words) || strings.Contains(text, "\n") || strings.Contains(text, "sesame") {
		t.Errorf("error %q, want one line with %q and no password", text, words)
	}
}

// as returns a URL for the user who has a password.
func as(t *testing.T, base, password string) string {
	t.Helper()
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(pgtest.Guarded, password)
	return u.String()
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	base := server.Database(t)
	places := schemas{base: base}
	missing, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	missing.Path = "no such database"
	closing, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = closing.Close() }()
	go func() {
		for conn, err := closing.Accept(); err == nil; conn, err = closing.Accept() {
			_ = conn.Close()
		}
	}()
	for words, at := range map[string]string{
		"reached: 127.0.0.1":         "postgres://user:sesame@" + closing.Addr().String() + "/x",
		"no URL":                     "",
		"the URL cannot be read":     "postgres://user:open sesame@[::1/x?y",
		"pool_max_conns is 1":        with(t, base, "pool_max_conns", "1"),
		"the password is wrong":      as(t, base, "not open sesame"),
		"there is no such database":  missing.String(),
		"has not the rights":         as(t, base, pgtest.GuardedPassword),
		"there is no schema":         with(t, base, "search_path", "nowhere"),
		"the server cannot be":       "postgres://user:sesame@127.0.0.1:1/x?sslmode=disable",
		"synchronous_commit is off":  with(t, places.next(t), "options", "-csynchronous_commit=off"),
		"default_transaction_isolat": with(t, places.next(t), "options", "-cdefault_transaction_isolation=serializable"),
		"the database is read-only":  with(t, places.next(t), "options", "-cdefault_transaction_read_only=on"),
		"a file that cannot be read": with(t, with(t, base, "sslmode", "verify-full"), "sslrootcert", "/no/such/file"),
	} {
		wantOpenError(t, postgres.Config{URL: at}, words)
	}
	wantOpenError(t, postgres.Config{URL: base, PasswordFile: "/no/such/file"}, "postgres: open: read the password: open /no/such/file")
}

func TestOldAndOtherServersAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		number        int
		version, name string
		want          string
	}{
		"old":       {130012, "13.12", "PostgreSQL 13.12 on x86_64", "PostgreSQL 13.12, which is too old: 14 or newer"},
		"cockroach": {130000, "13.0.0", "CockroachDB CCL v24.1.0", "is not PostgreSQL"},
		"yugabyte":  {150012, "15.12-YB-2025.1", "PostgreSQL 15.12-YB-2025.1.0.0-b0", "is not PostgreSQL"},
		"pglite":    {180006, "18.6", "PostgreSQL 18.6 (PGlite 0.5.14) on wasm32-unknown-emscripten", "is PGlite, which serves one connection"},
		"good":      {140000, "14.0", "PostgreSQL 14.0", "<nil>"},
	} {
		if err := postgres.CheckServer(c.number, c.version, c.name); !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestNewerLayoutIsRefused(t *testing.T) {
	t.Parallel()
	at := (&schemas{base: server.Database(t)}).next(t)
	open(t, postgres.Config{URL: at})
	exec(t, at, fmt.Sprintf("UPDATE oneclaw_meta SET version = %d", postgres.Layout+1))
	wantOpenError(t, postgres.Config{URL: at}, "made by a newer version of the program")
}

func TestProcessesThatStartAtOnceMakeTheTablesOnce(t *testing.T) {
	t.Parallel()
	at := (&schemas{base: server.Database(t)}).next(t)
	var g errgroup.Group
	for i := range 6 {
		g.Go(func() error {
			s, err := postgres.Open(t.Context(), postgres.Config{URL: at, MaxConns: 2})
			if err != nil {
				return err
			}
			_, err = s.Put(t.Context(), fmt.Sprint(i), nil, storage.Absent)
			return errors.Join(err, s.Close())
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
}

// TestPasswordAndCertificate opens with a password from a file and a connection that is
// checked.
func TestPasswordAndCertificate(t *testing.T) {
	base := server.Database(t)
	exec(t, base, "GRANT CREATE ON SCHEMA public TO "+pgtest.Guarded)
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte(pgtest.GuardedPassword+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	safe := with(t, strings.Replace(as(t, base, "wrong"), "127.0.0.1", "localhost", 1), "sslmode", "verify-full")
	var told bytes.Buffer
	cfg := postgres.Config{
		URL: with(t, safe, "sslrootcert", server.CertFile()), PasswordFile: file,
		Logger: slog.New(slog.NewTextHandler(&told, nil)),
	}
	s := open(t, cfg)
	if _, err := s.Put(t.Context(), "k", nil, storage.Absent); err != nil {
		t.Fatal(err)
	}
	wantOpenError(t, postgres.Config{URL: safe, PasswordFile: file}, "certificate")
	if err := s.Close(); err != nil || strings.Contains(told.String(), pgtest.GuardedPassword) {
		t.Errorf("Close: %v; the log says\n%s", err, told.String())
	}
}

func TestErrorsDoNotRepeatKeys(t *testing.T) {
	s := open(t, postgres.Config{URL: (&schemas{base: server.Database(t)}).next(t)})
	const secret = "token-0123456789"
	_, getErr := s.Get(t.Context(), secret)
	_, putErr := s.Put(t.Context(), secret, nil, 5)
	for _, err := range []error{getErr, putErr, s.Delete(t.Context(), secret, 5)} {
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("error %v", err)
		}
	}
}

// What a transaction pooler answers where the address does not name it says what to add.
func TestAPoolerThatTheAddressDoesNotNameIsExplained(t *testing.T) {
	for _, answer := range []pgconn.PgError{
		{Code: "08P01", Message: "unsupported startup parameter: enable_seqscan"},
		{Code: "08P01", Message: "unsupported startup parameter in options: jit"},
		{Code: "42P05", Message: `prepared statement "stmtcache_1" already exists`},
		{Code: "26000", Message: `prepared statement "stmtcache_1" does not exist`},
	} {
		if got := postgres.Explain(&answer); !strings.Contains(got, "add pooler=true to the address") {
			t.Errorf("%s: %s", answer.Message, got)
		}
	}
	if got := postgres.Explain(&pgconn.PgError{Code: "08P01", Message: "invalid frontend message type"}); strings.Contains(got, "pooler") {
		t.Error(got)
	}
}
