package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"oneclaw/bridge/chats"
	emulator "oneclaw/internal/emulator/telegram"
)

func oneButton(label, data string) [][]chats.Button {
	return [][]chats.Button{{{Label: label, Data: data}}}
}

// card sends a message with a button and returns its id.
func (s *emulated) card(t *testing.T, to chats.Address) int64 {
	t.Helper()
	id, err := s.p.Send(t.Context(), to, chats.Part{Text: "<b>sure?</b>", Plain: "sure?", Buttons: oneButton("Yes", "x")})
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestDeadButtonsAreAnswered(t *testing.T) {
	s := newEmulated(t)
	in := newInbox()
	stop := run(t, s.p, in)
	defer stop()
	card := s.card(t, to(s.ann, 0, 0))
	s.until(t, func(st emulator.State) bool { return st.IsPolling() })
	long, err := s.Press(s.ann, card, s.ann, strings.Repeat("x", maxData+1), true)
	if err != nil {
		t.Fatal(err)
	}
	s.until(t, func(st emulator.State) bool { c, _ := st.Callback(long.Callback); return c.Text == deadButtonText })
	s.until(t, func(st emulator.State) bool { return st.IsConfirmed(long.Update) })
	if got := in.wait(t, atLeast(0)); len(got) != 0 {
		t.Errorf("accepted %+v", got)
	}
}

func TestAnswersToPresses(t *testing.T) {
	for name, tt := range map[string]struct {
		text  string
		want  string
		alert bool
	}{
		"nothing": {"", "", false},
		"short":   {"Done.", "Done.", false},
		"long":    {strings.Repeat("word ", 20), strings.Repeat("word ", 20), true},
		"cut":     {strings.Repeat("🎉", 150), strings.Repeat("🎉", 99) + "…", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newEmulated(t)
			press, err := s.Press(s.ann, s.card(t, to(s.ann, 0, 0)), s.ann, "x")
			if err != nil {
				t.Fatal(err)
			}
			if err := s.p.AnswerPress(t.Context(), chats.Message{ID: press.Callback}, tt.text); err != nil {
				t.Error(err)
			}
			s.View(func(st emulator.State) {
				if c, _ := st.Callback(press.Callback); !c.Answered || c.Text != tt.want || c.ShowAlert != tt.alert {
					t.Errorf("answered %+v", c)
				}
			})
			if err := s.p.AnswerPress(t.Context(), chats.Message{ID: "12345"}, tt.text); err != nil {
				t.Errorf("an answer to a press that is forgotten: %v", err)
			}
			s.inject(t, emulator.Fault{Method: "answerCallbackQuery", Effect: emulator.ServerError})
			if err := s.p.AnswerPress(t.Context(), chats.Message{ID: press.Callback}, tt.text); err == nil {
				t.Error("an answer that did not arrive is no error")
			}
		})
	}
}

func TestFaultsOfEdits(t *testing.T) {
	for effect, want := range map[emulator.Effect]chats.Outcome{
		emulator.TooManyRequests: chats.Later,
		emulator.ServerError:     chats.Unknown,
		emulator.CutBefore:       chats.Unknown,
		emulator.CutAfter:        chats.Unknown,
		emulator.BadJSON:         chats.Unknown,
	} {
		t.Run(string(effect), func(t *testing.T) {
			s := newEmulated(t)
			card := strconv.FormatInt(s.card(t, to(s.ann, 0, 0)), 10)
			s.inject(t, emulator.Fault{Method: "editMessageText", Times: 1, Effect: effect, RetryAfter: 1})
			part := chats.Part{Text: "<i>done</i>", Plain: "done"}
			var got *chats.SendError
			if err := s.p.Edit(t.Context(), to(s.ann, 0, 0), card, part); !errors.As(err, &got) || got.Outcome != want {
				t.Fatalf("Edit = %v, want outcome %v", err, want)
			}
			if want == chats.Later {
				return // not now
			}
			if err := s.p.Edit(t.Context(), to(s.ann, 0, 0), card, part); err != nil {
				t.Errorf("the second try: %v", err)
			}
			if a := s.answers(s.ann)[0]; a.Text != "done" || len(a.Buttons) != 0 {
				t.Errorf("there stands %+v", a)
			}
		})
	}
}

