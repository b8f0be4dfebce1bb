package slack

import (
	"context"
	"sync"
	"time"

	"oneclaw/internal/retry"
)

const (
	// maxHold is how long a call is held back before its caller is told to come again
	// later: who waits there can be stopped.
	maxHold = 5 * time.Second
	// minGap is the gap below which calls are not held apart any more, idlePace how long
	// a pace is kept that nobody asks for.
	minGap   = 10 * time.Millisecond
	idlePace = time.Minute
	// maxPaces bounds the paces that are kept.
	maxPaces = 1000
)

// gapOf is how far apart Slack wants calls of a method once there were too many:
// a message each second in a channel, and the rates of the tiers for the rest
// (docs.slack.dev, rate limits).
func gapOf(method string) time.Duration {
	switch method {
	case postMessage:
		return time.Second
	case "users.info", "chat.postEphemeral", "files.info", "files.getUploadURLExternal", "files.completeUploadExternal":
		return time.Minute / 100 // tier 4
	case "chat.update", "conversations.history", "conversations.replies", "users.conversations":
		return time.Minute / 50 // tier 3
	case setStatus:
		return time.Minute / 600
	}
	return 3 * time.Second // tier 2
}

// paces hold calls apart where Slack has said that there are too many of them: those
// of a method, or of a method and a place. Nothing is held back before, because how
// much Slack takes it tells nobody. A pace begins with what Slack promises to take and
// grows with each call that passes, so that it finds out. The zero value is ready.
type paces struct {
	mu     sync.Mutex
	limits map[string]*pace
}

type pace struct {
	shut time.Time // Slack takes nothing before
	next time.Time // when the next call may begin
	gap  time.Duration
}

// wait returns 0 once a call may begin, or how long it has to wait where that is more
// than it may.
func (p *paces) wait(ctx context.Context, key string) time.Duration {
	for {
		at, held := p.reserve(ctx, key)
		d := time.Until(at)
		if d <= 0 {
			return 0
		}
		if !held || retry.Wait(ctx, d) != nil {
			return max(time.Until(at), minGap)
		}
		if !p.isShut(key) {
			return 0
		}
	}
}

// reserve says when a call may begin, and keeps that moment for it unless it is too
// far away.
func (p *paces) reserve(ctx context.Context, key string) (at time.Time, held bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l, now := p.limits[key], time.Now()
	if l == nil {
		return time.Time{}, true
	}
	at = latest(now, l.shut, l.next)
	last := now.Add(maxHold)
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(last) {
		last = deadline
	}
	if at.After(last) {
		return at, false
	}
	l.next = at.Add(l.gap)
	return at, true
}

func latest(times ...time.Time) time.Time {
	last := times[0]
	for _, t := range times[1:] {
		if t.After(last) {
			last = t
		}
	}
	return last
}

func (p *paces) isShut(key string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.limits[key]
	return l != nil && time.Now().Before(l.shut)
}

// busy reports whether a call would have to wait.
func (p *paces) busy(key string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.limits[key]
	return l != nil && time.Now().Before(latest(l.shut, l.next))
}

// limited notes that Slack takes no call for a time, and wants a gap between those
// that follow.
func (p *paces) limited(key string, after, gap time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if len(p.limits) >= maxPaces {
		for old, l := range p.limits {
			if now.Sub(latest(l.shut, l.next)) > idlePace {
				delete(p.limits, old)
			}
		}
	}
	l := p.limits[key]
	if l == nil {
		if len(p.limits) >= maxPaces {
			return // each call is then told by Slack itself
		}
		if p.limits == nil {
			p.limits = map[string]*pace{}
		}
		l = &pace{}
		p.limits[key] = l
	}
	l.shut = latest(l.shut, now.Add(max(after, gap)))
	l.next, l.gap = l.shut, gap
}

// passed notes that Slack took a call.
func (p *paces) passed(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.limits[key]
	if l == nil {
		return
	}
	now := time.Now()
	l.gap = l.gap * 9 / 10
	if now.After(l.shut) && (l.gap < minGap || now.Sub(l.next) > idlePace) {
		delete(p.limits, key)
	}
}
