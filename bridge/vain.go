package bridge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/rescue"
	"oneclaw/internal/retry"
)

// What fails is tried again. What fails for a reason that is not the job's own (the store
// takes no writes, another process may answer in the chat, the platform is out of order) waits
// until that passes. Any other job is ended when it has had its tries, with an incident: there
// is an answer that says so where one is due, else the log does. So is what restart after restart
// finds where it was: it may be what ends the process.
const (
	// maxTries bounds the tries, which go on for [Limits.RetryFor] at least; tries that take long
	// end after maxPatience times that.
	maxTries    = 8
	maxPatience = 5
	// maxPanics is how many lives a job has that panics.
	maxPanics = 2
	// maxRestarts bounds the restarts in a row after which a job is taken up again and comes no
	// further, which go on for [Limits.RetryFor] at least: it may be what ends the process.
	maxRestarts = 5
	// maxTogether is after how many restarts in a row the jobs that were found each time are
	// carried on one by one, so that those beside the one that ends the process come to their
	// ends. None keeps the others waiting for longer than aloneFor.
	maxTogether = 2
	aloneFor    = 10 * time.Second
)

// trial is what went wrong with a job in this process.
type trial struct {
	tries, panics int
	since         time.Time // of the first of the tries
	told          bool      // its answer says that it failed
	damaged       []string  // the damaged records that it met
}

// count counts a try that ended with an error, and reports whether it was the last.
func (t *trial) count(cfg *Config, err error) bool {
	if _, panicked := errors.AsType[*rescue.PanicError](err); panicked {
		t.panics++
		return t.panics >= maxPanics
	}
	now, patience := cfg.Now(), cfg.Limits.RetryFor
	if t.tries == 0 {
		t.since = now
	}
	t.tries++
	lasts := now.Sub(t.since)
	return t.tries >= maxTries && lasts >= patience || t.tries > 1 && lasts >= maxPatience*patience
}

// carry brings a job to its end, or leaves it open where the bridge shuts down. A panic on the
// way costs the job one of its lives, and nothing else.
func (c *carrier) carry(work, ctx context.Context, j *queue.Run) {
	t, over := trial{}, false
	defer c.alone(ctx, j)()
	if err := c.restarted(j); err != nil {
		t.told = j.Incident != "" // its answer says so, and ended the process as well
		over = c.giveUp(ctx, j, &t, receipts.Failed, err)
	}
	for !over {
		err := rescue.Do(func() error { c.carryOn(work, ctx, j, &t); return nil })
		if over = err == nil || c.lanes.Context().Err() != nil; over {
			break
		}
		last := t.count(&c.cfg, err)
		c.log.Error("a job panicked", "job", j.Key(), "life", t.panics, "err", err)
		over = last && c.giveUp(ctx, j, &t, receipts.Failed, err)
	}
}

// alone waits until a job may be carried on that may be what ends the process; next lets another
// such job begin.
func (c *carrier) alone(ctx context.Context, j *queue.Run) (next func()) {
	if !j.Restarted || j.Stall.Restarts < maxTogether || j.State == receipts.Waiting || !outbox.Of(j).OutageSince.IsZero() {
		return func() {}
	}
	turn := j.HasSlot
	c.lanes.ReleaseSlot(j)
	select {
	case c.suspects <- struct{}{}:
	case <-ctx.Done():
		return func() {}
	}
	if turn {
		c.lanes.AwaitSlot(ctx, j)
	}
	leave := sync.OnceFunc(func() { <-c.suspects })
	timer := time.AfterFunc(aloneFor, leave)
	return func() { timer.Stop(); leave() }
}

// restarted counts the restart that found a job, before anything is done for it. It returns an
// error where that was one too many. What waits for a person or for its platform is not counted.
func (c *carrier) restarted(j *queue.Run) error {
	if !j.Restarted || j.State == receipts.Waiting || !outbox.Of(j).OutageSince.IsZero() {
		j.Restarted = false
		return nil
	}
	j.Restarted = false
	if j.Stall.Restarts == 0 {
		j.Stall.Since = c.cfg.Now()
	}
	j.Resumes++
	j.Stall.Restarts++
	if err := c.jobs.SaveAlways(c.lanes.Context(), j); err != nil {
		c.log.Warn("a restart that found a job is not counted", "job", j.Key(), "err", err)
	} else if c.overdue(j, 1) {
		return fmt.Errorf("bridge: %d restarts in a row found it where it was", j.Stall.Restarts)
	}
	return nil
}

// overdue reports whether restarts found a job where it was too often, for so many times.
func (c *carrier) overdue(j *queue.Run, times int) bool {
	return j.Stall.Restarts > times*maxRestarts && c.cfg.Now().Sub(j.Stall.Since) >= c.cfg.Limits.RetryFor
}

// inVain counts a try in vain, and gives a job up that has had its tries; state is how it ends
// then. It reports whether the job is over here.
func (c *carrier) inVain(ctx context.Context, j *queue.Run, t *trial, state receipts.State, err error) bool {
	own, lost := c.isOwn(j, t, err)
	return lost || own && c.giveUp(ctx, j, t, state, err)
}

