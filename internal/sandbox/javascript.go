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
	// MaxHeap is how much memory the values of a script may take, in bytes.
	MaxHeap = 16 << 20
	// MaxSource is the longest script, in bytes.
	MaxSource = 1 << 20
	// MaxResult is how much of a result is kept, in bytes.
	MaxResult = 1 << 20
	// DefaultRuns is how many scripts run at once where [EngineConfig] says nothing, and
	// DefaultOwnerRuns how many of one owner.
	DefaultRuns      = 8
	DefaultOwnerRuns = 2
)

// ScriptArgument is what the child is started with: a program that is given it as its
// only argument must call [ServeScript] before it does anything else.
const ScriptArgument = "javascript-child"

var (
	// ErrScriptTooLong is returned for a script longer than [MaxSource].
	ErrScriptTooLong = fmt.Errorf("the script is longer than %d bytes", MaxSource)
	// ErrTimeout is returned for a script that did not end in its time.
	ErrTimeout = errors.New("the script did not end in its time")
	// ErrBusy is returned for a script that did not begin: others ran for all of the
	// time that it waits.
	ErrBusy = errors.New("other scripts are running")
)

// ScriptError is the failure of a script by its own fault.
type ScriptError struct {
	// Message is what a person who writes scripts needs to know.
	Message string
}

// Error returns the message.
func (e *ScriptError) Error() string { return e.Message }

// Function is a function of the host that a script may call; its error reaches the script
// as an exception. It must end soon after ctx does, and may be called concurrently.
type Function func(ctx context.Context, argument json.RawMessage) (any, error)

// Script is what runs.
type Script struct {
	// Source is the code.
	Source string
	// Entry is the name of the function that is called with Params, a plain
	// identifier. Without one the result is that of main(), if the code defines it,
	// else the value of its last expression.
	Entry string
	// Params is the argument of Entry as JSON. Empty means {}.
	Params json.RawMessage
	// Prelude is code of the program: an expression for a function that is called
	// before Source with {call, start, has}, to define global functions by
	// Functions. call(name, argument) returns the result, start(name, argument) a
	// promise of it, has(name) whether there is such a function.
	Prelude string
	// Functions are what Prelude may call, by name.
	Functions map[string]Function
	// Log takes what the script writes to its console. nil discards it.
	Log func(level slog.Level, text string)
	// Check ends the run before Entry is called.
	Check bool
	// Owner is on whose behalf the script runs.
	Owner string
	// MaxWait bounds the time in which it waits for other scripts, and Timeout that in
	// which it runs. 0 means that only the context bounds it.
	MaxWait, Timeout time.Duration
}

// EngineConfig sets up an [Engine].
type EngineConfig struct {
	// Command starts the child. Empty means this program with [ScriptArgument].
	Command []string
	// Runs is how many scripts run at once, and OwnerRuns how many of one owner; others
	// wait. 0 means [DefaultRuns] and [DefaultOwnerRuns].
	Runs, OwnerRuns int
	// Logger gets what is wrong with the engine itself. nil discards it.
	Logger *slog.Logger
}

// Engine runs scripts. It may be used concurrently and keeps nothing between runs.
type Engine struct {
	command []string
	slots   *slots
	log     *slog.Logger
}

// NewEngine makes an engine. Nothing is started.
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
			all:    make(chan struct{}, cmp.Or(cfg.Runs, DefaultRuns)),
		},
		log: cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler)),
	}, nil
}

// Run runs a script to its end, to that of its time or to that of ctx, and returns its
// result: a string as it is, nothing for null and undefined, JSON for anything else. The
// error is a [*ScriptError], [ErrScriptTooLong], [ErrTimeout], [ErrBusy], that of ctx, or that
// the engine did not start.
func (e *Engine) Run(ctx context.Context, s Script) (string, error) {
	if len(s.Source) > MaxSource {
		return "", ErrScriptTooLong
	}
	waiting, cancel := limited(ctx, s.MaxWait)
	release, err := e.slots.take(waiting, s.Owner)
	cancel()
	switch {
	case ctx.Err() != nil && err != nil:
		return "", ctx.Err()
	case err != nil:
		return "", ErrBusy
	}
	defer release()
	running, cancel := limited(ctx, s.Timeout)
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

func limited(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if limit == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, limit)
}
