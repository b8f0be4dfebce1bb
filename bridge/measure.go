package bridge

import (
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
)

// measureAnswer counts an answer that is closed with a state.
func (b *Bridge) measureAnswer(platform string, state jobs.State) {
	what := jobs.MeasuredDelivered
	if state == jobs.StateFailed {
		what = jobs.MeasuredFailed
	}
	b.cfg.Measure.Count(platform, what)
}

// measureDecision counts what a turn that waited found.
func (b *Bridge) measureDecision(platform, choice string) {
	switch choice {
	case jobs.ChoiceAllow:
		b.cfg.Measure.Count(platform, jobs.MeasuredAllowed)
	case jobs.ChoiceDeny:
		b.cfg.Measure.Count(platform, jobs.MeasuredDenied)
	case jobs.ChoiceExpired:
		b.cfg.Measure.Count(platform, jobs.MeasuredExpired)
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
