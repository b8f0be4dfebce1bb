package bridge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge/approval"
	"oneclaw/bridge/cards"
	"oneclaw/bridge/delivery"
	"oneclaw/bridge/jobs"
	"oneclaw/bridge/lanes"
	"oneclaw/bridge/people"
	"oneclaw/bridge/sessions"
	"oneclaw/bridge/turns"
	"oneclaw/internal/retry"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// How long to wait before a job is tried again that could not be carried on, because
// the store or the platform was out of order.
const (
	minRetry = 500 * time.Millisecond
	maxRetry = time.Minute
)

// carrier brings jobs to their ends, as their kinds say.
type carrier struct {
	store    storage.Store
	jobs     jobs.Store
	lanes    *lanes.Lanes
	kinds    *kinds
	sender   *delivery.Sender
	desk     *cards.Desk
	people   *people.Desk
	gate     *approval.Gate
	turns    *turns.Runner
	keeper   *keeper
	commands *commands
	redact   func(string) string
	measure  jobs.Meter
	log      *slog.Logger
	now      func() time.Time
}

// carry brings a job to its end, or leaves it open where the bridge shuts down.
func (c *carrier) carry(ctx context.Context, j *jobs.Job) {
	for pauses := retry.New(minRetry, maxRetry); ; {
		err := c.attempt(ctx, j)
		if err == nil {
			return
		}
		wait, turn := pauses.Next(0), j.Turn
		c.lanes.EndTurn(j)
		if c.ends(ctx, j, err, wait) || c.rest(ctx, wait) != nil {
			return
		}
		if turn {
			c.lanes.AwaitTurn(ctx, j)
		}
	}
}

// ends reports whether a job that could not be carried on is over, or waits.
func (c *carrier) ends(ctx context.Context, j *jobs.Job, err error, wait time.Duration) bool {
	var ended error
	switch cause := context.Cause(ctx); {
	case errors.Is(err, jobs.ErrLost):
		ended = err
	case cause == nil && errors.Is(err, agent.ErrSuspended):
		ended = c.suspend(j)
	case errors.Is(err, sessions.ErrCleared) || errors.Is(cause, sessions.ErrCleared):
		ended = c.settle(j, jobs.StateCleared)
	case errors.Is(err, sessions.ErrStopped) || errors.Is(cause, sessions.ErrStopped):
		ended = c.cutOff(j, jobs.StateStopped)
	case errors.Is(err, errBarred) || errors.Is(cause, errBarred):
		ended = c.cutOff(j, jobs.StateBarred)
	case c.lanes.Work().Err() != nil:
		return true
	case c.mended(j, err):
		return false
	default:
		c.log.Error("job cannot be carried on, trying again", "job", j.Key(), "wait", wait, "err", err)
		return false
	}
	return ended == nil || c.lost(j, ended)
}

// lost reports whether a job is another process's now. Nothing more is done about it here.
func (c *carrier) lost(j *jobs.Job, err error) bool {
	if !errors.Is(err, jobs.ErrLost) {
		return false
	}
	c.log.Warn("another process has taken a job over", "job", j.Key())
	c.lanes.Done(j.Key())
	return true
}

// cutOff ends a turn that was interrupted for good: it must not look as if it went on.
func (c *carrier) cutOff(j *jobs.Job, state jobs.State) error {
	if err := c.turns.StopTurn(c.lanes.Work(), j); err != nil {
		return err
	}
	return c.settle(j, state)
}

// rest waits before the next try. A /stop or /clear that comes meanwhile ends the wait,
// the end of the bridge is an error.
func (c *carrier) rest(ctx context.Context, d time.Duration) error {
	interrupted := ctx.Done()
	if ctx.Err() != nil {
		interrupted = nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-interrupted:
	case <-c.lanes.Work().Done():
	}
	return c.lanes.Work().Err()
}

// attempt carries a job on as its kind says. Whatever panics on the way to an answer
// becomes an answer that says so, with the incident in the log.
func (c *carrier) attempt(ctx context.Context, j *jobs.Job) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	k := c.kinds.of(j)
	if err := c.overtaken(ctx, k, j); err != nil {
		return err
	}
	if j.Parts == nil && !k.open && c.barred(j) {
		return errBarred
	}
	if k.run != nil {
		return k.run(ctx, j)
	}
	if j.Parts == nil {
		if err := c.compose(ctx, k, j); err != nil {
			return err
		}
	}
	c.lanes.EndTurn(j)
	if err := c.deliverAny(ctx, j); err != nil {
		return err
	}
	c.turns.Afterwards(ctx, j)
	return nil
}

// overtaken returns why a job of a former run is not to be answered any more.
func (c *carrier) overtaken(ctx context.Context, k *kind, j *jobs.Job) error {
	if !j.Found || k.lasting {
		return nil
	}
	session, err := sessions.Of(ctx, c.store, j)
	if err != nil {
		return err
	}
	return session.Overtaken(j)
}

