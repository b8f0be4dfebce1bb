package bridge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/rescue"
)

// What fails is tried again. What fails for a reason that is not the job's own (the store
// takes no writes, another process may answer in the chat, the platform is out of order) waits
// until that passes. Any other job is ended when it has had its tries, with an incident: there
// is an answer that says so where one is due, else the log does. So is what restart after restart
// finds where it was: it may be what ends the process.
const (
	// maxAttempts bounds the attempts, which go on for [Limits.RetryFor] at least; attempts that take
	// long end after maxPatience times that.
	maxAttempts = 8
	maxPatience = 5
	// maxPanics is how many lives a job has that panics.
	maxPanics = 2
	// maxRestarts bounds the restarts in a row after which a job is taken up again and comes no
	// further, which go on for [Limits.RetryFor] at least: it may be what ends the process.
	maxRestarts = 5
	// maxTogether is after how many restarts in a row the jobs that were found each time are
	// carried on one by one, so that those beside the one that ends the process come to their
	// ends. None keeps the others waiting for longer than aloneFor.
	maxTogether = 2
	aloneFor    = 10 * time.Second
)

// attempts are those of a job in this process that failed.
type attempts struct {
	failed, panics int
	since          time.Time // of the first that failed
	told           bool      // its answer says that it failed
	damaged        []string  // the damaged records that it met
}

// count counts an attempt that ended with an error, and reports whether it was the last. They go on for so
// long at least.
func (t *attempts) count(now time.Time, atLeast time.Duration, err error) bool {
	if _, panicked := errors.AsType[*rescue.PanicError](err); panicked {
		t.panics++
		return t.panics >= maxPanics
	}
	if t.failed == 0 {
		t.since = now
	}
	t.failed++
	lasts := now.Sub(t.since)
	return t.failed >= maxAttempts && lasts >= atLeast || t.failed > 1 && lasts >= maxPatience*atLeast
}

// execute brings a job to its end, or leaves it open where the bridge shuts down. A panic on the
// way costs the job one of its lives, and nothing else.
func (e *executor) execute(work, ctx context.Context, j *queue.Run) {
	for e.leases.Shared() && !e.leases.OwnsSafely(j) {
		// It was accepted while its chat was given away, and perhaps taken again: what others have
		// accepted before it comes first, so it is taken with that.
		if e.leases.Token(j.Message.Chat) != j.LeaseToken && e.completer.lost(j, queue.ErrLost) {
			return
		}
		// A process that was paused waits until it knows whether it still answers there. The job keeps
		// its place: what is behind it must not begin first.
		if e.rest(ctx, minRetry) != nil {
			return
		}
	}
	t, over := attempts{}, false
	defer e.alone(ctx, j)()
	if err := e.restarted(j); err != nil {
		t.told = j.Incident != "" // its answer says so, and ended the process as well
		over = e.giveUp(ctx, j, &t, receipts.Failed, err)
	}
	for !over {
		err := rescue.Do(func() error { e.live(work, ctx, j, &t); return nil })
		if over = err == nil || e.queue.Context().Err() != nil; over {
			break
		}
		last := t.count(e.now(), e.completer.retryFor, err)
		e.log.Error("a job panicked", "job", j.Key(), "life", t.panics, "err", err)
		over = last && e.giveUp(ctx, j, &t, receipts.Failed, err)
	}
}

// alone waits until a job may be carried on that may be what ends the process; next lets another
// such job begin.
func (e *executor) alone(ctx context.Context, j *queue.Run) (next func()) {
	if !j.Restarted || j.Stall.Restarts < maxTogether || j.State == receipts.Waiting || !outbox.Of(j).OutageSince.IsZero() {
		return func() {}
	}
	hadSlot := j.HasSlot
	e.queue.ReleaseSlot(j)
	select {
	case e.suspects <- struct{}{}:
	case <-ctx.Done():
		return func() {}
	}
	if hadSlot {
		e.queue.AwaitSlot(ctx, j)
	}
	leave := sync.OnceFunc(func() { <-e.suspects })
	timer := time.AfterFunc(aloneFor, leave)
	return func() { timer.Stop(); leave() }
}

