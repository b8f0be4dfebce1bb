package slack

import (
	"context"
	"log/slog"
	"sync"

	"oneclaw/internal/rescue"
)

// maxAccepting bounds the intakes that are being accepted or wait for it.
const maxAccepting = 256

// queues runs the work of one queue in order and that of different ones concurrently, with a goroutine
// for each queue that has work.
type queues struct {
	log    *slog.Logger
	slots  chan struct{}
	active sync.WaitGroup

	mu      sync.Mutex
	waiting map[string][]func() // behind the running one
}

func newQueues(log *slog.Logger) *queues {
	return &queues{log: log, slots: make(chan struct{}, maxAccepting), waiting: map[string][]func(){}}
}

// do queues work, once there is room for it. It returns false if ctx ends first.
func (q *queues) do(ctx context.Context, name string, work func()) bool {
	select {
	case q.slots <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
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

// next returns the next work of a queue, or removes the queue.
func (q *queues) next(name string) func() {
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
