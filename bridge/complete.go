package bridge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/bridge/turn"
	"oneclaw/internal/rescue"
	"oneclaw/internal/retry"
)

// completer closes jobs: it replaces their records by receipts.
type completer struct {
	workers   *workerRegistry
	jobs      queue.Store
	queue     *queue.Queue
	leases    *queue.LeaseHolder
	claimer   *claimer
	inserter  *inserter
	reactions *outbox.ReactionTracker
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

// completeBy is complete, but its write of the receipt may be deferred until due is closed.
func (c *completer) completeBy(j *queue.Run, state receipts.State, due <-chan struct{}) error {
	ctx, cancel := c.queue.WriteContext()
	defer cancel()
	j.State, j.Closed = state, c.now()
	var err error
	if w, ok := c.workers.forJob(j).(finisher); ok {
		if err = c.jobs.Refresh(ctx, j); err == nil {
			err = w.finish(ctx, j)
		}
	}
	if err == nil {
		err = c.endPreview(ctx, j)
	}
	if err != nil && !c.dropIfLost(j, err) {
		c.log.Error("job cannot be closed, trying again", "job", j.Key(), "err", err)
		return err
	} else if err != nil {
		return nil
	}
	return c.close(j, state, due)
}

// close replaces a job by its receipt, at the latest when due is closed.
func (c *completer) close(j *queue.Run, state receipts.State, due <-chan struct{}) error {
	ctx, cancel := c.queue.WriteContext()
	defer cancel()
	j.State, j.Closed = state, c.now()
	err := c.jobs.Close(ctx, j, due)
	if c.dropIfLost(j, err) {
		return nil
	}
	if err != nil {
		c.log.Error("job cannot be closed, trying again", "job", j.Key(), "err", err)
		return err
	}
	c.end(j)
	return nil
}

// end does what follows the write of a job's receipt.
func (c *completer) end(j *queue.Run) {
	if c.queue.Remove(j.Key()); c.reactions.HasAny.Load() {
		c.reactions.End(j)
	}
	c.unblock(j)
	if c.tracer != nil {
		c.tracer.End(j)
	}
}

// receiptPause is how long the write of a receipt waits for another write to be grouped with. The longer
// it is, the more answers look unfinished after a crash.
const receiptPause = 40 * time.Millisecond

// completeLater closes a job in the background, while the next message of the chat is already being
// answered. If the program crashes before the receipt is written, the last part is sent again, marked as
// a possible duplicate. If the final steps of the job's worker fail too often, they are skipped.
func (c *completer) completeLater(j *queue.Run, state receipts.State) {
	c.queue.Running.Go(func() {
		due, cancel := context.WithTimeout(c.queue.Context(), receiptPause)
		defer cancel()
		end, t := c.completeBy, attempts{}
		if c.exceedsRestarts(j, 2) {
			end = c.close // the final steps may crash the process
		}
		for pauses := retry.New(minRetry, c.maxRetry); ; {
			err := rescue.Do(func() error { return end(j, state, due.Done()) })
			if err == nil {
				return
			}
			last, lost := c.countFailure(j, &t, err)
			if lost {
				return
			}
			if last {
				c.log.Error("job closed without its final steps", "incident", queue.NewIncident(), "job", j.Key(), "err", err)
				end, t = c.close, attempts{}
			}
			if retry.Wait(c.queue.Context(), pauses.Next(0)) != nil {
				return
			}
		}
	})
}

// completeAll closes jobs that were removed from their queue, and retries failures in the background.
func (c *completer) completeAll(jobs []*queue.Run, state receipts.State) {
	for _, j := range jobs {
		if rescue.Do(func() error { return c.complete(j, state) }) != nil {
			c.completeLater(j, state)
		}
	}
}

// endAll ends the jobs of all chats that pass accepts. Those that wait it closes in the background.
func (c *completer) endAll(pass func(*queue.Run) bool, cause error, state receipts.State) {
	waiting := c.queue.InterruptAll(pass, cause)
	if settle := func() { c.completeAll(waiting, state) }; !c.queue.TryGo(settle) {
		settle()
	}
}

// endForgotten ends the jobs of a user who is forgotten that pass.
func (c *completer) endForgotten(user string, pass func(m chats.Message, seq int64) bool) {
	c.endAll(func(j *queue.Run) bool { return j.Message.SenderID() == user && pass(j.Message, j.Seq) }, conversation.ErrStopped, receipts.Stopped)
}

// completeAfter calls do for a job, then closes the job in the background.
func (c *completer) completeAfter(ctx context.Context, j *queue.Run, do func(context.Context, *queue.Run) error) error {
	if err := do(ctx, j); err != nil {
		return err
	}
	c.completeLater(j, receipts.Done)
	return nil
}

// previewNotes are shown below a preview that ends without an answer, by the state of the job.
var previewNotes = map[receipts.State]string{
	receipts.Stopped: "⏹ Stopped.",
	receipts.Cleared: "⏹ Stopped: the conversation was cleared.",
	receipts.Revoked: "⏹ Stopped.",
	receipts.Waiting: "⏬ This goes on below.",
}

// endPreview marks the preview of a job as ended before the job is closed. It is idempotent.
func (c *completer) endPreview(ctx context.Context, j *queue.Run) error {
	if w, ok := j.Work.(*turn.Work); !ok || w.OpenPreview() == nil {
		return nil
	}
	if err := c.inserter.insert(ctx, c.inserter.newPreviewEnd(j, j.State)); err != nil {
		return fmt.Errorf("end the preview of %s: %w", j.Key(), err)
	}
	return nil
}

// dropIfLost drops a job if err says that another process now has it, and reports whether it did. It
// ends a job that this process has closed by a write that returned an error.
func (c *completer) dropIfLost(j *queue.Run, err error) bool {
	if !errors.Is(err, queue.ErrLost) {
		return false
	}
	ctx, cancel := c.queue.WriteContext()
	defer cancel()
	if !j.Closed.IsZero() && c.jobs.IsClosed(ctx, j) {
		c.end(j)
		return true
	}
	c.log.Info("job taken over by another process", "job", j.Key())
	c.queue.Remove(j.Key())
	for _, piece := range j.Pieces {
		c.queue.Remove(piece.Key())
	}
	c.unblock(j) // the new owner of the job blocks the chats
	if c.jobs.LeaseToken(j.Message.Chat) != "" {
		c.claimer.rescan() // the job was lost to another lease of this process
	}
	return true
}

// unblock releases the chats that a job blocked. Call it after the job has left the queue: if its record
// were read again before that, the chats would be blocked again.
func (c *completer) unblock(j *queue.Run) {
	if b, ok := c.workers.forJob(j).(blocker); ok {
		b.unblock(j)
	}
}

// countFailure counts a failed attempt, unless the store does not work. last reports whether it was the
// last attempt, lost whether another process has the job.
func (c *completer) countFailure(j *queue.Run, t *attempts, failure error) (last, lost bool) {
	ctx, cancel := c.queue.WriteContext()
	defer cancel()
	if err := rescue.Do(func() error { return c.jobs.Touch(ctx, j) }); err != nil || c.leases.OwnsSafely != nil && !c.leases.OwnsSafely(j) {
		t.failed = 0
		return false, c.dropIfLost(j, err)
	}
	return t.countFailure(c.now(), c.retryFor, failure), false
}

// exceedsRestarts reports whether more than times*maxRestarts restarts have interrupted a job without
// progress, over at least [Limits.RetryFor].
func (c *completer) exceedsRestarts(j *queue.Run, times int) bool {
	return j.Stall.Restarts > times*maxRestarts && c.now().Sub(j.Stall.Since) >= c.retryFor
}
