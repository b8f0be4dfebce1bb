package slack

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// health is the state of the connection. The zero value means not running.
type health struct {
	mu          sync.Mutex
	running     bool
	openSockets int       // open sockets; 1 if events are posted
	closedSince time.Time // when the last socket closed, or Run began
	linkError   error     // why no socket is open
	inboxError  error     // error of the last Accept
	acceptEnd   time.Time // when the last Accept ended
}

// unhealthyPeriod is how long an app that could not store a posted event counts as unhealthy. A load
// balancer sends nothing to an unhealthy app, so only time can end that state.
const unhealthyPeriod = 15 * time.Second

func (h *health) withLock(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
}

func (h *health) start() {
	h.withLock(func() {
		h.running, h.openSockets, h.closedSince, h.linkError, h.inboxError = true, 0, time.Now(), nil, nil
	})
}

func (h *health) stop() { h.withLock(func() { h.running = false }) }

// handleOpened counts an open socket, and reports whether it is the only one.
func (h *health) handleOpened() (alone bool) {
	h.withLock(func() {
		h.openSockets++
		h.linkError, alone = nil, h.openSockets == 1
	})
	return alone
}

func (h *health) handleClosed(err error) {
	h.withLock(func() {
		if h.openSockets = max(0, h.openSockets-1); h.openSockets == 0 {
			h.linkError, h.closedSince = err, time.Now()
		}
	})
}

func (h *health) handleConnectError(err error) {
	h.withLock(func() {
		if h.openSockets == 0 {
			h.linkError = err
		}
	})
}

func (h *health) recordAccept(err error) {
	h.withLock(func() { h.inboxError, h.acceptEnd = err, time.Now() })
}

// Health returns nil while events arrive and are stored, and otherwise an error for the operator.
func (p *platform) Health() error {
	h := &p.health
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !h.running:
		return errors.New("slack: not connected")
	case h.inboxError != nil && (!p.verifier.enabled() || time.Since(h.acceptEnd) < unhealthyPeriod):
		return fmt.Errorf("slack: messages cannot be kept and wait at Slack: %w", h.inboxError)
	case h.openSockets > 0:
		return nil
	case h.linkError != nil:
		return fmt.Errorf("slack: not connected since %s: %w", h.closedSince.UTC().Format(time.RFC3339), h.linkError)
	}
	return fmt.Errorf("slack: not connected since %s", h.closedSince.UTC().Format(time.RFC3339))
}

// Ping implements [chats.Pinger] with auth.test.
func (p *platform) Ping(ctx context.Context) error {
	_, err := p.api.whoAmI(ctx)
	return err
}
