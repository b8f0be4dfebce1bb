package bridge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"oneclaw/bridge/outbox"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/bridge/turn"
	"oneclaw/internal/rescue"
	"oneclaw/internal/retry"
)

// completer closes jobs: it replaces their records by receipts.
type completer struct {
	workers   *workers
	jobs      queue.Store
	queue     *queue.Queue
	leases    *queue.Leases
	claimer   *claimer
	inserter  *inserter
	reactions *outbox.Reactions
	tracer    queue.Tracer // nil for none
	retryFor  time.Duration
	maxRetry  time.Duration // bounds the pauses between attempts at a failed write
	now       func() time.Time
	log       *slog.Logger
}

// complete closes a job, after the final steps of its worker.
func (c *completer) complete(j *queue.Run, state receipts.State) error {
	return c.completeBy(j, state, nil)
}

// completeBy is complete, but the receipt may wait until due.
func (c *completer) completeBy(j *queue.Run, state receipts.State, due <-chan struct{}) error {
	ctx, cancel := c.queue.WriteContext()
	defer cancel()
	j.State, j.Closed = state, c.now()
	var err error
	if w, ok := c.workers.of(j).(finisher); ok {
		if err = c.jobs.Check(ctx, j); err == nil {
			err = w.finish(ctx, j)
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

// close replaces a job by its receipt, before due.
func (c *completer) close(j *queue.Run, state receipts.State, due <-chan struct{}) error {
	ctx, cancel := c.queue.WriteContext()
	defer cancel()
	j.State, j.Closed = state, c.now()
	err := c.jobs.Close(ctx, j, due)
	if c.lost(j, err) {
		return nil
	}
	if err != nil {
		c.log.Error("job cannot be closed, trying again", "job", j.Key(), "err", err)
		return err
	}
	if c.queue.Remove(j.Key()); c.reactions.Any.Load() {
		c.reactions.End(j)
	}
	c.unblock(j)
	if c.tracer != nil {
		c.tracer.Closed(j)
	}
	return nil
}

// receiptPause is how long a receipt waits for another write to join it. The longer, the more answers
// look cut off after a crash.
const receiptPause = 40 * time.Millisecond

// completeLater writes the receipt while the next message of the chat is already being answered: no
// user waits for it. If the program crashes before it is written, the last part looks cut off and is
// sent again with its mark. Other final steps are skipped if they fail too often.
func (c *completer) completeLater(j *queue.Run, state receipts.State) {
	c.queue.Running.Go(func() {
		due, cancel := context.WithTimeout(c.queue.Context(), receiptPause)
		defer cancel()
		end, t := c.completeBy, attempts{}
		if c.overdue(j, 2) {
			end = c.close // its final steps may crash the process
		}
		for pauses := retry.New(minRetry, c.maxRetry); ; {
			err := rescue.Do(func() error { return end(j, state, due.Done()) })
			if err == nil {
				return
			}
			last, lost := c.isLast(j, &t, err)
			if lost {
				return
			}
			if last {
				c.log.Error("a job is closed without what belongs to its end", "incident", queue.NewIncident(), "job", j.Key(), "err", err)
				end, t = c.close, attempts{}
			}
			if retry.Wait(c.queue.Context(), pauses.Next(0)) != nil {
				return
			}
		}
	})
}

// completeAll closes jobs that were removed from their queue, later if that fails now.
func (c *completer) completeAll(jobs []*queue.Run, state receipts.State) {
	for _, j := range jobs {
		if rescue.Do(func() error { return c.complete(j, state) }) != nil {
			c.completeLater(j, state)
		}
	}
}

// completeAfter calls do for a job, and closes it, while the next one runs already.
func (c *completer) completeAfter(ctx context.Context, j *queue.Run, do func(context.Context, *queue.Run) error) error {
	if err := do(ctx, j); err != nil {
		return err
	}
	c.completeLater(j, receipts.Done)
	return nil
}

// notes are shown with a preview whose answer does not come.
var notes = map[receipts.State]string{
	receipts.Stopped: "⏹ Stopped.",
	receipts.Cleared: "⏹ Stopped: the conversation was cleared.",
	receipts.Revoked: "⏹ Stopped.",
	receipts.Waiting: "⏬ This goes on below.",
}

// endPreview marks the preview of a turn that is about to be closed as ended. It is idempotent.
func (c *completer) endPreview(ctx context.Context, j *queue.Run) error {
	if w, ok := j.Work.(*turn.Work); !ok || w.OpenPreview() == nil {
		return nil
	}
	if err := c.inserter.insert(ctx, c.inserter.endOfPreview(j, j.State)); err != nil {
		return fmt.Errorf("end the preview of %s: %w", j.Key(), err)
	}
	return nil
}

// lost reports whether another process now has a job. Then this process drops it.
func (c *completer) lost(j *queue.Run, err error) bool {
	if !errors.Is(err, queue.ErrLost) {
		return false
	}
	c.log.Info("a job is another process's now", "job", j.Key())
	c.queue.Remove(j.Key())
	for _, piece := range j.Pieces {
		c.queue.Remove(piece.Key())
	}
	c.unblock(j) // its new owner blocks them
	if c.jobs.LeaseToken(j.Message.Chat) != "" {
		c.claimer.lookAgain() // it was lost to another lease of this process
	}
	return true
}

// unblock releases the chats that the job blocked. Call it after the job has left the queue; rereading
// its record earlier would block them again.
func (c *completer) unblock(j *queue.Run) {
	if b, ok := c.workers.of(j).(blocker); ok {
		b.unblock(j)
	}
}

// isLast counts a failed attempt, and reports whether a job has had all its attempts although the store
// works for it; lost says that another process has it.
func (c *completer) isLast(j *queue.Run, t *attempts, failure error) (last, lost bool) {
	ctx, cancel := c.queue.WriteContext()
	defer cancel()
	if err := rescue.Do(func() error { return c.jobs.Touch(ctx, j) }); err != nil || c.leases.OwnsSafely != nil && !c.leases.OwnsSafely(j) {
		t.failed = 0
		return false, c.lost(j, err)
	}
	return t.count(c.now(), c.retryFor, failure), false
}

// overdue reports whether restarts have interrupted a job too often, times over.
func (c *completer) overdue(j *queue.Run, times int) bool {
	return j.Stall.Restarts > times*maxRestarts && c.now().Sub(j.Stall.Since) >= c.retryFor
}