func TestRefusedMarkupIsEditedPlain(t *testing.T) {
	s := newEmulated(t)
	card := strconv.FormatInt(s.card(t, to(s.ann, 0, 0)), 10)
	for range 2 {
		part := chats.Part{Text: "<b>never closed & <x>", Plain: "never closed & <x>", Buttons: oneButton("Again", "y")}
		if err := s.p.Edit(t.Context(), to(s.ann, 0, 0), card, part); err != nil {
			t.Fatal(err)
		}
	}
	if a := s.answers(s.ann)[0]; a.Text != "never closed & <x>" || len(a.Buttons) != 1 || a.Buttons[0][0].CallbackData != "y" {
		t.Errorf("there stands %+v", a)
	}
}

func TestButtonsOnTheWire(t *testing.T) {
	var form url.Values
	p, _ := newFake(t, func(_ context.Context, _ string, f url.Values) (int, string, error) {
		form = f
		return ok(`{"message_id":77}`)
	})
	part := chats.Part{Text: "hi", Buttons: [][]chats.Button{
		{{Label: "Yes", Data: "a:0", Style: chats.StylePrimary}, {Label: "No", Data: "a:1", Style: chats.StyleDanger}}, {}, {{Label: "Später", Data: "a:2"}},
	}}
	const want = `{"inline_keyboard":[[{"text":"Yes","callback_data":"a:0","style":"primary"},{"text":"No","callback_data":"a:1","style":"danger"}],[{"text":"Später","callback_data":"a:2"}]]}`
	if _, err := p.Send(t.Context(), private, part); err != nil || form.Get("reply_markup") != want {
		t.Errorf("Send = %v with %v", err, form)
	}
	if err := p.Edit(t.Context(), private, "12", part); err != nil || form.Get("reply_markup") != want || form.Get("message_id") != "12" || form.Get("chat_id") != "5" {
		t.Errorf("Edit = %v with %v", err, form)
	}
	part.Buttons = [][]chats.Button{{}, {}}
	if err := p.Edit(t.Context(), private, "12", part); err != nil || form.Has("reply_markup") {
		t.Errorf("Edit without buttons = %v with %v", err, form)
	}
	form = nil
	for _, id := range []string{"", "x", "0", "-1", "1/2"} {
		var got *chats.SendError
		if err := p.Edit(t.Context(), private, id, part); !errors.As(err, &got) || got.Outcome != chats.Refused || form != nil {
			t.Errorf("Edit of %q = %v", id, err)
		}
	}
	if err := p.Edit(t.Context(), chats.Address{Chat: chats.Chat{Platform: "slack", ID: "C1"}}, "1", part); err == nil || form != nil {
		t.Errorf("Edit elsewhere = %v", err)
	}
}

func FuzzPress(f *testing.F) {
	for _, raw := range readBatch(f, "testdata/updates/callback.json") {
		var u update
		if err := json.Unmarshal(raw, &u); err != nil {
			f.Fatal(err)
		}
		f.Add(u.Callback.ID, []byte(u.Callback.Message), u.Callback.Data, u.Callback.From.ID, u.Callback.From.FirstName)
	}
	f.Add("1", []byte(`{"message_id":1,"date":1,"chat":{"id":-5},"is_topic_message":true,"message_thread_id":-9}`), "\x00\xff", int64(-1), "\n")
	f.Fuzz(func(t *testing.T, id string, message []byte, data string, from int64, name string) {
		if id == "" {
			t.Skip("no press: the decoder drops these before")
		}
		e := newDecoder().decodePress(&callback{ID: id, From: user{ID: from, FirstName: name}, Message: message, Data: data})
		if e.moved != nil || (e.message == nil) == (e.deadPress == "") {
			t.Fatalf("neither a press nor a dead one: %+v", e)
		}
		m := e.message
		if m == nil {
			return
		}
		if m.Kind != chats.KindPress || m.ID != id || m.Text != data || len(data) > maxData || data == "" {
			t.Errorf("press %q with %q became %+v", id, data, m)
		}
		if m.User == "" || m.User == "0" || m.TargetID == "" || m.TargetID == "0" || len(m.Files)+len(m.Skipped) != 0 {
			t.Errorf("press without user or message: %+v", m)
		}
		if back, err := chats.ParseChat(m.Chat.String()); err != nil || back != m.Chat {
			t.Errorf("chat %+v does not survive: %+v, %v", m.Chat, back, err)
		}
	})
}
