package sandbox

// A limit of the system (RLIMIT_AS, RLIMIT_DATA) counts per process, so a program that starts
// others needs a bound on the memory of all. Memory means private and shared pages, in RAM or
// swap. Pages of files do not count, because the kernel drops them when necessary. The sizes
// are read from /proc on Linux; on other systems the memory is not bounded.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// watchInterval is the polling interval of [WatchMemory].
const watchInterval = 100 * time.Millisecond

// ErrExceeded is returned by [WatchMemory] when a tree exceeds its limit.
var ErrExceeded = errors.New("more memory than allowed")

// WatchMemory polls the memory of a process and its descendants, and returns [ErrExceeded] when
// it exceeds limit bytes. It returns nil when ctx ends, when the process has ended, and if
// memory cannot be read. It kills nothing. Between two polls a tree can exceed the limit.
func WatchMemory(ctx context.Context, root int, limit uint64) error {
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	for {
		used, err := treeMemory(root, limit)
		switch {
		case err != nil:
			return nil //nolint:nilerr // unreadable memory is not bounded
		case used > limit:
			return fmt.Errorf("%w: %d MiB of %d MiB", ErrExceeded, used>>20, limit>>20)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// KillTree kills a process and its descendants, ignoring those that have ended.
func KillTree(root int) error {
	pids, err := processTree(root)
	if err != nil {
		return nil //nolint:nilerr // there is nothing to kill, or nothing that can be found
	}
	for _, pid := range pids {
		if failure := syscall.Kill(pid, syscall.SIGKILL); failure != nil && !errors.Is(failure, syscall.ESRCH) {
			err = errors.Join(err, fmt.Errorf("sandbox: kill process %d: %w", pid, failure))
		}
	}
	return err
}

// TreeMemory returns the bytes that a process and its descendants use.
func TreeMemory(root int) (uint64, error) { return treeMemory(root, 0) }

// treeMemory returns the memory of a tree, with shared memory counted once as far as the kernel
// lets this process see that. Up to enough bytes, a cheaper upper bound is sufficient, which
// counts shared memory for each process.
func treeMemory(root int, enough uint64) (uint64, error) {
	pids, err := processTree(root)
	if err != nil {
		return 0, err
	}
	bound, exact := uint64(0), uint64(0)
	resident := make([]uint64, len(pids))
	for i, pid := range pids {
		// With all shared memory; 0 for a process that has ended.
		resident[i], _ = sumFields(pid, "status", "RssAnon:", "RssShmem:", "VmSwap:")
		bound += resident[i]
	}
	if bound <= enough {
		return bound, nil
	}
	for i, pid := range pids {
		// With its share of shared memory, which the kernel shows to processes that may trace it.
		if share, ok := sumFields(pid, "smaps_rollup", "Pss_Anon:", "Pss_Shmem:", "SwapPss:"); ok {
			exact += share
		} else {
			exact += resident[i]
		}
	}
	return exact, nil
}

func processTree(root int) ([]int, error) {
	if _, ok := parentPID(root); !ok {
		return nil, fmt.Errorf("sandbox: process %d: %w", root, os.ErrNotExist)
	}
	names, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, fmt.Errorf("sandbox: list processes: %w", err)
	}
	children := map[int][]int{}
	for _, name := range names {
		pid, err := strconv.Atoi(filepath.Base(name))
		if err != nil {
			continue
		}
		if above, ok := parentPID(pid); ok && pid != root {
			children[above] = append(children[above], pid)
		}
	}
	pids := []int{root}
	for i := 0; i < len(pids); i++ {
		pids = append(pids, children[pids[i]]...)
	}
	return pids, nil
}

func parentPID(pid int) (int, bool) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	// The name is in parentheses and can contain anything. State and parent follow.
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(fields) < 2 {
		return 0, false
	}
	above, err := strconv.Atoi(string(fields[1]))
	return above, err == nil
}

// sumFields adds up lines of a file about a process, and reports whether it found any.
func sumFields(pid int, file string, names ...string) (sum uint64, found bool) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	if err != nil {
		return 0, false
	}
	for line := range bytes.Lines(data) {
		for _, name := range names {
			rest, ok := bytes.CutPrefix(line, []byte(name))
			if !ok {
				continue
			}
			fields := bytes.Fields(rest)
			if len(fields) == 0 {
				continue
			}
			if kib, err := strconv.ParseUint(string(fields[0]), 10, 64); err == nil {
				sum, found = sum+kib<<10, true
			}
		}
	}
	return sum, found
}
