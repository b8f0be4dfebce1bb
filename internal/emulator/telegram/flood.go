package telegram

import (
	"math"
	"time"

	"golang.org/x/time/rate"
)

// Limits are the rates of flood control. A field of zero means no limit.
type Limits struct {
	// PerChat is the number of messages per second in one chat, with bursts of Burst.
	PerChat float64
	Burst   int
	// PerGroup is the number of messages and edits per minute in one group.
	PerGroup int
	// Overall is the number of messages per second in all chats.
	Overall int
}

// ServiceLimits returns approximate limits of the hosted service, which does not publish any. They are 1
// message per second and chat with bursts, 20 per minute and group, and 30 per second overall.
func ServiceLimits() *Limits { return &Limits{PerChat: 1, Burst: 5, PerGroup: 20, Overall: 30} }

// floodControl has the state of flood control. It is guarded by the lock of the world.
type floodControl struct {
	limits  Limits
	overall *limit
	chats   map[int64]*limit
	groups  map[int64]*limit
	// penaltyAttempts counts the messages and edits during a penalty.
	penaltyAttempts int
}

// limit is a rate limit with a penalty for sending before the wait is over.
type limit struct {
	*rate.Limiter
	blockedUntil time.Time
}

func newLimit(perSecond float64, burst int) *limit {
	return &limit{Limiter: rate.NewLimiter(rate.Limit(perSecond), max(burst, 1))}
}

func newFloodControl(l *Limits) *floodControl {
	f := &floodControl{chats: map[int64]*limit{}, groups: map[int64]*limit{}}
	if l != nil {
		f.limits = *l
	}
	if f.limits.Overall > 0 {
		f.overall = newLimit(float64(f.limits.Overall), f.limits.Overall)
	}
	return f
}

// limitsFor returns the limits that apply to a chat.
func (f *floodControl) limitsFor(c *chat) (list []*limit) {
	if f.overall != nil {
		list = append(list, f.overall)
	}
	if f.limits.PerChat > 0 {
		if f.chats[c.id] == nil {
			f.chats[c.id] = newLimit(f.limits.PerChat, f.limits.Burst)
		}
		list = append(list, f.chats[c.id])
	}
	if f.limits.PerGroup > 0 && c.kind != Private {
		if f.groups[c.id] == nil {
			f.groups[c.id] = newLimit(float64(f.limits.PerGroup)/60, f.limits.PerGroup)
		}
		list = append(list, f.groups[c.id])
	}
	return list
}

// admit admits a message or refuses it with the time to wait. A refused message does not count against
// the limits, but sending again too early extends the penalty.
func (f *floodControl) admit(c *chat, now time.Time) *apiError {
	var wait time.Duration
	var held []*limit
	var taken []*rate.Reservation
	for _, l := range f.limitsFor(c) {
		if now.Before(l.blockedUntil) {
			f.penaltyAttempts++
			l.blockedUntil = l.blockedUntil.Add(time.Duration(float64(time.Second) / float64(l.Limit())))
			wait = max(wait, l.blockedUntil.Sub(now))
			continue
		}
		r := l.ReserveN(now, 1)
		taken = append(taken, r)
		if d := r.DelayFrom(now); d > 0 {
			held = append(held, l)
			wait = max(wait, d)
		}
	}
	if wait <= 0 {
		return nil
	}
	for _, r := range taken {
		r.CancelAt(now)
	}
	seconds := int(math.Ceil(wait.Seconds()))
	for _, l := range held {
		l.blockedUntil = now.Add(time.Duration(seconds) * time.Second)
	}
	return tooManyRequests(seconds)
}
