package slack

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"oneclaw/bridge/chats"
	emulator "oneclaw/internal/emulator/slack"
	"oneclaw/internal/retry"
	"oneclaw/slack/shared"
)

func TestAnswersStandInTheThread(t *testing.T) {
	f := start(t, quick(), nil)
	sent := f.say(f.channel, "<@U0BOT> hi", nil)
	msg := f.in.wait(t, 1)[0]
	ts, err := f.send(msg.Chat, chats.Part{Text: "*hello*", Plain: "hello"})
	if err != nil {
		t.Fatal(err)
	}
	f.View(func(s emulator.State) {
		m, ok := s.Message(f.channel, ts)
		if !ok || m.Thread != sent.TS || m.Text != "*hello*" || !m.FromBot {
			t.Errorf("got %+v", m)
		}
	})
	reply := f.say(f.channel, "more", &emulator.SayOptions{Thread: sent.TS})
	f.acked(reply)
	got := f.in.all()
	if last := got[len(got)-1]; last.Chat != msg.Chat || last.Text != "more" {
		t.Errorf("got %+v", last)
	}
}

// A channel in which the bot may not write, or is not, takes none of its messages. One that refused this message may
// take others.
func TestAChannelThatTakesNothingCannotBeReached(t *testing.T) {
	f := setup(t, quick(), nil)
	for code, want := range map[string]bool{
		"is_archived": true, "channel_not_found": true, "not_in_channel": true, "restricted_action": true, "restricted_action_read_only_channel": true,
		"restricted_action_thread_only_channel": false, "invalid_blocks": false, "msg_too_long": false, "thread_not_found": false,
	} {
		f.inject(emulator.Fault{Effect: emulator.Refuse, Error: code, Method: postMessage, Times: 1})
		f.p.api.pacer = retry.NewPacer(maxHold)
		_, err := f.send(chatOf(f.channel, ""), chats.Part{Plain: "hi"})
		if failure, is := errors.AsType[*chats.SendError](err); !is || failure.Outcome != chats.Refused || failure.Unreachable != want {
			t.Errorf("%s: %+v", code, failure)
		}
	}
}

// TestOutcomesOfSends: an error of Slack's own leaves open what had happened by then.
func TestOutcomesOfSends(t *testing.T) {
	f := setup(t, quick(), nil)
	tests := []struct {
		name   string
		fault  emulator.Fault
		want   chats.Outcome
		after  time.Duration
		kept   bool
		outage bool
	}{
		{"rate limit", emulator.Fault{Effect: emulator.TooManyRequests, RetryAfter: 7}, chats.Later, 7 * time.Second, false, false},
		{"ratelimited in words", emulator.Fault{Effect: emulator.Refuse, Error: "ratelimited"}, chats.Later, 0, false, false},
		{"trouble", emulator.Fault{Effect: emulator.Refuse, Error: "internal_error"}, chats.Unknown, 0, false, true},
		{"fatal", emulator.Fault{Effect: emulator.Refuse, Error: "fatal_error"}, chats.Unknown, 0, false, true},
		{"truncated", emulator.Fault{Effect: emulator.Refuse, Error: "request_timeout"}, chats.Later, 0, false, true},
		{"unavailable", emulator.Fault{Effect: emulator.Refuse, Error: "service_unavailable"}, chats.Later, 0, false, true},
		{"token gone", emulator.Fault{Effect: emulator.Refuse, Error: "token_revoked"}, chats.Later, 0, false, true},
		{"bad gateway", emulator.Fault{Effect: emulator.ServerError}, chats.Unknown, 0, false, true},
		{"gateway timeout", emulator.Fault{Effect: emulator.ServerError, Status: 504}, chats.Unknown, 0, false, true},
		{"archived", emulator.Fault{Effect: emulator.Refuse, Error: "is_archived"}, chats.Refused, 0, false, false},
		{"no channel", emulator.Fault{Effect: emulator.Refuse, Error: "channel_not_found"}, chats.Refused, 0, false, false},
		{"not in the channel", emulator.Fault{Effect: emulator.Refuse, Error: "not_in_channel"}, chats.Refused, 0, false, false},
		{"anything else", emulator.Fault{Effect: emulator.Refuse, Error: "brand_new_error"}, chats.Refused, 0, false, false},
		{"cut before", emulator.Fault{Effect: emulator.CutBefore}, chats.Unknown, 0, false, true},
		{"cut after", emulator.Fault{Effect: emulator.CutAfter}, chats.Unknown, 0, true, true},
		{"half an answer", emulator.Fault{Effect: emulator.BadJSON}, chats.Unknown, 0, true, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.fault.Method, tt.fault.Times = "chat.postMessage", 1
			f.inject(tt.fault)
			f.p.api.pacer = retry.NewPacer(maxHold)
			before := len(f.Messages(f.dm))
			_, err := f.send(chatOf(f.dm, ""), chats.Part{Text: "x"})
			var failure *chats.SendError
			if !errors.As(err, &failure) || failure.Outcome != tt.want || failure.RetryAfter != tt.after {
				t.Errorf("got %+v", err)
			}
			if outage := failure != nil && (failure.Outage || failure.Outcome == chats.Unknown); outage != tt.outage {
				t.Errorf("taken for an outage: %t", outage)
			}
			if kept := len(f.Messages(f.dm)) > before; kept != tt.kept {
				t.Errorf("kept %t", kept)
			}
		})
	}
}

