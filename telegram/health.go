package telegram

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// conflictGrace is for how long a conflicting poller may be this bot's crashed predecessor.
const conflictGrace = 3 * time.Minute

// stallMargin is how late a poll may be after its timeout before Health reports it.
const stallMargin = 90 * time.Second

// unhealthyPeriod is how long a bot that could not store a posted update counts as unhealthy. A load
// balancer sends nothing to an unhealthy bot, so only time can end that state.
const unhealthyPeriod = 15 * time.Second

// health is the state of the last polls. The zero value has not polled.
type health struct {
	mu      sync.Mutex
	started time.Time
	// lastSuccess is when Telegram last answered successfully; zero if never.
	lastSuccess time.Time
	// conflictSince and lastConflict are when polls were first and last refused because another process
	// gets the updates. conflictHolder describes that process, once known.
	conflictSince, lastConflict time.Time
	conflictHolder              string
	pollError                   error     // error of the last poll
	inboxError                  error     // error of the last Accept
	acceptEnd                   time.Time // when the last Accept ended
	acceptSince                 time.Time // when the running Accept began
}

func (h *health) withLock(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
}

func (h *health) start() {
	h.withLock(func() {
		h.started, h.lastSuccess, h.conflictSince, h.lastConflict, h.acceptSince = time.Now(), time.Time{}, time.Time{}, time.Time{}, time.Time{}
		h.pollError, h.inboxError, h.conflictHolder = nil, nil, ""
	})
}

func (h *health) stop() { h.withLock(func() { h.started = time.Time{} }) }

func (h *health) recordPoll(err error) {
	h.withLock(func() {
		if h.pollError = err; err == nil {
			h.lastSuccess = time.Now()
		}
	})
}

// recordConflict records a poll that was refused because another process gets the updates. It returns
// how long the conflict has lasted, and whether it has just begun: calm has passed since the last refused
// poll. A conflict does not end with one successful poll, because two pollers that take turns both
// succeed now and then.
func (h *health) recordConflict(err error, calm time.Duration) (lasts time.Duration, begins bool) {
	h.withLock(func() {
		now := time.Now()
		if begins = h.conflictSince.IsZero() || now.Sub(h.lastConflict) >= calm; begins {
			h.conflictSince, h.conflictHolder = now, ""
		}
		h.lastConflict, h.pollError = now, err
		lasts = now.Sub(h.conflictSince)
	})
	return lasts, begins
}

// setHolder records which process gets the updates instead, and reports whether that is new.
func (h *health) setHolder(holder string) (news bool) {
	h.withLock(func() { news, h.conflictHolder = h.conflictHolder != holder, holder })
	return news
}

func (h *health) beginAccept() { h.withLock(func() { h.acceptSince = time.Now() }) }

func (h *health) endAccept(err error) {
	h.withLock(func() { h.inboxError, h.acceptEnd, h.acceptSince = err, time.Now(), time.Time{} })
}

// conflictWindow returns the time after which a conflict is over. It is longer than a round of two
// pollers that take turns.
func (p *platform) conflictWindow() time.Duration { return 3*p.conflictWait + 15*time.Second }

// Health returns nil while polls succeed and their updates are stored, and otherwise an error for the
// operator.
func (p *platform) Health() error {
	h := &p.health
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.started.IsZero():
		return errors.New("telegram: not polling")
	case h.conflictHolder != "" && time.Since(h.lastConflict) < p.conflictWindow():
		return fmt.Errorf("telegram: %s, since %v", h.conflictHolder, time.Since(h.conflictSince).Round(time.Second))
	case h.inboxError != nil && (p.ReceivesExclusively() || time.Since(h.acceptEnd) < unhealthyPeriod):
		return fmt.Errorf("telegram: messages cannot be kept and wait at Telegram: %w", h.inboxError)
	case isTokenError(h.pollError):
		return fmt.Errorf("telegram: the token is refused: check TELEGRAM_BOT_TOKEN: %w", h.pollError)
	case h.lastSuccess.IsZero() && h.pollError != nil:
		return h.pollError
	case h.lastSuccess.IsZero():
		return errors.New("telegram: connecting")
	}
	quiet := time.Since(h.lastSuccess)
	switch {
	case quiet < p.pollTimeout+stallMargin:
		return nil
	case !h.acceptSince.IsZero():
		return fmt.Errorf("telegram: messages have waited for %v to be kept", time.Since(h.acceptSince).Round(time.Second))
	case h.pollError != nil:
		return fmt.Errorf("telegram: no poll has succeeded for %v: %w", quiet.Round(time.Second), h.pollError)
	}
	return fmt.Errorf("telegram: no poll has ended for %v", quiet.Round(time.Second))
}

// Ping implements [chats.Pinger] with getMe.
func (p *platform) Ping(ctx context.Context) error { return p.api.call(ctx, "getMe", nil, nil) }
