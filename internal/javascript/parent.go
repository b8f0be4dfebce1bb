package javascript

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

const (
	// maxCalls is how many calls of the host a script may have open at once. The
	// child queues more than maxStarted itself, so that only one that was tampered
	// with gets there.
	maxCalls = 2 * maxStarted
	// maxLines and maxLine bound what a console may write, in lines and bytes.
	maxLines = 100
	maxLine  = 2_000
	// maxStderr is how much is kept of what a child says when it dies.
	maxStderr = 4_000
)

// process is a child and the conversation with it.
type process struct {
	script Script
	cmd    *exec.Cmd
	in     *receiver
	out    *sender
	stderr tail
	lines  int

	open  atomic.Int32
	calls sync.WaitGroup
}

func (e *Engine) run(ctx context.Context, s Script) (string, error) {
	running, cancel := context.WithCancel(ctx)
	p, err := e.start(running, s)
	if err != nil {
		cancel()
		return "", fmt.Errorf("javascript: start the engine: %w", err)
	}
	text, err := p.converse(running)
	// The child has nothing left to do, or nothing that it will be let do.
	cancel()
	p.calls.Wait()
	exit := p.cmd.Wait()
	if ctx.Err() != nil || !errors.Is(err, errBroken) {
		return text, err
	}
	e.log.Warn("javascript engine broke off", "error", err, "exit", exit, "stderr", p.stderr.String())
	return "", &ScriptError{"the script used more memory or stack than it may have, and the engine broke off"}
}

// errBroken is returned where the child ends without a result or talks nonsense.
var errBroken = errors.New("the child ended without a result")

// start starts the child. It is killed when ctx ends.
func (e *Engine) start(ctx context.Context, s Script) (*process, error) {
	p := &process{script: s}
	p.cmd = exec.CommandContext(ctx, e.command[0], e.command[1:]...)
	p.cmd.Env = []string{"GOMAXPROCS=2", "GOTRACEBACK=none"}
	p.cmd.Dir = "/"
	p.cmd.Stderr = &p.stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	p.in, p.out = newReceiver(out), &sender{w: in}
	return p, p.cmd.Start()
}

// converse gives the child its task and serves it until it is done.
func (p *process) converse(ctx context.Context) (string, error) {
	first := task{
		Source: p.script.Source, Entry: p.script.Entry, Params: p.script.Params, Prelude: p.script.Prelude,
		Functions: slices.Sorted(maps.Keys(p.script.Functions)), Check: p.script.Check,
	}
	if err := p.out.send(first); err != nil {
		if errors.Is(err, errFrame) {
			return "", &ScriptError{"the parameters are too large"}
		}
		return "", fmt.Errorf("%w: %w", errBroken, err)
	}
	for {
		var m report
		if err := p.in.receive(&m); err != nil {
			return "", fmt.Errorf("%w: %w", errBroken, err)
		}
		switch {
		case m.Done && m.Failed:
			return "", &ScriptError{m.Text}
		case m.Done:
			return m.Text, nil
		case m.Call != "":
			p.serve(ctx, m)
		default:
			p.console(m)
		}
	}
}

// serve answers a call of the child, beside what else it asks for.
func (p *process) serve(ctx context.Context, m report) {
	if p.open.Add(1) > maxCalls {
		p.open.Add(-1)
		p.answer(m.ID, nil, errors.New("too many calls at once"))
		return
	}
	p.calls.Go(func() {
		defer p.open.Add(-1)
		f, ok := p.script.Functions[m.Call]
		if !ok {
			p.answer(m.ID, nil, fmt.Errorf("there is no function %.64q", m.Call))
			return
		}
		value, err := f(ctx, m.Argument)
		p.answer(m.ID, value, err)
	})
}

// answer sends what a call has come to. Where the child does not read it, it has
// ended, which is seen where its messages are read.
func (p *process) answer(id int, value any, err error) {
	if err == nil {
		var data json.RawMessage
		if data, err = json.Marshal(value); err == nil && len(data) > maxValue {
			err = errors.New("the value is too large")
		}
		if err == nil {
			err = p.out.send(reply{ID: id, Value: data})
		}
	}
	if err != nil {
		text := err.Error()
		_ = p.out.send(reply{ID: id, Error: &text})
	}
}

// console passes on what a script writes, as far as it is not too much.
func (p *process) console(m report) {
	if p.lines++; p.script.Log == nil || p.lines > maxLines {
		return
	}
	level := slog.LevelInfo
	switch m.Level {
	case "warn":
		level = slog.LevelWarn
	case "error":
		level = slog.LevelError
	}
	text := m.Text
	if len(text) > maxLine {
		text = strings.ToValidUTF8(text[:maxLine], "") + "…"
	}
	if p.lines == maxLines {
		text = "the rest of the console is left out"
	}
	p.script.Log(level, text)
}

// tail keeps the beginning of what is written to it. What is read of it must have
// been written before.
type tail struct{ kept []byte }

var _ io.Writer = (*tail)(nil)

// Write takes everything and keeps what fits.
func (t *tail) Write(data []byte) (int, error) {
	t.kept = append(t.kept, data[:min(len(data), maxStderr-len(t.kept))]...)
	return len(data), nil
}

// String returns what was kept.
func (t *tail) String() string { return string(t.kept) }
