package slack

import (
	"fmt"
	"math"
	"time"

	"golang.org/x/time/rate"

	"oneclaw/internal/emulator/wire"
)

// Effect is what a fault does to a call, a handshake or an envelope.
type Effect string

// The effects.
const (
	// Slow only waits for Delay; every other effect may wait too.
	Slow Effect = "slow"
	// TooManyRequests refuses with 429 and RetryAfter.
	TooManyRequests Effect = "too_many_requests"
	// ServerError answers Status (502 where none is given) with a page of HTML.
	ServerError Effect = "server_error"
	// Refuse answers ok:false with Error.
	Refuse Effect = "refuse"
	// CutBefore breaks the connection before the call is accepted; the socket before
	// an envelope is written.
	CutBefore Effect = "cut_before"
	// CutAfter accepts the call and breaks the connection instead of answering; it
	// breaks the socket after an envelope was written.
	CutAfter Effect = "cut_after"
	// Hang never answers; it ends when the client goes away. An envelope is lost on
	// its way.
	Hang Effect = "hang"
	// Duplicate delivers an envelope twice.
	Duplicate Effect = "duplicate"
	// BadJSON accepts the call and answers with half a JSON object.
	BadJSON Effect = "bad_json"
)

// Fault is a rule for misbehaving. The zero fields match everything that the app
// calls; handshakes and envelopes are matched by their names alone.
type Fault struct {
	// Method is the name of a method, "file" for downloads, "upload" for uploads,
	// "response" for posts to a response_url, "socket" for handshakes, "hello" for the
	// first word on a socket, which any effect drops, "envelope" for what is sent to the
	// app.
	Method string `json:"method"`
	// Channel is the channel of the call or envelope.
	Channel string `json:"channel"`
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
	// Status is for ServerError, RetryAfter (seconds) for TooManyRequests, Error for
	// Refuse.
	Status     int    `json:"status"`
	RetryAfter int    `json:"retry_after"`
	Error      string `json:"error"`
}

// Inject adds a fault and returns its number. Where several match a call, the
// first one that fires is it.
func (s *Server) Inject(f Fault) (int, error) {
	switch f.Effect {
	case Slow, TooManyRequests, ServerError, Refuse, CutBefore, CutAfter, Hang, Duplicate, BadJSON:
	default:
		return 0, fmt.Errorf("slack emulator: unknown effect %q", f.Effect)
	}
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
func (s *Server) fire(method, channel string) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.match(method, channel)
}

// match is fire with Server.mu held.
func (s *Server) match(method, channel string) *Fault {
	special := method == "socket" || method == "hello" || method == "envelope"
	return s.faults.Fire(func(f *Fault) bool {
		return (f.Method == method || f.Method == "" && !special) && (f.Channel == "" || f.Channel == channel)
	})
}

// flood is the rate limit of messages. Guarded by Server.mu.
type flood struct {
	rate     float64
	burst    int
	limiters map[string]*rate.Limiter
}

func newFlood(perSecond float64, burst int) flood {
	return flood{rate: perSecond, burst: max(burst, 1), limiters: map[string]*rate.Limiter{}}
}

// take lets a message through or refuses it with the time to wait.
func (f *flood) take(channel string, now time.Time) *apiError {
	if f.rate <= 0 {
		return nil
	}
	l := f.limiters[channel]
	if l == nil {
		l = rate.NewLimiter(rate.Limit(f.rate), f.burst)
		f.limiters[channel] = l
	}
	r := l.ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if wait <= 0 {
		return nil
	}
	r.CancelAt(now)
	return tooMany(int(math.Ceil(wait.Seconds())))
}
