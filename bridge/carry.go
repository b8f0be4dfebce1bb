package bridge

import (
	"context"
	"errors"
	"slices"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/bridge/turn"
	"oneclaw/internal/retry"
	"oneclaw/storage"
)

// How long to wait before a job is tried again that could not be carried on, because
// the store or the platform was out of order. No pause is longer than [Limits.RetryFor].
const (
	minRetry = 500 * time.Millisecond
	// sharedRetry bounds them where processes share the store: while a database is replaced
	// none of them may be slower than its takeover by another would be.
	sharedRetry = time.Second
)

// carrier has workers bring jobs to their ends.
type carrier struct {
	*services
	suspects chan struct{} // see alone
}

// carryOn is one life of a job.
func (c *carrier) carryOn(work, ctx context.Context, j *queue.Run, t *trial) {
	if (j.PossiblyJoined || c.workers.place(j).Partial || len(j.Pieces) > 0) && !c.gather(ctx, j, t) {
		return
	}
	if c.cfg.Hooks.Trace != nil {
		ctx = c.cfg.Hooks.Trace.Runs(ctx, j)
	}
	for pauses := retry.New(minRetry, c.maxRetry); ; {
		err := c.attempt(work, ctx, j)
		if err == nil {
			return
		}
		wait, turn, told := pauses.Next(0), j.HasSlot, t.told
		c.lanes.ReleaseSlot(j)
		if c.ends(ctx, j, t, err, wait) {
			return
		}
		if !told && t.told {
			continue // with the answer that says so
		}
		if c.rest(ctx, wait) != nil {
			return
		}
		if turn {
			c.lanes.AwaitSlot(ctx, j)
		}
	}
}

// ends reports whether a job that could not be carried on is over, or waits.
func (c *carrier) ends(ctx context.Context, j *queue.Run, t *trial, err error, wait time.Duration) bool {
	var ended error
	cut := receipts.Failed
	switch cause := context.Cause(ctx); {
	case errors.Is(err, queue.ErrLost) || errors.Is(cause, queue.ErrLost):
		ended = queue.ErrLost
	case errors.Is(err, agent.ErrSuspended):
		ended = c.suspend(j)
	case errors.Is(err, conversation.ErrCleared) || errors.Is(cause, conversation.ErrCleared):
		cut = receipts.Cleared
		ended = c.cutOff(j, cut)
	case errors.Is(err, conversation.ErrStopped) || errors.Is(cause, conversation.ErrStopped) || errors.Is(cause, queue.ErrOvertaken):
		cut = receipts.Stopped
		ended = c.cutOff(j, cut)
	case errors.Is(err, errBarred) || errors.Is(cause, errBarred):
		cut = receipts.Barred
		ended = c.cutOff(j, cut)
	case c.lanes.Context().Err() != nil || errors.Is(cause, queue.ErrShutdown):
		return true
	case c.mended(j, t, err):
		return false
	default:
		c.log.Error("job cannot be carried on, trying again", "job", j.Key(), "wait", wait, "err", err)
		ended = err
	}
	return ended == nil || c.lost(j, ended) || c.inVain(ctx, j, t, cut, ended)
}

// lost reports whether a job is another process's now. Nothing more is done about it here.
func (c *carrier) lost(j *queue.Run, err error) bool {
	if !errors.Is(err, queue.ErrLost) {
		return false
	}
	c.log.Info("a job is another process's now", "job", j.Key())
	c.lanes.Remove(j.Key())
	for _, piece := range j.Pieces {
		c.lanes.Remove(piece.Key())
	}
	if b, ok := c.workers.of(j).(blocker); ok {
		b.unblock(j) // who has it blocks them
	}
	if c.jobs.LeaseToken(j.Message.Chat) != "" {
		c.intake.lookAgain() // it was lost to another lease of this process
	}
	return true
}

// cutOff ends a turn that was interrupted for good: it must not look as if it went on.
func (c *carrier) cutOff(j *queue.Run, state receipts.State) error {
	if err := c.turns.StopTurn(c.lanes.Context(), j, agent.NoteStopped); err != nil {
		return err
	}
	return c.settle(j, state)
}

// doneAfter does something for a job, and closes it while the next one runs already.
func (c *carrier) doneAfter(ctx context.Context, j *queue.Run, do func(context.Context, *queue.Run) error) error {
	if err := do(ctx, j); err != nil {
		return err
	}
	c.closeLater(j, receipts.Done)
	return nil
}

// rest waits before the next try. A /stop or /clear that comes meanwhile ends the wait,
// the end of the bridge is an error.
func (c *carrier) rest(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil {
		ctx = c.lanes.Context()
	}
	_ = retry.Wait(ctx, d)
	return c.lanes.Context().Err()
}

