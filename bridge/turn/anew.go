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

// People say in three lines what is one question. As long as the first call of the model has shown
// nothing, what the same person adds becomes part of the question, in the write that
// [Runner.steer] makes: the call is broken off, and the model asked anew.

const (
	// maxAnew bounds how often a question is asked anew, anewWithin until when after it was asked
	// first.
	maxAnew    = 2
	anewWithin = 3 * time.Second
	// addedPause is how long nothing more was added when a question is asked anew. What
	// comes in pieces is waited for, both no longer than addedWait.
	addedPause = 300 * time.Millisecond
	addedWait  = 3 * time.Second
)

// errAnew ends a call of the model whose question is asked anew.
var errAnew = errors.New("turn: more was added to the question")

// additions are what is added to a question while it is asked.
type additions struct {
	changed chan struct{} // holds a token where something was added

	mu sync.Mutex // guards the rest; nothing is waited for while it is held
	// some says that something was added, partial that more of that may come.
	some, partial bool
	times         int       // how often a call was broken off
	first         time.Time // when the model was asked first; zero before
	// asked says that the first call runs, replied that it has ended, broken that it was broken
	// off by cancel, where withhold agreed.
	asked, replied, broken bool
	withhold               func() bool
	cancel                 context.CancelCauseFunc
}

// run has the agent answer, anew where something is added to the question.
func (t *Runner) run(ctx context.Context, j *queue.Run, h *conversation.History, scope toolgroups.Scope) (string, error) {
	more := &additions{changed: make(chan struct{}, 1)}
	if !t.cfg.SeparateTurns && len(h.Staged) > 0 { // else the turn has begun before
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
		if !errors.Is(err, errAnew) {
			return text, err
		}
	}
}

// add is told that something was added. It waits for nothing.
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

// breakOff ends the first call of the model where something was added and nothing was shown. It is
// called with the lock held.
func (a *additions) breakOff() {
	if a.some && a.asked && a.times < maxAnew && time.Since(a.first) < anewWithin && a.withhold() {
		a.asked, a.broken = false, true
		a.times++
		a.cancel(errAnew)
	}
}

// take reports whether something was added that may still become part of the question.
func (a *additions) take() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.some && (a.broken || a.times < maxAnew && (a.first.IsZero() || time.Since(a.first) < anewWithin))
}

// settle waits until all is there that is added.
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

// ask returns the context of the calls of the model; its preview is told to withhold.
func (a *additions) ask(ctx context.Context, withhold func() bool) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked, a.replied, a.broken, a.withhold, a.cancel = false, false, false, withhold, cancel
	return ctx, cancel
}

// observe is told what happens, and tells next.
func (a *additions) observe(e agent.Event, next func(agent.Event)) {
	a.mu.Lock()
	switch {
	case e.Request != nil && !a.replied:
		if a.asked = true; a.first.IsZero() {
			a.first = time.Now()
		}
		a.breakOff() // what was added just before
	case e.Reply != nil:
		a.asked, a.replied = false, true
	}
	a.mu.Unlock()
	if next != nil {
		next(e)
	}
}

// isBroken reports whether the call was broken off: what came of it all the same is not shown.
func (a *additions) isBroken() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.broken
}
