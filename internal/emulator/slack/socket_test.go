package slack_test

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"oneclaw/internal/emulator/slack"
)

func TestMentionMakesTwoEvents(t *testing.T) {
	f := start(t, slack.Config{})
	sent := f.say(f.channel, "<@U0BOT> hi", nil)
	if len(sent.Envelopes) != 2 {
		t.Fatalf("got %+v", sent)
	}
	conn := f.dial()
	types := map[string]int{}
	for range 2 {
		e := f.next(conn)
		types[e.Payload.Event.Type]++
		if e.Payload.Event.TS != sent.TS {
			t.Errorf("ts %s, want %s", e.Payload.Event.TS, sent.TS)
		}
		f.ack(conn, e.ID)
	}
	if types["app_mention"] != 1 || types["message"] != 1 {
		t.Errorf("got %v", types)
	}
	f.wait(func(s slack.State) bool { return s.AllAcked(sent.Envelopes...) && s.UnackedCount() == 0 })
	if sent := f.say(f.dm, "<@U0BOT> hi", nil); len(sent.Envelopes) != 1 {
		t.Errorf("a mention in a DM: %+v", sent)
	}
	if e := f.next(conn); e.Payload.Event.ChannelType != "im" {
		t.Errorf("got %+v", e)
	}
}

func TestEventsOfAThread(t *testing.T) {
	f := start(t, slack.Config{})
	conn := f.dial()
	root := f.say(f.channel, "root", nil)
	f.next(conn)
	reply := f.say(f.channel, "reply", &slack.SayOptions{Thread: root.TS})
	if e := f.next(conn).Payload.Event; e.ThreadTS != root.TS || e.Parent != f.user || e.TS != reply.TS {
		t.Errorf("got %+v", e)
	}
	if _, err := f.Edit(f.channel, reply.TS, "changed"); err != nil {
		t.Fatal(err)
	}
	if e := f.next(conn).Payload.Event; e.Subtype != "message_changed" || e.Message.Text != "changed" {
		t.Errorf("got %+v", e)
	}
	f.say(f.channel, "", &slack.SayOptions{Files: []slack.Attachment{{Name: "a.txt", MIME: "text/plain", Data: []byte("x")}}})
	if e := f.next(conn).Payload.Event; e.Subtype != "file_share" {
		t.Errorf("got %+v", e)
	}
	if out := f.call("chat.postMessage", map[string]string{"channel": f.channel, "text": "mine"}); out["ok"] != true {
		t.Fatal(out)
	}
	if e := f.next(conn).Payload.Event; e.BotID != slack.BotID {
		t.Errorf("the bot's own message does not come back: %+v", e)
	}
}

func TestRetries(t *testing.T) {
	f := start(t, slack.Config{Delivery: slack.Delivery{AckTimeout: 10 * time.Millisecond, RetryDelays: []time.Duration{0, time.Millisecond}}})
	conn := f.dial()
	sent := f.say(f.dm, "x", nil)
	for want := range 3 {
		if e := f.next(conn); e.RetryAttempt != want || e.Payload.EventID != sent.Events[0] {
			t.Errorf("delivery %d: %+v", want, e)
		}
	}
	f.wait(func(s slack.State) bool {
		e, ok := s.Envelope(sent.Envelopes[0])
		return ok && e.State == slack.Lost && e.Deliveries == 3
	})
	f.Redeliver()
	f.ack(conn, f.next(conn).ID)
	f.wait(func(s slack.State) bool { return s.AllAcked(sent.Envelopes...) })
}

func TestUnackedGoesToAnotherSocket(t *testing.T) {
	f := start(t, slack.Config{})
	conn := f.dial()
	sent := f.say(f.dm, "x", nil)
	f.next(conn)
	f.BreakSockets()
	f.wait(func(s slack.State) bool { return s.ActiveSockets() == 0 })
	conn = f.dial()
	if e := f.next(conn); e.RetryAttempt != 1 {
		t.Errorf("got %+v", e)
	}
	f.Freeze()
	f.say(f.dm, "y", nil)
	f.wait(func(s slack.State) bool { return s.ActiveSockets() == 0 })
	if err := conn.SetReadDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	var timeout net.Error
	if _, _, err := conn.ReadMessage(); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("a frozen socket sends: %v", err)
	}
	f.View(func(s slack.State) {
		if s.AllAcked(sent.Envelopes...) {
			t.Error("acknowledged by nobody")
		}
	})
}

