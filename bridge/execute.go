package bridge

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"oneclaw/bridge/access"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/bridge/turn"
	"oneclaw/internal/rescue"
	"oneclaw/storage"
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

// errRevoked is the cause with which jobs of a user end whose access was revoked.
var errRevoked = errors.New("bridge: access of the user was revoked")
