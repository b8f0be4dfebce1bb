package bridge

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge/jobs"
	"oneclaw/bridge/sessions"
	"oneclaw/storage"
)

// How long to wait before a job is tried again that could not be carried on, because
// the store or the platform was out of order.
const (
	minRetry = 500 * time.Millisecond
	maxRetry = time.Minute
)

// carry brings a job to its end, or leaves it open where the bridge shuts down.
func (b *Bridge) carry(ctx context.Context, j *jobs.Job) {
	for wait := minRetry; ; wait = min(2*wait, maxRetry) {
		err := b.attempt(ctx, j)
		if err == nil {
			return
		}
		turn := j.Turn
		b.lanes.EndTurn(j)
		if b.ends(ctx, j, err, wait) || b.rest(ctx, wait) != nil {
			return
		}
		if turn {
			b.lanes.AwaitTurn(ctx, j)
		}
	}
}

// ends reports whether a job that could not be carried on is over, or waits.
func (b *Bridge) ends(ctx context.Context, j *jobs.Job, err error, wait time.Duration) bool {
	switch cause := context.Cause(ctx); {
	case cause == nil && errors.Is(err, agent.ErrSuspended):
		return b.suspend(j) == nil
	case errors.Is(err, sessions.ErrCleared) || errors.Is(cause, sessions.ErrCleared):
		return b.settle(j, jobs.StateCleared) == nil
	case errors.Is(err, sessions.ErrStopped) || errors.Is(cause, sessions.ErrStopped):
		return b.cutOff(j, jobs.StateStopped) == nil
	case errors.Is(err, errBarred) || errors.Is(cause, errBarred):
		return b.cutOff(j, jobs.StateBarred) == nil
	case b.lanes.Work().Err() != nil:
		return true
	case b.mended(j, err):
		return false
	}
	b.log.Error("job cannot be carried on, trying again", "job", j.Key(), "wait", wait, "err", err)
	return false
}

// cutOff ends a turn that was interrupted for good: it must not look as if it went on.
func (b *Bridge) cutOff(j *jobs.Job, state jobs.State) error {
	if err := b.turns.StopTurn(b.lanes.Work(), j); err != nil {
		return err
	}
	return b.settle(j, state)
}

// rest waits before the next try. A /stop or /clear that comes meanwhile ends the wait,
// the end of the bridge is an error.
func (b *Bridge) rest(ctx context.Context, d time.Duration) error {
	interrupted := ctx.Done()
	if ctx.Err() != nil {
		interrupted = nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-interrupted:
	case <-b.lanes.Work().Done():
	}
	return b.lanes.Work().Err()
}

// attempt carries a job on as its kind says. Whatever panics on the way to an answer
// becomes an answer that says so, with the incident in the log.
func (b *Bridge) attempt(ctx context.Context, j *jobs.Job) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	k := b.kind(j)
	if err := b.overtaken(ctx, k, j); err != nil {
		return err
	}
	if j.Parts == nil && !k.open && b.barred(j) {
		return errBarred
	}
	if k.run != nil {
		return k.run(ctx, j)
	}
	if j.Parts == nil {
		if err := b.compose(ctx, k, j); err != nil {
			return err
		}
	}
	b.lanes.EndTurn(j)
	if err := b.deliverAny(ctx, j); err != nil {
		return err
	}
	b.turns.Afterwards(ctx, j)
	return nil
}

// overtaken returns why a job of a former run is not to be answered any more.
func (b *Bridge) overtaken(ctx context.Context, k *kind, j *jobs.Job) error {
	if !j.Found || k.lasting {
		return nil
	}
	session, err := sessions.Of(ctx, b.store, j)
	if err != nil {
		return err
	}
	return session.Overtaken(j)
}

// deliverAny delivers an answer, or a sentence where the job with it is larger than a value
// can be: then none of it was sent.
func (b *Bridge) deliverAny(ctx context.Context, j *jobs.Job) error {
	err := b.deliver(ctx, j)
	if !errors.Is(err, storage.ErrInvalid) {
		return err
	}
	j.Parts = b.render(j, headed(j, b.turns.Failed(j, err)))
	return b.deliver(ctx, j)
}

// compose makes the parts of an answer: a text with its files, or a card.
func (b *Bridge) compose(ctx context.Context, k *kind, j *jobs.Job) error {
	if k.answer != nil {
		j.Card = "" // of an earlier try
		stop := b.showTyping(ctx, j.Address())
		answer, err := b.respond(ctx, k, j)
		stop()
		if err != nil {
			return err
		}
		if j.Card == "" && j.Parts == nil {
			j.Parts = b.partsOf(j, answer)
		}
	}
	if j.Parts != nil {
		return nil
	}
	parts, err := b.desk.Parts(ctx, j)
	j.Parts = parts
	return err
}

// partsOf makes the parts of an answer in words and of its files.
func (b *Bridge) partsOf(j *jobs.Job, answer string) []jobs.SentPart {
	return append(b.answerParts(j, headed(j, answer)), b.fileParts(j)...)
}

func (b *Bridge) respond(ctx context.Context, k *kind, j *jobs.Job) (answer string, err error) {
	defer func() {
		if r := recover(); r != nil {
			answer, err = b.turns.Failed(j, fmt.Errorf("panic: %v\n%s", r, debug.Stack())), nil
		}
	}()
	if j.Notice != "" {
		return b.notice(ctx, j)
	}
	return k.answer(ctx, j)
}

// notice is an answer that was known when the message came; a stranger's message is asked
// about first.
func (b *Bridge) notice(ctx context.Context, j *jobs.Job) (string, error) {
	if j.Knock {
		return b.people.Knock(ctx, j)
	}
	return b.spelled(j.Message.Chat.Platform, j.Notice), nil
}

// settle closes a job without an answer.
func (b *Bridge) settle(j *jobs.Job, state jobs.State) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(b.lanes.Work()), jobs.StoreTimeout)
	defer cancel()
	j.State, j.Closed = state, b.cfg.Now()
	var err error
	if closing := b.kind(j).closing; closing != nil {
		err = closing(ctx, j)
	}
	if err == nil {
		err = b.jobs.Close(ctx, j)
	}
	if err != nil {
		b.log.Error("job cannot be closed, trying again", "job", j.Key(), "err", err)
		return err
	}
	b.lanes.Done(j.Key())
	return nil
}