// isOwn counts a try in vain, and reports whether a job has had all its tries although the
// store works for it; lost says that it is another process's.
func (c *carrier) isOwn(j *queue.Run, t *trial, failure error) (own, lost bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.lanes.Context()), queue.WriteTimeout)
	defer cancel()
	if err := rescue.Do(func() error { return c.jobs.Touch(ctx, j) }); err != nil || c.owners.OwnsSafely != nil && !c.owners.OwnsSafely(j) {
		t.tries = 0
		return false, c.lost(j, err)
	}
	return t.count(&c.cfg, failure), false
}

// giveUp ends a job that cannot be carried to its end. The first time it gets an answer that
// says so, where an answer is due, and reports that it goes on with that; else it is closed.
func (c *carrier) giveUp(ctx context.Context, j *queue.Run, t *trial, state receipts.State, err error) bool {
	w, told := c.workers.of(j), t.told
	*t = trial{told: true, damaged: t.damaged}
	for _, piece := range j.Pieces {
		c.closeLater(piece, state)
	}
	j.Pieces = nil
	_, answers := w.(answerer)
	parts := outbox.Of(j).Parts
	due := answers && (parts == nil || slices.ContainsFunc(parts, func(p receipts.Part) bool { return p.State != receipts.PartSent }))
	if due && !told && state == receipts.Failed {
		if panicked := rescue.Do(func() error { c.sayFailed(ctx, w, j, err); return nil }); panicked == nil {
			return false
		}
	}
	if state == receipts.Failed && j.Incident == "" {
		j.Incident = queue.NewIncident()
		c.log.Error("given up", "incident", j.Incident, "job", j.Key(), "err", err)
	}
	if f, ok := w.(failer); ok && !c.overdue(j, 2) {
		if failed := rescue.Do(func() error { return f.fail(ctx, j) }); failed != nil {
			c.log.Error("what failed cannot be told", "incident", j.Incident, "job", j.Key(), "err", failed)
		}
	}
	c.closeLater(j, state)
	return true
}

// sayFailed makes the answer of a job that is given up. What of its answer was sent stays.
func (c *carrier) sayFailed(ctx context.Context, w worker, j *queue.Run, err error) {
	if w.declares().NeedsSlot {
		// The model must not go on with it. That is no reason to keep a user waiting.
		if stopped := rescue.Do(func() error { return c.turns.StopTurn(ctx, j, agent.NoteGivenUp) }); stopped != nil {
			c.log.Warn("the conversation does not tell that a turn was given up", "job", j.Key(), "err", stopped)
		}
	}
	d, sent := outbox.Of(j), 0
	for sent < len(d.Parts) && d.Parts[sent].State == receipts.PartSent {
		sent++
	}
	text := c.turns.Failed(ctx, j, err)
	j.Stall = queue.Stall{} // the line has tries of its own
	if d.Card, d.Files = "", nil; sent == 0 {
		c.sender.Prepare(j, text, false)
		return
	}
	d.Drop(sent)
	d.Parts = append(d.Parts, c.sender.Render(j, c.cfg.Redact(text))...)
}

// tellFailed tells a chat that something which was asked there has failed, of a job that has no
// answer.
func (c *carrier) tellFailed(ctx context.Context, j *queue.Run) error {
	if ctx.Err() != nil {
		ctx = c.lanes.Context()
	}
	text := c.turns.Failed(ctx, j, errGivenUp)
	_, err := c.cards.Post(ctx, "failed/"+j.Key(), j.Message.Chat, interact.Card{Text: text})
	return err
}

// errGivenUp is what a person is told of; the log has the cause.
var errGivenUp = errors.New("bridge: given up, see the error before")

// receiptPause is how long a receipt waits for another write to join, at most: the longer, the more
// answers a crash lets look cut off.
const receiptPause = 40 * time.Millisecond

// closeLater writes the receipt while the next message of the chat is already being
// answered: no user waits for it. Until it is written, a crash lets the last part look
// cut off, and it is sent again with its mark. What belongs to the end beside the receipt is
// left out where it fails too often.
func (c *carrier) closeLater(j *queue.Run, state receipts.State) {
	c.lanes.Running.Go(func() {
		due, cancel := context.WithTimeout(c.lanes.Context(), receiptPause)
		defer cancel()
		settle, t := c.settleBy, trial{}
		if c.overdue(j, 2) {
			settle = c.close // what belongs to its end may be what ends the process
		}
		for pauses := retry.New(minRetry, c.maxRetry); ; {
			err := rescue.Do(func() error { return settle(j, state, due.Done()) })
			if err == nil {
				return
			}
			own, lost := c.isOwn(j, &t, err)
			if lost {
				return
			}
			if own {
				c.log.Error("a job is closed without what belongs to its end", "incident", queue.NewIncident(), "job", j.Key(), "err", err)
				settle, t = c.close, trial{}
			}
			if retry.Wait(c.lanes.Context(), pauses.Next(0)) != nil {
				return
			}
		}
	})
}
