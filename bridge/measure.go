package bridge

import (
	"errors"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
	"oneclaw/bridge/lanes"
)

// measureAnswer counts an answer that is closed with a state.
func (b *Bridge) measureAnswer(platform string, state jobs.State) {
	what := jobs.MeasuredDelivered
	if state == jobs.StateFailed {
		what = jobs.MeasuredFailed
	}
	b.cfg.Measure.Count(platform, what)
}

// measureSend counts what became of a try to send a part.
func (b *Bridge) measureSend(platform string, repeat bool, err error) {
	failure := &chats.SendError{Outcome: chats.Unknown}
	switch {
	case err == nil:
		if repeat {
			b.cfg.Measure.Count(platform, jobs.MeasuredRepeat)
		}
	case !errors.As(err, &failure) || failure.Outcome == chats.Unknown:
		b.cfg.Measure.Count(platform, jobs.MeasuredUnknown)
	case failure.Outcome == chats.Refused:
		b.cfg.Measure.Count(platform, jobs.MeasuredRefused)
	case failure.RetryAfter > 0:
		b.cfg.Measure.Count(platform, jobs.MeasuredDelayed)
	default:
		b.cfg.Measure.Count(platform, jobs.MeasuredPutOff)
	}
}

// Load counts the open jobs.
func (b *Bridge) Load() lanes.Load { return b.lanes.Load() }

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