func TestSendWithoutSlack(t *testing.T) {
	f := setup(t, quick(), func(c *config) { c.APIURL = "http://127.0.0.1:1" })
	_, err := f.send(chatOf(f.dm, ""), chats.Part{Text: "x"})
	var failure *chats.SendError
	if !errors.As(err, &failure) || failure.Outcome != chats.Later {
		t.Errorf("got %+v", err)
	}
}

func TestAddresses(t *testing.T) {
	f := setup(t, quick(), nil)
	for _, chat := range []chats.Chat{{}, {Platform: "telegram", ID: "1"}, {Platform: platformName}} {
		_, err := f.send(chat, chats.Part{Text: "x"})
		var failure *chats.SendError
		if !errors.As(err, &failure) || failure.Outcome != chats.Refused {
			t.Errorf("%v: got %v", chat, err)
		}
	}
}

func TestPlainWhereFormattingIsRefused(t *testing.T) {
	f := setup(t, quick(), nil)
	f.inject(emulator.Fault{Method: "chat.postMessage", Times: 1, Effect: emulator.Refuse, Error: "invalid_blocks"})
	_, err := f.send(chatOf(f.dm, ""), chats.Part{Text: "*x*", Plain: "plain <!here> &amp; <@U1>", Repeat: true})
	if err != nil {
		t.Fatal(err)
	}
	m := f.Messages(f.dm)[0]
	if want := "plain &lt;!here&gt; &amp; &lt;@U1&gt;\n\n" + chats.RepeatNotice; m.Text != want || len(m.Mentions) != 0 {
		t.Errorf("got %q", m.Text)
	}
}

func TestOverlongTextIsSentAsFarAsItGoes(t *testing.T) {
	f := setup(t, quick(), nil)
	if _, err := f.send(chatOf(f.dm, ""), chats.Part{Plain: strings.Repeat("é", 50_000)}); err != nil {
		t.Fatal(err)
	}
	if got := []rune(f.Messages(f.dm)[0].Text); len(got) != 40_000 || got[39_999] != '…' {
		t.Errorf("%d characters arrived", len(got))
	}
}

func TestRepeatIsMarked(t *testing.T) {
	f := setup(t, quick(), nil)
	if _, err := f.send(chatOf(f.dm, ""), chats.Part{Text: "*x*", Repeat: true}); err != nil {
		t.Fatal(err)
	}
	if got, want := f.Messages(f.dm)[0].Text, "*x*\n\n_"+chats.RepeatNotice+"_"; got != want {
		t.Errorf("got %q", got)
	}
}

