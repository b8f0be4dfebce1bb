package telegram

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// conflictPatience is how long another poller may be the crashed former self.
const conflictPatience = 3 * time.Minute

// stallMargin is how long past its timeout a poll may be late before somebody
// should look.
const stallMargin = 90 * time.Second

// health is what the last polls came to. The zero value has not polled.
type health struct {
	mu       sync.Mutex
	started  time.Time
	good     time.Time
	conflict time.Time // since when; zero for none
	poll     error     // the last poll's
	inbox    error     // the last Accept's
}

func (h *health) start() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.started, h.good = time.Now(), time.Time{}
	h.conflict, h.poll, h.inbox = time.Time{}, nil, nil
}

func (h *health) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.started = time.Time{}
}

// polled records a poll and reports whether a conflict has just begun.
func (h *health) polled(err error, conflict bool) (begins bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.poll = err
	switch {
	case err == nil:
		h.good, h.conflict = time.Now(), time.Time{}
	case conflict && h.conflict.IsZero():
		h.conflict = time.Now()
		return true
	}
	return false
}

func (h *health) accepted(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.inbox = err
}

// Health returns nil while polls succeed and what they bring is kept, or what is
// wrong in words for the operator.
func (p *Platform) Health() error {
	h := &p.health
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.started.IsZero():
		return errors.New("telegram: not polling")
	case !h.conflict.IsZero() && time.Since(h.conflict) >= conflictPatience:
		return errors.New("telegram: another program polls with this token, or a webhook is set: stop it, or give this bot a token of its own")
	case h.inbox != nil:
		return fmt.Errorf("telegram: messages cannot be kept and wait at Telegram: %w", h.inbox)
	case wrongToken(h.poll):
		return fmt.Errorf("telegram: the token is refused: check TELEGRAM_BOT_TOKEN: %w", h.poll)
	}
	since := h.good
	if since.IsZero() {
		since = h.started
	}
	quiet := time.Since(since)
	switch {
	case quiet < p.pollTimeout+stallMargin:
		return nil
	case h.poll != nil:
		return fmt.Errorf("telegram: no poll has succeeded for %v: %w", quiet.Round(time.Second), h.poll)
	}
	return fmt.Errorf("telegram: no poll has ended for %v", quiet.Round(time.Second))
}
