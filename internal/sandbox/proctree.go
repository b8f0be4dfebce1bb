package sandbox

// A limit of the system (RLIMIT_AS, RLIMIT_DATA) counts for each process by itself, so a program
// that starts others is bounded by what all of them take together. Memory is what only they can
// give back: pages of their own and of shared memory, in RAM or swap. Pages of files are left
// out, because the kernel drops them when it needs room. What is read is /proc of Linux; elsewhere
// memory is not seen, and not bounded.

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

// interval is the time between two looks of [WatchMemory].
const interval = 100 * time.Millisecond

// ErrExceeded is returned by [WatchMemory] when a tree takes more than it may.
var ErrExceeded = errors.New("more memory than allowed")

// WatchMemory looks at the memory of a process and its descendants, again and again, and
// returns [ErrExceeded] when it finds more than limit bytes. It returns nil when ctx
// ends, when the process has ended, and where memory cannot be seen. It kills nothing.
// Between two looks a tree can take more than the limit.
func WatchMemory(ctx context.Context, root int, limit uint64) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		used, err := measure(root, limit)
		switch {
		case err != nil:
			return nil //nolint:nilerr // Memory that cannot be seen is not bounded.
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

// KillTree kills a process and its descendants. What is gone already is no error.
func KillTree(root int) error {
	pids, err := tree(root)
	if err != nil {
		return nil //nolint:nilerr // There is nothing to kill, or nothing that can be found.
	}
	for _, pid := range pids {
		if failure := syscall.Kill(pid, syscall.SIGKILL); failure != nil && !errors.Is(failure, syscall.ESRCH) {
			err = errors.Join(err, fmt.Errorf("proctree: kill process %d: %w", pid, failure))
		}
	}
	return err
}

// Memory returns how many bytes a process and its descendants take.
func Memory(root int) (uint64, error) { return measure(root, 0) }

// measure returns the memory of a tree, with what several share counted once as far as
// the kernel lets this process see that. Up to enough bytes, an upper bound will do,
// which costs less: memory that processes share counts for each.
func measure(root int, enough uint64) (uint64, error) {
	pids, err := tree(root)
	if err != nil {
		return 0, err
	}
	bound, exact := uint64(0), uint64(0)
	resident := make([]uint64, len(pids))
	for i, pid := range pids {
		// With all that it shares; 0 for one that has ended meanwhile.
		resident[i], _ = sizes(pid, "status", "RssAnon:", "RssShmem:", "VmSwap:")
		bound += resident[i]
	}
	if bound <= enough {
		return bound, nil
	}
	for i, pid := range pids {
		// With its part of what it shares, which the kernel shows to who may trace it.
		if share, ok := sizes(pid, "smaps_rollup", "Pss_Anon:", "Pss_Shmem:", "SwapPss:"); ok {
			exact += share
		} else {
			exact += resident[i]
		}
	}
	return exact, nil
}

func tree(root int) ([]int, error) {
	if _, ok := parent(root); !ok {
		return nil, fmt.Errorf("proctree: process %d: %w", root, os.ErrNotExist)
	}
	names, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, fmt.Errorf("proctree: list processes: %w", err)
	}
	children := map[int][]int{}
	for _, name := range names {
		pid, err := strconv.Atoi(filepath.Base(name))
		if err != nil {
			continue
		}
		if above, ok := parent(pid); ok && pid != root {
			children[above] = append(children[above], pid)
		}
	}
	pids := []int{root}
	for i := 0; i < len(pids); i++ {
		pids = append(pids, children[pids[i]]...)
	}
	return pids, nil
}

func parent(pid int) (int, bool) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	// The name in front is in parentheses and can hold anything. State and parent follow.
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(fields) < 2 {
		return 0, false
	}
	above, err := strconv.Atoi(string(fields[1]))
	return above, err == nil
}

// sizes sums lines of a file of a process, and reports whether it has any of them.
func sizes(pid int, file string, names ...string) (sum uint64, found bool) {
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
