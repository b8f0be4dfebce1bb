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
	// Memory bounds the bytes mapped beyond those mapped already, if the system reports these.
	Memory uint64
	// CPU bounds the processor time beyond that spent already. 0 means no bound.
	CPU time.Duration
}

// maxFiles bounds the open files of a child.
const maxFiles = 16

// Confine limits this process for good: no core dumps, which could
// contain secrets, no writing of files, few open files, and the limits l.
// If the machine runs out of memory, the system kills this process first.
func Confine(l Limits) error {
	type limit struct {
		name  string
		which int
		value uint64
	}
	limits := []limit{
		{"core", syscall.RLIMIT_CORE, 0}, {"fsize", syscall.RLIMIT_FSIZE, 0}, {"nofile", syscall.RLIMIT_NOFILE, maxFiles},
	}
	if size, ok := mappedBytes(); ok {
		limits = append(limits, limit{"as", syscall.RLIMIT_AS, size + l.Memory})
	}
	if l.CPU > 0 {
		var used syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
			return fmt.Errorf("sandbox: read processor time: %w", err)
		}
		spent := time.Duration(used.Utime.Nano() + used.Stime.Nano())
		limits = append(limits, limit{"cpu", syscall.RLIMIT_CPU, uint64((spent + l.CPU + time.Second - 1) / time.Second)})
	}
	// Only Linux has this file, and nothing depends on it.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	for _, l := range limits {
		if err := syscall.Setrlimit(l.which, &syscall.Rlimit{Cur: l.value, Max: l.value}); err != nil {
			return fmt.Errorf("sandbox: set rlimit %s: %w", l.name, err)
		}
	}
	return nil
}

// ServeTask begins a child with one task: it confines this process for good, receives the task
// from the parent, and ends this process when in ends.
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
			continue // there is only one task
		}
		os.Exit(1)
	}()
	return task, parent, nil
}

// ReadFile returns the beginning, up to limit bytes, of a file that the parent gave, in exactly as much memory. Others
// can write the file meanwhile, so a child reads it once and makes all of its answer of these bytes.
func ReadFile(descriptor uintptr, limit int64) ([]byte, error) {
	file := os.NewFile(descriptor, "document")
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	data := make([]byte, min(info.Size(), limit))
	_, err = io.ReadFull(file, data)
	return data, err
}

// memoryPollInterval is the polling interval of LimitMemory.
const memoryPollInterval = 5 * time.Millisecond

// LimitMemory calls say and ends this process when Go has taken more than limit bytes from the
// system. Above frugal bytes the garbage collector works harder.
func LimitMemory(frugal, limit int64, say func()) {
	debug.SetMemoryLimit(frugal)
	go func() {
		for range time.Tick(memoryPollInterval) {
			if goMemory() > limit {
				say()
				os.Exit(1)
			}
		}
	}()
}

// goMemory returns how many bytes Go has taken from the system.
func goMemory() int64 {
	sizes := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(sizes)
	return int64(sizes[0].Value.Uint64() - sizes[1].Value.Uint64())
}

func mappedBytes() (uint64, bool) {
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, false
	}
	first, _, _ := bytes.Cut(data, []byte(" "))
	pages, err := strconv.ParseUint(string(first), 10, 64)
	return pages * uint64(os.Getpagesize()), err == nil
}