// attempt carries a job on as its worker does.
func (c *carrier) attempt(work, ctx context.Context, j *queue.Run) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	w := c.workers.of(j)
	declared := w.declares()
	if j.Found && !declared.lasting { // a command may have ended it in a former run
		if _, err := conversation.Of(ctx, c.store, &j.Job); err != nil {
			return err
		}
	}
	// What its user may do counts now, not when it was accepted.
	if outbox.Of(j).Parts == nil && !declared.open {
		if known, err := c.people.Knows(ctx, j.Message.By()); err != nil {
			return err
		} else if !known {
			c.log.Warn("not answered: its user may not talk to the bot any more", "job", j.Key(), "user", j.Message.By())
			return errBarred
		}
	}
	if p, ok := w.(performer); ok {
		return p.perform(ctx, j)
	}
	if outbox.Of(j).Parts == nil {
		if err := c.compose(ctx, w, j); err != nil {
			return err
		}
	}
	c.lanes.ReleaseSlot(j)
	err := c.deliver(work, ctx, j)
	if errors.Is(err, storage.ErrInvalid) {
		// The job with its answer is larger than a value can be: none of it was sent.
		c.sender.Prepare(j, c.turns.Failed(ctx, j, err), false)
		err = c.deliver(work, ctx, j)
	}
	if err == nil {
		c.turns.Afterwards(ctx, j)
	}
	return err
}

// carryShared is carry where other processes have jobs, too.
func (c *carrier) carryShared(work, ctx context.Context, j *queue.Run) {
	// It was accepted while its chat was given away, and perhaps taken again: what others have
	// accepted before it comes first, so it is taken with that. A process that was paused asks
	// first whether it still answers there.
	if !c.owners.OwnsSafely(j) && c.lost(j, queue.ErrLost) {
		return
	}
	c.carry(work, ctx, j)
}

// compose makes the parts of an answer: a text with its files, or a card.
func (c *carrier) compose(ctx context.Context, w worker, j *queue.Run) (err error) {
	a, ok := w.(answerer)
	if !ok {
		outbox.Of(j).Parts, err = c.cards.Parts(ctx, j)
		return err
	}
	d := outbox.Of(j)
	if task := turn.TaskOf(j); task == nil || !task.Quiet {
		d.StopTyping = c.sender.ShowTyping(ctx, outbox.Address(j))
		defer func() { d.StopTyping() }() // a question takes the sign down, and another one follows
	}
	d.Card = "" // of an earlier try
	answer := c.notice
	if d.Notice == "" {
		answer = a.answer
	}
	text, err := answer(ctx, j)
	switch {
	case err != nil || d.Parts != nil:
	case d.Card != "":
		if d.Parts, err = c.cards.Parts(ctx, j); err == nil {
			d.Parts = c.sender.Adopt(j, d.Parts)
		}
	default:
		c.sender.Prepare(j, text, false)
	}
	return err
}

// notice is an answer that was known when the message came; a stranger's message is asked
// about first.
func (c *carrier) notice(ctx context.Context, j *queue.Run) (string, error) {
	if turn.Of(j).AskOwner {
		return c.people.AskOwner(ctx, j)
	}
	if c.workers.place(j).Said {
		outbox.MakeEphemeral(j)
	}
	return c.commands.spelled(j.Message.Chat.Platform, outbox.Of(j).Notice), nil
}

// deliver sends what has not been sent, and closes the job. An error means that it has to
// go on later; the job then says where.
func (c *carrier) deliver(work, ctx context.Context, j *queue.Run) error {
	if err := c.sender.Deliver(work, ctx, j); err != nil {
		return err
	}
	d := outbox.Of(j)
	if d.Card != "" {
		if err := c.cards.Delivered(ctx, j); err != nil {
			return err
		}
	}
	state, counted := receipts.Done, queue.MeasuredDelivered
	if d.DeadLetter != "" || slices.ContainsFunc(d.Parts, func(p receipts.Part) bool { return p.State == receipts.PartFailed }) {
		state, counted = receipts.Failed, queue.MeasuredFailed
	}
	c.cfg.Hooks.Measure(j.Message.Chat.Platform, counted)
	c.closeLater(j, state)
	return nil
}

// settle closes a job, with what belongs to the end of its kind.
func (c *carrier) settle(j *queue.Run, state receipts.State) error { return c.settleBy(j, state, nil) }

// settleBy is settle with a receipt that may wait until due.
func (c *carrier) settleBy(j *queue.Run, state receipts.State, due <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.lanes.Context()), queue.WriteTimeout)
	defer cancel()
	j.State, j.Closed = state, c.cfg.Now()
	var err error
	if w, ok := c.workers.of(j).(completer); ok {
		if err = c.jobs.Check(ctx, j); err == nil {
			err = w.complete(ctx, j)
		}
	}
	if err == nil {
		err = c.endPreview(ctx, j)
	}
	if err != nil && !c.lost(j, err) {
		c.log.Error("job cannot be closed, trying again", "job", j.Key(), "err", err)
		return err
	} else if err != nil {
		return nil
	}
	return c.close(j, state, due)
}

// close puts a receipt in the place of a job, by due.
func (c *carrier) close(j *queue.Run, state receipts.State, due <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.lanes.Context()), queue.WriteTimeout)
	defer cancel()
	j.State, j.Closed = state, c.cfg.Now()
	err := c.jobs.Close(ctx, j, due)
	if c.lost(j, err) {
		return nil
	}
	if err != nil {
		c.log.Error("job cannot be closed, trying again", "job", j.Key(), "err", err)
		return err
	}
	if c.lanes.Remove(j.Key()); c.signs.Any.Load() {
		c.signs.End(j)
	}
	if c.cfg.Hooks.Trace != nil {
		c.cfg.Hooks.Trace.Closed(j)
	}
	return nil
}

