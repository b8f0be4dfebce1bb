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

// Failed jobs are retried. A failure for a reason outside of the job (the store is down, another
// process may own the chat, the platform is down) waits until that passes. Any other job is given up
// after its attempts, with an incident: an answer says so if one is due, else the log does. The same
// holds for a job that restart after restart finds without progress: it may crash the process.
const (
	// maxAttempts bounds the attempts, which go on for at least [Limits.RetryFor]; long attempts end
	// after maxPatience times that.
	maxAttempts = 8
	maxPatience = 5
	// maxPanics is the number of panics at which a job is given up.
	maxPanics = 2
	// maxRestarts bounds the consecutive restarts without progress of a job, which may crash the
	// process; they go on for at least [Limits.RetryFor].
	maxRestarts = 5
	// maxTogether is the number of consecutive restarts after which the jobs found each time run one at
	// a time, so that those beside the crashing one can finish. None delays the others for longer than
	// aloneFor.
	maxTogether = 2
	aloneFor    = 10 * time.Second
)

// attempts counts the failed attempts at a job in this process.
type attempts struct {
	failed, panics int
	since          time.Time // first failure
	told           bool      // its answer says that it failed
	damaged        []string  // damaged records that it has met
}

// count counts a failed attempt, and reports whether it was the last. Attempts go on for at least
// atLeast.
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

// execute runs a job to its end, or leaves it open if the bridge shuts down. A panic costs only the job
// one of its lives.
func (e *executor) execute(work, ctx context.Context, j *queue.Run) {
	for e.leases.Shared() && !e.leases.OwnsSafely(j) {
		// The job was accepted while its chat was given away, and perhaps taken back: jobs of others
		// come first, so it is claimed together with them.
		if e.leases.Token(j.Message.Chat) != j.LeaseToken && e.completer.lost(j, queue.ErrLost) {
			return
		}
		// A process that was paused waits until it knows whether it still owns the chat. The job keeps
		// its place, so that later ones do not begin first.
		if e.pause(ctx, minRetry) != nil {
			return
		}
	}
	t, over := attempts{}, false
	defer e.runAlone(ctx, j)()
	if err := e.restarted(j); err != nil {
		t.told = j.Incident != "" // its answer says so, and crashed the process as well
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

// runAlone waits until a job that may crash the process may run; next lets another such job begin.
func (e *executor) runAlone(ctx context.Context, j *queue.Run) (next func()) {
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

// restarted counts the restart that found a job, before the job runs. It returns an error if that was
// one too many. Jobs that wait for a user or for their platform do not count.
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

// attemptFailed counts a failed attempt, and gives the job up after the last one; state is its final
// state then. It reports whether the job is over here.
func (e *executor) attemptFailed(ctx context.Context, j *queue.Run, t *attempts, state receipts.State, err error) bool {
	last, lost := e.completer.isLast(j, t, err)
	return lost || last && e.giveUp(ctx, j, t, state, err)
}

// giveUp ends a job that cannot be completed. The first time it gets an answer that says so, if an
// answer is due, and giveUp returns false; else it is closed.
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

// sayFailed replaces the answer of a job that is given up. Parts that were sent stay.
func (e *executor) sayFailed(ctx context.Context, w worker, j *queue.Run, err error) {
	if w.declares().NeedsSlot {
		// The model must not continue the turn. A failure here must not keep the user waiting.
		if stopped := rescue.Do(func() error { return e.turns.StopTurn(ctx, j, agent.NoteGivenUp) }); stopped != nil {
			e.log.Warn("the conversation does not tell that a turn was given up", "job", j.Key(), "err", stopped)
		}
	}
	d, sent := outbox.Of(j), 0
	for sent < len(d.Parts) && d.Parts[sent].State == receipts.PartSent {
		sent++
	}
	text := e.turns.Failed(ctx, j, err)
	j.Progressed() // the notice has attempts of its own
	if d.Card, d.Files = "", nil; sent == 0 {
		e.sender.Prepare(j, text, false)
		return
	}
	d.Drop(sent)
	d.Parts = append(d.Parts, e.sender.Render(j, e.redact(text))...)
}
