package slack_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	api "github.com/slack-go/slack"

	"oneclaw/internal/emulator/slack"
)

func TestFaults(t *testing.T) {
	f := start(t, slack.Config{})
	tests := []struct {
		fault slack.Fault
		// kept is whether the message exists afterwards.
		kept  bool
		check func(error) bool
	}{
		{slack.Fault{Effect: slack.TooManyRequests, RetryAfter: 7}, false, func(err error) bool {
			var e *api.RateLimitedError
			return errors.As(err, &e) && e.RetryAfter == 7*time.Second
		}},
		{slack.Fault{Effect: slack.ServerError, Status: 503}, false, func(err error) bool {
			var e api.StatusCodeError
			return errors.As(err, &e) && e.Code == 503
		}},
		{slack.Fault{Effect: slack.Refuse, Error: "fatal_error"}, false, func(err error) bool {
			var e api.SlackErrorResponse
			return errors.As(err, &e) && e.Err == "fatal_error"
		}},
		{slack.Fault{Effect: slack.CutBefore}, false, func(err error) bool { return errors.Is(err, io.EOF) }},
		{slack.Fault{Effect: slack.CutAfter}, true, func(err error) bool { return errors.Is(err, io.EOF) }},
		{slack.Fault{Effect: slack.BadJSON}, true, func(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }},
		{slack.Fault{Effect: slack.Slow, Delay: time.Millisecond}, true, func(err error) bool { return err == nil }},
	}
	for _, tt := range tests {
		t.Run(string(tt.fault.Effect), func(t *testing.T) {
			tt.fault.Method, tt.fault.Chat, tt.fault.Times = "chat.postMessage", f.channel, 1
			n := f.inject(tt.fault)
			before := len(f.Messages(f.channel))
			_, _, err := f.bot.PostMessageContext(t.Context(), f.channel, api.MsgOptionText("x", false))
			if !tt.check(err) {
				t.Errorf("client saw %v", err)
			}
			all := f.Messages(f.channel)
			if kept := len(all) > before; kept != tt.kept {
				t.Errorf("message kept: %t", kept)
			}
			cut := tt.fault.Effect == slack.CutAfter || tt.fault.Effect == slack.BadJSON
			if cut && all[len(all)-1].DroppedResponses != 1 {
				t.Error("the message does not show that its answer was lost")
			}
			if got := f.Remove(n); got != 1 {
				t.Errorf("fired %d times", got)
			}
		})
	}
	f.View(func(s slack.State) {
		if s.DroppedResponses() != 2 {
			t.Errorf("cuts = %d", s.DroppedResponses())
		}
	})
}

func TestEventsAndBounds(t *testing.T) {
	f := start(t, slack.Config{MaxMessages: 3, Delivery: slack.Delivery{MaxEnvelopes: 2}})
	events, cancel := f.Subscribe(2)
	defer cancel()
	for range 5 {
		f.say(f.dm, "x", nil)
	}
	if all := f.Messages(f.dm); len(all) != 3 {
		t.Errorf("%d messages kept", len(all))
	}
	f.View(func(s slack.State) {
		if n := s.UnackedCount(); n != 2 {
			t.Errorf("%d envelopes kept", n)
		}
	})
	first, second := <-events, <-events
	if first.Kind != slack.EventMessage || first.Snapshot.Text != "x" || second.Kind != slack.EventEnvelope {
		t.Errorf("got %+v, %+v", first, second)
	}
	f.say(f.dm, "y", nil)
	if e := <-events; e.Missed == 0 || e.Snapshot.Text != "y" {
		t.Errorf("got %+v", e)
	}
}

func TestRemoteControl(t *testing.T) {
	f := start(t, slack.Config{Control: true})
	base := strings.TrimSuffix(f.url, "api/") + "emulator/"
	send := func(act, body string, into any) {
		code, got := f.post(base+act, "application/json", body)
		if code != 200 {
			t.Fatalf("%s: %d %s", act, code, got)
		}
		if err := json.Unmarshal([]byte(got), into); err != nil {
			t.Fatalf("%s: %v in %s", act, err, got)
		}
	}
	var u slack.User
	send("users", `{"name":"eve"}`, &u)
	var made struct{ Channel string }
	send("channels", `{"kind":"im","members":["`+u.ID+`"]}`, &made)
	var sent slack.Sent
	send("say", `{"channel":"`+made.Channel+`","user":"`+u.ID+`","text":"hi"}`, &sent)
	if len(sent.Envelopes) != 1 {
		t.Errorf("got %+v", sent)
	}
	if code, _ := f.post(base+"say", "text/plain", "{}"); code != 415 {
		t.Errorf("text/plain: %d", code)
	}
	if code, _ := f.post(base+"nothing", "application/json", "{}"); code != 400 {
		t.Errorf("unknown act: %d", code)
	}
	f.call("chat.postMessage", map[string]string{"channel": made.Channel, "text": "hello"})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"messages?answers=1&seconds=600&channel="+made.Channel, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, body := f.do(req)
	var list []slack.Message
	if err := json.Unmarshal([]byte(body), &list); err != nil || len(list) != 2 || list[1].Text != "hello" {
		t.Errorf("got %+v, %v", list, err)
	}
}
