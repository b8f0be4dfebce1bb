package sandbox_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"oneclaw/internal/sandbox"
)

// act takes a first number of MiB, starts a child with the rest of the plan, says when
// all of them are ready, and stays until its standard input ends.
func act(plan []string) {
	mib, err := strconv.Atoi(plan[0])
	if err != nil {
		os.Exit(2)
	}
	// What is negative is memory that the parent shares. The kernel fills it, so that
	// the race detector adds nothing of its own.
	fd, flags := -1, syscall.MAP_POPULATE|syscall.MAP_PRIVATE|syscall.MAP_ANON
	if mib < 0 {
		fd, mib, flags = 3, -mib, syscall.MAP_POPULATE|syscall.MAP_SHARED
	}
	if _, err := syscall.Mmap(fd, 0, mib<<20, syscall.PROT_READ|syscall.PROT_WRITE, flags); err != nil {
		os.Exit(3)
	}
	if len(plan) > 1 {
		_, stop := grow(plan[1:], os.NewFile(3, "shared"))
		defer stop()
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// grow runs a tree of processes by a plan until stop is called.
func grow(plan []string, shared *os.File) (pid int, stop func()) {
	cmd := exec.CommandContext(context.Background(), "/proc/self/exe")
	cmd.Env = []string{role + "=" + strings.Join(plan, " ")}
	cmd.ExtraFiles = []*os.File{shared}
	in, err := cmd.StdinPipe()
	if err != nil {
		panic(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		panic(err)
	}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		panic(err)
	}
	return cmd.Process.Pid, func() { _, _ = in.Close(), cmd.Wait() }
}

// sharedMemory makes memory that several processes can map.
func sharedMemory(t *testing.T) *os.File {
	t.Helper()
	f, err := os.CreateTemp("/dev/shm", "proctree-test-")
	if err != nil {
		t.Skip("no shared memory: ", err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if err := errors.Join(os.Remove(f.Name()), f.Truncate(64<<20)); err != nil {
		t.Fatal(err)
	}
	return f
}

// mib is one of them, and slack what a Go program takes for itself.
const (
	mib   = 1 << 20
	slack = 60 * mib
)

func TestMemoryIsThatOfAllDescendants(t *testing.T) {
	pid, stop := grow([]string{"16", "32", "64"}, os.Stdin)
	defer stop()
	used, err := sandbox.TreeMemory(pid)
	if err != nil {
		t.Fatal(err)
	}
	if used < (16+32+64)*mib || used > (16+32+64)*mib+slack {
		t.Errorf("%d MiB", used/mib)
	}
}

func TestSharedMemoryCountsOnce(t *testing.T) {
	pid, stop := grow([]string{"-64", "-64", "-64"}, sharedMemory(t))
	defer stop()
	used, err := sandbox.TreeMemory(pid)
	if err != nil {
		t.Fatal(err)
	}
	if used < 64*mib*9/10 || used > 64*mib+slack {
		t.Errorf("%d MiB", used/mib)
	}
	if err := sandbox.WatchMemory(ended(t), pid, 64*mib+slack); err != nil {
		t.Errorf("Watch counts it more than once: %v", err)
	}
}

func TestWatchTellsOfTooMuch(t *testing.T) {
	pid, stop := grow([]string{"16", "64"}, os.Stdin)
	defer stop()
	if err := sandbox.WatchMemory(t.Context(), pid, 64*mib); !errors.Is(err, sandbox.ErrExceeded) {
		t.Errorf("got %v", err)
	}
	if err := sandbox.WatchMemory(ended(t), pid, 1<<40); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestKillEndsAllOfThem(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = read.Close() }()
	pid, stop := grow([]string{"1", "1", "1"}, write)
	if err := errors.Join(sandbox.KillTree(pid), write.Close()); err != nil {
		t.Error(err)
	}
	// All of them have the pipe open, which ends with the last one.
	if _, err := io.Copy(io.Discard, read); err != nil {
		t.Error(err)
	}
	stop()
	if err := sandbox.KillTree(pid); err != nil {
		t.Error(err)
	}
}

func TestWatchEndsWithTheProcess(t *testing.T) {
	pid, stop := grow([]string{"1"}, os.Stdin)
	stop()
	if err := sandbox.WatchMemory(t.Context(), pid, 1); err != nil {
		t.Errorf("got %v", err)
	}
	if _, err := sandbox.TreeMemory(pid); err == nil {
		t.Error("a process that has ended has memory")
	}
}

// ended is a context in which Watch looks once.
func ended(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
