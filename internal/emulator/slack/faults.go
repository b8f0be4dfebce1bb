package slack

import (
	"cmp"
	"math"
	"net/http"
	"time"

	"golang.org/x/time/rate"

	"oneclaw/internal/emulator/wire"
)

// Effect is what a fault does to a call, a handshake or an envelope.
type Effect = wire.Effect

// The effects. Duplicate delivers an envelope twice, Refuse answers ok:false with Error.
const (
	Slow            = wire.Slow
	TooManyRequests = wire.TooManyRequests
	ServerError     = wire.ServerError
	CutBefore       = wire.CutBefore
	CutAfter        = wire.CutAfter
	Hang            = wire.Hang
	Duplicate       = wire.Duplicate
	BadJSON         = wire.BadJSON

	Refuse Effect = "refuse"
)

// Fault is a rule for misbehaving. Downloads are the method "file", uploads "upload", posts to a
// response_url "response". Handshakes ("socket"), the hello of a socket ("hello", which any
// effect drops) and envelopes ("envelope") only match faults that name them.
type Fault = wire.Fault[string]

// refuseFault answers a call that meets a fault, in the service's words.
func refuseFault(w http.ResponseWriter, f *Fault) {
	if f.Effect == Refuse {
		writeError(w, refuse(cmp.Or(f.Error, "internal_error")))
		return
	}
	writeError(w, tooMany(max(f.RetryAfter, 1)))
}

// flood is the rate limit of messages. Guarded by the lock of the server.
type flood struct {
	rate     float64
	burst    int
	limiters map[string]*rate.Limiter
	updates  *rate.Limiter // nil without a limit
}

func newFlood(l Limits) flood {
	f := flood{rate: l.Rate, burst: max(l.Burst, 1), limiters: map[string]*rate.Limiter{}}
	if l.Updates > 0 {
		f.updates = rate.NewLimiter(rate.Limit(float64(l.Updates)/60), l.Updates)
	}
	return f
}

// take admits a message or refuses it with the time to wait.
func (f *flood) take(channel string, now time.Time) *refusal {
	if f.rate <= 0 {
		return nil
	}
	l := f.limiters[channel]
	if l == nil {
		l = rate.NewLimiter(rate.Limit(f.rate), f.burst)
		f.limiters[channel] = l
	}
	return within(l, now)
}

// takeUpdate does the same for an edit.
func (f *flood) takeUpdate(now time.Time) *refusal {
	if f.updates == nil {
		return nil
	}
	return within(f.updates, now)
}

func within(l *rate.Limiter, now time.Time) *refusal {
	r := l.ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if wait <= 0 {
		return nil
	}
	r.CancelAt(now)
	return tooMany(int(math.Ceil(wait.Seconds())))
}
