package sandbox

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"syscall"
	"time"
)

// Limits bound a process.
type Limits struct {
	// Memory is how many bytes it may map beyond what it has mapped already, where the
	// system tells how much that is.
	Memory uint64
	// CPU is how much processor time it may take beyond what it has taken. 0 means any.
	CPU time.Duration
}

// maxFiles is how many files a child may have open.
const maxFiles = 16

// Confine gives this process limits that it cannot raise again: no core dumps that would
// hold what it saw, no writing of files, few open ones, and those of l. Where memory runs
// out, the system kills this process before others.
func Confine(l Limits) error {
	limits := map[int]uint64{syscall.RLIMIT_CORE: 0, syscall.RLIMIT_FSIZE: 0, syscall.RLIMIT_NOFILE: maxFiles}
	if size, ok := mapped(); ok {
		limits[syscall.RLIMIT_AS] = size + l.Memory
	}
	if l.CPU > 0 {
		var used syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
			return fmt.Errorf("child: read processor time: %w", err)
		}
		spent := time.Duration(used.Utime.Nano() + used.Stime.Nano())
		limits[syscall.RLIMIT_CPU] = uint64((spent + l.CPU + time.Second - 1) / time.Second)
	}
	// There is no such file on other systems, and nothing depends on it.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	for which, limit := range limits {
		if err := syscall.Setrlimit(which, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
			return fmt.Errorf("child: set limit %d: %w", which, err)
		}
	}
	return nil
}

// ServeTask is how a child begins that does one task: it confines this process, for good, receives the
// task of its parent, and ends this process when in does.
func ServeTask[Task any](limits Limits, in io.Reader, out io.Writer) (task Task, parent *Conn, err error) {
	if err := Confine(limits); err != nil {
		return task, nil, err
	}
	parent = NewConn(in, out)
	if err := parent.Receive(&task); err != nil {
		return task, nil, err
	}
	go func() {
		for parent.Receive(new(Task)) == nil {
			continue // There is one task only.
		}
		os.Exit(1)
	}()
	return task, parent, nil
}

// glances is how often a process looks how much memory it has.
const glances = 5 * time.Millisecond

// LimitMemory ends this process when it takes more than limit bytes of memory, as Go counts what
// it has of the system, after it has called say. Above frugal bytes garbage is collected at any cost.
func LimitMemory(frugal, limit int64, say func()) {
	debug.SetMemoryLimit(frugal)
	go func() {
		for range time.Tick(glances) {
			if memory() > limit {
				say()
				os.Exit(1)
			}
		}
	}()
}

// memory is how many bytes Go has of the system.
func memory() int64 {
	sizes := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(sizes)
	return int64(sizes[0].Value.Uint64() - sizes[1].Value.Uint64())
}

func mapped() (uint64, bool) {
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, false
	}
	first, _, _ := bytes.Cut(data, []byte(" "))
	pages, err := strconv.ParseUint(string(first), 10, 64)
	return pages * uint64(os.Getpagesize()), err == nil
}
