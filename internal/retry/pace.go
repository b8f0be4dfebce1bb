package retry

import (
	"context"
	"sync"
	"time"
)

const (
	// minGap is the gap below which there is no limit any more.
	minGap = 10 * time.Millisecond
	// halveAfter is how long nothing may be refused before a gap is halved.
	halveAfter = time.Minute
	// maxKeys bounds the limits that are kept.
	maxKeys = 4096
)

// Pacer holds rate limits by key: a chat, a method, everything.
type Pacer struct {
	hold time.Duration

	mu     sync.Mutex
	limits map[string]*rateLimit
	looked time.Time // time of the last forget
}

// NewPacer returns a pacer that holds a request for at most hold. For a longer wait the caller
// is told the time instead.
func NewPacer(hold time.Duration) *Pacer { return &Pacer{hold: hold, limits: map[string]*rateLimit{}} }

// rateLimit is the rate limit of a key.
type rateLimit struct {
	shut  time.Time     // no requests before: trying would extend it
	gap   time.Duration // between requests
	next  time.Time     // end of the gap after the last request
	relax time.Time     // when the gap is halved
}

// nextStart returns when the next request may begin.
func (l *rateLimit) nextStart(now time.Time) time.Time {
	for l.gap > 0 && now.After(l.relax) {
		l.relax = l.relax.Add(halveAfter)
		l.narrow(l.gap / 2)
	}
	return later(later(now, l.shut), l.next)
}

func (l *rateLimit) narrow(gap time.Duration) {
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

// Wait waits until a request may begin and returns 0, or returns how long it would have to wait
// if that is more than hold. The keys apply to the request, the widest first.
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
		if !p.any(keys, func(l *rateLimit, now time.Time) bool { return now.Before(l.shut) }) {
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
	if at.Sub(now) > p.hold || ok && at.After(deadline) {
		return at, false
	}
	for _, keep := range gaps {
		keep()
	}
	return at, true
}

// Busy reports whether a request would have to wait.
func (p *Pacer) Busy(keys ...string) bool {
	return p.any(keys, func(l *rateLimit, now time.Time) bool { return l.nextStart(now).After(now) })
}

func (p *Pacer) any(keys []string, is func(*rateLimit, time.Time) bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, key := range keys {
		if l := p.limits[key]; l != nil && is(l, time.Now()) {
			return true
		}
	}
	return false
}

// Refused records that nothing is accepted for a time, and the gap to keep then. The gap
// doubles, up to longest, if it was too small, but only once for requests that ran in parallel.
func (p *Pacer) Refused(key string, wait, gap, longest time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	l := p.limits[key]
	if l == nil {
		if p.forget(now); len(p.limits) >= maxKeys {
			return // the other side then tells each request itself
		}
		l = &rateLimit{}
		p.limits[key] = l
	}
	if !now.Before(l.shut) {
		l.gap = max(gap, min(2*l.gap, longest))
	}
	l.shut = later(l.shut, now.Add(wait))
	l.relax, l.next = l.shut.Add(halveAfter), l.shut
}

// forget drops unused limits if there are many: at most once a second, because it checks all of
// them.
func (p *Pacer) forget(now time.Time) {
	if len(p.limits) < maxKeys || now.Sub(p.looked) < time.Second {
		return
	}
	p.looked = now
	for key, l := range p.limits {
		if now.Sub(later(l.shut, l.next)) > halveAfter {
			delete(p.limits, key)
		}
	}
}

// Passed records an accepted request, which makes the gap a tenth smaller, in case the other
// side accepts a higher rate than it promises.
func (p *Pacer) Passed(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.limits[key]; l != nil {
		if l.narrow(l.gap * 9 / 10); l.gap == 0 && time.Now().After(l.shut) {
			delete(p.limits, key)
		}
	}
}