func TestSocketsAndTickets(t *testing.T) {
	f := start(t, slack.Config{Delivery: slack.Delivery{PingInterval: time.Millisecond}})
	_, address, err := f.bot.StartSocketModeContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{http.StatusSwitchingProtocols, http.StatusForbidden} {
		conn, resp, err := websocket.DefaultDialer.DialContext(t.Context(), address, nil)
		if resp == nil || resp.StatusCode != want {
			t.Fatalf("dial %d: %v %v", i, resp, err)
		}
		_ = resp.Body.Close()
		if conn != nil {
			t.Cleanup(func() { _ = conn.Close() })
		}
	}
	conn := f.dial()
	pinged := make(chan struct{}, 1)
	conn.SetPingHandler(func(string) error {
		select {
		case pinged <- struct{}{}:
		default:
		}
		return nil
	})
	f.Disconnect("refresh_requested")
	if e := f.next(conn); e.Type != "disconnect" || e.Reason != "refresh_requested" {
		t.Errorf("got %+v", e)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _, _ = conn.ReadMessage() // pings are handled while reading
	}()
	<-pinged
	for range 8 {
		f.dial()
	}
	if _, _, err := f.bot.StartSocketModeContext(t.Context()); err == nil || err.Error() != "too_many_websockets" {
		t.Errorf("eleventh socket: %v", err)
	}
	f.BreakSockets()
	<-done
}

func TestEnvelopeFaults(t *testing.T) {
	f := start(t, slack.Config{Delivery: slack.Delivery{AckTimeout: time.Minute}})
	conn := f.dial()
	f.inject(slack.Fault{Method: "envelope", Chat: f.dm, Nth: 1, Effect: slack.Duplicate})
	f.say(f.dm, "x", nil)
	if a, b := f.next(conn), f.next(conn); a.ID != b.ID || b.RetryAttempt != 1 {
		t.Errorf("got %+v and %+v", a, b)
	}
	f.Remove(0)
	f.inject(slack.Fault{Method: "envelope", Times: 1, Effect: slack.Slow, Delay: time.Millisecond})
	f.say(f.dm, "late", nil)
	if e := f.next(conn); e.Payload.Event.Text != "late" {
		t.Errorf("got %+v", e)
	}
	f.inject(slack.Fault{Method: "envelope", Times: 1, Effect: slack.CutAfter})
	f.say(f.dm, "cut", nil)
	f.wait(func(s slack.State) bool { return s.ActiveSockets() == 0 && s.UnackedCount() == 3 })
}

func TestCommandAndPress(t *testing.T) {
	f := start(t, slack.Config{})
	conn := f.dial()
	if _, err := f.Command(f.channel, f.user, "/oneclaw", "status"); err != nil {
		t.Fatal(err)
	}
	e := f.next(conn)
	if e.Type != "slash_commands" || !e.Accepts || e.Payload.Command != "/oneclaw" || e.Payload.Text != "status" {
		t.Fatalf("got %+v", e)
	}
	if err := conn.WriteJSON(map[string]any{"envelope_id": e.ID, "payload": map[string]string{"text": "at once"}}); err != nil {
		t.Fatal(err)
	}
	f.wait(func(s slack.State) bool { return s.CountAnswers(f.channel) == 1 })
	for i := range 6 {
		code, body := f.post(e.Payload.ResponseURL, "application/json", `{"text":"later","response_type":"in_channel"}`)
		if ok := code == 200 && body == "ok"; ok != (i < 5) {
			t.Errorf("post %d: %d %s", i, code, body)
		}
	}
	f.wait(func(s slack.State) bool { return s.CountAnswers(f.channel) == 6 })
	if all := f.Messages(f.channel); all[0].Ephemeral != f.user || all[1].Ephemeral != "" {
		t.Errorf("no ephemeral answer: %+v", all)
	}
	posted := f.Messages(f.channel)[1]
	if _, err := f.Press(f.channel, posted.TS, f.user, "42", false); err == nil {
		t.Error("a button was pressed that is not there")
	}
	if _, err := f.Press(f.channel, posted.TS, f.user, "42", true); err != nil {
		t.Fatal(err)
	}
	for e = f.next(conn); e.Type != "interactive"; e = f.next(conn) {
		continue
	}
	if len(e.Payload.Actions) != 1 || e.Payload.Actions[0].Value != "42" {
		t.Errorf("got %+v", e)
	}
}

func TestPostedEvents(t *testing.T) {
	taken := make(chan http.Header, 4)
	var posts atomic.Int32
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		var outer struct{ Challenge string }
		if json.Unmarshal(body, &outer) == nil && outer.Challenge != "" {
			_, _ = io.WriteString(w, outer.Challenge)
			return
		}
		if posts.Add(1) == 1 {
			w.WriteHeader(http.StatusInternalServerError)
		}
		taken <- r.Header
	}))
	defer app.Close()
	f := start(t, slack.Config{Delivery: slack.Delivery{EventsURL: app.URL, RetryDelays: []time.Duration{0}}})
	if err := f.VerifyURL(); err != nil {
		t.Error(err)
	}
	sent := f.say(f.dm, "x", nil)
	first, second := <-taken, <-taken
	if first.Get("X-Slack-Signature") == "" || first.Get("X-Slack-Retry-Num") != "" || second.Get("X-Slack-Retry-Num") != "1" {
		t.Errorf("got %v, then %v", first, second)
	}
	f.wait(func(s slack.State) bool { return s.AllAcked(sent.Envelopes...) })
}
