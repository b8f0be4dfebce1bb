package telegram

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// conflictPatience is how long another poller may be this bot's crashed predecessor.
const conflictPatience = 3 * time.Minute

// stallMargin is how late, after its timeout, a poll may be.
const stallMargin = 90 * time.Second

// postedPatience is how long a bot that could not store a posted update counts as unhealthy. A load
// balancer sends nothing to an unhealthy one, so only time can end that state.
const postedPatience = 15 * time.Second

// health is the state of the last polls. The zero value has not polled.
type health struct {
	mu      sync.Mutex
	started time.Time
	// good is when Telegram last answered successfully; zero for never.
	good time.Time
	// since and last are the times of the refusals because another process gets the updates, and holder
	// is that process, once known.
	since, last time.Time
	holder      string
	poll        error     // error of the last poll
	inbox       error     // error of the last Accept
	failed      time.Time // when it failed
	handing     time.Time // start of the running Accept
}

func (h *health) change(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
}

func (h *health) start() {
	h.change(func() {
		h.started, h.good, h.since, h.last, h.handing = time.Now(), time.Time{}, time.Time{}, time.Time{}, time.Time{}
		h.poll, h.inbox, h.holder = nil, nil, ""
	})
}

func (h *health) stop() { h.change(func() { h.started = time.Time{} }) }

func (h *health) polled(err error) {
	h.change(func() {
		if h.poll = err; err == nil {
			h.good = time.Now()
		}
	})
}

// conflicted records a poll that was refused because another process gets the updates. It returns for
// how long that lasts, and whether it has just begun. Two pollers that take turns both succeed now and
// then: that does not end it.
func (h *health) conflicted(err error, calm time.Duration) (lasts time.Duration, begins bool) {
	h.change(func() {
		now := time.Now()
		if begins = h.since.IsZero() || now.Sub(h.last) >= calm; begins {
			h.since, h.holder = now, ""
		}
		h.last, h.poll = now, err
		lasts = now.Sub(h.since)
	})
	return lasts, begins
}

// blame records which process gets the updates instead, and reports whether that is new.
func (h *health) blame(holder string) (news bool) {
	h.change(func() { news, h.holder = h.holder != holder, holder })
	return news
}

func (h *health) hands() { h.change(func() { h.handing = time.Now() }) }

func (h *health) accepted(err error) {
	h.change(func() { h.inbox, h.failed, h.handing = err, time.Now(), time.Time{} })
}

// calm returns the time after which a conflict is over: longer than a round of two pollers that take
// turns.
func (p *Platform) calm() time.Duration { return 3*p.conflictWait + 15*time.Second }

// Health returns nil while polls succeed and their updates are stored, or what is wrong, for the
// operator.
func (p *Platform) Health() error {
	h := &p.health
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.started.IsZero():
		return errors.New("telegram: not polling")
	case h.holder != "" && time.Since(h.last) < p.calm():
		return fmt.Errorf("telegram: %s, since %v", h.holder, time.Since(h.since).Round(time.Second))
	case h.inbox != nil && (p.ReceivesExclusively() || time.Since(h.failed) < postedPatience):
		return fmt.Errorf("telegram: messages cannot be kept and wait at Telegram: %w", h.inbox)
	case wrongToken(h.poll):
		return fmt.Errorf("telegram: the token is refused: check TELEGRAM_BOT_TOKEN: %w", h.poll)
	case h.good.IsZero() && h.poll != nil:
		return h.poll
	case h.good.IsZero():
		return errors.New("telegram: connecting")
	}
	quiet := time.Since(h.good)
	switch {
	case quiet < p.pollTimeout+stallMargin:
		return nil
	case !h.handing.IsZero():
		return fmt.Errorf("telegram: messages have waited for %v to be kept", time.Since(h.handing).Round(time.Second))
	case h.poll != nil:
		return fmt.Errorf("telegram: no poll has succeeded for %v: %w", quiet.Round(time.Second), h.poll)
	}
	return fmt.Errorf("telegram: no poll has ended for %v", quiet.Round(time.Second))
}

// Ping implements [chats.Pinger] with getMe.
func (p *Platform) Ping(ctx context.Context) error { return p.api.call(ctx, "getMe", nil, nil) }
