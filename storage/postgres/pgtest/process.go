package pgtest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// create creates the folder and starts the server in it.
func (s *Server) create() error {
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

// inFolder creates a folder for f, and removes it if f fails.
func (s *Server) inFolder(f func() error) (err error) {
	if s.bin, err = binaries(); err != nil {
		return err
	}
	if s.port, err = FreePort(); err != nil {
		return err
	}
	if s.root, err = os.MkdirTemp("", "postgres"); err != nil {
		return err
	}
	if err = cmp.Or(writeCertificate(s.root), s.chooseOwner()); err == nil {
		err = s.guard()
	}
	if err == nil {
		err = f()
	}
	if err != nil {
		err = errors.Join(err, s.clear())
	}
	return err
}

// guard starts a process that stops the server and removes the folder if this process ends without doing
// so, for example because a test takes too long.
func (s *Server) guard() (err error) {
	const script = `cat; "$0" stop -D "$1" -m immediate; rm -rf "$2"`
	s.guardian = exec.CommandContext(context.Background(), "sh", "-c", script, filepath.Join(s.bin, "pg_ctl"), s.data(), s.root)
	s.guardian.SysProcAttr = &syscall.SysProcAttr{Credential: s.owner}
	if s.keepAlive, err = s.guardian.StdinPipe(); err != nil {
		return err
	}
	return s.guardian.Start()
}

// clear removes the folder of a server that does not run.
func (s *Server) clear() error {
	err := os.RemoveAll(s.root)
	if s.keepAlive != nil {
		err = errors.Join(err, s.keepAlive.Close())
		_ = s.guardian.Wait() // there is nothing to stop
	}
	s.root = ""
	return err
}

// psql runs a statement as the superuser.
func (s *Server) psql(statement string) error {
	_, err := s.run("psql", "-h", s.root, "-p", strconv.Itoa(s.port), "-U", "postgres", "-d", "postgres", "-qAtc", statement)
	return err
}

// start starts the server and waits until it accepts connections. It retries, because a killed server
// may still hold resources for a moment.
func (s *Server) start() error {
	settings := append([]string{
		"listen_addresses=127.0.0.1", "unix_socket_directories=" + s.root,
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
		if out, err = s.run("pg_ctl", "start", "-D", s.data(), "-l", log, "-w", "-t", "60", "-o", strings.Join(append(options, "-c port="+strconv.Itoa(s.port)), " ")); err == nil {
			s.killed, s.started = false, true
			return nil
		}
		if content, readErr := os.ReadFile(log); readErr == nil {
			out += string(content[max(0, len(content)-2000):])
		}
		time.Sleep(100 * time.Millisecond)
		if free, portErr := FreePort(); portErr == nil && !s.started {
			s.port = free // another server has taken it meanwhile
		}
	}
	return fmt.Errorf("%w\n%s", err, out)
}

// run runs a PostgreSQL program as the owner of the folder.
func (s *Server) run(program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, program), args...)
	cmd.Dir = s.root
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.owner}
	// Use a file, because the server inherits it and would keep a pipe open.
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

// chooseOwner gives the folder to another user if the tests run as root, because the server refuses to
// run as root.
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
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // Debian's path
	if err != nil || len(found) == 0 {
		return "", cmp.Or(err, exec.ErrNotFound)
	}
	newest := slices.MaxFunc(found, func(a, b string) int { return cmp.Compare(releaseNumber(a), releaseNumber(b)) })
	return filepath.Dir(newest), nil
}

func releaseNumber(path string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
	return n
}

// FreePort returns a port on which nothing listens, for a server that cannot choose one itself. It is
// below the ports that the system chooses, so that no other listener takes it in the meantime.
func FreePort() (port int, err error) {
	for range 100 {
		port = 20_000 + rand.IntN(10_000)
		var l net.Listener
		if l, err = new(net.ListenConfig).Listen(context.Background(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return port, l.Close()
		}
	}
	return 0, err
}
