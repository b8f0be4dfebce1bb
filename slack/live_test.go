package slack

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"oneclaw/bridge/chats"
	emulator "oneclaw/internal/emulator/slack"
)

// What was missed is handed on in its order, and of too much the newest.
func TestLiveC03MissedMessagesComeInTheirOrder(t *testing.T) {
	f := setup(t, quick(), nil)
	f.p.reach.alive = f.p.reach.clock.now()
	f.SetScopes("chat:write") // nothing is delivered
	var want []string
	for i := range maxMissed + 150 {
		want = append(want, fmt.Sprint(i))
		f.say(f.dm, want[i], nil)
	}
	f.SetScopes(emulator.DefaultScopes()...)
	f.run()
	var got []string
	for _, m := range f.in.wait(t, maxMissed) {
		got = append(got, m.Text)
	}
	if !slices.Equal(got, want[len(want)-maxMissed:]) {
		t.Errorf("%d messages came, the first is %s and the last %s, in order: %t", len(got), got[0], got[len(got)-1], slices.IsSorted(ids(f.in.all())))
	}
}

func ids(messages []chats.Message) (list []string) {
	for _, m := range messages {
		list = append(list, m.ID)
	}
	return list
}

// Messages that are not for the bot ask Slack for nothing but once who takes part in a
// thread.
func TestLiveC04AMessageForOthersAsksForNoNames(t *testing.T) {
	f := start(t, quick(), nil)
	root := f.say(f.channel, "lunch, <@U7>?", nil)
	for i := range 20 {
		f.say(f.channel, fmt.Sprintf("<@U%d> and <@U%d>: look", i, i+100), &emulator.SayOptions{Thread: root.TS})
	}
	f.acked(f.say(f.channel, "<@U8> over", &emulator.SayOptions{Thread: root.TS}))
	f.View(func(s emulator.State) {
		if names, threads := s.Calls("users.info"), s.Calls("conversations.replies"); names > 0 || threads > 1 {
			t.Errorf("%d names and %d threads were asked for", names, threads)
		}
	})
	if got := f.in.all(); len(got) > 0 {
		t.Errorf("accepted %+v", got)
	}
}

// Where Slack does not tell now whether the bot takes part in a thread, the message is
// acknowledged at once and looked at later, also by the next process.
func TestLiveC04ARefusedLookUpDelaysNoAcknowledgement(t *testing.T) {
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprintf("killed %t", killed), func(t *testing.T) {
			kept := &notes{}
			cfg := quick()
			cfg.Retry = []time.Duration{} // what is not acknowledged is lost
			f := setup(t, cfg, func(c *Config) { c.Marks = kept })
			// anew starts a process that knows what is kept.
			anew := func(state []byte) {
				if f.stop != nil {
					f.stop()
				}
				f.wait(func(s emulator.State) bool { return s.Sockets() == 0 })
				f.forget()
				if err := kept.Save(t.Context(), state); err != nil {
					t.Fatal(err)
				}
				f.run()
				f.wait(func(s emulator.State) bool { return s.Sockets() > 0 })
			}
			anew(nil)
			root := f.say(f.channel, "<@U0BOT> a question", nil)
			f.acked(root)
			anew(nil)
			before := len(f.in.all())
			id, err := f.Inject(emulator.Fault{Method: "conversations.replies", Effect: emulator.TooManyRequests, RetryAfter: 1})
			if err != nil {
				t.Fatal(err)
			}
			more := f.say(f.channel, "more of it", &emulator.SayOptions{Thread: root.TS})
			f.acked(more)
			state, _ := kept.Load(t.Context()) // as it is when the message is acknowledged
			if got := f.in.all(); len(got) != before {
				t.Errorf("accepted %+v", got[before:])
			}
			if killed {
				anew(state)
			}
			f.Remove(id)
			got := f.in.wait(t, before+1)
			if last := got[len(got)-1]; last.ID != more.TS || last.Chat != chatOf(f.channel, root.TS) {
				t.Errorf("accepted %+v", last)
			}
			f.stop()
			if debts := f.p.reach.debts(); len(debts) > 0 {
				t.Errorf("still to be looked at: %v", debts)
			}
		})
	}
}

// A refused look-up of a name is not waited for.
func TestLiveC04ARefusedNameIsNotWaitedFor(t *testing.T) {
	f := start(t, quick(), nil)
	f.inject(emulator.Fault{Method: "users.info", Effect: emulator.TooManyRequests, RetryAfter: 30})
	for i := range 3 {
		f.acked(f.say(f.dm, fmt.Sprintf("ask <@U%d>", i+10), nil))
	}
	for i, m := range f.in.wait(t, 3) {
		if want := fmt.Sprintf("ask @U%d", i+10); m.Text != want || m.UserName != f.user {
			t.Errorf("%q from %q, want %q", m.Text, m.UserName, want)
		}
	}
	f.View(func(s emulator.State) {
		if n := s.Calls("users.info"); n != 1 {
			t.Errorf("names were asked for %d times", n)
		}
	})
}
