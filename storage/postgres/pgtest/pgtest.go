// Package pgtest starts a real PostgreSQL server for tests, in a folder of its own and as
// another user where the tests run as root.
package pgtest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Must is the environment variable that makes a missing server an error instead of a reason
// to skip, if it is "must".
const Must = "TEST_ONECLAW_POSTGRES"

// Guarded is a user with the password [GuardedPassword], and without any right but to
// connect. Everybody else, and first of all the superuser of the URLs, needs no password.
const (
	Guarded         = "guarded"
	GuardedPassword = "open sesame"
)

// Server is a server that starts with the first database somebody asks for. The zero value
// is ready. Whoever has it stops it.
type Server struct {
	// Settings are those of postgresql.conf that differ from the usual ones of the tests,
	// as name=value.
	Settings []string

	mu    sync.Mutex // guards what follows
	root  string     // the folder
	bin   string
	port  int
	owner *syscall.Credential
	count int
	dead  bool  // it was killed
	err   error // why it does not start
}

// Database makes an empty database and returns its URL. The test is skipped where PostgreSQL
// is not installed.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.root == "" && s.err == nil {
		s.err = s.begin()
	}
	if errors.Is(s.err, exec.ErrNotFound) && os.Getenv(Must) != "must" {
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
		Scheme: "postgres", User: url.User("postgres"), Host: s.address(),
		Path: database, RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Standby starts a second server that follows this one, which has a database already. From
// then on this one confirms nothing that the other has not on its disk. It is stopped with
// the test. Promote makes it the primary, and [Both] names them both.
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

// Both returns the URL of a database of this server and of a standby, in this order.
func (s *Server) Both(database string, standby *Server) string {
	return strings.Replace(database, s.address(), s.address()+","+standby.address(), 1)
}

func (s *Server) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// Pooler starts a transaction pooler (PgBouncer) in front of the server, for as long as the
// test runs, and returns the URL of a database through it. The test is skipped where
// PgBouncer is not installed.
func (s *Server) Pooler(t testing.TB, database string) string {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		program, err = exec.LookPath("/usr/sbin/pgbouncer") // where Debian has it
	}
	if err != nil && os.Getenv(Must) != "must" {
		t.Skipf("PgBouncer is not installed: %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	port, portErr := freePort()
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
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() }) // it is killed
	u.Host = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	for range 100 {
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

// CertFile names the file with the certificate that the server shows, for "localhost".
func (s *Server) CertFile() string { return filepath.Join(s.root, certFile) }

// Stop stops the server and removes its folder. A server that was never started is fine.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.root == "" {
		return nil
	}
	err := errors.Join(s.halt("immediate"), os.RemoveAll(s.root))
	s.root = ""
	return err
}

// halt stops the server if it runs.
func (s *Server) halt(mode string) error {
	if s.dead {
		return nil
	}
	_, err := s.run("pg_ctl", "stop", "-D", s.data(), "-m", mode, "-w")
	return err
}

// Kill ends all processes of the server at once, as kill -9 does.
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
	s.dead = true
	err = syscall.Kill(pid, syscall.SIGKILL)
	for child := range strings.FieldsSeq(string(children)) {
		if n, notNumber := strconv.Atoi(child); notNumber == nil {
			_ = syscall.Kill(n, syscall.SIGKILL) // it may have ended by itself
		}
	}
	return err
}

// Restart starts a server that was killed or is still running.
func (s *Server) Restart() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.halt("fast"); err != nil {
		return err
	}
	return s.start()
}

// Demote restarts the server as a standby, which takes no writes, until Promote.
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

func (s *Server) postmaster() (int, error) {
	content, err := os.ReadFile(filepath.Join(s.data(), "postmaster.pid"))
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(content), "\n")
	return strconv.Atoi(first)
}

func (s *Server) data() string { return filepath.Join(s.root, "data") }

