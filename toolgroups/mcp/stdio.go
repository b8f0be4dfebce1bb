package mcp

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Time limits for a server's process.
const (
	// grace is how long a process has to end after its input is closed, and again after SIGTERM.
	grace = time.Second
	// writeTime bounds how long a process may leave its input unread.
	writeTime = 5 * time.Second
)

// maxTail bounds the part of a server's error output that is kept for the log, in bytes.
const maxTail = 8 << 10

// errTooLarge is returned for a message above the limit.
var errTooLarge = errors.New("a message from the server is too large")

// stdioDialer starts servers that use their standard input and output.
type stdioDialer struct {
	cfg        Server
	env        []string
	maxMessage int
	log        *slog.Logger
	redactor   redactor
}

// closeIdle does nothing: a process ends with its connection.
func (d stdioDialer) closeIdle() {}

// open starts the process in its own process group. The process lives until its connection is closed.
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
	said := &messages{log: d.log}
	p := &process{cmd: cmd, kill: kill, in: inWrite, out: outRead, messages: said, exited: make(chan struct{})}
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
	lines := &lineReader{in: bufio.NewReaderSize(outRead, 64<<10), maxLine: d.maxMessage, messages: said}
	return &sdk.IOTransport{
		Reader: struct {
			io.Reader
			io.Closer
		}{lines, p},
		Writer:        p,
		MaxLineLength: packedSize*d.maxMessage + 64<<10, // includes the decoder's read-ahead
	}, func() error { return p.exitReason(lines) }, nil
}

// process is a running server. Close waits for its goroutine.
type process struct {
	cmd      *exec.Cmd
	kill     context.CancelFunc
	in       *os.File
	out      *os.File
	messages *messages
	tail     tail
	exited   chan struct{}
	err      error // from waiting for the process; valid once exited is closed
	once     sync.Once
}

// wait reaps the process and kills the rest of its group.
func (p *process) wait(d stdioDialer) {
	defer close(p.exited)
	defer p.kill()
	p.err = p.cmd.Wait()
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	// A process that has left the group may hold the output open forever.
	_ = p.out.SetReadDeadline(time.Now().Add(grace))
	d.log.Debug("MCP server ended", "state", p.cmd.ProcessState.String(), "stderr", d.redactor.output(p.tail.String()))
}

// Write sends a message to the server, which must read it in time.
func (p *process) Write(data []byte) (int, error) {
	p.messages.noteSent(data)
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

// endsWithin reports whether the process ends within a time.
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

// exitReason returns why the process has stopped serving, or nil if that is unknown.
func (p *process) exitReason(lines *lineReader) error {
	if err := lines.fault.cause(); err != nil {
		return err
	}
	wait := grace / 10
	if lines.sawEOF.Load() {
		wait = 3 * grace // children or a busy machine may delay reaping; Close has ended it by then
	}
	if !p.endsWithin(wait) {
		return nil
	}
	ended := errors.New("its process ended")
	if p.err != nil {
		ended = fmt.Errorf("%w (%w)", ended, p.err)
	}
	return &reportedError{ended, lastLines(p.tail.String())}
}

// reportedError is an error about which the server says more, which may hold anything and is for administrators.
type reportedError struct {
	error
	output string
}

// Unwrap returns the error without the output.
func (e *reportedError) Unwrap() error { return e.error }

// maxLines bounds the lines of a server's error output that people are shown.
const maxLines = 5

// reasonPattern matches lines that are likely to say what is wrong.
var reasonPattern = regexp.MustCompile(`(?i)\b(\w*error|fatal|panic|exception|missing|required|must|need|needs|not|no|cannot|unable|failed|denied|invalid|unauthorized|unknown|usage|expected|please|undefined|provide|configure)\b`)

// errorPattern matches the line that an exception begins with, such as "TypeError: x is missing".
var errorPattern = regexp.MustCompile(`^\w*(Error|Exception|error|ERROR|fatal|FATAL|panic)\b`)

// noisePattern matches the lines of stacks and of printed objects.
var noisePattern = regexp.MustCompile(`^(at |File "|[\w$]+: .*[,{]?$|[^\pL]*$|Node\.js v|node:|throw |raise )`)

// lastLines returns the last lines of a program's error output that say what is wrong.
func lastLines(text string) string {
	var lines, reasons []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if logged := objectFields(json.RawMessage(line)); logged != nil {
			line = cmp.Or(stringOf(logged["message"]), stringOf(logged["msg"]), line)
		}
		if line != "" {
			lines = append(lines, line)
		}
		if reasonPattern.MatchString(line) && (!noisePattern.MatchString(line) || errorPattern.MatchString(line)) {
			reasons = append(reasons, line)
		}
	}
	if len(reasons) > 0 {
		lines = reasons
	}
	return strings.Join(lines[max(0, len(lines)-maxLines):], "\n")
}

// lineReader passes on the messages in a server's output, one a line; many servers print other lines too.
type lineReader struct {
	in       *bufio.Reader
	maxLine  int
	messages *messages
	pending  []byte
	fault    messageFault // why a line was refused
	sawEOF   atomic.Bool  // the server has closed its output
}

func (r *lineReader) Read(p []byte) (int, error) {
	for len(r.pending) == 0 {
		line, err := r.readLine()
		if err != nil {
			return 0, err
		}
		if start := bytes.TrimSpace(line[:min(len(line), 8)]); len(start) == 0 || start[0] != '{' && start[0] != '[' && start[0] != 0xef {
			continue // not worth decoding
		}
		for _, message := range r.messages.receive(line) {
			r.pending = append(append(r.pending, message...), '\n')
		}
	}
	n := copy(p, r.pending)
	r.pending = r.pending[n:]
	return n, nil
}

// readLine reads one line including its newline.
func (r *lineReader) readLine() ([]byte, error) {
	var line []byte
	for {
		part, err := r.in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > r.maxLine:
			return nil, r.fault.record(errTooLarge)
		case err == nil:
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			r.sawEOF.Store(errors.Is(err, io.EOF))
			return nil, err // a line without a newline is not a message
		}
	}
}

// tail keeps the end of the data written to it.
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
