package slack

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// health is the state of the connection. The zero value is not running.
type health struct {
	mu      sync.Mutex
	running bool
	open    int       // open sockets
	since   time.Time // since when no socket is open
	link    error     // why none is open
	inbox   error     // error of the last Accept
	failed  time.Time // when it failed
}

// postedPatience is how long an app that could not store a posted event counts as unhealthy. A load
// balancer sends nothing to an unhealthy one, so only time can end that state.
const postedPatience = 15 * time.Second

func (h *health) change(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
}

func (h *health) start() {
	h.change(func() { h.running, h.open, h.since, h.link, h.inbox = true, 0, time.Now(), nil, nil })
}

func (h *health) stop() { h.change(func() { h.running = false }) }

// opened counts a connection and reports whether it is the only one.
func (h *health) opened() (alone bool) {
	h.change(func() {
		h.open++
		h.link, alone = nil, h.open == 1
	})
	return alone
}

func (h *health) closed(err error) {
	h.change(func() {
		if h.open = max(0, h.open-1); h.open == 0 {
			h.link, h.since = err, time.Now()
		}
	})
}

func (h *health) missed(err error) {
	h.change(func() {
		if h.open == 0 {
			h.link = err
		}
	})
}

func (h *health) accepted(err error) { h.change(func() { h.inbox, h.failed = err, time.Now() }) }

// Health returns nil while events arrive and are stored, or what is wrong, for the operator.
func (p *Platform) Health() error {
	h := &p.health
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !h.running:
		return errors.New("slack: not connected")
	case h.inbox != nil && (!p.signatures.Wanted() || time.Since(h.failed) < postedPatience):
		return fmt.Errorf("slack: messages cannot be kept and wait at Slack: %w", h.inbox)
	case h.open > 0:
		return nil
	case h.link != nil:
		return fmt.Errorf("slack: not connected since %s: %w", h.since.UTC().Format(time.RFC3339), h.link)
	}
	return fmt.Errorf("slack: not connected since %s", h.since.UTC().Format(time.RFC3339))
}

// Ping implements [chats.Pinger] with auth.test.
func (p *Platform) Ping(ctx context.Context) error {
	_, err := p.api.whoAmI(ctx)
	return err
}
