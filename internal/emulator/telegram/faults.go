package telegram

import (
	"fmt"
	"math"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"oneclaw/internal/emulator/wire"
)

// Effect is what a fault does to a call.
type Effect string

// The effects.
const (
	// Slow only waits for Delay; every other effect may wait too.
	Slow Effect = "slow"
	// TooManyRequests refuses with 429 and RetryAfter.
	TooManyRequests Effect = "too_many_requests"
	// ServerError answers Status (502 where none is given) with a page of HTML.
	ServerError Effect = "server_error"
	// CutBefore breaks the connection before the call is accepted.
	CutBefore Effect = "cut_before"
	// CutAfter accepts the call and breaks the connection instead of answering.
	CutAfter Effect = "cut_after"
	// Hang never answers; it ends when the client goes away.
	Hang Effect = "hang"
	// Conflict refuses with 409 as if another poller had come.
	Conflict Effect = "conflict"
	// Duplicate lets getUpdates deliver what it delivers once more at the next call.
	Duplicate Effect = "duplicate"
	// BadJSON accepts the call and answers with half a JSON object.
	BadJSON Effect = "bad_json"
)

// Fault is a rule for misbehaving. The zero fields match everything.
type Fault struct {
	// Method is the name of a method in any case, or "file" for downloads.
	Method string `json:"method"`
	// Chat is the chat_id of the call.
	Chat int64 `json:"chat"`
	// Nth fires on the nth matching call alone, counted from 1.
	Nth int `json:"nth"`
	// Times is how often it fires at most.
	Times int `json:"times"`
	// Probability lets chance decide, by the seed of the server. 0 means always.
	Probability float64 `json:"probability"`
	// Effect is what happens. It is required.
	Effect Effect `json:"effect"`
	// Delay is waited for before the effect.
	Delay time.Duration `json:"delay"`
	// Status is for ServerError, RetryAfter (seconds) for TooManyRequests.
	Status     int `json:"status"`
	RetryAfter int `json:"retry_after"`
}

// Inject adds a fault and returns its number. Where several match a call, the
// first one that fires is it.
func (s *Server) Inject(f Fault) (int, error) {
	switch f.Effect {
	case Slow, TooManyRequests, ServerError, CutBefore, CutAfter, Hang, Conflict, Duplicate, BadJSON:
	default:
		return 0, fmt.Errorf("telegram emulator: unknown effect %q", f.Effect)
	}
	f.Method = strings.ToLower(f.Method)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.faults.Add(f, wire.Chance{Nth: f.Nth, Times: f.Times, Probability: f.Probability}), nil
}

// Remove takes a fault back and says how often it fired. 0 removes all.
func (s *Server) Remove(id int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.faults.Remove(id)
}

// Fired says how often a fault fired.
func (s *Server) Fired(id int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.faults.Fired(id)
}

// fire finds the fault a call meets.
func (s *Server) fire(method string, chat int64) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.faults.Fire(func(f *Fault) bool {
		return (f.Method == "" || f.Method == method) && (f.Chat == 0 || f.Chat == chat)
	})
}

// Limits are the rates of flood control. A zero field means no such limit.
type Limits struct {
	// PerChat is messages a second in one chat, with a burst of Burst.
	PerChat float64
	Burst   int
	// PerGroup is messages and edits a minute in one group.
	PerGroup int
	// Overall is messages a second over all chats.
	Overall int
}

// ServiceLimits are about those of the hosted service, which does not publish
// them: 1 a second and chat with bursts, 20 a minute and group, 30 a second.
func ServiceLimits() *Limits { return &Limits{PerChat: 1, Burst: 5, PerGroup: 20, Overall: 30} }

// flood is flood control. Guarded by Server.mu.
type flood struct {
	limits  Limits
	overall *rate.Limiter
	chats   map[int64]*rate.Limiter
	groups  map[int64]*rate.Limiter
}

func newFlood(l *Limits) flood {
	f := flood{chats: map[int64]*rate.Limiter{}, groups: map[int64]*rate.Limiter{}}
	if l != nil {
		f.limits = *l
	}
	if f.limits.Overall > 0 {
		f.overall = rate.NewLimiter(rate.Limit(f.limits.Overall), f.limits.Overall)
	}
	return f
}

// take lets a message through or refuses it with the time to wait. A refused one
// is held against the sender: trying during a penalty makes it longer.
func (f *flood) take(c *chat, now time.Time) *apiError {
	wait := time.Duration(0)
	reserve := func(l *rate.Limiter) {
		if l != nil {
			wait = max(wait, l.ReserveN(now, 1).DelayFrom(now))
		}
	}
	reserve(f.overall)
	if f.limits.PerChat > 0 {
		if f.chats[c.id] == nil {
			f.chats[c.id] = rate.NewLimiter(rate.Limit(f.limits.PerChat), max(f.limits.Burst, 1))
		}
		reserve(f.chats[c.id])
	}
	if f.limits.PerGroup > 0 && c.kind != Private {
		if f.groups[c.id] == nil {
			f.groups[c.id] = rate.NewLimiter(rate.Limit(float64(f.limits.PerGroup)/60), f.limits.PerGroup)
		}
		reserve(f.groups[c.id])
	}
	if wait <= 0 {
		return nil
	}
	return tooMany(int(math.Ceil(wait.Seconds())))
}
