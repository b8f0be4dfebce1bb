// Package retry is the common policy for retries. Pauses grow and have a random part, so that many
// clients that failed together do not retry together. They are never shorter than the server asks
// for. [Pacer] spaces requests after the server has reported too many.
//
// Callers decide which calls may be repeated, and how often: calls of models are repeated in
// agent/provider, jobs in bridge/attempts.go.
package retry

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// randomPart is the jitter, as a fraction of a pause.
const randomPart = 1.0 / 3

// Backoff computes the pauses between tries. It must not be used concurrently.
type Backoff struct {
	first, longest time.Duration
	steps          *backoff.ExponentialBackOff
}

// New returns a backoff whose pauses begin near first and double up to longest. With jitter, a pause
// stays between first and longest; [Backoff.Next] waits longer only if asked to.
func New(first, longest time.Duration) *Backoff {
	return &Backoff{first: first, longest: longest, steps: &backoff.ExponentialBackOff{
		InitialInterval: first * 3 / 2, RandomizationFactor: randomPart, Multiplier: 2, MaxInterval: longest * 3 / 4,
	}}
}

// Next returns how long to wait. It is at least asked, the pause that the server has requested.
func (p *Backoff) Next(asked time.Duration) time.Duration {
	return max(min(max(p.steps.NextBackOff(), p.first), p.longest), asked)
}

// Reset starts over after a success.
func (p *Backoff) Reset() { p.steps.Reset() }

// Wait waits for d. If ctx ends first, it returns the cause.
func Wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return context.Cause(ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// After parses the Retry-After header (RFC 9110), which has seconds or a date.
func After(h http.Header, now time.Time) (time.Duration, bool) {
	value := h.Get("Retry-After")
	if seconds, err := strconv.Atoi(value); err == nil && seconds >= 0 && seconds <= 1<<30 {
		return time.Duration(seconds) * time.Second, true
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now)), true
	}
	return 0, false
}
