package slack

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/platformtest"
	emulator "oneclaw/internal/emulator/slack"
	"oneclaw/slack/shared"
	"oneclaw/storage"
)

// What was missed is handed on in its order, and of too much the newest.
//
// A history that is asked for by its oldest end begins there.
func TestMissedMessagesComeInTheirOrder(t *testing.T) {
	f := setup(t, quick(), nil)
	f.p.progress.RecordAlive()
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
//
// Limits are those of a method and workspace, and an event wants its acknowledgement in three seconds.
func TestAMessageForOthersAsksForNoNames(t *testing.T) {
	f := start(t, quick(), nil)
	root := f.say(f.channel, "lunch, <@U7>?", nil)
	for i := range 20 {
		f.say(f.channel, fmt.Sprintf("<@U%d> and <@U%d>: look", i, i+100), &emulator.SayOptions{Thread: root.TS})
	}
	f.acked(f.say(f.channel, "<@U8> over", &emulator.SayOptions{Thread: root.TS}))
	f.View(func(s emulator.State) {
		if names, threads := s.CallCount("users.info"), s.CallCount("conversations.replies"); names > 0 || threads > 1 {
			t.Errorf("%d names and %d threads were asked for", names, threads)
		}
	})
	if got := f.in.all(); len(got) > 0 {
		t.Errorf("accepted %+v", got)
	}
}

// Where Slack does not tell now whether the bot takes part in a thread, the message is
// acknowledged at once and looked at later, also by the next process.
//
// Limits are those of a method and workspace, and an event wants its acknowledgement in three seconds.
func TestARefusedLookUpDelaysNoAcknowledgement(t *testing.T) {
	t.Parallel()
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprintf("killed %t", killed), func(t *testing.T) {
			kept := &notes{}
			cfg := quick()
			cfg.RetryDelays = []time.Duration{} // what is not acknowledged is lost
			f := setup(t, cfg, func(c *config) { c.kv = kept })
			// anew starts a process that knows what is kept.
			anew := func(state map[string]storage.Entry) {
				if f.stop != nil {
					f.stop()
				}
				f.wait(func(s emulator.State) bool { return s.ActiveSockets() == 0 })
				kept.replace(state)
				f.forget(kept)
				f.run()
				f.wait(func(s emulator.State) bool { return s.ActiveSockets() > 0 })
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
			state := kept.copy() // as it is when the message is acknowledged
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
			if debts := f.p.progress.Postponed(); len(debts) > 0 {
				t.Errorf("still to be looked at: %v", debts)
			}
		})
	}
}

// A refused look-up of a name is not waited for.
//
// Limits are those of a method and workspace, and an event wants its acknowledgement in three seconds.
func TestARefusedNameIsNotWaitedFor(t *testing.T) {
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
		if n := s.CallCount("users.info"); n != 1 {
			t.Errorf("names were asked for %d times", n)
		}
	})
}

// A canvas is downloaded as HTML, which is no page to sign in.
func TestCanvasesAreRead(t *testing.T) {
	f := start(t, quick(), nil)
	f.say(f.dm, "look", &emulator.SayOptions{Files: []emulator.Attachment{{Name: "Plan", MIME: "application/vnd.slack-docs", Data: []byte("<h1>plan</h1>")}}})
	file := f.in.wait(t, 1)[0].Files[0]
	var got bytes.Buffer
	if err := f.p.FetchFile(t.Context(), file, &got); err != nil || got.String() != "<h1>plan</h1>" {
		t.Errorf("%q, %v", got.String(), err)
	}
	if file.Name != "Plan.html" || file.Type != "text/html" {
		t.Errorf("it came as %+v", file)
	}
}

// A response_url takes five answers; the last says that there are no more.
func TestFiveAnswersToACommand(t *testing.T) {
	f := start(t, quick(), nil)
	channel := f.make(emulator.ChannelSpec{ID: "C9", Members: []string{f.user}, WithoutBot: true})
	sent, err := f.Command(channel, f.user, "/oneclaw", "help")
	if err != nil {
		t.Fatal(err)
	}
	f.in.wait(t, 1)
	to := chats.Address{Chat: chatOf(channel, ""), ReplyTo: sent.TriggerID}
	for i := range shared.MaxResponses + 1 {
		_, err := f.p.Send(t.Context(), to, chats.Part{Text: fmt.Sprint(i), Plain: fmt.Sprint(i)})
		var refused *chats.SendError
		if (err == nil) != (i < shared.MaxResponses) || err != nil && (!errors.As(err, &refused) || refused.Outcome != chats.Refused) {
			t.Errorf("answer %d: %v", i, err)
		}
	}
	f.View(func(s emulator.State) {
		all := s.Answers(channel)
		if len(all) != shared.MaxResponses || s.CallCount("response") != shared.MaxResponses {
			t.Fatalf("%d answers by %d posts", len(all), s.CallCount("response"))
		}
		for i, m := range all {
			if strings.Contains(m.Text, lastResponseNotice) != (i == shared.MaxResponses-1) {
				t.Errorf("answer %d: %q", i, m.Text)
			}
		}
	})
}

// Where an address takes the connection and then says nothing, nothing has been sent: it is
// sent later, and not marked as a repeat.
func TestAnAddressThatAnswersSlowly(t *testing.T) {
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	p, err := newPlatform(config{Settings: Settings{BotToken: "xoxb-1-x", AppToken: "xapp-1-x", APIURL: "https://" + platformtest.MuteAddress(t)}, httpClient: client, callTimeout: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	var failed *chats.SendError
	_, err = p.Send(t.Context(), chats.Address{Chat: chatOf("C1", "")}, chats.Part{Text: "x", Plain: "x"})
	if !errors.As(err, &failed) || failed.Outcome != chats.Later || !failed.Outage {
		t.Errorf("Send = %v", err)
	}
	if p.Ping(t.Context()) == nil {
		t.Error("it is taken for reachable")
	}
}
