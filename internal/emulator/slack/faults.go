package slack

import (
	"cmp"
	"math"
	"net/http"
	"time"

	"golang.org/x/time/rate"

	"oneclaw/internal/emulator/wire"
)

// Effect is the effect of a fault on a call, a handshake or an envelope.
type Effect = wire.Effect

// The effects. Duplicate delivers an envelope twice. Refuse answers ok:false with Error.
const (
	Slow            = wire.Slow
	TooManyRequests = wire.TooManyRequests
	ServerError     = wire.ServerError
	CutBefore       = wire.CutBefore
	CutAfter        = wire.CutAfter
	Hang            = wire.Hang
	Duplicate       = wire.Duplicate
	BadJSON         = wire.BadJSON
	Refuse          = wire.Refuse
)

// Fault is a rule for injecting failures. Downloads are the method "file", uploads "upload", posts to a
// response_url "response". Handshakes ("socket"), the hello of a socket ("hello", which any
// effect drops) and envelopes ("envelope") match only faults that name them.
type Fault = wire.Fault[string]

// refuseFault refuses a call because of a fault, with an error of the service.
func refuseFault(w http.ResponseWriter, f *Fault) {
	if f.Effect == Refuse {
		writeError(w, newRefusal(cmp.Or(f.Error, "internal_error")))
		return
	}
	writeError(w, rateLimited(max(f.RetryAfter, 1)))
}

// rateLimits are the rate limits of messages. They are guarded by the lock of the server.
type rateLimits struct {
	rate     float64
	burst    int
	limiters map[string]*rate.Limiter
	edits    *rate.Limiter // limit of edits; nil without one
}

func newRateLimits(l Limits) rateLimits {
	f := rateLimits{rate: l.MessagesPerSecond, burst: max(l.Burst, 1), limiters: map[string]*rate.Limiter{}}
	if l.EditsPerMinute > 0 {
		f.edits = rate.NewLimiter(rate.Limit(float64(l.EditsPerMinute)/60), l.EditsPerMinute)
	}
	return f
}

// takeMessage admits a message, or refuses it with the time to wait.
func (f *rateLimits) takeMessage(channel string, now time.Time) *refusal {
	if f.rate <= 0 {
		return nil
	}
	l := f.limiters[channel]
	if l == nil {
		l = rate.NewLimiter(rate.Limit(f.rate), f.burst)
		f.limiters[channel] = l
	}
	return reserve(l, now)
}

// takeEdit admits an edit, or refuses it with the time to wait.
func (f *rateLimits) takeEdit(now time.Time) *refusal {
	if f.edits == nil {
		return nil
	}
	return reserve(f.edits, now)
}

func reserve(l *rate.Limiter, now time.Time) *refusal {
	r := l.ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if wait <= 0 {
		return nil
	}
	r.CancelAt(now)
	return rateLimited(int(math.Ceil(wait.Seconds())))
}
