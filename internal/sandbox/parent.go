package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"oneclaw/internal/rescue"
)

const (
	// maxCalls bounds the concurrent calls of a script. Only a compromised child exceeds it.
	maxCalls = 2 * maxConcurrentCalls
	// maxLines and maxLine bound the console output, in lines and bytes.
	maxLines = 100
	maxLine  = 2_000
)

// scriptSession is a child that runs a script, with the state of its requests.
type scriptSession struct {
	script    Script
	child     *Process
	lineCount int

	openCalls atomic.Int32
	calls     sync.WaitGroup
}

func (e *Engine) run(ctx context.Context, s Script) (string, error) {
	running, cancel := context.WithCancel(ctx)
	started, err := Start(running, e.command)
	if err != nil {
		cancel()
		return "", fmt.Errorf("javascript: start the engine: %w", err)
	}
	p := &scriptSession{script: s, child: started}
	text, err := p.runSession(running)
	// Whatever the child still does is no longer wanted.
	cancel()
	p.calls.Wait()
	exit := started.End()
	if ctx.Err() != nil || !errors.Is(err, errNoResult) {
		return text, err
	}
	e.log.Warn("javascript engine broke off", "error", err, "exit", exit)
	return "", &ScriptError{"the script used more memory or stack than it may have, and the engine broke off"}
}

// errNoResult is returned if the child ends without a result or sends invalid messages.
var errNoResult = errors.New("the child ended without a result")

// runSession sends the child its task and serves it until it is done.
func (p *scriptSession) runSession(ctx context.Context) (string, error) {
	first := task{
		Source: p.script.Source, Entry: p.script.Entry, Params: p.script.Params, Prelude: p.script.Prelude,
		Functions: slices.Sorted(maps.Keys(p.script.Functions)), Check: p.script.CheckOnly,
	}
	if err := p.child.Send(first); err != nil {
		if errors.Is(err, errTooLong) {
			return "", &ScriptError{"the parameters are too large"}
		}
		return "", fmt.Errorf("%w: %w", errNoResult, err)
	}
	for {
		var m childMessage
		if err := p.child.Receive(&m); err != nil {
			return "", fmt.Errorf("%w: %w", errNoResult, err)
		}
		switch {
		case m.Done && m.Failed:
			return "", &ScriptError{m.Text}
		case m.Done:
			return m.Text, nil
		case m.Call != "":
			p.serveCall(ctx, m)
		default:
			p.logConsole(m)
		}
	}
}

// serveCall handles a call of the child, concurrently with others.
func (p *scriptSession) serveCall(ctx context.Context, m childMessage) {
	if p.openCalls.Add(1) > maxCalls {
		p.openCalls.Add(-1)
		p.answer(m.ID, nil, errors.New("too many calls at once"))
		return
	}
	p.calls.Go(func() {
		defer p.openCalls.Add(-1)
		f, ok := p.script.Functions[m.Call]
		if !ok {
			p.answer(m.ID, nil, fmt.Errorf("there is no function %.64q", m.Call))
			return
		}
		var value any
		err := rescue.Do(func() (err error) { value, err = f(ctx, m.Argument); return err })
		p.answer(m.ID, value, err)
	})
}

// answer sends the result of a call. If the child does not read
// it, the child has ended, and the reading side notices that.
func (p *scriptSession) answer(id int, value any, err error) {
	if err == nil {
		var data json.RawMessage
		if data, err = json.Marshal(value); err == nil && len(data) > maxValue {
			err = errors.New("the value is too large")
		}
		if err == nil {
			err = p.child.Send(reply{ID: id, Value: data})
		}
	}
	if err != nil {
		text := err.Error()
		_ = p.child.Send(reply{ID: id, Error: &text})
	}
}

// logConsole passes on console output, up to the limits.
func (p *scriptSession) logConsole(m childMessage) {
	if p.lineCount++; p.script.Log == nil || p.lineCount > maxLines {
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
	if p.lineCount == maxLines {
		text = "the rest of the console is left out"
	}
	p.script.Log(level, text)
}
