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

// Pauses before a job is retried after a failure of the store or the platform. No pause is longer than
// [Limits.RetryFor].
const (
	minRetry = 500 * time.Millisecond
	// sharedRetry bounds them if processes share the store: while a database fails over, none may be
	// slower than a takeover by another would be.
	sharedRetry = time.Second
)

// executor runs jobs.
type executor struct {
	workers   *workers
	store     storage.Store
	jobs      queue.Store
	queue     *queue.Queue
	leases    *queue.Leases
	people    *access.Registry
	turns     *turn.Runner
	cards     *interact.Cards
	sender    *outbox.Sender
	notices   notices
	completer *completer
	suspender *suspender
	mender    *mender
	tracer    queue.Tracer // nil for none
	measure   queue.Counter
	redact    func(text string) string
	now       func() time.Time
	log       *slog.Logger

	suspects chan struct{} // see runAlone
}

// live is one life of a job: until it ends, waits, or panics.
func (e *executor) live(work, ctx context.Context, j *queue.Run, t *attempts) {
	if (j.PossiblyJoined || e.workers.Placement(j).Partial || len(j.Pieces) > 0) && !e.gather(ctx, j, t) {
		return
	}
	if e.tracer != nil {
		ctx = e.tracer.Started(ctx, j)
	}
	for pauses := retry.New(minRetry, e.completer.maxRetry); ; {
		err := e.attempt(work, ctx, j)
		if err == nil {
			return
		}
		wait, turn, told := pauses.Next(0), j.HasSlot, t.told
		e.queue.ReleaseSlot(j)
		if e.ends(ctx, j, t, err, wait) {
			return
		}
		if !told && t.told {
			continue // with an answer that says so
		}
		if e.pause(ctx, wait) != nil {
			return
		}
		if turn {
			e.queue.AwaitSlot(ctx, j)
		}
	}
}

// ends reports whether a job that failed is over, or waits.
func (e *executor) ends(ctx context.Context, j *queue.Run, t *attempts, err error, wait time.Duration) bool {
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
	case e.mended(j, t, err):
		return false
	default:
		e.log.Error("job cannot be carried on, trying again", "job", j.Key(), "wait", wait, "err", err)
		ended = err
	}
	return ended == nil || e.completer.lost(j, ended) || e.attemptFailed(ctx, j, t, cut, ended)
}

// closeInterrupted closes a turn that was interrupted for good, so that it does not look unfinished.
func (e *executor) closeInterrupted(j *queue.Run, state receipts.State) error {
	if err := e.turns.StopTurn(e.queue.Context(), j, agent.NoteStopped); err != nil {
		return err
	}
	return e.completer.complete(j, state)
}

// pause waits before the next attempt. A /stop or /clear ends the wait early; the end of the bridge is
// an error.
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
	w := e.workers.of(j)
	declared := w.declares()
	if j.Found && !declared.lasting { // a command of a former run may have ended it
		if _, err := conversation.Of(ctx, e.store, &j.Job); err != nil {
			return err
		}
	}
	// The user's present access counts, not that at the time of acceptance.
	if outbox.Of(j).Parts == nil && !declared.open {
		if known, err := e.people.IsAdmitted(ctx, j.Message.By()); err != nil {
			return err
		} else if !known {
			e.log.Warn("not answered: its user may not talk to the bot any more", "job", j.Key(), "user", j.Message.By())
			return errRevoked
		}
	}
	if p, ok := w.(performer); ok {
		return p.perform(ctx, j)
	}
	if outbox.Of(j).Parts == nil {
		if err := e.compose(ctx, w, j); err != nil {
			return err
		}
	}
	e.queue.ReleaseSlot(j)
	err := e.deliver(work, ctx, j)
	if errors.Is(err, storage.ErrInvalid) {
		// The job with its answer is larger than a value can be: no part of it was sent.
		e.sender.Prepare(j, e.turns.Failed(ctx, j, err), false)
		err = e.deliver(work, ctx, j)
	}
	if err == nil {
		e.turns.Afterwards(ctx, j)
	}
	return err
}

// compose makes the parts of an answer: a text with its files, or a card.
func (e *executor) compose(ctx context.Context, w worker, j *queue.Run) (err error) {
	a, ok := w.(answerer)
	if !ok {
		outbox.Of(j).Parts, err = e.cards.Parts(ctx, j)
		return err
	}
	d := outbox.Of(j)
	if task := turn.TaskOf(j); task == nil || !task.Quiet {
		d.StopTyping = e.sender.ShowTyping(ctx, outbox.Address(j))
		defer func() { d.StopTyping() }() // a question stops the indicator, and a new one may start
	}
	d.Card = "" // of an earlier attempt
	answer := e.notices.answer
	if d.Notice == "" {
		answer = a.answer
	}
	text, err := answer(ctx, j)
	switch {
	case err != nil || d.Parts != nil:
	case d.Card != "":
		if d.Parts, err = e.cards.Parts(ctx, j); err == nil {
			d.Parts = e.sender.Adopt(j, d.Parts)
		}
	default:
		e.sender.Prepare(j, text, false)
	}
	return err
}

// deliver sends the unsent parts, and closes the job. After an error it has to continue later; the job
// records where.
func (e *executor) deliver(work, ctx context.Context, j *queue.Run) error {
	if err := e.sender.Deliver(work, ctx, j); err != nil {
		return err
	}
	d := outbox.Of(j)
	if d.Card != "" {
		if err := e.cardDelivered(j); err != nil {
			return err
		}
	}
	state, counted := receipts.Done, queue.MeasuredDelivered
	if d.DeadLetter != "" || slices.ContainsFunc(d.Parts, func(p receipts.Part) bool { return p.State == receipts.PartFailed }) {
		state, counted = receipts.Failed, queue.MeasuredFailed
	}
	e.measure(j.Message.Chat.Platform, counted)
	e.completer.completeLater(j, state)
	return nil
}

// cardDelivered records which messages show the card of a job, even while the job is being ended;
// otherwise they would be sent again.
func (e *executor) cardDelivered(j *queue.Run) error {
	ctx, cancel := e.queue.WriteContext()
	defer cancel()
	return e.cards.Delivered(ctx, j)
}

// mended reports whether a job failed because of a damaged record, which is a dead letter now. If the
// same record fails again, the job ends.
func (e *executor) mended(j *queue.Run, t *attempts, err error) bool {
	d, is := errors.AsType[*queue.DamagedError](err)
	if !is {
		return false
	}
	ctx, cancel := e.queue.WriteContext()
	defer cancel()
	if slices.Contains(t.damaged, d.Name()) {
		outbox.Of(j).Notice = e.turns.Failed(ctx, j, err)
		return false
	}
	if _, err := e.mender.mend(ctx, d, j.Message.Chat, ""); err != nil {
		e.log.Error("a damaged record cannot be set aside, trying again", "key", d.Name(), "err", err)
		return false
	}
	t.damaged = append(t.damaged, d.Name())
	return true
}

// errRevoked ends the jobs of a user whose access was revoked.
var errRevoked = errors.New("bridge: its user was removed")
