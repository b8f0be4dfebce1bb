package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Times for a server's process.
const (
	// grace is how long a process has to end by itself, and again when asked to.
	grace = time.Second
	// writeTime bounds how long a process may leave its input unread.
	writeTime = 5 * time.Second
)

// maxTail bounds the part of a server's error output that is kept for the log.
const maxTail = 2 << 10

// errTooLarge is returned for a message above the limit.
var errTooLarge = errors.New("a message of the server is too large")

// stdioDialer starts servers that use their standard input and output.
type stdioDialer struct {
	cfg    Server
	env    []string
	max    int
	log    *slog.Logger
	redact redactor
}

// rest does nothing: a process ends with its connection.
func (d stdioDialer) rest() {}

// open starts the process in its own process group. It lives until its connection is closed.
func (d stdioDialer) open(ctx context.Context) (sdk.Transport, func() error, error) {
	inRead, inWrite, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		return nil, nil, errors.Join(err, inRead.Close(), inWrite.Close())
	}
	alive, kill := context.WithCancel(context.WithoutCancel(ctx))
	cmd := exec.CommandContext(alive, d.cfg.Command, d.cfg.Args...)
	p := &process{cmd: cmd, kill: kill, in: inWrite, out: outRead, exited: make(chan struct{})}
	cmd.Env, cmd.Dir = d.env, d.cfg.Dir
	cmd.Stdin, cmd.Stdout, cmd.Stderr = inRead, outWrite, &p.tail
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = grace
	err = cmd.Start()
	err = errors.Join(err, inRead.Close(), outWrite.Close())
	if err != nil {
		kill()
		return nil, nil, errors.Join(fmt.Errorf("start it: %w", err), inWrite.Close(), outRead.Close())
	}
	go p.wait(d)
	lines := &lineReader{in: bufio.NewReaderSize(outRead, 64<<10), max: d.max, log: d.log}
	return &sdk.IOTransport{
		Reader: struct {
			io.Reader
			io.Closer
		}{lines, p},
		Writer:        p,
		MaxLineLength: d.max + 64<<10, // includes the decoder's read-ahead
	}, func() error { return p.reason(lines) }, nil
}

// process is a running server. Close waits for its goroutine.
type process struct {
	cmd    *exec.Cmd
	kill   context.CancelFunc
	in     *os.File
	out    *os.File
	tail   tail
	exited chan struct{}
	err    error // of the end; valid once exited is closed
	once   sync.Once
}

// wait reaps the process and kills the rest of its group.
func (p *process) wait(d stdioDialer) {
	defer close(p.exited)
	defer p.kill()
	p.err = p.cmd.Wait()
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	// A process that has left the group may hold the output open for ever.
	_ = p.out.SetReadDeadline(time.Now().Add(grace))
	d.log.Debug("MCP server ended", "state", p.cmd.ProcessState.String(), "stderr", d.redact.line(p.tail.String()))
}

// Write sends to the server, which must read in time.
func (p *process) Write(data []byte) (int, error) {
	if err := p.in.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
		return 0, err
	}
	return p.in.Write(data)
}

// Close ends the process and its group: by closing its input, then with a signal, then by force.
func (p *process) Close() error {
	p.once.Do(func() {
		_ = p.in.Close()
		if !p.endsWithin(grace) {
			_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGTERM)
			p.endsWithin(grace)
		}
		p.kill()
		<-p.exited
		_ = p.out.Close()
	})
	return nil
}

// endsWithin reports whether the process ends in time.
func (p *process) endsWithin(limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.exited:
		return true
	case <-timer.C:
		return false
	}
}

// reason says why the process has stopped serving, or nil.
func (p *process) reason(lines *lineReader) error {
	if err := lines.fault.why(); err != nil {
		return err
	}
	wait := grace / 10
	if lines.ended.Load() {
		wait = 3 * grace // to be reaped, which its children or a busy machine delay; Close has ended it by then
	}
	if !p.endsWithin(wait) {
		return nil
	}
	if p.err == nil {
		return errors.New("its process ended")
	}
	return fmt.Errorf("its process ended (%w)", p.err)
}

// lineReader passes on lines of JSON; many servers print others too.
type lineReader struct {
	in    *bufio.Reader
	max   int
	log   *slog.Logger
	rest  []byte
	fault messageFault // a malformed line
	ended atomic.Bool  // the server has closed its output
}

func (r *lineReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		line, err := r.line()
		if err != nil {
			return 0, err
		}
		if trimmed := bytes.TrimSpace(line); len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[') && json.Valid(trimmed) {
			if !new(valueCounter).add(trimmed) {
				return 0, r.fault.note(errTooMany)
			}
			r.rest = line
		} else if len(trimmed) > 0 {
			r.log.Debug("line of an MCP server is no message", "bytes", len(trimmed))
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// line reads one line including its end.
func (r *lineReader) line() ([]byte, error) {
	var line []byte
	for {
		part, err := r.in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > r.max:
			return nil, r.fault.note(errTooLarge)
		case err == nil:
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			r.ended.Store(errors.Is(err, io.EOF))
			return nil, err // a line without an end is not a message
		}
	}
}

// tail keeps the end of what is written.
type tail struct {
	mu   sync.Mutex
	data []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, p[max(0, len(p)-maxTail):]...)
	t.data = t.data[max(0, len(t.data)-maxTail):]
	return len(p), nil
}

// String returns the kept bytes.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(string(t.data), "")
}