// restarted counts the restart that found a job, before anything is done for it. It returns an
// error where that was one too many. What waits for a person or for its platform is not counted.
func (e *executor) restarted(j *queue.Run) error {
	if !j.Restarted || j.State == receipts.Waiting || !outbox.Of(j).OutageSince.IsZero() {
		j.Restarted = false
		return nil
	}
	j.Restarted = false
	if j.Stall.Restarts == 0 {
		j.Stall.Since = e.now()
	}
	j.Resumes++
	j.Stall.Restarts++
	if err := e.jobs.SaveAlways(e.queue.Context(), j); err != nil {
		e.log.Warn("a restart that found a job is not counted", "job", j.Key(), "err", err)
	} else if e.completer.overdue(j, 1) {
		return fmt.Errorf("bridge: %d restarts in a row found it where it was", j.Stall.Restarts)
	}
	return nil
}

// attemptFailed counts an attempt that failed, and gives a job up that has had all of them; state is how it
// ends then. It reports whether the job is over here.
func (e *executor) attemptFailed(ctx context.Context, j *queue.Run, t *attempts, state receipts.State, err error) bool {
	last, lost := e.completer.isLast(j, t, err)
	return lost || last && e.giveUp(ctx, j, t, state, err)
}

// giveUp ends a job that cannot be carried to its end. The first time it gets an answer that
// says so, where an answer is due, and reports that it goes on with that; else it is closed.
func (e *executor) giveUp(ctx context.Context, j *queue.Run, t *attempts, state receipts.State, err error) bool {
	w, told := e.workers.of(j), t.told
	*t = attempts{told: true, damaged: t.damaged}
	for _, piece := range j.Pieces {
		e.completer.completeLater(piece, state)
	}
	j.Pieces = nil
	_, answers := w.(answerer)
	parts := outbox.Of(j).Parts
	due := answers && (parts == nil || slices.ContainsFunc(parts, func(p receipts.Part) bool { return p.State != receipts.PartSent }))
	if due && !told && state == receipts.Failed {
		if panicked := rescue.Do(func() error { e.sayFailed(ctx, w, j, err); return nil }); panicked == nil {
			return false
		}
	}
	if state == receipts.Failed && j.Incident == "" {
		j.Incident = queue.NewIncident()
		e.log.Error("given up", "incident", j.Incident, "job", j.Key(), "err", err)
	}
	if f, ok := w.(failer); ok && !e.completer.overdue(j, 2) {
		if failed := rescue.Do(func() error { return f.fail(ctx, j) }); failed != nil {
			e.log.Error("what failed cannot be told", "incident", j.Incident, "job", j.Key(), "err", failed)
		}
	}
	e.completer.completeLater(j, state)
	return true
}

// sayFailed makes the answer of a job that is given up. What of its answer was sent stays.
func (e *executor) sayFailed(ctx context.Context, w worker, j *queue.Run, err error) {
	if w.declares().NeedsSlot {
		// The model must not go on with it. That is no reason to keep a user waiting.
		if stopped := rescue.Do(func() error { return e.turns.StopTurn(ctx, j, agent.NoteGivenUp) }); stopped != nil {
			e.log.Warn("the conversation does not tell that a turn was given up", "job", j.Key(), "err", stopped)
		}
	}
	d, sent := outbox.Of(j), 0
	for sent < len(d.Parts) && d.Parts[sent].State == receipts.PartSent {
		sent++
	}
	text := e.turns.Failed(ctx, j, err)
	j.Progressed() // the line has tries of its own
	if d.Card, d.Files = "", nil; sent == 0 {
		e.sender.Prepare(j, text, false)
		return
	}
	d.Drop(sent)
	d.Parts = append(d.Parts, e.sender.Render(j, e.redact(text))...)
}
