// Package provider has the code that all model clients share: sending, bounding and retrying requests,
// classifying failures, facts about models and their sources, and the form of messages, pictures and
// call ids.
package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"oneclaw/internal/retry"
)

// Defaults of [Retry].
const (
	defaultMaxAttempts = 4
	defaultMaxWait     = time.Minute
)

// Pauses between the attempts of one request.
const (
	minPause = 350 * time.Millisecond
	maxPause = 20 * time.Second
)

// Bounds of one attempt.
const (
	FirstTimeout   = 120 * time.Second // for the first byte of a reply
	stallTimeout   = 60 * time.Second  // for each further piece
	AttemptTimeout = 10 * time.Minute
)

var (
	errStalled        = errors.New("the server sent nothing for too long")
	errAttemptTimeout = errors.New("the reply took too long")
)

// Retry bounds how transient failures are retried.
type Retry struct {
	// MaxAttempts bounds how often a request is sent. 0 means [defaultMaxAttempts].
	MaxAttempts int
	// MaxWait bounds the sum of the pauses between the attempts at one request. If a server asks for a
	// longer pause, the request is not retried. 0 means [defaultMaxWait].
	MaxWait time.Duration
}

// CheckSettings rejects invalid settings of a client, and returns r with defaults filled in.
func CheckSettings(r Retry, s Settings, contextTokens int, firstByte time.Duration) (Retry, error) {
	switch {
	case r.MaxWait < 0 || min(r.MaxAttempts, contextTokens, s.ContextTokens) < 0 || firstByte < 0:
		return r, errors.New("a bound is negative")
	case s.Vision != "" && s.Vision != "yes" && s.Vision != "no":
		return r, errors.New("vision must be yes or no")
	}
	return Retry{MaxAttempts: cmp.Or(r.MaxAttempts, defaultMaxAttempts), MaxWait: cmp.Or(r.MaxWait, defaultMaxWait)}, nil
}

// Repeat calls try until it returns no fault. It retries at once if adapt reports that it has changed the
// refused request, and after growing pauses, or the server's Retry-After, if the fault is transient. The
// error is the *[agent.ModelError] of the last fault, or wraps the cause of ctx.
func (r Retry) Repeat(ctx context.Context, log *slog.Logger, try func() *Fault, adapt func(*Fault) bool) error {
	pauses, left := retry.New(minPause, maxPause), r.MaxWait
	for attempt := 1; ; {
		fault := try()
		if fault == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("provider: %w", context.Cause(ctx))
		}
		if adapt(fault) {
			continue
		}
		pause := pauses.Next(fault.Failure.RetryAfter)
		if !fault.transient || attempt >= fault.attempts(r.MaxAttempts) || pause > left {
			return fault.Failure
		}
		left -= pause
		log.Warn("retrying model request", "attempt", attempt, "pause", pause, "err", fault.Failure)
		if err := retry.Wait(ctx, pause); err != nil {
			return fmt.Errorf("provider: %w", err)
		}
		attempt++
	}
}

// WithTimeouts bounds an attempt: the wait for the first byte, for each further piece by [stallTimeout],
// and the whole attempt, which has at least the time of the first two. The caller calls alive for each
// piece, and end when the attempt is over.
func WithTimeouts(ctx context.Context, first, whole time.Duration) (_ context.Context, alive, end func()) {
	ctx, stop := context.WithTimeoutCause(ctx, max(whole, first+stallTimeout), errAttemptTimeout)
	ctx, cancel := context.WithCancelCause(ctx)
	watch := time.AfterFunc(first, func() { cancel(errStalled) })
	return ctx, func() { watch.Reset(stallTimeout) }, func() {
		watch.Stop()
		cancel(nil)
		stop()
	}
}