// mended reports whether a job failed because of a damaged record, which is set aside now.
// A record that is met twice all the same ends the job.
func (c *carrier) mended(j *queue.Run, t *trial, err error) bool {
	d, is := errors.AsType[*queue.DamagedError](err)
	if !is {
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.lanes.Context()), queue.WriteTimeout)
	defer cancel()
	if slices.Contains(t.damaged, d.Name()) {
		outbox.Of(j).Notice = c.turns.Failed(ctx, j, err)
		return false
	}
	if _, err := c.keeper.mend(ctx, d, j.Message.Chat, ""); err != nil {
		c.log.Error("a damaged record cannot be set aside, trying again", "key", d.Name(), "err", err)
		return false
	}
	t.damaged = append(t.damaged, d.Name())
	return true
}

// errBarred cancels the turn of a removed user.
var errBarred = errors.New("bridge: its user was removed")

// suspend puts on disk that a job waits for a decision. Its lane is held for it, without
// a goroutine.
func (c *carrier) suspend(j *queue.Run) error {
	j.State = receipts.Waiting
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.lanes.Context()), queue.WriteTimeout)
	defer cancel()
	err := c.jobs.WriteFenced(ctx, j, func() error { return c.leave(ctx, j) })
	j.Suspended = err == nil
	j.Since = c.cfg.Now()
	if err != nil {
		j.State = receipts.Open
		c.log.Error("a turn that waits for an approval cannot be stored, trying again", "job", j.Key(), "err", err)
	}
	return err
}

// holds looks after a job that waits for a decision from now on: that may have come
// meanwhile. The job that waits next is told.
func (c *carrier) holds(h *queue.Suspended, next *queue.Run) {
	ctx, cancel := context.WithTimeout(c.lanes.Context(), queue.WriteTimeout)
	defer cancel()
	if moved, err := c.gate.Decided(ctx, h.Cards); moved || err != nil {
		c.lanes.Resume(h.Chat, h.Key())
		return
	}
	c.showWaiting(ctx, h.Chat, true)
	if next != nil {
		c.hint(ctx, h, next)
	}
}

// showWaiting shows where a turn waits for a decision, on platforms that can.
func (c *carrier) showWaiting(ctx context.Context, chat chats.Chat, on bool) {
	if w, ok := c.platforms[chat.Platform].(chats.WaitIndicator); ok {
		w.SetWaiting(ctx, chat, on)
	}
}

// Park is told that a turn waits for a person to answer what a tool asks: another one may run
// meanwhile. The job that waits next is told.
func (c *carrier) Park(ctx context.Context, j *queue.Run) error {
	d := outbox.Of(j)
	if d.StopTyping != nil {
		d.StopTyping()
	}
	if d.ShowPreview != nil {
		d.ShowPreview(false)
	}
	if err := c.jobs.WriteFenced(ctx, j, func() error { return c.leave(ctx, j) }); err != nil {
		return err
	}
	h, next := c.lanes.Park(j)
	c.showWaiting(ctx, c.lanes.ChatOf(j), true)
	if next != nil {
		c.hint(ctx, h, next)
	}
	return nil
}

// Unpark is told that the turn goes on.
func (c *carrier) Unpark(ctx context.Context, j *queue.Run) {
	c.lanes.Unpark(j)
	c.showWaiting(ctx, c.lanes.ChatOf(j), false)
	d := outbox.Of(j)
	if d.StopTyping != nil {
		d.StopTyping = c.sender.ShowTyping(ctx, outbox.Address(j))
	}
	if d.ShowPreview != nil {
		d.ShowPreview(true)
	}
}

// AwaitSlot implements [interact.Turns].
func (c *carrier) AwaitSlot(ctx context.Context, j *queue.Run) { c.lanes.AwaitSlot(ctx, j) }

var _ interact.Turns = (*carrier)(nil)

func (c *carrier) release(kept *interact.StoredCard) {
	c.asking.CardClosed(kept)
	if job, lane, ok := interact.TurnOf(kept); ok {
		c.showWaiting(c.lanes.Context(), lane, false)
		c.lanes.Resume(lane, job)
	}
}

// hint tells a user who writes while a decision is due that their message waits, once
// for each wait.
func (c *carrier) hint(ctx context.Context, held *queue.Suspended, j *queue.Run) {
	if k := c.workers.of(j).declares(); len(held.Cards) == 0 || !k.NeedsSlot || k.SubQueue != "" {
		return
	}
	_, err := c.cards.Post(ctx, "wait/"+held.Cards[0], j.Message.Chat, interact.Card{
		ReplyTo: j.Message.ID,
		Text:    "I am waiting for the decision above. Your message is next after that; /stop ends what waits.",
	})
	if err != nil {
		c.log.Warn("nobody could be told that a message waits for an approval", "job", j.Key(), "err", err)
	}
}