// deliverAny delivers an answer, or a sentence where the job with it is larger than a value
// can be: then none of it was sent.
func (c *carrier) deliverAny(ctx context.Context, j *jobs.Job) error {
	err := c.deliver(ctx, j)
	if !errors.Is(err, storage.ErrInvalid) {
		return err
	}
	j.Parts = c.sender.Render(j, c.redact(headed(j, c.turns.Failed(j, err))))
	return c.deliver(ctx, j)
}

// deliver sends what has not been sent, and closes the job. An error means that it has to
// go on later; the job then says where.
func (c *carrier) deliver(ctx context.Context, j *jobs.Job) error {
	if err := c.sender.Deliver(c.lanes.Work(), ctx, j); err != nil {
		return err
	}
	if j.Card != "" {
		if err := c.desk.Sent(ctx, j); err != nil {
			return err
		}
	}
	state := jobs.StateDone
	if j.Aside != "" || slices.ContainsFunc(j.Parts, func(p jobs.SentPart) bool { return p.State == jobs.PartFailed }) {
		state = jobs.StateFailed
	}
	c.measureAnswer(j.Message.Chat.Platform, state)
	c.closeLater(j, state)
	return nil
}

// closeLater writes the receipt while the next message of the chat is already being
// answered: nobody waits for it. Until it is written, a crash lets the last part look
// cut off, and it is sent again with its mark.
func (c *carrier) closeLater(j *jobs.Job, state jobs.State) {
	c.lanes.Go(func() {
		for pauses := retry.New(minRetry, maxRetry); c.settle(j, state) != nil; {
			if retry.Wait(c.lanes.Work(), pauses.Next(0)) != nil {
				return
			}
		}
	})
}

// compose makes the parts of an answer: a text with its files, or a card.
func (c *carrier) compose(ctx context.Context, k *kind, j *jobs.Job) error {
	if k.answer != nil {
		j.Card = "" // of an earlier try
		stop := c.sender.ShowTyping(ctx, j.Address())
		answer, err := c.respond(ctx, k, j)
		stop()
		if err != nil {
			return err
		}
		if j.Card == "" && j.Parts == nil {
			j.Parts = c.sender.Parts(j, headed(j, answer))
		}
	}
	if j.Parts != nil {
		return nil
	}
	parts, err := c.desk.Parts(ctx, j)
	j.Parts = parts
	return err
}

func (c *carrier) respond(ctx context.Context, k *kind, j *jobs.Job) (answer string, err error) {
	defer func() {
		if r := recover(); r != nil {
			answer, err = c.turns.Failed(j, fmt.Errorf("panic: %v\n%s", r, debug.Stack())), nil
		}
	}()
	if j.Notice != "" {
		return c.notice(ctx, j)
	}
	return k.answer(ctx, j)
}

// notice is an answer that was known when the message came; a stranger's message is asked
// about first.
func (c *carrier) notice(ctx context.Context, j *jobs.Job) (string, error) {
	if j.Knock {
		return c.people.Knock(ctx, j)
	}
	return c.commands.spelled(j.Message.Chat.Platform, j.Notice), nil
}

// settle closes a job without an answer.
func (c *carrier) settle(j *jobs.Job, state jobs.State) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.lanes.Work()), jobs.WriteTimeout)
	defer cancel()
	j.State, j.Closed = state, c.now()
	var err error
	if closing := c.kinds.of(j).closing; closing != nil {
		if err = c.jobs.Check(ctx, j); err == nil {
			err = closing(ctx, j)
		}
	}
	if err == nil {
		err = c.jobs.Close(ctx, j)
	}
	if c.lost(j, err) {
		return nil
	}
	if err != nil {
		c.log.Error("job cannot be closed, trying again", "job", j.Key(), "err", err)
		return err
	}
	c.lanes.Done(j.Key())
	return nil
}

// mended reports whether a job failed because of a damaged record, which is set aside now.
// A record that is met twice all the same ends the job.
func (c *carrier) mended(j *jobs.Job, err error) bool {
	d, is := errors.AsType[*jobs.DamagedError](err)
	if !is {
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.lanes.Work()), jobs.WriteTimeout)
	defer cancel()
	if slices.Contains(j.Damaged, d.Name()) {
		j.Notice = c.turns.Failed(j, err)
		return false
	}
	if _, err := c.keeper.mend(ctx, d, j.Message.Chat, ""); err != nil {
		c.log.Error("a damaged record cannot be set aside, trying again", "key", d.Name(), "err", err)
		return false
	}
	j.Damaged = append(j.Damaged, d.Name())
	return true
}

// errBarred cancels the turn of a removed user.
var errBarred = errors.New("bridge: its user was removed")

// barred reports whether a job must not run because of whose it is: what its user may do
// counts now, not when it was accepted.
func (c *carrier) barred(j *jobs.Job) bool {
	if c.people.Role(j.By()) > toolgroups.RoleStranger {
		return false
	}
	c.log.Warn("not answered: its user may not talk to the bot any more", "job", j.Key(), "user", j.By())
	return true
}

// measureAnswer counts an answer that is closed with a state.
func (c *carrier) measureAnswer(platform string, state jobs.State) {
	what := jobs.MeasuredDelivered
	if state == jobs.StateFailed {
		what = jobs.MeasuredFailed
	}
	c.measure.Count(platform, what)
}
