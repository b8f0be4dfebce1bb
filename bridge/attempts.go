package bridge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/rescue"
	"oneclaw/internal/retry"
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

// Pauses before a job is retried after a failure of the store or the platform. No pause exceeds
// [Limits.RetryFor].
const (
	minRetry = 500 * time.Millisecond
	// sharedRetry bounds the pauses if processes share the store: after a failover of the database, a
	// retry must come sooner than another process could take over the chat.
	sharedRetry = time.Second
)

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

// runAttempts repeats attempts at a job until it ends, waits for a user, or panics.
func (e *executor) runAttempts(work, ctx context.Context, j *queue.Run, t *attempts) {
	if (j.PossiblyJoined || e.workers.Placement(j).Partial || len(j.Pieces) > 0) && !e.joinPieces(ctx, j, t) {
		return
	}
	if e.tracer != nil {
		ctx = e.tracer.StartRun(ctx, j)
	}
	for pauses := retry.New(minRetry, e.completer.maxRetry); ; {
		err := e.attempt(work, ctx, j)
		if err == nil {
			return
		}
		wait, turn, told := pauses.Next(0), j.HasSlot, t.reported
		e.queue.ReleaseSlot(j)
		if e.handleFailure(ctx, j, t, err, wait) {
			e.endTrace(j)
			return
		}
		if !told && t.reported {
			continue // the answer now is a failure notice
		}
		if e.pause(ctx, wait) != nil {
			e.endTrace(j)
			return
		}
		if turn {
			e.queue.AwaitSlot(ctx, j)
		}
	}
}

// handleFailure handles a failed attempt. It reports whether the job has ended, or waits for a user.
func (e *executor) handleFailure(ctx context.Context, j *queue.Run, t *attempts, err error, wait time.Duration) bool {
	var ended error
	cut := receipts.Failed
	switch cause := context.Cause(ctx); {
	case errors.Is(err, queue.ErrLost) || errors.Is(cause, queue.ErrLost):
		ended = queue.ErrLost
	case errors.Is(err, agent.ErrSuspended):
		ended = e.suspender.suspend(j)
	case errors.Is(err, conversation.ErrCleared) || errors.Is(cause, conversation.ErrCleared):
		cut = receipts.Cleared
		ended = e.closeInterrupted(j, cut)
	case errors.Is(err, conversation.ErrStopped) || errors.Is(cause, conversation.ErrStopped) || errors.Is(cause, queue.ErrSuperseded):
		cut = receipts.Stopped
		ended = e.closeInterrupted(j, cut)
	case errors.Is(err, errRevoked) || errors.Is(cause, errRevoked):
		cut = receipts.Revoked
		ended = e.closeInterrupted(j, cut)
	case e.queue.Context().Err() != nil || errors.Is(cause, queue.ErrShutdown):
		return true
	case e.tryDeadLetter(j, t, err):
		return false
	default:
		e.suspender.endWait(j)
		e.log.Error("attempt at a job failed, trying again", "job", j.Key(), "wait", wait, "err", err)
		ended = err
	}
	return ended == nil || e.completer.dropIfLost(j, ended) || e.handleFailedAttempt(ctx, j, t, cut, ended)
}

// handleFailedAttempt counts a failed attempt, and gives the job up after the last one, in the given
// state. It reports whether this process has finished with the job.
func (e *executor) handleFailedAttempt(ctx context.Context, j *queue.Run, t *attempts, state receipts.State, err error) bool {
	last, lost := e.completer.countFailure(j, t, err)
	return lost || last && e.giveUp(ctx, j, t, state, err)
}

// tryDeadLetter turns the damaged record that a job failed on into a dead letter, and reports whether it
// did. If the job fails on the same record again, its answer becomes a failure notice.
func (e *executor) tryDeadLetter(j *queue.Run, t *attempts, err error) bool {
	d, is := errors.AsType[*queue.DamagedError](err)
	if !is {
		return false
	}
	ctx, cancel := e.queue.WriteContext()
	defer cancel()
	if slices.Contains(t.damaged, d.Name()) {
		outbox.DeliveryOf(j).Notice = e.turns.ReportFailure(ctx, j, err)
		return false
	}
	if _, err := e.damageHandler.deadLetterRecord(ctx, d, j.Message.Chat, ""); err != nil {
		e.log.Error("a damaged record cannot be made a dead letter, trying again", "key", d.Name(), "err", err)
		return false
	}
	t.damaged = append(t.damaged, d.Name())
	return true
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

// closeInterrupted closes an interrupted job, after recording in the conversation that its turn stopped.
func (e *executor) closeInterrupted(j *queue.Run, state receipts.State) error {
	e.suspender.endWait(j)
	if err := e.turns.StopTurn(e.queue.Context(), j, agent.NoteStopped); err != nil {
		return err
	}
	return e.completer.complete(j, state)
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

// pause waits before the next attempt. A /stop or /clear ends the wait early. It returns an error only
// if the bridge shuts down.
func (e *executor) pause(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil {
		ctx = e.queue.Context()
	}
	_ = retry.Wait(ctx, d)
	return e.queue.Context().Err()
}

// endTrace ends the trace of a run that has not closed its job.
func (e *executor) endTrace(j *queue.Run) {
	if e.tracer != nil {
		e.tracer.End(j)
	}
}
