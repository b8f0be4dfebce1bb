package bolt_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sync/errgroup"

	"oneclaw/storage"
	"oneclaw/storage/bolt"
)

const (
	childRole = "BOLT_TEST_CHILD"
	childPath = "BOLT_TEST_PATH"
	childStep = "BOLT_TEST_STEP"
)

func isClosed(err error) bool { return errors.Is(err, storage.ErrClosed) }

// child is the main function of a child process.
func child(role, path string, out io.Writer) int {
	roles := map[string]func(path string, out io.Writer) error{
		"hold": holdOpen, "append": appendForever, "full": fillDisk, "compact": compactAndDie,
	}
	if err := roles[role](path, out); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// startChild starts this test binary in a role and returns what it prints.
func startChild(t *testing.T, role, path string) (*exec.Cmd, *bufio.Scanner, io.Closer) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), childRole+"="+role, childPath+"="+path)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(out), in
}

// holdOpen keeps the file open until its standard input ends.
func holdOpen(path string, out io.Writer) error {
	s, err := bolt.Open(bolt.Config{Path: path})
	if err != nil {
		return err
	}
	_, told := fmt.Fprintln(out, "open")
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(told, err, s.Close())
}

func TestSecondProcessIsRefused(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	cmd, out, in := startChild(t, "hold", path)
	if !out.Scan() {
		t.Fatal("the child did not open the file")
	}
	_, err := bolt.Open(bolt.Config{Path: path})
	if !errors.Is(err, storage.ErrLocked) || !strings.Contains(err.Error(), path) {
		t.Errorf("Open of a file in use: %v, want ErrLocked and the path", err)
	}
	if err := errors.Join(in.Close(), cmd.Wait()); err != nil {
		t.Fatal(err)
	}
	open(t, path)
}

// appendForever appends from several goroutines, with a key that counts the records,
// and prints what was acknowledged.
func appendForever(path string, out io.Writer) error {
	s, err := bolt.Open(bolt.Config{Path: path})
	if err != nil {
		return err
	}
	lines := make(chan string)
	g, ctx := errgroup.WithContext(context.Background())
	for w := range 4 {
		g.Go(func() error {
			log := fmt.Sprint("log", w)
			for pos := storage.Position(0); ; pos++ {
				n := []byte(fmt.Sprint(pos + 1))
				add := storage.Append(log, pos, storage.Record{Label: "l", Data: n})
				if _, err := s.Write(ctx, add, storage.Put(log, n, storage.Any)); err != nil {
					return err
				}
				lines <- fmt.Sprintf("%s %d\n", log, pos+1)
			}
		})
	}
	g.Go(func() error {
		for line := range lines {
			if _, err := io.WriteString(out, line); err != nil {
				return err
			}
		}
		return nil
	})
	return g.Wait()
}

func TestKilledProcessLosesNothingAcknowledged(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	for round := range 3 {
		dir := fmt.Sprint(path, round)
		cmd, out, _ := startChild(t, "append", dir)
		acknowledged := map[string]storage.Position{}
		for n := 0; out.Scan(); n++ {
			var log string
			var pos storage.Position
			if _, err := fmt.Sscan(out.Text(), &log, &pos); err != nil {
				break // the line that the kill cut off
			}
			acknowledged[log] = pos
			if n == 150 {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = cmd.Wait() // it was killed
		if len(acknowledged) == 0 {
			t.Fatal("the child acknowledged nothing")
		}
		s := open(t, dir)
		for log, last := range acknowledged {
			checkAppended(t, s, log, last)
		}
		if err := s.Check(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// checkAppended wants all records up to last, no gap behind, and the count of them.
func checkAppended(t *testing.T, s *bolt.Store, log string, last storage.Position) {
	t.Helper()
	n := storage.Position(0)
	for r, err := range s.Records(t.Context(), log, storage.Query{Label: "l"}) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; r.Pos != n || string(r.Data) != fmt.Sprint(n) {
			t.Fatalf("%s: record %d is %d %q", log, n, r.Pos, r.Data)
		}
	}
	if n < last {
		t.Errorf("%s: %d records, but %d were acknowledged", log, n, last)
	}
	if count, err := s.Get(t.Context(), log); err != nil || string(count.Value) != fmt.Sprint(n) {
		t.Errorf("%s: %d records, but %s were counted in the same write (%v)", log, n, count.Value, err)
	}
}

// fillDisk lets the process write files of a few MB only, until it has found the
// end, and then again more.
func fillDisk(path string, out io.Writer) error {
	signal.Ignore(syscall.SIGXFSZ)
	ctx := context.Background()
	s, err := bolt.Open(bolt.Config{Path: path})
	if err != nil {
		return err
	}
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		return err
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 3 << 20, Max: old.Max}); err != nil {
		_, err = fmt.Fprintln(out, "skip", err)
		return err
	}
	value := make([]byte, 100_000)
	n := 0
	for ; err == nil && n < 1000; n++ {
		_, err = s.Put(ctx, fmt.Sprintf("k%03d", n), value, storage.Absent)
	}
	if _, err := fmt.Fprintln(out, "full", n-1, err != nil); err != nil {
		return err
	}
	if _, err := s.Get(ctx, "k000"); err != nil {
		return fmt.Errorf("get while the disk is full: %w", err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		return err
	}
	if _, err := s.Put(ctx, fmt.Sprintf("k%03d", n-1), value, storage.Absent); err != nil {
		return fmt.Errorf("put when there is space again: %w", err)
	}
	return errors.Join(s.Check(ctx), s.Close())
}

func TestFullDiskIsAnErrorAndNoMore(t *testing.T) {
	path := newPath(t)
	cmd, out, _ := startChild(t, "full", path)
	out.Scan()
	line := out.Text()
	if err := cmd.Wait(); err != nil {
		t.Fatalf("after %q: %v", line, err)
	}
	if reason, ok := strings.CutPrefix(line, "skip"); ok {
		t.Skip("no limit for the size of files:", reason)
	}
	var kept int
	var refused bool
	if _, err := fmt.Sscanf(line, "full %d %t", &kept, &refused); err != nil || !refused || kept == 0 {
		t.Fatalf("child says %q (%v), want some values kept and one refused", line, err)
	}
	n := 0
	for _, err := range open(t, path).List(t.Context(), storage.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != kept+1 {
		t.Errorf("%d values in the file, want %d and the one after the disk was full", n, kept)
	}
}
