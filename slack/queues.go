package slack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"oneclaw/internal/rescue"
)

// maxAccepting bounds the intakes that are being accepted or wait to be.
const maxAccepting = 256

// workQueues runs the work in each queue in order, and that in different queues concurrently. There is
// a goroutine for each queue that has work.
type workQueues struct {
	log    *slog.Logger
	slots  chan struct{}
	active sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	waiting map[string][]func() // by queue, without the running work
}

func newWorkQueues(log *slog.Logger) *workQueues {
	return &workQueues{log: log, slots: make(chan struct{}, maxAccepting), waiting: map[string][]func(){}}
}

// enqueue queues work, once there is room for it. It returns false if ctx ends first, or after close.
func (q *workQueues) enqueue(ctx context.Context, name string, work func()) bool {
	select {
	case q.slots <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		<-q.slots
		return false
	}
	rest, running := q.waiting[name]
	if running {
		q.waiting[name] = append(rest, work)
		return true
	}
	q.waiting[name] = nil
	q.active.Go(func() {
		for work != nil {
			rescue.Go(q.log, "an event of slack", work)
			<-q.slots
			work = q.next(name)
		}
	})
	return true
}

// errBusy is the error of work for which there was no room until its context ended.
var errBusy = errors.New("slack: too many events wait to be accepted")

// do queues work and returns its error. If ctx ends first, do returns the cause, within errBusy if there
// was no room for the work; otherwise the work goes on.
func (q *workQueues) do(ctx context.Context, name string, work func() error) error {
	done := make(chan error, 1)
	ran := q.enqueue(ctx, name, func() {
		err := errors.New("slack: the acceptance ended early") // by a panic
		defer func() { done <- err }()
		err = work()
	})
	switch {
	case !ran && ctx.Err() == nil:
		return errors.New("slack: not running")
	case !ran:
		return fmt.Errorf("%w: %w", errBusy, context.Cause(ctx))
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// close refuses further work, and waits for the queued work to end.
func (q *workQueues) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.active.Wait()
}

// next returns the next work in a queue, or removes the queue if it is empty.
func (q *workQueues) next(name string) func() {
	q.mu.Lock()
	defer q.mu.Unlock()
	rest := q.waiting[name]
	if len(rest) == 0 {
		delete(q.waiting, name)
		return nil
	}
	q.waiting[name] = rest[1:]
	return rest[0]
}
