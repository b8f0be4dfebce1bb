package telegram_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	tg "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"oneclaw/internal/emulator/telegram"
)

func (f *fixture) inject(fault telegram.Fault) int {
	f.t.Helper()
	n, err := f.Inject(fault)
	if err != nil {
		f.t.Fatal(err)
	}
	return n
}

func TestFaults(t *testing.T) {
	f := start(t, telegram.Config{})
	tests := []struct {
		fault telegram.Fault
		// kept is whether the message exists afterwards.
		kept  bool
		check func(error) bool
	}{
		{telegram.Fault{Effect: telegram.TooManyRequests, RetryAfter: 7}, false, func(err error) bool {
			var e *tg.Error
			return errors.As(err, &e) && e.Code == 429 && e.RetryAfter == 7 && e.Message == "Too Many Requests: retry after 7"
		}},
		{telegram.Fault{Effect: telegram.ServerError, Status: 504}, false, func(err error) bool {
			var e *json.SyntaxError
			return errors.As(err, &e)
		}},
		{telegram.Fault{Effect: telegram.Conflict}, false, func(err error) bool {
			var e *tg.Error
			return errors.As(err, &e) && e.Code == 409
		}},
		{telegram.Fault{Effect: telegram.CutBefore}, false, func(err error) bool { return errors.Is(err, io.EOF) }},
		{telegram.Fault{Effect: telegram.CutAfter}, true, func(err error) bool { return errors.Is(err, io.EOF) }},
		{telegram.Fault{Effect: telegram.BadJSON}, true, func(err error) bool { return err != nil }},
		{telegram.Fault{Effect: telegram.Slow, Delay: time.Millisecond}, true, func(err error) bool { return err == nil }},
	}
	for _, tt := range tests {
		t.Run(string(tt.fault.Effect), func(t *testing.T) {
			tt.fault.Method, tt.fault.Chat, tt.fault.Times = "sendMessage", f.user, 1
			n := f.inject(tt.fault)
			before := len(f.Messages(f.user))
			_, err := f.bot.MakeRequest("sendMessage", tg.Params{"chat_id": id(f.user), "text": "x"})
			if !tt.check(err) {
				t.Errorf("client saw %v", err)
			}
			all := f.Messages(f.user)
			if kept := len(all) > before; kept != tt.kept {
				t.Errorf("message kept: %t", kept)
			}
			cut := tt.fault.Effect == telegram.CutAfter || tt.fault.Effect == telegram.BadJSON
			if cut && all[len(all)-1].DroppedResponses != 1 {
				t.Error("the message does not show that its answer was lost")
			}
			f.call("sendMessage", tg.Params{"chat_id": id(f.user), "text": "x"}, nil)
			if got := f.Remove(n); got != 1 {
				t.Errorf("fired %d times", got)
			}
		})
	}
	f.View(func(s telegram.State) {
		if s.DroppedResponses() != 2 {
			t.Errorf("cuts = %d", s.DroppedResponses())
		}
	})
}

func TestFaultNthAndProbability(t *testing.T) {
	outcomes := func() string {
		f := start(t, telegram.Config{Seed: 5})
		f.inject(telegram.Fault{Method: "GETME", Nth: 2, Effect: telegram.Conflict})
		f.inject(telegram.Fault{Method: "getMe", Probability: 0.5, Effect: telegram.TooManyRequests})
		var b strings.Builder
		for range 20 {
			_, err := f.bot.MakeRequest("getMe", nil)
			if e, ok := errors.AsType[*tg.Error](err); ok {
				b.WriteString(id(int64(e.Code)) + " ")
			} else {
				b.WriteString("ok ")
			}
		}
		return b.String()
	}
	first := outcomes()
	if again := outcomes(); again != first {
		t.Errorf("same seed, other faults:\n%s\n%s", first, again)
	}
	if strings.Fields(first)[1] != "409" || !strings.Contains(first, "429") || !strings.Contains(first, "ok") {
		t.Errorf("got %s", first)
	}
}

func TestDuplicateDelivery(t *testing.T) {
	f := start(t, telegram.Config{})
	f.inject(telegram.Fault{Method: "getUpdates", Nth: 1, Effect: telegram.Duplicate})
	a := f.say(f.user, "a", nil).Update
	f.updates(nil)
	b := f.say(f.user, "b", nil).Update
	list := f.updates(tg.Params{"offset": id(a + 1)})
	if len(list) != 2 || list[0].ID != a || list[1].ID != b {
		t.Fatalf("got %+v", list)
	}
	if list := f.updates(tg.Params{"offset": id(b + 1)}); len(list) != 0 {
		t.Fatalf("got %+v", list)
	}
}

