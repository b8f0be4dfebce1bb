package outbox

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/internal/rescue"
	"oneclaw/internal/retry"
)

// Pauses between two probes of a platform, from start to start. They double up to a bound below which
// users do not notice. A probe without an answer is given up after as long, so that the next one is not
// late.
const (
	minOutagePause = 250 * time.Millisecond
	maxOutagePause = 5 * time.Second
	pingTimeout    = maxOutagePause
)

// breaker is the circuit breaker of one platform. The first send that meets an outage trips it: from
// then on sends wait, and one of those waiting probes whether the platform is back. Then that one is
// sent first, alone, and the others follow once it has succeeded. The breaker has no goroutine: a
// waiting sender does the work, so that nothing is probed when nothing waits.
type breaker struct {
	name string
	// ping probes the platform; nil if it cannot be probed.
	ping func(context.Context) error
	log  *slog.Logger
	// out says that it is tripped: a send would have to wait.
	out atomic.Bool

	mu      sync.Mutex
	tripped time.Time // start of the outage; zero if there is none
	pauses  *retry.Pauses
	next    time.Time // next probe
	probing bool      // a sender probes, or makes the first send
	changed chan struct{}
}

func newBreaker(p chats.Platform, log *slog.Logger) *breaker {
	k := &breaker{name: p.Name(), log: log, pauses: retry.New(minOutagePause, maxOutagePause), changed: make(chan struct{})}
	if pinger, ok := p.(chats.Pinger); ok {
		k.ping = pinger.Ping
	}
	return k
}

// pass waits until a send may be made, or returns why ctx ended. The caller reports the outcome of the
// send, with the probe that pass returned.
func (k *breaker) pass(ctx context.Context) (probe bool, err error) {
	for {
		if err := context.Cause(ctx); err != nil {
			return false, err
		}
		k.mu.Lock()
		if k.tripped.IsZero() {
			k.mu.Unlock()
			return false, nil
		}
		probe, changed := !k.probing, k.changed
		k.probing = true
		k.mu.Unlock()
		if probe {
			return true, k.probe(ctx)
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// probe probes until the platform answers. If ctx ends first, another sender continues.
func (k *breaker) probe(ctx context.Context) error {
	for {
		k.mu.Lock()
		wait := time.Until(k.next)
		k.mu.Unlock()
		if err := retry.Wait(ctx, wait); err != nil {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.release()
			return err
		}
		if k.ping == nil {
			return nil
		}
		begun := time.Now()
		call, cancel := context.WithTimeout(ctx, pingTimeout)
		err := rescue.Do(func() error { return k.ping(call) })
		cancel()
		if err == nil {
			return nil
		}
		k.log.Debug("platform is still out of order", "platform", k.name, "err", err)
		k.mu.Lock()
		k.delay(begun)
		k.mu.Unlock()
	}
}

// report records the outcome of a send that pass allowed. An error that is not a [SendError] is not the
// platform's.
func (k *breaker) report(probe bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var failure *chats.SendError
	now, sent := time.Now(), err == nil || errors.As(err, &failure)
	switch out := isOutage(failure); {
	case out && k.tripped.IsZero():
		k.tripped = now
		k.out.Store(true)
		k.pauses.Reset()
		k.delay(now)
		k.log.Warn("platform is out of order: what is to be sent waits", "platform", k.name, "err", err)
	case out && probe:
		k.delay(now)
	case sent && probe:
		k.log.Info("platform is in order again", "platform", k.name, "after", now.Sub(k.tripped).Round(time.Millisecond))
		k.tripped = time.Time{}
		k.out.Store(false)
	}
	if probe {
		k.release()
	}
}

// delay schedules the next probe after one that began at a time. The lock is held.
func (k *breaker) delay(begun time.Time) {
	k.next = begun.Add(k.pauses.Next(0))
}

// release lets another sender probe, or all pass. The lock is held.
func (k *breaker) release() {
	k.probing = false
	close(k.changed)
	k.changed = make(chan struct{})
}

// IsUp reports whether a platform accepts messages now.
func (s *Sender) IsUp(platform string) bool { return !s.breakers[platform].out.Load() }

// isOutage reports whether a send failed because of the platform and not because of its content.
func isOutage(failure *chats.SendError) bool {
	return failure != nil && (failure.Outcome == chats.Unknown || failure.Outage)
}
