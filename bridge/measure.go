package bridge

import (
	"errors"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
)

// Measured is something that a bridge counts. The values are a closed set.
type Measured string

// What is counted.
const (
	// MeasuredAccepted: a message, a command or a press is on disk. Duplicates are not
	// counted.
	MeasuredAccepted Measured = "accepted"
	// MeasuredDelivered and MeasuredFailed: an answer has arrived, or a part of it was
	// given up.
	MeasuredDelivered Measured = "delivered"
	MeasuredFailed    Measured = "failed"
	// MeasuredRepeat: a part was sent that may have arrived before, and says so.
	MeasuredRepeat Measured = "repeat"
	// MeasuredRefused, MeasuredDelayed, MeasuredPutOff and MeasuredUnknown: a try to send
	// was refused for good, for as long as the platform said, for now, or nobody knows.
	MeasuredRefused Measured = "send_refused"
	MeasuredDelayed Measured = "send_delayed"
	MeasuredPutOff  Measured = "send_put_off"
	MeasuredUnknown Measured = "send_unknown"
	// MeasuredAsked and those after it: an approval was asked for, and what the turn that
	// waited for it found.
	MeasuredAsked   Measured = "approval_asked"
	MeasuredAllowed Measured = "approval_allowed"
	MeasuredDenied  Measured = "approval_denied"
	MeasuredExpired Measured = "approval_expired"
)

func (b *Bridge) measure(platform string, what Measured) {
	if b.cfg.Measure != nil {
		b.cfg.Measure(platform, what)
	}
}

// measureAnswer counts an answer that is closed with a state.
func (b *Bridge) measureAnswer(platform string, state jobs.State) {
	what := MeasuredDelivered
	if state == jobs.StateFailed {
		what = MeasuredFailed
	}
	b.measure(platform, what)
}

// measureDecision counts what a turn that waited found.
func (b *Bridge) measureDecision(platform, choice string) {
	switch choice {
	case jobs.ChoiceAllow:
		b.measure(platform, MeasuredAllowed)
	case jobs.ChoiceDeny:
		b.measure(platform, MeasuredDenied)
	case jobs.ChoiceExpired:
		b.measure(platform, MeasuredExpired)
	}
}

// measureSend counts what became of a try to send a part.
func (b *Bridge) measureSend(platform string, repeat bool, err error) {
	failure := &chats.SendError{Outcome: chats.Unknown}
	switch {
	case err == nil:
		if repeat {
			b.measure(platform, MeasuredRepeat)
		}
	case !errors.As(err, &failure) || failure.Outcome == chats.Unknown:
		b.measure(platform, MeasuredUnknown)
	case failure.Outcome == chats.Refused:
		b.measure(platform, MeasuredRefused)
	case failure.RetryAfter > 0:
		b.measure(platform, MeasuredDelayed)
	default:
		b.measure(platform, MeasuredPutOff)
	}
}

// Load is how much a bridge has to do.
type Load struct {
	// Open are the jobs that are not closed, Waiting those of them in the queues of their
	// chats.
	Open, Waiting int
	// Oldest is when the oldest open job was accepted; zero without one.
	Oldest time.Time
}

// Load counts the open jobs.
func (b *Bridge) Load() Load {
	var load Load
	b.open.Range(func(_, value any) bool {
		load.Open++
		if at, ok := value.(time.Time); ok && (load.Oldest.IsZero() || at.Before(load.Oldest)) {
			load.Oldest = at
		}
		return true
	})
	b.mu.Lock()
	lanes := make([]*lane, 0, len(b.byChat))
	for _, l := range b.byChat {
		lanes = append(lanes, l)
	}
	b.mu.Unlock()
	for _, l := range lanes {
		waiting, _ := l.load()
		load.Waiting += waiting + l.deciding()
	}
	return load
}

// Ready returns for each platform nil where it receives, or what is wrong.
func (b *Bridge) Ready() map[string]error {
	ready := make(map[string]error, len(b.platforms))
	for name, p := range b.platforms {
		ready[name] = nil
		if m, ok := p.(chats.Monitor); ok {
			ready[name] = m.Health()
		}
	}
	return ready
}
