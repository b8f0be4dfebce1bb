package slack

import (
	"context"
	"log/slog"
	"sync"

	"oneclaw/internal/rescue"
)

// maxAccepting bounds what is being accepted or waits for it.
const maxAccepting = 256

// lanes runs work of one lane in order and that of different lanes side by side.
// It has a goroutine for each lane that has work.
type lanes struct {
	log    *slog.Logger
	slots  chan struct{}
	active sync.WaitGroup

	mu     sync.Mutex
	queues map[string][]func() // those behind the one that runs
}

func newLanes(log *slog.Logger) *lanes {
	return &lanes{log: log, slots: make(chan struct{}, maxAccepting), queues: map[string][]func(){}}
}

// do queues work, once there is room for it. It reports false where ctx ends first.
func (l *lanes) do(ctx context.Context, lane string, work func()) bool {
	select {
	case l.slots <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	queue, running := l.queues[lane]
	if running {
		l.queues[lane] = append(queue, work)
		return true
	}
	l.queues[lane] = nil
	l.active.Go(func() {
		for work != nil {
			rescue.Go(l.log, "an event of slack", work)
			<-l.slots
			work = l.next(lane)
		}
	})
	return true
}

// next takes the next work of a lane, or ends the lane.
func (l *lanes) next(lane string) func() {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue := l.queues[lane]
	if len(queue) == 0 {
		delete(l.queues, lane)
		return nil
	}
	l.queues[lane] = queue[1:]
	return queue[0]
}
