package slack

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oneclaw/bridge/chats"
	emulator "oneclaw/internal/emulator/slack"
)

func TestOneMentionIsOneMessage(t *testing.T) {
	f := start(t, quick(), nil)
	sent := f.say(f.channel, "<@U0BOT> what is up?", nil)
	if len(sent.Envelopes) != 2 {
		t.Fatalf("want both events: %+v", sent)
	}
	f.acked(sent)
	got := f.in.wait(t, 2)
	want := chats.Message{
		Chat: chatOf(f.channel, sent.TS), ID: sent.TS, Kind: chats.KindText, User: f.user, UserName: "Ann Lee",
		Opener: f.user, Text: "what is up?", Time: parseTS(sent.TS),
	}
	if diff := cmp.Diff([]chats.Message{want, want}, got); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

func TestAckOnlyAfterAccept(t *testing.T) {
	f := setup(t, quick(), nil)
	f.inject(emulator.Fault{Method: "users.conversations", Effect: emulator.ServerError}) // nothing is fetched meanwhile
	f.in.errs = []error{errors.New("disk full"), errors.New("disk full")}
	given := make(chan struct{}, 8)
	f.in.before = func(m chats.Message) {
		f.View(func(s emulator.State) {
			if s.UnackedCount() == 0 {
				t.Errorf("%s was acknowledged before it was accepted", m.ID)
			}
		})
		given <- struct{}{}
	}
	sent := f.say(f.dm, "keep this", nil)
	f.run()
	for range 2 {
		<-given
		f.Redeliver() // what is not acknowledged in time comes again
	}
	f.acked(sent)
	if got := f.in.wait(t, 1); len(got) != 1 || got[0].Text != "keep this" {
		t.Errorf("got %+v", got)
	}
	f.View(func(s emulator.State) {
		if e, _ := s.Envelope(sent.Envelopes[0]); e.Deliveries != 3 || e.Acks != 1 {
			t.Errorf("got %+v", e)
		}
	})
	if !strings.Contains(f.log.String(), "disk full") {
		t.Error("the log does not say why")
	}
}

// Slack's socket is connected again.
func TestReconnectsWhenAsked(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{"warning", "refresh_requested"} {
		t.Run(reason, func(t *testing.T) {
			f := start(t, quick(), nil)
			f.Disconnect(reason)
			f.wait(func(s emulator.State) bool { return s.OpenedSockets() >= 2 })
			sent := f.say(f.dm, "still there?", nil)
			f.acked(sent)
			f.in.wait(t, 1)
			f.Disconnect(reason)
			f.wait(func(s emulator.State) bool {
				if s.ActiveSockets() > 2 {
					t.Errorf("%d sockets", s.ActiveSockets())
				}
				return s.OpenedSockets() >= 3
			})
		})
	}
}

// Slack's socket is connected again.
func TestReconnectsWhenCutOff(t *testing.T) {
	t.Parallel()
	f := start(t, quick(), nil)
	f.inject(emulator.Fault{Method: "socket", Times: 1, Effect: emulator.ServerError})
	f.inject(emulator.Fault{Method: "apps.connections.open", Times: 1, Effect: emulator.CutBefore})
	f.BreakSockets()
	sent := f.say(f.dm, "meanwhile", nil)
	f.acked(sent)
	f.in.wait(t, 1)
	if err := f.p.Health(); err != nil {
		t.Errorf("after the reconnection: %v", err)
	}
}

// Slack's socket is connected again.
func TestNoticesDeadSockets(t *testing.T) {
	t.Parallel()
	f := start(t, quick(), func(c *config) { c.pingTimeout = 300 * time.Millisecond })
	f.Freeze()
	sent := f.say(f.dm, "anybody?", nil)
	f.acked(sent)
	f.in.wait(t, 1)
	f.View(func(s emulator.State) {
		if s.OpenedSockets() < 2 {
			t.Error("the dead socket was not replaced")
		}
	})
}

func TestTroubleLeavesNoSocketsBehind(t *testing.T) {
	t.Parallel()
	f := start(t, quick(), func(c *config) { c.pingTimeout = 300 * time.Millisecond })
	for i := range 5 { // each quick end makes the next wait longer
		opened := 0
		f.View(func(s emulator.State) { opened = s.OpenedSockets() })
		switch i % 3 {
		case 0:
			f.Freeze()
		case 1:
			f.Disconnect("warning")
		case 2:
			f.Disconnect("refresh_requested")
		}
		f.wait(func(s emulator.State) bool {
			return s.OpenedSockets() > opened && s.ActiveSockets() > 0 && s.OpenSockets() <= 2
		})
		f.acked(f.say(f.dm, "message "+strconv.Itoa(i), nil))
	}
	f.stop()
	f.wait(func(s emulator.State) bool { return s.OpenSockets() == 0 })
}

func TestASocketWithoutHelloIsGivenUp(t *testing.T) {
	t.Parallel()
	f := setup(t, quick(), func(c *config) { c.pingTimeout = 200 * time.Millisecond })
	silent, err := f.Inject(emulator.Fault{Method: "hello", Effect: emulator.Hang})
	if err != nil {
		t.Fatal(err)
	}
	f.run()
	f.wait(func(s emulator.State) bool { return s.OpenedSockets() >= 1 })
	if err := f.p.Health(); err == nil {
		t.Error("healthy before Slack said hello")
	}
	f.Remove(silent)
	f.wait(func(s emulator.State) bool { return s.OpenedSockets() >= 2 })
	f.acked(f.say(f.dm, "hello?", nil))
	if log := f.log.String(); !strings.Contains(log, "no hello came within") {
		t.Errorf("the log does not say why:\n%s", log)
	}
}

func TestHealthSaysWhy(t *testing.T) {
	t.Parallel()
	f := start(t, quick(), func(c *config) { c.pingTimeout = time.Second })
	f.acked(f.say(f.dm, "x", nil))
	f.inject(emulator.Fault{Method: "apps.connections.open", Effect: emulator.Refuse, Error: "internal_error"})
	before := 0
	f.View(func(s emulator.State) { before = s.CallCount("apps.connections.open") })
	f.Freeze()
	f.wait(func(s emulator.State) bool {
		return s.CallCount("apps.connections.open") > before && s.OpenSockets() == 0
	})
	if err := f.p.Health(); err == nil || !strings.Contains(err.Error(), "not connected since 2") {
		t.Errorf("got %v", err)
	}
	f.stop()
	if log := f.log.String(); !strings.Contains(log, "no sign of life for 1s") {
		t.Errorf("the log does not say why:\n%s", log)
	}
}

func TestOrderOfAChat(t *testing.T) {
	t.Parallel()
	f := start(t, quick(), nil)
	const n = 50
	var want []string
	for i := range n {
		text := "message " + strconv.Itoa(i)
		want = append(want, text)
		f.say(f.dm, text, nil)
	}
	var got []string
	for _, m := range f.in.wait(t, n) {
		got = append(got, m.Text)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestThreadsSideBySide(t *testing.T) {
	f := setup(t, quick(), nil)
	held := f.say(f.channel, "<@U0BOT> slow", nil)
	other := f.say(f.channel, "<@U0BOT> fast", nil)
	release := make(chan struct{})
	f.in.before = func(m chats.Message) {
		if m.ID == held.TS {
			<-release
		}
	}
	f.run()
	f.acked(other)
	close(release)
	f.acked(held)
}

func TestUndecodableIsSkipped(t *testing.T) {
	f := start(t, quick(), nil)
	bad := f.SendEvent("", []byte(`{"type":"message","channel":{"id":7}}`))
	strange := f.SendEvent("", []byte(`{"type":"app_home_opened","tab":"home"}`))
	foreign := f.SendEvent("T0OTHER", []byte(`{"type":"message","channel":"D1","channel_type":"im","user":"U1","text":"x","ts":"1.000001"}`))
	good := f.say(f.dm, "good", nil)
	f.acked(bad, strange, foreign, good)
	if got := f.in.wait(t, 1); len(got) != 1 || got[0].Text != "good" {
		t.Errorf("got %+v", got)
	}
	if !strings.Contains(f.log.String(), bad.Envelopes[0]) {
		t.Error("the log does not name the envelope that was skipped")
	}
}

func TestRunRefusesWrongTokens(t *testing.T) {
	tests := []struct {
		name   string
		cfg    emulator.Config
		change func(*config)
		want   string
	}{
		{"bot token", emulator.Config{}, func(c *config) { c.BotToken = "xoxb-wrong-1234567890" }, "SLACK_BOT_TOKEN"},
		{"app token", emulator.Config{}, func(c *config) { c.AppToken = "xapp-wrong-1234567890" }, "SLACK_APP_TOKEN"},
		{"app token without scope", emulator.Config{AppScopes: []string{"authorizations:read"}}, nil, "connections:write"},
		{"bot token without scope", emulator.Config{Scopes: []string{"users:read"}}, nil, "chat:write"},
		{"installed for an organization", emulator.Config{Organization: "E0ORG"}, nil, "install it in one workspace instead"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := setup(t, tt.cfg, tt.change)
			err := f.p.Run(t.Context(), f.in)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want %q", err, tt.want)
			}
			f.noSecrets(err.Error() + f.log.String())
			if strings.Contains(err.Error(), "wrong-1234567890") {
				t.Errorf("the token is told: %v", err)
			}
		})
	}
}

func TestRunWaitsForSlack(t *testing.T) {
	f := setup(t, quick(), nil)
	f.inject(emulator.Fault{Method: "auth.test", Times: 1, Effect: emulator.ServerError})
	f.inject(emulator.Fault{Method: "auth.test", Times: 1, Effect: emulator.CutBefore})
	if f.p.Health() == nil {
		t.Error("healthy before it runs")
	}
	f.run()
	f.wait(func(s emulator.State) bool { return s.ActiveSockets() == 1 })
	f.acked(f.say(f.dm, "x", nil))
	f.stop()
	if f.p.Health() == nil {
		t.Error("healthy after it ran")
	}
}

func TestHealthSaysSinceWhen(t *testing.T) {
	f := start(t, quick(), nil)
	f.acked(f.say(f.dm, "x", nil))
	if err := f.p.Health(); err != nil {
		t.Fatal(err)
	}
	f.inject(emulator.Fault{Method: "apps.connections.open", Effect: emulator.ServerError, Status: 503})
	f.BreakSockets()
	f.wait(func(s emulator.State) bool { return s.CallCount("apps.connections.open") >= 3 })
	err := f.p.Health()
	if err == nil || !strings.Contains(err.Error(), "not connected since 2") || !strings.Contains(err.Error(), "503") {
		t.Errorf("got %v", err)
	}
}

func TestHealthSaysThatNothingIsKept(t *testing.T) {
	t.Parallel()
	f := setup(t, quick(), nil)
	f.inject(emulator.Fault{Method: "users.conversations", Effect: emulator.ServerError}) // nothing is fetched meanwhile
	f.in.errs = []error{errors.New("disk full")}
	accepted := make(chan struct{}, 8)
	f.in.before = func(chats.Message) { accepted <- struct{}{} }
	f.say(f.dm, "x", nil)
	f.run()
	<-accepted
	f.Redeliver()
	<-accepted // the second follows when the first has failed
	f.acked(f.say(f.dm, "y", nil))
	if err := f.p.Health(); err != nil {
		t.Errorf("got %v", err)
	}
	f.p.health.recordAccept(errors.New("disk full"))
	if err := f.p.Health(); err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("got %v", err)
	}
}

func TestRedaction(t *testing.T) {
	t.Parallel()
	f := start(t, quick(), nil)
	for _, fault := range []emulator.Fault{
		{Method: "apps.connections.open", Times: 1, Effect: emulator.CutBefore},
		{Method: "socket", Times: 1, Effect: emulator.CutBefore},
		{Method: "chat.postMessage", Times: 1, Effect: emulator.CutAfter},
		{Method: "users.info", Effect: emulator.CutBefore},
	} {
		f.inject(fault)
	}
	f.BreakSockets()
	f.acked(f.say(f.dm, "x", nil))
	_, err := f.send(chatOf(f.dm, ""), chats.Part{Text: "x"})
	if err == nil {
		t.Fatal("no error")
	}
	ctx, down := context.WithCancel(t.Context())
	down()
	_, canceled := f.p.Send(ctx, chats.Address{Chat: chatOf(f.dm, "")}, chats.Part{Text: "x"})
	f.stop()
	f.noSecrets(err.Error() + canceled.Error() + f.log.String())
	if got := f.p.api.redact("a " + f.BotToken() + " b xoxp-1-2 ticket=abc&x"); got != "a <token> b <token> <token>&x" {
		t.Errorf("got %q", got)
	}
}