func TestFloodControl(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	f := start(t, telegram.Config{Limits: &telegram.Limits{PerChat: 1, Burst: 2, PerGroup: 3}, Now: func() time.Time { return now }})
	group := f.chat(telegram.ChatSpec{Kind: telegram.Group, Title: "G", User: f.user})
	send := tg.Params{"chat_id": id(f.user), "text": "x"}
	f.call("sendMessage", send, nil)
	f.call("sendMessage", send, nil)
	if e := f.refusal("sendMessage", send); e.Code != 429 || e.RetryAfter != 1 {
		t.Errorf("got %+v", e)
	}
	if e := f.refusal("sendMessage", send); e.RetryAfter != 2 {
		t.Errorf("trying during the penalty must lengthen it: %+v", e)
	}
	now = now.Add(3 * time.Second)
	f.call("sendMessage", send, nil)
	var m sent
	f.call("sendMessage", tg.Params{"chat_id": id(group), "text": "x"}, &m)
	now = now.Add(2 * time.Second)
	edit := tg.Params{"chat_id": id(group), "message_id": id(m.ID)}
	for _, text := range []string{"1", "2"} {
		edit["text"] = text
		f.call("editMessageText", edit, nil)
	}
	now = now.Add(5 * time.Second)
	edit["text"] = "3"
	if e := f.refusal("editMessageText", edit); e.Code != 429 || e.RetryAfter < 5 {
		t.Errorf("edits count in groups: %+v", e)
	}
}

func TestEventsAndBounds(t *testing.T) {
	f := start(t, telegram.Config{MaxMessages: 3, MaxUpdates: 2})
	events, cancel := f.Subscribe(2)
	defer cancel()
	for range 5 {
		f.say(f.user, "x", nil)
	}
	if all := f.Messages(f.user); len(all) != 3 {
		t.Errorf("%d messages kept", len(all))
	}
	if list := f.updates(nil); len(list) != 2 {
		t.Errorf("%d updates kept", len(list))
	}
	first, second := <-events, <-events
	if first.Kind != telegram.EventMessage || first.Snapshot.Text != "x" || second.Kind != telegram.EventUpdate {
		t.Errorf("got %+v, %+v", first, second)
	}
	f.say(f.user, "y", nil)
	if e := <-events; e.Missed == 0 || e.Snapshot.Text != "y" {
		t.Errorf("got %+v", e)
	}
}

func TestRemoteControl(t *testing.T) {
	f := start(t, telegram.Config{Control: true})
	post := func(act, body, kind string, into any) int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url+"/emulator/"+act, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", kind)
		resp, err := f.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(resp.Body)
		if err := errors.Join(err, resp.Body.Close()); err != nil {
			t.Fatal(err)
		}
		if into != nil {
			if err := json.NewDecoder(bytes.NewReader(data)).Decode(into); err != nil {
				t.Fatalf("%s: %v in %s", act, err, data)
			}
		}
		return resp.StatusCode
	}
	var u telegram.User
	post("users", `{"first_name":"Eve"}`, "application/json", &u)
	post("chats", `{"kind":"private","user":`+id(u.ID)+`}`, "application/json", nil)
	var s telegram.Sent
	if code := post("say", `{"chat":`+id(u.ID)+`,"user":`+id(u.ID)+`,"text":"hi"}`, "application/json", &s); code != 200 || s.Update == 0 {
		t.Fatalf("say: %d %+v", code, s)
	}
	if code := post("say", `{}`, "text/plain", nil); code != http.StatusUnsupportedMediaType {
		t.Errorf("text/plain: %d", code)
	}
	var wg sync.WaitGroup
	wg.Go(func() { f.call("sendMessage", tg.Params{"chat_id": id(u.ID), "text": "hello"}, nil) })
	defer wg.Wait()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.url+"/emulator/messages?answers=1&seconds=600&chat="+id(u.ID), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := f.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	var list []telegram.Message
	if err := errors.Join(json.NewDecoder(resp.Body).Decode(&list), resp.Body.Close()); err != nil {
		t.Fatal(err)
	}
	if len(list) != 2 || list[1].Text != "hello" {
		t.Errorf("got %+v", list)
	}
}
