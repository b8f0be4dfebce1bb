// Package retry has the pauses after which the program repeats what may pass: pauses
// that grow, with a random part so that many who failed together do not come back
// together, and never shorter than the other side asks for. [Pacer] holds requests apart where
// the other side has said that there are too many of them.
//
// What may be repeated, and how often, is for the caller to say: calls of models are repeated in
// agent/provider, jobs in bridge/attempts.go.
package retry

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// randomPart is how much shorter or longer a pause may be, as a part of it.
const randomPart = 1.0 / 3

// Pauses are those between the tries of one thing. They belong to one goroutine.
type Pauses struct {
	first, longest time.Duration
	steps          *backoff.ExponentialBackOff
}

// New returns pauses that begin near first and double up to longest. Random or not, none
// is shorter than first or longer than longest.
func New(first, longest time.Duration) *Pauses {
	return &Pauses{first: first, longest: longest, steps: &backoff.ExponentialBackOff{
		InitialInterval: first * 3 / 2, RandomizationFactor: randomPart, Multiplier: 2, MaxInterval: longest * 3 / 4,
	}}
}

// Next returns how long to wait, at least as long as the other side asked for.
func (p *Pauses) Next(asked time.Duration) time.Duration {
	return max(min(max(p.steps.NextBackOff(), p.first), p.longest), asked)
}

// Reset begins anew: the last try succeeded.
func (p *Pauses) Reset() { p.steps.Reset() }

// Wait waits, or returns the cause for which ctx ended.
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
