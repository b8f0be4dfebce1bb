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

// Pauses between two probes of a platform, from start to start. They double up to a bound that is too
// short for users to notice. The timeout of a probe equals that bound, so that it does not delay the
// next probe.
const (
	minOutagePause = 250 * time.Millisecond
	maxOutagePause = 5 * time.Second
	pingTimeout    = maxOutagePause
)

// breaker is the circuit breaker of one platform. The first send that fails because of an outage trips
// it. From then on sends wait, and one of the waiting senders probes the platform. When the platform is
// back, that sender sends first, and the others follow once it has succeeded. The breaker has no
// goroutine, so that nothing is probed when no send waits.
type breaker struct {
	name string
	// ping probes the platform; nil if it cannot be probed.
	ping func(context.Context) error
	log  *slog.Logger
	// isTripped says that a send would have to wait.
	isTripped atomic.Bool

	mu        sync.Mutex
	trippedAt time.Time // start of the outage; zero if there is none
	pauses    *retry.Backoff
	nextProbe time.Time // next probe
	probing   bool      // a sender probes, or sends first
	changed   chan struct{}
}

func newBreaker(p chats.Platform, log *slog.Logger) *breaker {
	k := &breaker{name: p.Name(), log: log, pauses: retry.New(minOutagePause, maxOutagePause), changed: make(chan struct{})}
	if pinger, ok := p.(chats.Pinger); ok {
		k.ping = pinger.Ping
	}
	return k
}

// awaitPass waits until a send may be made, or until ctx ends, and then returns the cause. The caller
// passes the result probe to report, with the outcome of the send.
func (k *breaker) awaitPass(ctx context.Context) (probe bool, err error) {
	for {
		if err := context.Cause(ctx); err != nil {
			return false, err
		}
		k.mu.Lock()
		if k.trippedAt.IsZero() {
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

// probe probes the platform until it answers. If ctx ends first, another sender continues.
func (k *breaker) probe(ctx context.Context) error {
	for {
		k.mu.Lock()
		wait := time.Until(k.nextProbe)
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
		k.scheduleProbe(begun)
		k.mu.Unlock()
	}
}

// report records the outcome of a send that awaitPass allowed. Only a [chats.SendError] says anything
// about the platform.
func (k *breaker) report(probe bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var failure *chats.SendError
	now, sent := time.Now(), err == nil || errors.As(err, &failure)
	switch out := isOutage(failure); {
	case out && k.trippedAt.IsZero():
		k.trippedAt = now
		k.isTripped.Store(true)
		k.pauses.Reset()
		k.scheduleProbe(now)
		k.log.Warn("platform is out of order: sends wait", "platform", k.name, "err", err)
	case out && probe:
		k.scheduleProbe(now)
	case sent && probe:
		k.log.Info("platform is in order again", "platform", k.name, "after", now.Sub(k.trippedAt).Round(time.Millisecond))
		k.trippedAt = time.Time{}
		k.isTripped.Store(false)
	}
	if probe {
		k.release()
	}
}

// scheduleProbe schedules the next probe after one that began at the given time. The lock is held.
func (k *breaker) scheduleProbe(begun time.Time) {
	k.nextProbe = begun.Add(k.pauses.Next(0))
}

// release lets another sender probe, or lets all send if the outage is over. The lock is held.
func (k *breaker) release() {
	k.probing = false
	close(k.changed)
	k.changed = make(chan struct{})
}

// isUp reports whether no outage of a platform is known.
func (s *Sender) isUp(platform string) bool { return !s.breakers[platform].isTripped.Load() }

// isOutage reports whether a send failed because of the platform and not because of its content.
func isOutage(failure *chats.SendError) bool {
	return failure != nil && (failure.Outcome == chats.Unknown || failure.Outage)
}
