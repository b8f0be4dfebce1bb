package bridge

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge/access"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/bridge/turn"
	"oneclaw/internal/retry"
	"oneclaw/storage"
)

// Pauses before a job is retried after a failure of the store or the platform. No pause exceeds
// [Limits.RetryFor].
const (
	minRetry = 500 * time.Millisecond
	// sharedRetry bounds the pauses if processes share the store: after a failover of the database, a
	// retry must come sooner than another process could take over the chat.
	sharedRetry = time.Second
)

// executor runs jobs.
type executor struct {
	workers        *workerRegistry
	store          storage.Store
	jobs           queue.Store
	queue          *queue.Queue
	leases         *queue.LeaseHolder
	people         *access.Registry
	turns          *turn.Runner
	cards          *interact.Cards
	sender         *outbox.Sender
	noticeAnswerer noticeAnswerer
	completer      *completer
	suspender      *suspender
	damageHandler  *damageHandler
	tracer         queue.Tracer // nil for none
	measure        queue.Counter
	redact         func(text string) string
	now            func() time.Time
	log            *slog.Logger

	aloneSlot chan struct{} // see runAlone
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

// endTrace ends the trace of a run that has not closed its job.
func (e *executor) endTrace(j *queue.Run) {
	if e.tracer != nil {
		e.tracer.End(j)
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

// closeInterrupted closes an interrupted job, after recording in the conversation that its turn stopped.
func (e *executor) closeInterrupted(j *queue.Run, state receipts.State) error {
	e.suspender.endWait(j)
	if err := e.turns.StopTurn(e.queue.Context(), j, agent.NoteStopped); err != nil {
		return err
	}
	return e.completer.complete(j, state)
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

// attempt runs a job once.
func (e *executor) attempt(work, ctx context.Context, j *queue.Run) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	w := e.workers.forJob(j)
	declared := w.policy()
	if j.Found && !declared.SurvivesStop { // a command in an earlier run may have ended it
		if _, err := conversation.SessionOf(ctx, e.store, &j.Job); err != nil {
			return err
		}
	}
	// The user's current access counts, not their access when the message was accepted.
	if outbox.DeliveryOf(j).Parts == nil && !declared.public {
		if known, err := e.people.IsAdmitted(ctx, j.Message.SenderID()); err != nil {
			return err
		} else if !known {
			e.log.Warn("message not answered: access of its user was revoked", "job", j.Key(), "user", j.Message.SenderID())
			return errRevoked
		}
	}
	if p, ok := w.(performer); ok {
		return p.perform(ctx, j)
	}
	if outbox.DeliveryOf(j).Parts == nil {
		if err := e.compose(ctx, w, j); err != nil {
			return err
		}
	}
	e.queue.ReleaseSlot(j)
	err := e.deliver(work, ctx, j)
	if errors.Is(err, storage.ErrInvalid) {
		// The job with its answer is larger than a value can be: no part of it was sent.
		e.sender.Prepare(j, e.turns.ReportFailure(ctx, j, err), false)
		err = e.deliver(work, ctx, j)
	}
	if err == nil {
		e.turns.RunDeferred(ctx, j)
	}
	return err
}

// compose makes the parts of an answer, which is a text with files, or a card.
func (e *executor) compose(ctx context.Context, w worker, j *queue.Run) (err error) {
	a, ok := w.(answerer)
	if !ok {
		outbox.DeliveryOf(j).Parts, err = e.cards.Parts(ctx, j)
		return err
	}
	d := outbox.DeliveryOf(j)
	if task := turn.TaskOf(j); task == nil || !task.Quiet && task.Hook == "" && !turn.IsBackground(j) {
		d.StopTyping = e.sender.ShowTyping(ctx, outbox.Address(j))
		defer func() { d.StopTyping() }() // read late: a question replaces StopTyping
	}
	d.CardToken = "" // set by an earlier attempt
	answer := e.noticeAnswerer.answer
	if d.Notice == "" {
		answer = a.answer
	}
	text, err := answer(ctx, j)
	switch {
	case err != nil || d.Parts != nil:
	case d.CardToken != "":
		if d.Parts, err = e.cards.Parts(ctx, j); err == nil {
			d.Parts = e.sender.ReplacePreview(j, d.Parts)
		}
	default:
		e.sender.Prepare(j, text, false)
	}
	return err
}

// deliver sends the unsent parts of a job, then closes it. After an error, a later call continues from
// the state in the job's record.
func (e *executor) deliver(work, ctx context.Context, j *queue.Run) error {
	if err := e.sender.Deliver(work, ctx, j); err != nil {
		return err
	}
	d := outbox.DeliveryOf(j)
	if d.CardToken != "" {
		if err := e.recordCardDelivery(j); err != nil {
			return err
		}
	}
	state, counted := receipts.Done, queue.MeasuredDelivered
	if d.DeadLetter != "" || slices.ContainsFunc(d.Parts, func(p receipts.Part) bool { return p.IsUndelivered() }) {
		state, counted = receipts.Failed, queue.MeasuredFailed
	}
	e.measure(j.Message.Chat.Platform, counted)
	e.completer.completeLater(j, state)
	return nil
}

// recordCardDelivery records which messages show the card of a job, even if the job is being cancelled.
// Without the record they would be sent again.
func (e *executor) recordCardDelivery(j *queue.Run) error {
	ctx, cancel := e.queue.WriteContext()
	defer cancel()
	return e.cards.RecordDelivery(ctx, j)
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

// errRevoked is the cause with which jobs of a user end whose access was revoked.
var errRevoked = errors.New("bridge: access of the user was revoked")
