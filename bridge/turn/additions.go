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

// Users write one question in several messages. Messages that the same user adds before any text of the
// first reply was shown become part of the question, in the write of [Runner.steer]: the call to the
// model is cancelled, and the model is asked again.

const (
	// maxAskAgain bounds how often a question is asked again. askAgainWithin is the time after its first
	// call in which it may be asked again.
	maxAskAgain    = 2
	askAgainWithin = 3 * time.Second
	// addedPause is the pause after the last addition before a question is asked again. If more pieces
	// of a message are expected, they are awaited, too. addedWait bounds the whole wait.
	addedPause = 300 * time.Millisecond
	addedWait  = 3 * time.Second
)

// errAskAgain is the cause with which a call to the model is cancelled to ask its question again.
var errAskAgain = errors.New("turn: more was added to the question")

// additions tracks the messages that are added to a question during the first call to the model.
type additions struct {
	changed chan struct{} // holds a token after an addition

	mu sync.Mutex // guards the rest; never held while waiting
	// hasNew says that a message was added, partial that more pieces of it may come.
	hasNew, partial bool
	cancelledCalls  int       // number of cancelled calls
	firstAskedAt    time.Time // time of the first call to the model; zero before
	// isAsking: the first call runs. hasReplied: it has ended. callCancelled: it was cancelled with
	// cancel, after withhold returned true.
	isAsking, hasReplied, callCancelled bool
	withhold                            func() bool
	cancel                              context.CancelCauseFunc
}

// run lets the agent answer, and asks it again if messages are added to the question.
func (t *Runner) run(ctx context.Context, j *queue.Run, h *conversation.History, scope toolgroups.Scope) (string, error) {
	more := &additions{changed: make(chan struct{}, 1)}
	if !t.cfg.SeparateTurns && len(h.Staged) > 0 { // otherwise the turn began earlier
		defer t.cfg.Queue.OnAdded(j, more.add)()
	}
	for {
		if more.hasPending() {
			more.awaitAll(ctx)
			if cause := context.Cause(ctx); cause != nil {
				return "", cause
			}
			if _, err := t.steer(ctx, j, h, scope); err != nil {
				return t.handleEnd(ctx, j, h, scope, err)
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
	a.hasNew, a.partial = true, partial
	a.cancelCall()
	select {
	case a.changed <- struct{}{}:
	default:
	}
}

// cancelCall cancels the first call to the model if a message was added and no text was shown. The lock
// is held.
func (a *additions) cancelCall() {
	if a.hasNew && a.isAsking && a.cancelledCalls < maxAskAgain && time.Since(a.firstAskedAt) < askAgainWithin && a.withhold() {
		a.isAsking, a.callCancelled = false, true
		a.cancelledCalls++
		a.cancel(errAskAgain)
	}
}

// hasPending reports whether a message was added that may still become part of the question.
func (a *additions) hasPending() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.hasNew && (a.callCancelled || a.cancelledCalls < maxAskAgain && (a.firstAskedAt.IsZero() || time.Since(a.firstAskedAt) < askAgainWithin))
}

// awaitAll waits until no more additions are expected, and resets the state of the additions.
func (a *additions) awaitAll(ctx context.Context) {
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
	a.hasNew, a.partial, a.callCancelled = false, false, false
}

// beginCall returns the context of the calls to the model. withhold prevents their preview.
func (a *additions) beginCall(ctx context.Context, withhold func() bool) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.isAsking, a.hasReplied, a.callCancelled, a.withhold, a.cancel = false, false, false, withhold, cancel
	return ctx, cancel
}

// observe handles an event of the turn, and calls next with it.
func (a *additions) observe(e agent.Event, next func(agent.Event)) {
	a.mu.Lock()
	switch {
	case e.Request != nil && !a.hasReplied:
		if a.isAsking = true; a.firstAskedAt.IsZero() {
			a.firstAskedAt = time.Now()
		}
		a.cancelCall() // for additions from before the call
	case e.Reply != nil:
		a.isAsking, a.hasReplied = false, true
	}
	a.mu.Unlock()
	if next != nil {
		next(e)
	}
}

// isCallCancelled reports whether the call was cancelled. A reply that still arrives is not shown.
func (a *additions) isCallCancelled() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.callCancelled
}
