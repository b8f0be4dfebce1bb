package bridge_test

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/chats"
)

// crowd answers one after another as it is told to, and keeps in which order it was asked
// and how many it answered at the same time.
type crowd struct {
	mu         sync.Mutex
	asked      []string
	now, worst int
	begun      chan struct{}
	free       chan struct{}
}

func newCrowd() *crowd { return &crowd{begun: make(chan struct{}, 10_000), free: make(chan struct{})} }

func (c *crowd) think(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
	return func(yield func(agent.Message, error) bool) {
		c.mu.Lock()
		c.asked = append(c.asked, turn.History[len(turn.History)-1].Text)
		c.now++
		c.worst = max(c.worst, c.now)
		c.mu.Unlock()
		c.begun <- struct{}{}
		select {
		case <-c.free:
		case <-ctx.Done():
		}
		c.mu.Lock()
		c.now--
		c.mu.Unlock()
		if ctx.Err() != nil {
			yield(agent.Message{}, context.Cause(ctx))
			return
		}
		echo(ctx, turn)(yield)
	}
}

// inChat is a message in a direct chat of its own.
func inChat(n int, id, text string) chats.Message {
	m := direct(id, text)
	m.Chat.ID, m.User = fmt.Sprint("c", n), fmt.Sprint("u", n)
	return m
}

// The turns that run are bounded, the others wait in order.
func TestTurnsAreBoundedAndWaitInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const chats = 300
		before := runtime.NumGoroutine() // among them those of tests that are to run in parallel
		c := newCrowd()
		r := newHarness(t, c.think, func(c *bridge.Config) { c.Limits.MaxTurns = 1 })
		var want []string
		for n := range chats {
			r.accept(inChat(n, "1", fmt.Sprint("m", n)))
			want = append(want, fmt.Sprint("m", n))
		}
		synctest.Wait()
		if n := runtime.NumGoroutine() - before; n > chats/10 {
			t.Errorf("%d more goroutines while %d chats wait", n, chats-1)
		}
		r.accept(inChat(7, "2", "/status"))
		if got := r.platform.wait(t, 1)[0].text; !strings.Contains(got, "I am busy in other chats: 1 message waits here for its turn.") {
			t.Errorf("status: %q", got)
		}
		if load := r.bridge.QueueStats(); load.Waiting != chats-1 {
			t.Errorf("%d wait", load.Waiting)
		}
		// One that waits can be stopped, and what it waited for goes to the next.
		r.accept(inChat(8, "2", "/stop"))
		if got := r.platform.wait(t, 2)[1].text; !strings.HasPrefix(got, "Stopped.") {
			t.Errorf("stop: %q", got)
		}
		want = slices.Delete(want, 8, 9)
		close(c.free)
		r.platform.wait(t, chats+1)
		if c.worst > 1 || !slices.Equal(c.asked, want) {
			t.Errorf("%d turns at the same time, in the order %v", c.worst, c.asked)
		}
	})
}

// TestWhatWaitsForAPersonOrItsDeliveryIsNotCounted has one turn alone run at a
// time.
//
// The turns that run are bounded, the others wait in order.
func TestWhatWaitsForAPersonOrItsDeliveryIsNotCounted(t *testing.T) {
	w := &execTools{}
	r := w.guarded(t, func(c *bridge.Config) { c.Limits.MaxTurns = 1; c.Limits.DrainTimeout = -1 })
	r.stop()
	p := &putOff{platform: r.platform, beginning: "re: late", tried: make(chan struct{}, 1)}
	r.cfg.Platforms = []chats.Platform{p}
	r.start()
	r.accept(inChat(1, "1", "run a"))
	card := r.platform.wait(t, 1)[0]
	r.accept(inChat(2, "1", "late"))
	<-p.tried
	r.accept(inChat(3, "1", "other"))
	if got := r.platform.wait(t, 2)[1].text; got != "re: other" {
		t.Errorf("got %q", got)
	}
	press := pressOn(card, "p", "u1", card.button(t, "Allow once"))
	press.Chat.ID = "c1"
	r.accept(press)
	if got := r.platform.wait(t, 3)[2].text; got != "ran a" {
		t.Errorf("got %q", got)
	}
}
