// Package rescue keeps a panic from ending the process. It turns the panic into an error or a line in
// the log.
package rescue

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"

	"oneclaw/internal/retry"
)

// Bounds of the pauses before a loop that panicked continues.
const (
	minPause = time.Second
	maxPause = time.Minute
)

// PanicError is a panic as an error.
type PanicError struct {
	Value any
	stack []byte
}

// Error returns the value of the panic and its stack, for the log.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v\n%s", e.Value, e.stack) }

// Do calls f and returns its error. If f panics, Do returns a *[PanicError].
func Do(f func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{value, debug.Stack()}
		}
	}()
	return f()
}

// Go calls f in the same goroutine, and logs a panic with an incident id. what describes f in the log.
func Go(log *slog.Logger, what string, f func()) {
	logPanic(log, what, Do(func() error { f(); return nil }))
}

// Loop calls f, which should run until ctx ends, and calls it again after a pause if it panics. It
// returns the error of f, or nil if ctx ends during a pause. what describes f in the log.
func Loop(ctx context.Context, log *slog.Logger, what string, f func(context.Context) error) error {
	for pauses := retry.New(minPause, maxPause); ; {
		var failure error
		broken := Do(func() error { failure = f(ctx); return nil })
		if broken == nil {
			return failure
		}
		logPanic(log, what, broken)
		if retry.Wait(ctx, pauses.Next(0)) != nil {
			return nil
		}
	}
}

func logPanic(log *slog.Logger, what string, err error) {
	if err == nil || log == nil {
		return
	}
	var id [4]byte
	_, _ = rand.Read(id[:]) // never fails (crypto/rand)
	log.Error("a panic was caught", "incident", strings.ToUpper(hex.EncodeToString(id[:])), "in", what, "err", err)
}
