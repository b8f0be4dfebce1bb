// Package pgtest starts a real PostgreSQL server for tests, in a folder of its own, and as another user
// if the tests run as root.
package pgtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// mustVariable is the environment variable that, if set to "must", makes a missing server an error
// instead of a reason to skip.
const mustVariable = "TEST_ONECLAW_POSTGRES"

// Guarded is a user with the password [GuardedPassword] who may only connect. All other users, including
// the superuser of the URLs, need no password.
const (
	Guarded         = "guarded"
	GuardedPassword = "open sesame"
)

// Server is a PostgreSQL server that starts with the first database. The zero value is ready to use. Its
// owner has to stop it.
type Server struct {
	// Settings are added to the tests' own settings of postgresql.conf, as name=value.
	Settings []string

	mu      sync.Mutex // guards the fields below
	root    string     // the folder
	bin     string
	port    int
	owner   *syscall.Credential
	count   int
	killed  bool  // Kill was called
	started bool  // it has run, so that its port is known
	err     error // why the server does not start

	guardian  *exec.Cmd
	keepAlive io.Closer // open as long as this process is alive, for the guardian
}

// Database creates an empty database and returns its URL. It skips the test if PostgreSQL is not
// installed.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.root == "" && s.err == nil {
		s.err = s.create()
	}
	if errors.Is(s.err, exec.ErrNotFound) && os.Getenv(mustVariable) != "must" {
		t.Skipf("PostgreSQL is not installed: %v", s.err)
	}
	if s.err != nil {
		t.Fatalf("start PostgreSQL: %v", s.err)
	}
	s.count++
	name := fmt.Sprint("test", s.count)
	if err := s.psql("CREATE DATABASE " + name); err != nil {
		t.Fatalf("make a database: %v", err)
	}
	return s.url(name)
}

func (s *Server) url(database string) string {
	u := url.URL{
		Scheme: "postgres", User: url.User("postgres"), Host: s.Address(),
		Path: database, RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Standby starts a second server that follows this one, which must have a database already. From then on
// this server confirms only writes that the standby has on disk. The standby is stopped with the test.
// Promote makes it the primary, and [Server.BothURL] names both servers.
func (s *Server) Standby(t testing.TB) *Server {
	t.Helper()
	standby := &Server{Settings: s.Settings}
	err := standby.inFolder(func() error {
		_, err := standby.run("pg_basebackup", "-h", s.root, "-p", strconv.Itoa(s.port), "-U", "postgres", "-D", standby.data(), "-R", "-c", "fast", "--no-sync")
		if err != nil {
			return err
		}
		return standby.start()
	})
	if err != nil {
		t.Fatalf("start a standby: %v", err)
	}
	t.Cleanup(func() {
		if err := standby.Stop(); err != nil {
			t.Error(err)
		}
	})
	for _, statement := range []string{"ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"} {
		if err := s.psql(statement); err != nil {
			t.Fatal(err)
		}
	}
	return standby
}

// BothURL returns the URL of a database on this server and on a standby, in this order.
func (s *Server) BothURL(database string, standby *Server) string {
	return strings.Replace(database, s.Address(), s.Address()+","+standby.Address(), 1)
}

// Address returns the server's address.
func (s *Server) Address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// Pooler starts a transaction pooler (PgBouncer) in front of the server until the test ends, and
// returns the URL of a database through it. It skips the test if PgBouncer is not installed.
func (s *Server) Pooler(t testing.TB, database string) string {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		program, err = exec.LookPath("/usr/sbin/pgbouncer") // Debian's path
	}
	if err != nil && os.Getenv(mustVariable) != "must" {
		t.Skipf("PgBouncer is not installed: %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	port, portErr := FreePort()
	config := filepath.Join(s.root, "pgbouncer.ini")
	content := fmt.Sprintf("[databases]\n* = host=127.0.0.1 port=%d user=postgres\n[pgbouncer]\nlisten_addr=127.0.0.1\nlisten_port=%d\n"+
		"auth_type=any\npool_mode=transaction\ndefault_pool_size=3\nunix_socket_dir=\n", s.port, port)
	if err := errors.Join(err, portErr, os.WriteFile(config, []byte(content), 0o644)); err != nil {
		t.Fatalf("PgBouncer: %v", err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program, config)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.owner}
	if err := cmd.Start(); err != nil {
		t.Fatalf("PgBouncer: %v", err)
	}
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() }) // the exit status is that of the kill
	u.Host = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	for range 2400 { // two minutes
		var conn net.Conn
		if conn, err = new(net.Dialer).DialContext(t.Context(), "tcp", u.Host); err == nil {
			_ = conn.Close()
			return u.String()
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("PgBouncer does not answer: %v", err)
	return ""
}

// CertFile returns the path of the server's certificate, for "localhost".
func (s *Server) CertFile() string { return filepath.Join(s.root, certFile) }

// Stop stops the server and removes its folder. It does nothing if the server was never started.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.root == "" {
		return nil
	}
	return errors.Join(s.halt("immediate"), s.clear())
}

// halt stops the server if it runs.
func (s *Server) halt(mode string) error {
	if s.killed {
		return nil
	}
	_, err := s.run("pg_ctl", "stop", "-D", s.data(), "-m", mode, "-w")
	return err
}

// Kill kills all processes of the server at once, as kill -9 does.
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	pid, err := s.postmaster()
	if err != nil {
		return err
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid))
	if err != nil {
		return err
	}
	s.killed = true
	err = syscall.Kill(pid, syscall.SIGKILL)
	for child := range strings.FieldsSeq(string(children)) {
		if n, notNumber := strconv.Atoi(child); notNumber == nil {
			_ = syscall.Kill(n, syscall.SIGKILL) // it may have ended already
		}
	}
	return err
}

// Restart restarts a running server, or starts one that was killed.
func (s *Server) Restart() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.halt("fast"); err != nil {
		return err
	}
	return s.start()
}

// Demote restarts the server as a standby, which accepts no writes until Promote.
func (s *Server) Demote() error {
	if err := os.WriteFile(filepath.Join(s.data(), "standby.signal"), nil, 0o644); err != nil {
		return err
	}
	return s.Restart()
}

// Promote makes a standby the primary.
func (s *Server) Promote() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.run("pg_ctl", "promote", "-D", s.data(), "-w")
	return err
}

// SetWritable makes all databases of the server writable, or read-only, as managed servers do when their
// disk is full.
func (s *Server) SetWritable(on bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(s.psql(fmt.Sprintf("ALTER SYSTEM SET default_transaction_read_only = %t", !on)), s.psql("SELECT pg_reload_conf()"))
}

func (s *Server) postmaster() (int, error) {
	content, err := os.ReadFile(filepath.Join(s.data(), "postmaster.pid"))
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(content), "\n")
	return strconv.Atoi(first)
}

func (s *Server) data() string { return filepath.Join(s.root, "data") }
