package retry

import (
	"context"
	"sync"
	"time"
)

const (
	// minGap is the gap below which a limit no longer applies.
	minGap = 10 * time.Millisecond
	// halveAfter is how long no request may be refused before a gap is halved.
	halveAfter = time.Minute
	// maxKeys bounds the number of limits in memory.
	maxKeys = 4096
)

// Pacer holds rate limits by key, such as a chat, a method, or all requests.
type Pacer struct {
	maxHold time.Duration

	mu        sync.Mutex
	limits    map[string]*rateLimit
	lastPrune time.Time // time of the last prune
}

// NewPacer returns a pacer that delays a request for at most hold. For a longer wait, the caller gets
// the duration instead.
func NewPacer(hold time.Duration) *Pacer {
	return &Pacer{maxHold: hold, limits: map[string]*rateLimit{}}
}

// rateLimit is the rate limit of a key.
type rateLimit struct {
	blockedUntil time.Time     // no requests before this time: trying would extend it
	gap          time.Duration // between requests
	next         time.Time     // end of the gap after the last request
	halveAt      time.Time     // when the gap is halved
}

// nextStart returns when the next request may begin.
func (l *rateLimit) nextStart(now time.Time) time.Time {
	for l.gap > 0 && now.After(l.halveAt) {
		l.halveAt = l.halveAt.Add(halveAfter)
		l.setGap(l.gap / 2)
	}
	return later(later(now, l.blockedUntil), l.next)
}

func (l *rateLimit) setGap(gap time.Duration) {
	if l.gap = gap; gap < minGap {
		l.gap, l.next = 0, time.Time{}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Wait waits until a request may begin and returns 0. If it would have to wait longer than hold or the
// deadline of ctx allow, or ctx ends, it returns the remaining wait instead. The keys are those that apply
// to the request, the widest first.
func (p *Pacer) Wait(ctx context.Context, keys ...string) time.Duration {
	for {
		at, held := p.reserve(ctx, keys)
		d := time.Until(at)
		if d <= 0 {
			return 0
		}
		if !held || Wait(ctx, d) != nil {
			return max(time.Until(at), minGap)
		}
		if !p.anyLimit(keys, func(l *rateLimit, now time.Time) bool { return now.Before(l.blockedUntil) }) {
			return 0
		}
	}
}

// reserve returns when a request may begin, and reserves that time unless it is too far away.
func (p *Pacer) reserve(ctx context.Context, keys []string) (at time.Time, held bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	at = now
	var gaps []func()
	for _, key := range keys {
		if l := p.limits[key]; l != nil {
			// A wider limit is not consumed while waiting for a narrower one.
			begin := later(at, l.nextStart(now))
			at = begin
			gaps = append(gaps, func() { l.next = begin.Add(l.gap) })
		}
	}
	deadline, ok := ctx.Deadline()
	if at.Sub(now) > p.maxHold || ok && at.After(deadline) {
		return at, false
	}
	for _, keep := range gaps {
		keep()
	}
	return at, true
}

// Busy reports whether a request would have to wait.
func (p *Pacer) Busy(keys ...string) bool {
	return p.anyLimit(keys, func(l *rateLimit, now time.Time) bool { return l.nextStart(now).After(now) })
}

func (p *Pacer) anyLimit(keys []string, is func(*rateLimit, time.Time) bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, key := range keys {
		if l := p.limits[key]; l != nil && is(l, time.Now()) {
			return true
		}
	}
	return false
}

// RecordRefusal records that no request is accepted for a time, and the gap to keep afterwards. If the
// gap was too small, it doubles, up to longest, but only once for requests that ran in parallel.
func (p *Pacer) RecordRefusal(key string, wait, gap, longest time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	l := p.limits[key]
	if l == nil {
		if p.prune(now); len(p.limits) >= maxKeys {
			return // the server then refuses each request itself
		}
		l = &rateLimit{}
		p.limits[key] = l
	}
	if !now.Before(l.blockedUntil) {
		l.gap = max(gap, min(2*l.gap, longest))
	}
	l.blockedUntil = later(l.blockedUntil, now.Add(wait))
	l.halveAt, l.next = l.blockedUntil.Add(halveAfter), l.blockedUntil
}

// prune drops unused limits if there are many. It runs at most once a second, because it checks all
// limits.
func (p *Pacer) prune(now time.Time) {
	if len(p.limits) < maxKeys || now.Sub(p.lastPrune) < time.Second {
		return
	}
	p.lastPrune = now
	for key, l := range p.limits {
		if now.Sub(later(l.blockedUntil, l.next)) > halveAfter {
			delete(p.limits, key)
		}
	}
}

// RecordSuccess records an accepted request, which makes the gap a tenth smaller, in case the server
// accepts a higher rate than it promises.
func (p *Pacer) RecordSuccess(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.limits[key]; l != nil {
		if l.setGap(l.gap * 9 / 10); l.gap == 0 && time.Now().After(l.blockedUntil) {
			delete(p.limits, key)
		}
	}
}
