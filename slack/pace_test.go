package slack

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oneclaw/bridge/chats"
	emulator "oneclaw/internal/emulator/slack"
	"oneclaw/internal/retry"
)

func TestALimitOfAChannelIsKeptAndTouchesNoOther(t *testing.T) {
	f := start(t, quick(), nil)
	root := f.say(f.channel, "<@U0BOT> hi", nil)
	thread, other := chatOf(f.channel, root.TS), chatOf(f.dm, "")
	card, err := f.send(thread, question())
	if err != nil {
		t.Fatal(err)
	}
	if err := f.p.SetTyping(t.Context(), chats.Address{Chat: thread}, true); err != nil {
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
	f.View(func(s emulator.State) { posts = s.CallCount("chat.postMessage") })
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
		if err := f.p.SetTyping(t.Context(), reply, on); err != nil {
			t.Error(err)
		}
	}
	f.View(func(s emulator.State) {
		if n := s.CallCount("chat.postMessage"); n != 3 {
			t.Errorf("%d calls: Slack is asked again although it has said when", n)
		}
		// Shown once and cleared: while an answer waits, nothing is shown on top of it.
		if n := s.CallCount("assistant.threads.setStatus"); n != 2 || s.StatusCount() != 0 {
			t.Errorf("%d calls, %d statuses stand", n, s.StatusCount())
		}
	})
}

func TestNothingIsLostInAFlood(t *testing.T) {
	t.Parallel()
	const threads, each = 3, 4
	cfg := quick()
	cfg.MessagesPerSecond, cfg.Burst = 40, 8
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
