package bridge_test

import (
	"context"
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
	mu      sync.Mutex
	ran     map[string]int
	running map[string]bool
	sent    map[string]int
}

func newFollowers() *followers {
	return &followers{ran: map[string]int{}, running: map[string]bool{}, sent: map[string]int{}}
}

// join has a bridge tell what it does.
func (f *followers) join(cfg *bridge.Config) { cfg.Hooks.Tracer = f }

func (f *followers) StartRun(ctx context.Context, j *queue.Run) context.Context {
	if j.Message.Kind == chats.KindText {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.ran[j.Key()]++
		f.running[j.Key()] = true
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
	f.running[j.Key()] = false
}

// whole checks that each job that ran was sent, and that its last run has ended.
func (f *followers) whole(t *testing.T, again bool) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	moved := false
	for key, runs := range f.ran {
		if f.running[key] || f.sent[key] == 0 {
			t.Errorf("%s ran %d times, was sent %d times and runs on: %v", key, runs, f.sent[key], f.running[key])
		}
		moved = moved || runs > 1
	}
	if len(f.ran) == 0 || again && !moved {
		t.Errorf("%d jobs; none ran at two places", len(f.ran))
	}
}
