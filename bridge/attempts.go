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

// Failed jobs are retried. If the cause lies outside the job (the store or the platform is down, or
// another process may own the chat), the retries go on until it passes. Any other job is given up after
// its last attempt, and the incident is reported in its answer if one is due, otherwise in the log. A
// job that makes no progress over several restarts is given up too, because it may crash the process.
const (
	// maxAttempts bounds the attempts, which go on for at least [Limits.RetryFor]. After maxPatience
	// times that duration, the second failure is already the last.
	maxAttempts = 8
	maxPatience = 5
	// maxPanics is the number of panics after which a job is given up.
	maxPanics = 2
	// maxRestarts bounds the consecutive restarts without progress of a job that may crash the process.
	// Such a job is retried for at least [Limits.RetryFor].
	maxRestarts = 5
	// maxTogether is the number of consecutive restarts after which the jobs that were open each time
	// run one at a time, so that all but the crashing one can finish. None delays the others for longer
	// than aloneFor.
	maxTogether = 2
	aloneFor    = 10 * time.Second
)

// attempts counts the failed attempts at a job in this process.
type attempts struct {
	failed, panics int
	since          time.Time // first failure
	reported       bool      // the answer already says that the job failed
	storeWorked    bool      // the store has accepted a write since what would have been the last attempt
	damaged        []string  // damaged records that the job has read
}