func TestRendering(t *testing.T) {
	f := setup(t, quick(), nil)
	long := strings.Repeat("Words and **bold** words, 1 < 2 & so on. ", 250)
	tests := []struct {
		name, markdown string
		want           string // of a single part
	}{
		{"mrkdwn", "# Title\n\n**bold** _it_ ~~gone~~ [a](https://a.test)\n\n- one\n- two", "*Title*\n\n*bold* _it_ ~gone~ <https://a.test|a>\n\n• one\n• two"},
		{"escapes", "a < b & c `x < y & z`", "a &lt; b &amp; c `x &lt; y &amp; z`"},
		{"split", long, ""},
		{"no calls", "<!channel> <!here|x> <@U1> @channel @here `<!everyone>`\n\n```\n<!channel>\n```", ""},
		{"nothing", " \n ", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			parts := f.p.Render(tt.markdown)
			if tt.want != "" && (len(parts) != 1 || parts[0].Text != tt.want) {
				t.Errorf("got %+v", parts)
			}
			if tt.name == "split" && len(parts) < 3 {
				t.Errorf("only %d parts", len(parts))
			}
			for _, part := range parts {
				part.Repeat = true
				if n := len(utf16.Encode([]rune(partText(part, false)))); n > 4000 {
					t.Errorf("a message of %d", n)
				}
				if _, err := f.send(chatOf(f.dm, ""), part); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for _, m := range f.Messages(f.dm) {
		if len(m.Mentions) != 0 {
			t.Errorf("somebody is called: %q", m.Text)
		}
	}
}

func TestCommandInAChannelWithoutTheBot(t *testing.T) {
	f := start(t, quick(), nil)
	f.make(emulator.ChannelSpec{ID: "C9", Members: []string{f.user}, WithoutBot: true})
	sent, err := f.Command("C9", f.user, "/oneclaw", "whoami")
	if err != nil {
		t.Fatal(err)
	}
	msg := f.in.wait(t, 1)[0]
	f.acked(sent)
	to := chats.Address{Chat: msg.Chat, ReplyTo: msg.ID}
	if _, err := f.p.Send(t.Context(), to, chats.Part{Text: "you are Ann"}); err != nil {
		t.Fatal(err)
	}
	if got := f.Messages("C9"); len(got) != 1 || got[0].Ephemeral != f.user || got[0].Text != "you are Ann" {
		t.Errorf("got %+v", got)
	}
	for status, want := range map[int]chats.Outcome{502: chats.Unknown, 504: chats.Unknown, 429: chats.Later, 404: chats.Refused} {
		f.inject(emulator.Fault{Method: "response", Times: 1, Effect: emulator.ServerError, Status: status})
		var failure *chats.SendError
		if _, err := f.p.Send(t.Context(), to, chats.Part{Text: "x"}); !errors.As(err, &failure) || failure.Outcome != want {
			t.Errorf("status %d: %v", status, err)
		}
	}
	to.ReplyTo = "another"
	if _, err := f.p.Send(t.Context(), to, chats.Part{Text: "x"}); err == nil {
		t.Error("answered a command that was not given")
	}
}

// Where the bot is not, an answer is shown to the one whose command it answers, and one to no command to nobody.
func TestAnAnswerInADirectMessageOfTwoPeopleIsShownToWhoAsked(t *testing.T) {
	t.Parallel()
	f := start(t, quick(), nil)
	bob := f.AddUser(emulator.User{ID: "U2", Name: "bob"}).ID
	both := f.make(emulator.ChannelSpec{ID: "D9", Kind: emulator.DM, Members: []string{f.user, bob}, WithoutBot: true})
	for _, user := range []string{f.user, bob} {
		sent, err := f.Command(both, user, "/oneclaw", "whoami")
		if err != nil {
			t.Fatal(err)
		}
		f.acked(sent)
	}
	asked := f.in.wait(t, 2)
	to := chats.Address{Chat: asked[0].Chat, ReplyTo: asked[0].ID}
	if _, err := f.p.Send(t.Context(), to, question()); err != nil {
		t.Fatal(err)
	}
	to.ReplyTo = ""
	var failure *chats.SendError
	if _, err := f.p.Send(t.Context(), to, chats.Part{Text: "x"}); !errors.As(err, &failure) || failure.Outcome != chats.Refused {
		t.Errorf("what answers no command: %v, want it refused", err)
	}
	shown := f.Messages(both)
	if len(shown) != 1 || shown[0].Ephemeral != f.user {
		t.Fatalf("got %+v", shown)
	}
	f.press(both, shown[0].TS, "tok:0")
	if press := f.in.wait(t, 3)[2]; press.Direct {
		t.Errorf("got %+v, want a press that is not direct", press)
	}
}

// refusing refuses the connections to each response_url until refused has as many as it takes.
type refusing struct {
	http.Transport
	takes, refused int
}

func (r *refusing) RoundTrip(req *http.Request) (*http.Response, error) {
	if strings.HasPrefix(req.URL.Path, "/commands/") && r.refused < r.takes {
		r.refused++
		return nil, errors.Join(errors.New("connection refused"), req.Body.Close())
	}
	return r.Transport.RoundTrip(req)
}

// A response that never left counts neither as sent nor as one of the five that Slack accepts.
func TestAnswersThatDoNotReachTheResponseURLAreSentLater(t *testing.T) {
	over := &refusing{takes: shared.MaxResponses + 1}
	t.Cleanup(over.CloseIdleConnections)
	f := setup(t, quick(), func(c *config) { c.httpClient = &http.Client{Transport: over} })
	to := f.commandWithoutTheBot()
	for range over.takes {
		var failure *chats.SendError
		if _, err := f.p.Send(t.Context(), to, chats.Part{Text: "you are Ann"}); !errors.As(err, &failure) || failure.Outcome != chats.Later || failure.Outage {
			t.Errorf("Send without a connection = %+v, want it put off, and no outage of Slack's", err)
		}
	}
	if _, err := f.p.Send(t.Context(), to, chats.Part{Text: "you are Ann"}); err != nil {
		t.Errorf("Send with a connection: %v", err)
	}
	if got := f.Messages(to.Chat.ID); len(got) != 1 || got[0].Text != "you are Ann" {
		t.Errorf("got %+v", got)
	}
}

// While the bot learns that it is not in the channel, another process takes the chat over.
func TestAResponseThatAnotherProcessMayGiveIsNotGiven(t *testing.T) {
	f := setup(t, quick(), nil)
	to := f.commandWithoutTheBot()
	checks, errElsewhere := 0, errors.New("owned elsewhere")
	ctx := chats.WithPrecondition(t.Context(), func() error {
		if checks++; checks == 1 {
			return nil
		}
		return errElsewhere
	})
	if _, err := f.p.Send(ctx, to, chats.Part{Text: "you are Ann"}); !errors.Is(err, errElsewhere) {
		t.Errorf("Send = %v, want the error of the precondition", err)
	}
	if got := f.Messages(to.Chat.ID); len(got) != 0 {
		t.Errorf("got %+v", got)
	}
}

// commandWithoutTheBot runs the platform until it has accepted a command in a channel without the bot, and returns
// where to answer it.
func (f *fixture) commandWithoutTheBot() chats.Address {
	f.t.Helper()
	f.run()
	f.wait(func(s emulator.State) bool { return s.ActiveSockets() > 0 })
	channel := f.make(emulator.ChannelSpec{ID: "C9", Members: []string{f.user}, WithoutBot: true})
	if _, err := f.Command(channel, f.user, "/oneclaw", "whoami"); err != nil {
		f.t.Fatal(err)
	}
	msg := f.in.wait(f.t, 1)[0]
	return chats.Address{Chat: msg.Chat, ReplyTo: msg.ID}
}

func TestStatusesAreCleared(t *testing.T) {
	t.Parallel()
	f := start(t, quick(), nil)
	root := f.say(f.channel, "<@U0BOT> hi", nil)
	to := chats.Address{Chat: chatOf(f.channel, root.TS)}
	typing := func(on bool) {
		t.Helper()
		if err := f.p.SetTyping(t.Context(), to, on); err != nil {
			t.Error(err)
		}
	}
	shown := func(want int) {
		t.Helper()
		f.View(func(s emulator.State) {
			if got := s.StatusCount(); got != want {
				t.Errorf("%d statuses stand, want %d", got, want)
			}
		})
	}
	typing(true)
	typing(true)
	shown(1)
	typing(false)
	typing(false)
	shown(0)
	f.View(func(s emulator.State) {
		if n := s.CallCount("assistant.threads.setStatus"); n != 2 {
			t.Errorf("%d calls", n)
		}
	})
	typing(true)
	if _, err := f.send(to.Chat, chats.Part{Text: "x"}); err != nil {
		t.Fatal(err)
	}
	shown(0)
	typing(true) // one that comes while an answer is sent is cleared as well
	f.p.statuses.RecordAnswer(to.Chat, time.Now().Add(-time.Hour))
	typing(false)
	shown(0)
	typing(true)
	f.inject(emulator.Fault{Method: "assistant.threads.setStatus", Times: 1, Effect: emulator.CutBefore})
	if err := f.p.SetTyping(t.Context(), to, false); err == nil {
		t.Error("no error")
	}
	shown(1)
	f.stop()
	shown(0)
	if err := f.p.SetTyping(t.Context(), chats.Address{Chat: chatOf(f.dm, "")}, true); err != nil {
		t.Error(err)
	}
}

func TestStatusesAreGivenUp(t *testing.T) {
	cfg := quick()
	cfg.Scopes = []string{"chat:write"}
	f := start(t, cfg, nil)
	root := f.say(f.channel, "x", nil)
	for range 3 {
		if err := f.p.SetTyping(t.Context(), chats.Address{Chat: chatOf(f.channel, root.TS)}, true); err != nil {
			t.Error(err)
		}
	}
	f.View(func(s emulator.State) {
		if n := s.CallCount("assistant.threads.setStatus"); n != 1 {
			t.Errorf("%d calls", n)
		}
	})
}

func TestAdmins(t *testing.T) {
	f := setup(t, quick(), nil)
	f.AddUser(emulator.User{ID: "U2", Admin: true})
	f.AddUser(emulator.User{ID: "U3", Owner: true})
	f.AddUser(emulator.User{ID: "U4", Admin: true, Deleted: true})
	for user, want := range map[string]bool{"U1": false, "U2": true, "U3": true, "U4": false} {
		for range 2 {
			got, err := f.p.IsAdmin(t.Context(), chatOf(f.channel, ""), user)
			if err != nil || got != want {
				t.Errorf("%s: %t, %v", user, got, err)
			}
		}
	}
	f.View(func(s emulator.State) {
		if n := s.CallCount("users.info"); n != 4 {
			t.Errorf("%d calls: answers are not remembered", n)
		}
	})
	if got, err := f.p.IsAdmin(t.Context(), chatOf(f.channel, ""), "U9"); got || err == nil {
		t.Errorf("unknown user: %t, %v", got, err)
	}
	f.inject(emulator.Fault{Method: "users.info", Effect: emulator.ServerError})
	if got, err := f.p.IsAdmin(t.Context(), chatOf(f.channel, ""), "U5"); got || err == nil {
		t.Errorf("outage: %t, %v", got, err)
	}
}

func TestNamesDoNotHoldMessagesUp(t *testing.T) {
	f := start(t, quick(), func(c *config) { c.callTimeout = 500 * time.Millisecond })
	f.inject(emulator.Fault{Method: "users.info", Effect: emulator.Hang})
	f.say(f.dm, "ask <@U7>", nil)
	if got := f.in.wait(t, 1)[0]; got.UserName != f.user || got.Text != "ask @U7" {
		t.Errorf("got %+v", got)
	}
}

func TestSendIsOverWhenItsTimeIs(t *testing.T) {
	f := setup(t, quick(), nil)
	f.inject(emulator.Fault{Method: "chat.postMessage", Effect: emulator.Hang})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		if err := f.WaitFor(ctx, func(s emulator.State) bool { return s.CallCount("chat.postMessage") == 1 }); err == nil {
			cancel()
		}
	}()
	_, err := f.p.Send(ctx, chats.Address{Chat: chatOf(f.dm, "")}, chats.Part{Text: "x"})
	var failure *chats.SendError
	if !errors.As(err, &failure) || failure.Outcome != chats.Unknown {
		t.Errorf("got %v", err)
	}
}

// TestAServerErrorIsNoFlood: an error of Slack's own is no word about the pace.
func TestAServerErrorIsNoFlood(t *testing.T) {
	f := setup(t, quick(), nil)
	for _, fault := range []emulator.Fault{
		{Effect: emulator.ServerError, Status: 503},
		{Effect: emulator.ServerError, Status: 504},
		{Effect: emulator.Refuse, Error: "internal_error"},
		{Effect: emulator.Refuse, Error: "fatal_error"},
	} {
		fault.Method, fault.Times = "chat.postMessage", 1
		f.inject(fault)
		if _, err := f.send(chatOf(f.dm, ""), chats.Part{Text: "x"}); err == nil {
			t.Error("no error")
		}
	}
	if f.p.api.pacer.Busy(apiCall{method: postMessage, channel: f.dm}.key()) {
		t.Error("sends are held back")
	}
}

func TestPingShowsAnOutage(t *testing.T) {
	f := setup(t, quick(), nil)
	for _, effect := range []emulator.Effect{emulator.CutBefore, emulator.CutAfter, emulator.ServerError, emulator.BadJSON, emulator.Refuse} {
		f.inject(emulator.Fault{Method: "auth.test", Times: 1, Effect: effect, Status: 504})
		if err := f.p.Ping(t.Context()); err == nil {
			t.Errorf("%s: no error", effect)
		}
		if err := f.p.Ping(t.Context()); err != nil {
			t.Errorf("after %s: %v", effect, err)
		}
	}
}
