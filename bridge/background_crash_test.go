package bridge_test

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/queue"
	"oneclaw/storage"
)

// A kill at any step of a task that is started, shown and awaited, and of its result: there is one task,
// it runs, and its result is answered once unless that is marked.
func TestACrashAtAnyStepOfABackgroundTask(t *testing.T) {
	t.Parallel()
	diesAtEachStep(t, 30, func(t *testing.T, life *mortal) {
		synctest.Test(t, func(t *testing.T) {
			life.dead = make(chan struct{}) // of this bubble
			liveInBackground(t, life, false)
		})
	})
}

// The same if one step hangs while the others go on, and each message has a turn of its own.
func TestAHangingStepOfABackgroundTask(t *testing.T) {
	t.Parallel()
	hangsAtEachStep(t, 30, func(t *testing.T, life *mortal) { liveInBackground(t, life, true) })
}

func liveInBackground(t *testing.T, life *mortal, separate bool) {
	r, _ := backgroundHarness(t, newTaskModel(), func(c *bridge.Config) { c.Turns.SeparateTurns = separate })
	r.stop()
	store, p := r.cfg.Store, r.platform
	r.cfg.Store, r.cfg.Platforms = mortalStore{store, life}, []chats.Platform{mortalPlatform{p, life}}
	var accepted sync.WaitGroup
	for _, whole := range []bool{false, true} {
		if whole {
			r.stop()
			r.cfg.Store, r.cfg.Platforms = store, []chats.Platform{p}
		}
		r.start()
		for _, m := range []chats.Message{direct("1", "start slow"), direct("2", "await")} {
			accepted.Go(func() { _ = r.bridge.Accept(t.Context(), m) }) // what is dead takes nothing
			pass(t, 5)
		}
		if pass(t, 90); !whole && life.hangs != 0 {
			life.end()
		}
		accepted.Wait()
	}
	r.stop()
	for e, err := range store.List(t.Context(), storage.Range{Prefix: queue.OpenPrefix}) {
		t.Errorf("still open: %s (%v)", e.Value, err)
	}
	all, err := conversation.Conversations(t.Context(), store, "fake:1")
	if err != nil {
		t.Fatal(err)
	}
	tasks := 0
	for _, c := range all {
		if c.Task != "" {
			tasks++
		}
	}
	var started, results, marked, done, open int
	for _, s := range p.shown() {
		switch {
		case s.repeat:
			marked++
		case strings.HasPrefix(s.text, "done: Started 'About slow'"):
			started++
		case strings.Contains(s.text, `re: [The background task "About slow" is done.`):
			results++
		case strings.Contains(s.text, "✔ **“About slow”** is done"):
			done++
		case s.buttons != nil:
			open++
		}
	}
	if tasks != 1 || started > 1 || started+marked == 0 || results > 1 || results+marked == 0 || done > 1 || open > 1 || marked > 2 ||
		life.dies+life.hangs == 0 && (started != 1 || results != 1 || done != 1) {
		t.Errorf("%d tasks, and there stands %+v", tasks, p.shown())
	}
}
