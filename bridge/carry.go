package bridge

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
	"oneclaw/bridge/sessions"
	"oneclaw/internal/retry"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// storeTimeout bounds a write that must happen although its job was interrupted.
const storeTimeout = jobs.WriteTimeout

// How long to wait before a job is tried again that could not be carried on, because
// the store or the platform was out of order.
const (
	minRetry = 500 * time.Millisecond
	maxRetry = time.Minute
)

// carry brings a job to its end, or leaves it open where the bridge shuts down.
func (b *Bridge) carry(ctx context.Context, l *lane, j *jobs.Job) {
	for wait := minRetry; ; wait = min(2*wait, maxRetry) {
		err := b.attempt(ctx, l, j)
		if err == nil {
			return
		}
		turn := j.Turn
		b.endTurn(j)
		if b.ends(ctx, j, err, wait) || b.rest(ctx, wait) != nil {
			return
		}
		if turn {
			b.awaitTurn(ctx, j)
		}
	}
}

// ends reports whether a job is over that could not be carried on, or waits.
func (b *Bridge) ends(ctx context.Context, j *jobs.Job, err error, wait time.Duration) bool {
	switch cause := context.Cause(ctx); {
	case cause == nil && errors.Is(err, agent.ErrSuspended):
		return b.suspend(j) == nil
	case errors.Is(err, sessions.ErrCleared) || errors.Is(cause, sessions.ErrCleared):
		return b.settle(j, jobs.StateCleared) == nil
	case errors.Is(err, sessions.ErrStopped) || errors.Is(cause, sessions.ErrStopped):
		return b.cutOff(j, jobs.StateStopped)
	case errors.Is(cause, errBarred):
		return b.cutOff(j, jobs.StateBarred)
	case b.work.Err() != nil:
		return true
	case b.mended(j, err):
		return false
	}
	b.log.Error("job can not be carried on, trying again", "job", j.Key(), "wait", wait, "err", err)
	return false
}

// cutOff ends a turn that was interrupted for good, and reports whether that is on record.
func (b *Bridge) cutOff(j *jobs.Job, state jobs.State) bool {
	return b.stopTurn(j) == nil && b.settle(j, state) == nil
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
	case <-b.work.Done():
	}
	return b.work.Err()
}

// attempt answers and delivers. Whatever panics on the way becomes an answer that
// says so, with the incident in the log.
func (b *Bridge) attempt(ctx context.Context, l *lane, j *jobs.Job) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if j.Message.Kind == jobs.KindMove {
		return b.attemptMove(ctx, j)
	}
	if err := b.overtaken(ctx, j); err != nil {
		return err
	}
	if ofCard(j) && j.Message.Kind != jobs.KindCard {
		return b.attemptCard(ctx, j)
	}
	if j.Message.Kind == jobs.KindLoad {
		return b.attemptLoad(ctx, j)
	}
	if j.Parts == nil {
		if b.barred(j) {
			// What it had begun before must not look as if it went on.
			if err := b.stopTurn(j); err != nil {
				return err
			}
			return b.settle(j, jobs.StateBarred)
		}
		if err := b.compose(ctx, l, j); err != nil {
			return err
		}
	}
	b.endTurn(j)
	if err := b.deliverAny(ctx, j); err != nil {
		return err
	}
	b.afterwards(ctx, j)
	return nil
}

// overtaken returns why a job of a former run is not to be answered any more.
func (b *Bridge) overtaken(ctx context.Context, j *jobs.Job) error {
	if !j.Found || b.isCommand(j) || ofCard(j) {
		return nil
	}
	session, err := b.session(ctx, j)
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
	j.Parts = b.sender.Render(j, b.cfg.Redact(headed(j, b.failed(j, err))))
	return b.deliver(ctx, j)
}