// countFailure counts a failed attempt, and reports whether it was the last. Attempts go on for at
// least the duration atLeast.
func (t *attempts) countFailure(now time.Time, atLeast time.Duration, err error) bool {
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

// execute runs a job to its end, or leaves it open if the bridge shuts down. A panic counts as a failed
// attempt of that job only.
func (e *executor) execute(work, ctx context.Context, j *queue.Run) {
	for e.leases.Shared() && !e.leases.OwnsSafely(j) {
		// The job was accepted while this process lost the chat, and perhaps got it back. Jobs that
		// other processes accepted before it come first, so this one is dropped here and claimed
		// together with them.
		if e.leases.Token(j.Message.Chat) != j.LeaseToken && e.completer.dropIfLost(j, queue.ErrLost) {
			return
		}
		// A process that was paused waits until it knows whether it still owns the chat. The job keeps
		// its place, so that later jobs do not begin first.
		if e.pause(ctx, minRetry) != nil {
			return
		}
	}
	if j.State == receipts.Waiting || j.Found { // a call of an earlier run may have asked a question
		e.suspender.showResumed(e.queue.Context(), j)
	}
	t, over := attempts{}, false
	defer e.runAlone(ctx, j)()
	if err := e.countRestart(j); err != nil {
		t.reported = j.Incident != "" // its failure notice crashed the process as well
		over = e.giveUp(ctx, j, &t, receipts.Failed, err)
	}
	for !over {
		err := rescue.Do(func() error { e.runAttempts(work, ctx, j, &t); return nil })
		if over = err == nil || e.queue.Context().Err() != nil; over {
			break
		}
		e.suspender.endWait(j)
		last := t.countFailure(e.now(), e.completer.retryFor, err)
		e.log.Error("a job panicked", "job", j.Key(), "panics", t.panics, "err", err)
		over = last && e.giveUp(ctx, j, &t, receipts.Failed, err)
	}
}

// runAlone waits until no other job that may crash the process runs. The caller calls next to let the
// next one run.
func (e *executor) runAlone(ctx context.Context, j *queue.Run) (next func()) {
	if !j.Restarted || j.Stall.Restarts < maxTogether || j.State == receipts.Waiting || !outbox.DeliveryOf(j).OutageSince.IsZero() {
		return func() {}
	}
	hadSlot := j.HasSlot
	e.queue.ReleaseSlot(j)
	select {
	case e.aloneSlot <- struct{}{}:
	case <-ctx.Done():
		return func() {}
	}
	if hadSlot {
		e.queue.AwaitSlot(ctx, j)
	}
	leave := sync.OnceFunc(func() { <-e.aloneSlot })
	timer := time.AfterFunc(aloneFor, leave)
	return func() { timer.Stop(); leave() }
}

// countRestart counts the restart after which an open job is run again. It returns an error after too
// many restarts. Jobs that wait for a user or for their platform do not count.
func (e *executor) countRestart(j *queue.Run) error {
	if !j.Restarted || j.State == receipts.Waiting || !outbox.DeliveryOf(j).OutageSince.IsZero() {
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
		e.log.Warn("the restart of a job cannot be counted", "job", j.Key(), "err", err)
	} else if e.completer.exceedsRestarts(j, 1) {
		return fmt.Errorf("bridge: no progress after %d restarts in a row", j.Stall.Restarts)
	}
	return nil
}

// handleFailedAttempt counts a failed attempt, and gives the job up after the last one, in the given
// state. It reports whether this process has finished with the job.
func (e *executor) handleFailedAttempt(ctx context.Context, j *queue.Run, t *attempts, state receipts.State, err error) bool {
	last, lost := e.completer.countFailure(j, t, err)
	return lost || last && e.giveUp(ctx, j, t, state, err)
}

// giveUp ends a job that cannot be completed. If an answer is due, the first call prepares a failure
// notice as the answer and returns false. Otherwise giveUp closes the job and returns true.
func (e *executor) giveUp(ctx context.Context, j *queue.Run, t *attempts, state receipts.State, err error) bool {
	w, told := e.workers.forJob(j), t.reported
	*t = attempts{reported: true, damaged: t.damaged}
	for _, piece := range j.Pieces {
		e.completer.completeLater(piece, state)
	}
	j.Pieces = nil
	_, answers := w.(answerer)
	parts := outbox.DeliveryOf(j).Parts
	due := answers && (parts == nil || slices.ContainsFunc(parts, func(p receipts.Part) bool { return p.State != receipts.PartSent }))
	if due && !told && state == receipts.Failed {
		if panicked := rescue.Do(func() error { e.prepareFailureNotice(ctx, w, j, err); return nil }); panicked == nil {
			return false
		}
	}
	if state == receipts.Failed && j.Incident == "" {
		j.Incident = queue.NewIncident()
		e.log.Error("job given up", "incident", j.Incident, "job", j.Key(), "err", err)
	}
	if f, ok := w.(failer); ok && !e.completer.exceedsRestarts(j, 2) {
		if failed := rescue.Do(func() error { return f.fail(ctx, j) }); failed != nil {
			e.log.Error("the failure of a job cannot be reported to its chat", "incident", j.Incident, "job", j.Key(), "err", failed)
		}
	}
	e.completer.completeLater(j, state)
	return true
}

// prepareFailureNotice replaces the unsent parts of a job that is given up by a failure notice.
func (e *executor) prepareFailureNotice(ctx context.Context, w worker, j *queue.Run, err error) {
	if w.policy().NeedsSlot {
		// The model must not continue the turn. The user gets the notice even if this fails.
		if stopped := rescue.Do(func() error { return e.turns.StopTurn(ctx, j, agent.NoteGivenUp) }); stopped != nil {
			e.log.Warn("the end of a failed turn cannot be stored in its conversation", "job", j.Key(), "err", stopped)
		}
	}
	d, sent := outbox.DeliveryOf(j), 0
	for sent < len(d.Parts) && d.Parts[sent].State == receipts.PartSent {
		sent++
	}
	text := e.turns.ReportFailure(ctx, j, err)
	j.RecordProgress() // attempts at the notice count from zero
	if d.CardToken, d.Files = "", nil; sent == 0 {
		e.sender.Prepare(j, text, false)
		return
	}
	d.DropParts(sent)
	d.Parts = append(d.Parts, e.sender.Render(j, e.redact(text))...)
}