// begin makes the folder and starts the server in it.
func (s *Server) begin() error {
	return s.inFolder(func() error {
		if _, err := s.run("initdb", "-D", s.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions"); err != nil {
			return err
		}
		rules := "local all,replication all trust\nhost all " + Guarded + " all scram-sha-256\nhost all all all trust\n"
		if err := os.WriteFile(filepath.Join(s.data(), "pg_hba.conf"), []byte(rules), 0o644); err != nil {
			return err
		}
		if err := s.start(); err != nil {
			return err
		}
		return s.psql(fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s'", Guarded, GuardedPassword))
	})
}

// inFolder makes a folder for f, which is removed again where f does not succeed.
func (s *Server) inFolder(f func() error) (err error) {
	if s.bin, err = binaries(); err != nil {
		return err
	}
	if s.port, err = freePort(); err != nil {
		return err
	}
	if s.root, err = os.MkdirTemp("", "postgres"); err != nil {
		return err
	}
	err = cmp.Or(writeCertificate(s.root), s.chooseOwner())
	if err == nil {
		err = f()
	}
	if err != nil {
		err = errors.Join(err, os.RemoveAll(s.root))
		s.root = ""
	}
	return err
}

// psql runs a statement as the superuser.
func (s *Server) psql(statement string) error {
	_, err := s.run("psql", "-h", s.root, "-p", strconv.Itoa(s.port), "-U", "postgres", "-d", "postgres", "-qAtc", statement)
	return err
}

// start starts the server and waits until it takes connections. What a killed one has left
// may be in the way for a moment.
func (s *Server) start() error {
	settings := append([]string{
		"listen_addresses=127.0.0.1", "port=" + strconv.Itoa(s.port), "unix_socket_directories=" + s.root,
		"ssl=on", "ssl_cert_file=" + filepath.Join(s.root, certFile), "ssl_key_file=" + filepath.Join(s.root, keyFile),
		"fsync=off", "shared_buffers=64MB", "autovacuum_naptime=10s", "max_connections=100",
	}, s.Settings...)
	var options []string
	for _, setting := range settings {
		options = append(options, "-c "+setting)
	}
	var out string
	var err error
	for range 20 {
		log := filepath.Join(s.root, "log")
		if out, err = s.run("pg_ctl", "start", "-D", s.data(), "-l", log, "-w", "-t", "60", "-o", strings.Join(options, " ")); err == nil {
			s.dead = false
			return nil
		}
		if content, readErr := os.ReadFile(log); readErr == nil {
			out += string(content[max(0, len(content)-2000):])
		}
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("%w\n%s", err, out)
}

// run runs a program of PostgreSQL as the owner of the folder.
func (s *Server) run(program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, program), args...)
	cmd.Dir = s.root
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.owner}
	// A file, because the server inherits it and would keep a pipe open.
	out, err := os.CreateTemp(s.root, "out")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.Remove(out.Name()) }()
	defer func() { _ = out.Close() }()
	cmd.Stdout, cmd.Stderr = out, out
	if err = cmd.Run(); err != nil {
		content, _ := os.ReadFile(out.Name())
		return string(content), fmt.Errorf("%s: %w: %s", program, err, bytes.TrimSpace(content))
	}
	return "", nil
}

// chooseOwner gives the folder to another user where we are root: the server refuses root.
func (s *Server) chooseOwner() error {
	if os.Getuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		if u, err = user.Lookup("nobody"); err != nil {
			return err
		}
	}
	uid, uidErr := strconv.Atoi(u.Uid)
	gid, gidErr := strconv.Atoi(u.Gid)
	if err := errors.Join(uidErr, gidErr); err != nil {
		return err
	}
	s.owner = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return filepath.WalkDir(s.root, func(path string, _ os.DirEntry, err error) error {
		return cmp.Or(err, os.Chown(path, uid, gid))
	})
}

// binaries returns the folder with the newest installed server.
func binaries() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		path, err = filepath.EvalSymlinks(path)
		return filepath.Dir(path), err
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // where Debian has them
	if err != nil || len(found) == 0 {
		return "", cmp.Or(err, exec.ErrNotFound)
	}
	newest := slices.MaxFunc(found, func(a, b string) int { return cmp.Compare(release(a), release(b)) })
	return filepath.Dir(newest), nil
}

func release(path string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
	return n
}

func freePort() (int, error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}
