// Package sandbox runs parts of this program that handle untrusted data, scripts and documents,
// in separate processes.
//
// The program starts itself again with an argument that selects the part. The child has none of the
// program's environment variables, only the files that it is given, and two pipes to its parent. It
// calls [Confine] before it reads untrusted data, ends when its parent does, and is killed when its
// time is over. [WatchMemory] bounds it together with its descendants.
//
// [Engine] runs untrusted scripts, each in a child, with QuickJS transpiled to Go. In the bot's
// process a script could neither be stopped reliably (a native loop such as
// Array.prototype.includes over a length of 2^53 is not interruptible) nor be kept away from the
// bot's secrets in memory. A script has the language and a few browser APIs. Everything that
// reaches outside is a function of the [Script], which runs in the parent.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
)

// maxStderr bounds the kept error output of a child, in bytes.
const maxStderr = 4_000

// Command returns the command that starts this program with one argument. Its path stays valid
// when the program's file is replaced.
func Command(argument string) ([]string, error) {
	const running = "/proc/self/exe"
	if runtime.GOOS == "linux" {
		if _, err := os.Stat(running); err == nil {
			return []string{running, argument}, nil
		}
	}
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("sandbox: find this program: %w", err)
	}
	return []string{program, argument}, nil
}

// Process is a running child with its connection. End must be called.
type Process struct {
	*Conn

	cmd      *exec.Cmd
	cancel   context.CancelFunc
	stderr   headBuffer
	measure  func(limit uint64) error // returns when the child exceeds limit, or must end
	watches  sync.WaitGroup
	watchErr error // the result of the watch
}

// Start starts a child, which is killed when ctx ends. The files are its descriptors from 3 on.
func Start(ctx context.Context, command []string, files ...*os.File) (*Process, error) {
	ctx, cancel := context.WithCancel(ctx)
	p := &Process{cmd: exec.CommandContext(ctx, command[0], command[1:]...), cancel: cancel}
	p.cmd.Env = []string{"GOMAXPROCS=2", "GOTRACEBACK=none"}
	p.cmd.Dir = "/"
	p.cmd.Stderr = &p.stderr
	p.cmd.ExtraFiles = files
	in, err := p.cmd.StdinPipe()
	if err != nil {
		cancel()
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		cancel()
		return nil, errors.Join(err, in.Close())
	}
	p.Conn = NewConn(out, in)
	p.measure = func(limit uint64) error { return WatchMemory(ctx, p.cmd.Process.Pid, limit) }
	if err := p.cmd.Start(); err != nil {
		cancel()
		return nil, err
	}
	return p, nil
}

// Watch kills the child when it exceeds limit bytes of memory, if the system reports that. Call
// it at most once.
func (p *Process) Watch(limit uint64) {
	p.watches.Go(func() {
		if p.watchErr = p.measure(limit); p.watchErr != nil {
			p.cancel()
		}
	})
}

// End kills the child, if it is still running, and waits for it. The
// error describes how the child ended, in case that was too early.
func (p *Process) End() error {
	p.cancel()
	p.watches.Wait()
	err := errors.Join(p.watchErr, p.cmd.Wait())
	if said := string(p.stderr.kept); err != nil && said != "" {
		err = fmt.Errorf("%w; it said: %s", err, said)
	}
	return err
}

// headBuffer keeps the beginning of the text that is written to it.
type headBuffer struct{ kept []byte }

// Write accepts all data and keeps what fits.
func (t *headBuffer) Write(data []byte) (int, error) {
	t.kept = append(t.kept, data[:min(len(data), maxStderr-len(t.kept))]...)
	return len(data), nil
}
