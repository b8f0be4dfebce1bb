package bridge_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
)

// followers are tracers of processes that share a store, and what they were told.
type followers struct {
	mu     sync.Mutex
	begun  int
	parent map[string]string // of the jobs that were begun, as the first who did it said
	ran    map[string]int
	sent   map[string]int
	closed map[string][]queue.Job
}

func newFollowers() *followers {
	return &followers{parent: map[string]string{}, ran: map[string]int{}, sent: map[string]int{}, closed: map[string][]queue.Job{}}
}

// join has a bridge tell what it does.
func (f *followers) join(cfg *bridge.Config) { cfg.Hooks.Tracer = f }

func (f *followers) Begin(j *queue.Run) {
	if j.Message.Kind != chats.KindText {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begun++
	j.Trace.Parent = fmt.Sprint("trace ", f.begun)
	if f.parent[j.Key()] == "" {
		f.parent[j.Key()] = j.Trace.Parent
	}
}

func (f *followers) StartRun(ctx context.Context, j *queue.Run) context.Context {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ran[j.Key()]++
	if j.HasSlot && j.Trace.TurnStarted.IsZero() {
		j.Trace.TurnStarted = j.Accepted
	}
	return ctx
}

func (f *followers) WrapObserver(_ *queue.Run, observe func(agent.Event)) func(agent.Event) {
	return observe
}

func (f *followers) StartSend(j *queue.Run, _ *receipts.Part) func(error) {
	return func(error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.sent[j.Key()]++
	}
}

func (f *followers) End(j *queue.Run) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed[j.Key()] = append(f.closed[j.Key()], queue.Job{Message: j.Message, Trace: j.Trace}) // the rest may still be used
}

// whole checks that each job was closed once, with the trace that it began with, whoever began,
// ran and closed it.
func (f *followers) whole(t *testing.T, again bool) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	moved := false
	for key, parent := range f.parent {
		closed := f.closed[key]
		if len(closed) != 1 || f.ran[key] == 0 || f.sent[key] == 0 {
			t.Errorf("%s ran %d times, was sent %d times and closed %d times", key, f.ran[key], f.sent[key], len(closed))
			continue
		}
		if at := closed[0].Trace; at.Parent != parent || at.TurnStarted.IsZero() != strings.HasPrefix(closed[0].Message.Text, "/") || at.AnsweredAt.Before(at.TurnStarted) {
			t.Errorf("%s began as %q and ended as %+v", key, parent, at)
		}
		moved = moved || f.ran[key] > 1
	}
	if len(f.parent) == 0 || again && !moved {
		t.Errorf("%d jobs; none ran at two places", len(f.parent))
	}
}
