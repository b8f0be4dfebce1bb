package retry

import (
	"context"
	"sync"
	"time"
)

const (
	// minGap is a gap that is no longer worth keeping.
	minGap = 10 * time.Millisecond
	// calm is how long nothing may be refused before a gap is halved.
	calm = time.Minute
	// maxKeys bounds the limits that are kept.
	maxKeys = 4096
)

// Pacer are limits by what they are about: a chat, a method, everything.
type Pacer struct {
	hold time.Duration

	mu     sync.Mutex
	limits map[string]*limit
	looked time.Time // when what can be forgotten was looked for
}

// NewPacer returns paces that hold a request for so long at most. With more to wait its caller is
// told, so that it can be given up meanwhile.
func NewPacer(hold time.Duration) *Pacer { return &Pacer{hold: hold, limits: map[string]*limit{}} }

// limit is how fast requests may follow each other.
type limit struct {
	shut  time.Time     // nothing is taken before: trying makes it longer
	gap   time.Duration // between requests
	next  time.Time     // when the gap behind the last one is over
	relax time.Time     // when the gap is halved
}

// slot returns when the next request may begin.
func (l *limit) slot(now time.Time) time.Time {
	for l.gap > 0 && now.After(l.relax) {
		l.relax = l.relax.Add(calm)
		l.narrow(l.gap / 2)
	}
	return later(later(now, l.shut), l.next)
}

func (l *limit) narrow(gap time.Duration) {
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

// Wait returns 0 once a request may begin, or how long it has to wait where that is more
// than it may. The keys are those that the request is under, the widest first.
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
		if !p.any(keys, func(l *limit, now time.Time) bool { return now.Before(l.shut) }) {
			return 0
		}
	}
}

// reserve says when a request may begin, and keeps that moment unless it is too far away.
func (p *Pacer) reserve(ctx context.Context, keys []string) (at time.Time, held bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	at = now
	var gaps []func()
	for _, key := range keys {
		if l := p.limits[key]; l != nil {
			// What is wider does not wait for what is narrower.
			begin := later(at, l.slot(now))
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
	return p.any(keys, func(l *limit, now time.Time) bool { return l.slot(now).After(now) })
}

func (p *Pacer) any(keys []string, is func(*limit, time.Time) bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, key := range keys {
		if l := p.limits[key]; l != nil && is(l, time.Now()) {
			return true
		}
	}
	return false
}

// Refused notes that nothing is taken for a time, and the gap to keep then. It doubles, up
// to the longest, where one was too small, and not with each of the requests that were
// under way together.
func (p *Pacer) Refused(key string, wait, gap, longest time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	l := p.limits[key]
	if l == nil {
		if p.forget(now); len(p.limits) >= maxKeys {
			return // each request is then told by the other side itself
		}
		l = &limit{}
		p.limits[key] = l
	}
	if !now.Before(l.shut) {
		l.gap = max(gap, min(2*l.gap, longest))
	}
	l.shut = later(l.shut, now.Add(wait))
	l.relax, l.next = l.shut.Add(calm), l.shut
}

// forget drops limits that were not used lately, where there are many: at most once a
// second, because it looks at all of them.
func (p *Pacer) forget(now time.Time) {
	if len(p.limits) < maxKeys || now.Sub(p.looked) < time.Second {
		return
	}
	p.looked = now
	for key, l := range p.limits {
		if now.Sub(later(l.shut, l.next)) > calm {
			delete(p.limits, key)
		}
	}
}

// Passed notes that a request was taken, which makes the gap a tenth smaller: where the
// other side promises a rate and takes more, that is found out.
func (p *Pacer) Passed(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.limits[key]; l != nil {
		if l.narrow(l.gap * 9 / 10); l.gap == 0 && time.Now().After(l.shut) {
			delete(p.limits, key)
		}
	}
}