// deliver sends what has not been sent, and closes the job. An error means that it has to
// go on later; the job then says where.
func (b *Bridge) deliver(ctx context.Context, j *jobs.Job) error {
	if err := b.sender.Deliver(b.work, ctx, j); err != nil {
		return err
	}
	if j.Card != "" {
		if err := b.cardSent(ctx, j); err != nil {
			return err
		}
	}
	state := jobs.StateDone
	if j.Aside != "" || slices.ContainsFunc(j.Parts, func(p jobs.SentPart) bool { return p.State == jobs.PartFailed }) {
		state = jobs.StateFailed
	}
	b.measureAnswer(j.Message.Chat.Platform, state)
	b.closeLater(j, state)
	return nil
}

// closeLater writes the receipt while the next message of the chat is already being
// answered: nobody waits for it. Until it is written, a crash lets the last part look
// cut off, and it is sent again with its mark.
func (b *Bridge) closeLater(j *jobs.Job, state jobs.State) {
	b.lanes.Go(func() {
		for wait := minRetry; b.settle(j, state) != nil; wait = min(2*wait, maxRetry) {
			if retry.Wait(b.work, wait) != nil {
				return
			}
		}
	})
}

// compose makes the parts of an answer.
func (b *Bridge) compose(ctx context.Context, l *lane, j *jobs.Job) error {
	if j.Message.Kind != jobs.KindCard {
		j.Card = "" // of an earlier try
		stop := b.sender.ShowTyping(ctx, j.Address())
		answer, err := b.respond(ctx, l, j)
		stop()
		if err != nil {
			return err
		}
		if j.Card == "" {
			if j.Parts == nil {
				j.Parts = b.sender.Parts(j, headed(j, answer))
			}
			return nil
		}
	}
	kept, err := b.cards.Load(ctx, j.Card)
	if err != nil {
		return err
	}
	j.Parts = []jobs.SentPart{}
	if kept != nil && kept.Shown() {
		j.Parts, _ = b.renderCard(j, kept)
	}
	return nil
}

func (b *Bridge) respond(ctx context.Context, l *lane, j *jobs.Job) (answer string, err error) {
	defer func() {
		if r := recover(); r != nil {
			answer, err = b.failed(j, fmt.Errorf("panic: %v\n%s", r, debug.Stack())), nil
		}
	}()
	if j.Knock {
		return b.knock(ctx, j)
	}
	if j.Notice != "" {
		return b.spelled(j.Message.Chat.Platform, j.Notice), nil
	}
	if c, args, ok := b.commandOf(j); ok {
		text, err := c.run(ctx, b, l, j, args)
		return b.spelled(j.Message.Chat.Platform, text), err
	}
	return b.answer(ctx, j)
}

// settle closes a job without an answer.
func (b *Bridge) settle(j *jobs.Job, state jobs.State) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(b.work), storeTimeout)
	defer cancel()
	j.State, j.Closed = state, b.cfg.Now()
	err := b.voidApprovals(ctx, j)
	if err == nil {
		err = b.report(ctx, j)
	}
	if err == nil {
		err = b.jobs.Close(ctx, j)
	}
	if err != nil {
		b.log.Error("job can not be closed, trying again", "job", j.Key(), "err", err)
		return err
	}
	b.open.Delete(j.Key())
	return nil
}

// mayClear reports whether the sender may clear the chat of a message: in a direct
// chat its user; in a shared one configured admins, whoever began the thread, and
// those the platform calls administrators.
func (b *Bridge) mayClear(ctx context.Context, m chats.Message) bool {
	if m.Direct || b.role(m) >= toolgroups.RoleAdmin || (m.Opener != "" && m.Opener == m.User) {
		return true
	}
	admins, ok := b.platforms[m.Chat.Platform].(chats.Administrators)
	if !ok {
		return false
	}
	is, err := admins.IsAdmin(ctx, m.Chat, m.User)
	if err != nil {
		b.log.Warn("administrators can not be asked for", "chat", m.Chat.String(), "err", err)
	}
	return is && err == nil
}
