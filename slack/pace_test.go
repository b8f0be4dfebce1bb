package slack

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"oneclaw/bridge/chats"
	emulator "oneclaw/internal/emulator/slack"
	"oneclaw/internal/retry"
)

func TestPaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p paces
		begin := time.Now()
		at := func() time.Duration { return time.Since(begin) }
		for range 100 { // nothing is held back before Slack says so
			if wait := p.wait(t.Context(), "a"); wait != 0 || at() != 0 {
				t.Fatalf("%v at %v", wait, at())
			}
			p.passed("a")
		}
		p.limited("a", 3*time.Second, time.Second)
		if p.wait(t.Context(), "b") != 0 || at() != 0 || p.busy("b") || !p.busy("a") {
			t.Errorf("another place waits, at %v", at())
		}
		var mu sync.Mutex
		var begun []time.Duration
		var calls sync.WaitGroup
		for range 4 { // three fit into the time that a call may be held
			calls.Go(func() {
				wait := p.wait(t.Context(), "a")
				mu.Lock()
				defer mu.Unlock()
				begun = append(begun, at()+wait)
			})
		}
		calls.Wait()
		want := []time.Duration{6 * time.Second, 3 * time.Second, 4 * time.Second, 5 * time.Second}
		if diff := cmp.Diff(want, begun); diff != "" {
			t.Errorf("calls begin at (-want +got):\n%s", diff)
		}
		time.Sleep(time.Second)
		for range 50 {
			p.passed("a")
		}
		for range 2 {
			if begin := time.Now(); p.wait(t.Context(), "a") != 0 || time.Now() != begin {
				t.Error("a limit that is over is kept")
			}
		}
	})
}

func TestPacesEndWithTheirContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p paces
		p.limited("a", 4*time.Second, time.Second)
		short, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		begin := time.Now()
		if wait := p.wait(short, "a"); wait != 4*time.Second || time.Now() != begin {
			t.Errorf("wait %v after %v", wait, time.Since(begin))
		}
		long, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, stop)
		if wait := p.wait(long, "a"); wait != 3*time.Second || time.Since(begin) != time.Second {
			t.Errorf("wait %v after %v", wait, time.Since(begin))
		}
		// A limit told meanwhile holds for those that wait already.
		time.AfterFunc(time.Second, func() { p.limited("a", 4*time.Second, time.Second) })
		if wait := p.wait(t.Context(), "a"); wait != 0 || time.Since(begin) != 6*time.Second {
			t.Errorf("wait %v after %v", wait, time.Since(begin))
		}
		for i := range 2 * maxPaces {
			p.limited(strconv.Itoa(i), time.Second, time.Second)
		}
		if len(p.limits) > maxPaces {
			t.Errorf("%d paces are kept", len(p.limits))
		}
		time.Sleep(2 * idlePace)
		p.limited("b", time.Second, time.Second)
		if len(p.limits) != 1 {
			t.Errorf("%d paces are kept", len(p.limits))
		}
	})
}

func TestC07ALimitOfAChannelIsKeptAndTouchesNoOther(t *testing.T) {
	f := start(t, quick(), nil)
	root := f.say(f.channel, "<@U0BOT> hi", nil)
	thread, other := chatOf(f.channel, root.TS), chatOf(f.dm, "")
	card, err := f.send(thread, question())
	if err != nil {
		t.Fatal(err)
	}
	if err := f.p.Typing(t.Context(), chats.Address{Chat: thread}, true); err != nil {
		t.Fatal(err)
	}
	f.inject(emulator.Fault{Method: "chat.postMessage", Chat: f.channel, Times: 1, Effect: emulator.TooManyRequests, RetryAfter: 60})
	for range 3 {
		_, err := f.send(thread, chats.Part{Text: "x"})
		var failure *chats.SendError
		if !errors.As(err, &failure) || failure.Outcome != chats.Later || failure.RetryAfter <= 30*time.Second || failure.RetryAfter > time.Minute {
			t.Errorf("got %v", err)
		}
	}
	posts := 0
	f.View(func(s emulator.State) { posts = s.Calls("chat.postMessage") })
	if posts != 2 {
		t.Errorf("%d posts reached Slack, want the card and the one that was refused", posts)
	}
	if _, err := f.send(other, chats.Part{Text: "x"}); err != nil {
		t.Errorf("another channel: %v", err)
	}
	if err := f.p.Edit(t.Context(), chats.Address{Chat: thread}, card, question()); err != nil {
		t.Errorf("another method: %v", err)
	}
	for _, on := range []bool{true, false} {
		reply := chats.Address{Chat: chatOf(f.channel, root.TS)}
		if err := f.p.Typing(t.Context(), reply, on); err != nil {
			t.Error(err)
		}
	}
	f.View(func(s emulator.State) {
		if n := s.Calls("chat.postMessage"); n != 3 {
			t.Errorf("%d calls: Slack is asked again although it has said when", n)
		}
		// Shown once and cleared: while an answer waits, nothing is shown on top of it.
		if n := s.Calls("assistant.threads.setStatus"); n != 2 || s.StatusCount() != 0 {
			t.Errorf("%d calls, %d statuses stand", n, s.StatusCount())
		}
	})
}

func TestC07NothingIsLostInAFlood(t *testing.T) {
	const threads, each = 3, 4
	cfg := quick()
	cfg.Rate, cfg.Burst = 40, 8
	f := start(t, cfg, nil)
	var senders sync.WaitGroup
	var roots []string
	for range threads {
		root := f.say(f.channel, "hi", nil).TS
		roots = append(roots, root)
		senders.Go(func() {
			for i := range each {
				f.insist(chatOf(f.channel, root), "part "+strconv.Itoa(i))
			}
		})
	}
	senders.Wait()
	var want []string
	for i := range each {
		want = append(want, "part "+strconv.Itoa(i))
	}
	for _, root := range roots {
		var got []string
		f.View(func(s emulator.State) {
			for _, m := range s.Thread(f.channel, root)[1:] {
				got = append(got, m.Text)
			}
		})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("thread %s (-want +got):\n%s", root, diff)
		}
	}
}

// insist sends as the bridge does: until it is sent, when Slack says so.
func (f *fixture) insist(chat chats.Chat, text string) {
	for {
		_, err := f.p.Send(f.t.Context(), chats.Address{Chat: chat}, chats.Part{Text: text})
		if err == nil {
			return
		}
		var failure *chats.SendError
		if !errors.As(err, &failure) || failure.Outcome != chats.Later || retry.Wait(f.t.Context(), failure.RetryAfter) != nil {
			f.t.Errorf("%s: %v", fmt.Sprint(chat), err)
			return
		}
	}
}
