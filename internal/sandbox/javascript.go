package sandbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"oneclaw/internal/named"
)

// Limits of a run.
const (
	// maxHeap bounds the memory of a script's values, in bytes.
	maxHeap = 16 << 20
	// MaxSource bounds a script, in bytes.
	MaxSource = 1 << 20
	// MaxResult bounds the kept part of a result, in bytes.
	MaxResult = 1 << 20
	// defaultRuns and DefaultOwnerRuns are the defaults of [EngineConfig].
	defaultRuns      = 8
	DefaultOwnerRuns = 2
)

// ScriptArgument starts the child: a program started with it as its only argument must call
// [ServeScript] before anything else.
const ScriptArgument = "javascript-child"

var (
	// ErrScriptTooLong is returned for a script longer than [MaxSource].
	ErrScriptTooLong = fmt.Errorf("the script is longer than %d bytes", MaxSource)
	// ErrTimeout is returned for a script that did not end in time.
	ErrTimeout = errors.New("the script did not end in its time")
	// ErrBusy is returned for a script that did not begin within MaxWait because others were
	// running.
	ErrBusy = errors.New("other scripts are running")
)

// ScriptError is an error in a script.
type ScriptError struct {
	// Message is for the author of the script.
	Message string
}

// Error returns the message.
func (e *ScriptError) Error() string { return e.Message }

// Function is a host function for scripts; its error reaches the script as an exception. It must
// return soon after ctx ends, and may be called concurrently.
type Function func(ctx context.Context, argument json.RawMessage) (any, error)

// Script is a script and its environment.
type Script struct {
	// Source is the code.
	Source string
	// Entry is the name of the function that is called with Params, a plain identifier. If empty,
	// the result is that of main(), if the code defines it, or else the value of the last
	// expression.
	Entry string
	// Params is the argument of Entry as JSON. Empty means {}.
	Params json.RawMessage
	// Prelude is an expression for a function that is called before Source with {call, start, has},
	// to define globals that use Functions. call(name, argument) returns the result, start(name,
	// argument) a promise of it, has(name) whether there is such a function.
	Prelude string
	// Functions are the host functions for Prelude, by name.
	Functions map[string]Function
	// Log receives the script's console output. nil discards it.
	Log func(level slog.Level, text string)
	// CheckOnly ends the run before Entry is called.
	CheckOnly bool
	// Owner is the user or chat that the script runs for.
	Owner string
	// MaxWait bounds the wait for other scripts, and Timeout the run. 0 means that only the context
	// bounds it.
	MaxWait, Timeout time.Duration
}

// EngineConfig configures an [Engine].
type EngineConfig struct {
	// Command starts the child. Empty means this program with [ScriptArgument].
	Command []string
	// Runs bounds the scripts that run in parallel, and OwnerRuns those of one owner; others wait.
	// 0 means [defaultRuns] and [DefaultOwnerRuns].
	Runs, OwnerRuns int
	// Logger gets errors of the engine itself. nil discards them.
	Logger *slog.Logger
}

// Engine runs scripts. It may be used concurrently and keeps no state between runs.
type Engine struct {
	command []string
	slots   *slots
	log     *slog.Logger
}

// NewEngine makes an engine. It starts nothing.
func NewEngine(cfg EngineConfig) (*Engine, error) {
	command := cfg.Command
	if len(command) == 0 {
		var err error
		if command, err = Command(ScriptArgument); err != nil {
			return nil, fmt.Errorf("javascript: %w", err)
		}
	}
	if cfg.Runs < 0 || cfg.OwnerRuns < 0 {
		return nil, errors.New("javascript: a number of runs is negative")
	}
	return &Engine{
		command: command,
		slots: &slots{
			owners: named.New(cmp.Or(cfg.OwnerRuns, DefaultOwnerRuns)),
			global: make(chan struct{}, cmp.Or(cfg.Runs, defaultRuns)),
		},
		log: cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler)),
	}, nil
}

// Run runs a script until it, its time or ctx ends, and returns its result: a string unchanged,
// "" for null and undefined, JSON for anything else. The error is a [*ScriptError],
// [ErrScriptTooLong], [ErrTimeout], [ErrBusy], that of ctx, or that the engine did not start.
func (e *Engine) Run(ctx context.Context, s Script) (string, error) {
	if len(s.Source) > MaxSource {
		return "", ErrScriptTooLong
	}
	waiting, cancel := withLimit(ctx, s.MaxWait)
	release, err := e.slots.acquire(waiting, s.Owner)
	cancel()
	switch {
	case ctx.Err() != nil && err != nil:
		return "", ctx.Err()
	case err != nil:
		return "", ErrBusy
	}
	defer release()
	running, cancel := withLimit(ctx, s.Timeout)
	defer cancel()
	text, err := e.run(running, s)
	switch {
	case err == nil || running.Err() == nil:
		return text, err
	case ctx.Err() != nil:
		return "", ctx.Err()
	}
	return "", ErrTimeout
}

func withLimit(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if limit == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, limit)
}
