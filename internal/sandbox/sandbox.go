// Package sandbox runs a part of this program in a process of its own, which handles what
// has not been checked: scripts and documents.
//
// The program starts itself again with an argument that says which part. The sandboxed process
// has an empty environment, no open files but what it is given, and two pipes to its parent. It
// calls [Confine] before it touches anything foreign, ends when its parent does, and is
// killed when its time is over. [WatchMemory] bounds it together with all that it starts.
//
// [Engine] runs unchecked scripts, each in such a process. It is QuickJS,
// transpiled to Go. Within one process it could neither be stopped for sure (a native loop such
// as Array.prototype.includes over a length of 2^53 never looks whether it should end) nor be
// kept out of the memory that holds the bot's secrets. A script has the language and a few of
// what it would find in a browser. Whatever reaches outside are functions of the [Script], which
// run in the parent.
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

// maxStderr is how much is kept of what a child says when it dies.
const maxStderr = 4_000

// Command is the command that starts this program with one argument. Its path stays right
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
		return nil, fmt.Errorf("child: find this program: %w", err)
	}
	return []string{program, argument}, nil
}

// Process is a running child and the connection with it. It must be ended.
type Process struct {
	*Conn

	cmd     *exec.Cmd
	cancel  context.CancelFunc
	stderr  tail
	measure func(limit uint64) error // returns when the child takes more, or has to end
	watches sync.WaitGroup
	over    error // what the watch has found
}

// Start starts a child, killed when ctx ends. The files are its descriptors from 3 on.
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

// Watch kills the child when it takes more than limit bytes of memory, as far as the
// system shows that. It is called once at most.
func (p *Process) Watch(limit uint64) {
	p.watches.Go(func() {
		if p.over = p.measure(limit); p.over != nil {
			p.cancel()
		}
	})
}

// End kills the child, if it has not ended, and waits for that. Its error says how the
// child ended, which is worth a look where it broke off.
func (p *Process) End() error {
	p.cancel()
	p.watches.Wait()
	err := errors.Join(p.over, p.cmd.Wait())
	if said := string(p.stderr.kept); err != nil && said != "" {
		err = fmt.Errorf("%w; it said: %s", err, said)
	}
	return err
}

// tail keeps the beginning of what is written to it, to be read afterwards.
type tail struct{ kept []byte }

// Write takes everything and keeps what fits.
func (t *tail) Write(data []byte) (int, error) {
	t.kept = append(t.kept, data[:min(len(data), maxStderr-len(t.kept))]...)
	return len(data), nil
}
