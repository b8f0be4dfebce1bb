package turn

import (
	"context"
	"errors"
	"sync"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/queue"
	"oneclaw/toolgroups"
)

// Users write one question in several messages. Until the first call of the model has shown something,
// messages that the same user adds become part of the question, in the write of [Runner.steer]: the
// call is cancelled, and the model asked again.

const (
	// maxAskAgain bounds how often a question is asked again, anewWithin for how long after it was first
	// asked.
	maxAskAgain    = 2
	askAgainWithin = 3 * time.Second
	// addedPause is the pause after the last addition before a question is asked again; further pieces
	// of a message are awaited as well. addedWait bounds both.
	addedPause = 300 * time.Millisecond
	addedWait  = 3 * time.Second
)

// errAskAgain ends a call of the model whose question is asked again.
var errAskAgain = errors.New("turn: more was added to the question")

// additions tracks messages that are added to a question while it is asked.
type additions struct {
	changed chan struct{} // holds a token after an addition

	mu sync.Mutex // guards the rest; never held while waiting
	// some says that something was added, partial that further pieces of it may come.
	some, partial bool
	times         int       // number of cancelled calls
	first         time.Time // first call of the model; zero before
	// asked: the first call runs. replied: it has ended. broken: it was cancelled with cancel, after
	// withhold agreed.
	asked, replied, broken bool
	withhold               func() bool
	cancel                 context.CancelCauseFunc
}

// run lets the agent answer, again if something is added to the question.
func (t *Runner) run(ctx context.Context, j *queue.Run, h *conversation.History, scope toolgroups.Scope) (string, error) {
	more := &additions{changed: make(chan struct{}, 1)}
	if !t.cfg.SeparateTurns && len(h.Staged) > 0 { // else the turn began earlier
		defer t.cfg.Queue.Listen(j, more.add)()
	}
	for {
		if more.take() {
			more.settle(ctx)
			if cause := context.Cause(ctx); cause != nil {
				return "", cause
			}
			if _, err := t.steer(ctx, j, h, scope); err != nil {
				return t.ended(ctx, j, h, scope, err)
			}
		}
		text, err := t.ask(ctx, j, h, scope, more)
		if !errors.Is(err, errAskAgain) {
			return text, err
		}
	}
}

// add records an addition. It does not block.
func (a *additions) add(partial bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.some, a.partial = true, partial
	a.breakOff()
	select {
	case a.changed <- struct{}{}:
	default:
	}
}

// breakOff cancels the first call of the model if something was added and nothing was shown. The lock
// is held.
func (a *additions) breakOff() {
	if a.some && a.asked && a.times < maxAskAgain && time.Since(a.first) < askAgainWithin && a.withhold() {
		a.asked, a.broken = false, true
		a.times++
		a.cancel(errAskAgain)
	}
}

// take reports whether something was added that may still become part of the question.
func (a *additions) take() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.some && (a.broken || a.times < maxAskAgain && (a.first.IsZero() || time.Since(a.first) < askAgainWithin))
}

// settle waits until all additions are there.
func (a *additions) settle(ctx context.Context) {
	bound := time.After(addedWait)
	for done := false; !done; {
		a.mu.Lock()
		partial := a.partial
		a.mu.Unlock()
		var quiet <-chan time.Time
		if !partial {
			quiet = time.After(addedPause)
		}
		select {
		case <-a.changed:
		case <-quiet:
			done = true
		case <-bound:
			done = true
		case <-ctx.Done():
			done = true
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.some, a.partial, a.broken = false, false, false
}

// ask returns the context of the model's calls; withhold prevents their preview.
func (a *additions) ask(ctx context.Context, withhold func() bool) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked, a.replied, a.broken, a.withhold, a.cancel = false, false, false, withhold, cancel
	return ctx, cancel
}

// observe handles an event and passes it to next.
func (a *additions) observe(e agent.Event, next func(agent.Event)) {
	a.mu.Lock()
	switch {
	case e.Request != nil && !a.replied:
		if a.asked = true; a.first.IsZero() {
			a.first = time.Now()
		}
		a.breakOff() // additions from just before
	case e.Reply != nil:
		a.asked, a.replied = false, true
	}
	a.mu.Unlock()
	if next != nil {
		next(e)
	}
}

// isBroken reports whether the call was cancelled: a reply that came all the same is not shown.
func (a *additions) isBroken() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.broken
}
