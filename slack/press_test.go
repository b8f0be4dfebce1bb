package slack

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oneclaw/bridge/chats"
	emulator "oneclaw/internal/emulator/slack"
	"oneclaw/internal/retry"
)

// question is a part with two rows of buttons.
func question() chats.Part {
	return chats.Part{Text: "*May I?* @here", Plain: "May I? @here", Buttons: [][]chats.Button{
		{{Label: "Yes", Data: "tok:0", Style: chats.StylePrimary}, {Label: "No", Data: "tok:1", Style: chats.StyleDanger}},
		{{Label: "Later", Data: "tok:2"}},
	}}
}

func (f *fixture) press(channel, ts, value string) emulator.Sent {
	f.t.Helper()
	sent, err := f.Press(channel, ts, f.user, value, false)
	if err != nil {
		f.t.Fatal(err)
	}
	return sent
}

func (f *fixture) message(channel, ts string) emulator.Message {
	f.t.Helper()
	var m emulator.Message
	f.View(func(s emulator.State) {
		var ok bool
		if m, ok = s.Message(channel, ts); !ok {
			f.t.Errorf("no message %s in %s", ts, channel)
		}
	})
	return m
}

func TestButtonsAndPresses(t *testing.T) {
	f := start(t, quick(), nil)
	root := f.say(f.channel, "<@U0BOT> hi", nil)
	f.acked(root)
	before := len(f.in.all())
	chat := chatOf(f.channel, root.TS)
	ts, err := f.send(chat, question())
	if err != nil {
		t.Fatal(err)
	}
	m := f.message(f.channel, ts)
	want := [][]emulator.Button{
		{{ActionID: "row0-0", Label: "Yes", Value: "tok:0", Style: "primary"}, {ActionID: "row0-1", Label: "No", Value: "tok:1", Style: "danger"}},
		{{ActionID: "row1-0", Label: "Later", Value: "tok:2"}},
	}
	if diff := cmp.Diff(want, m.Buttons); diff != "" || m.Shown != "*May I?* @here" || m.Text != m.Shown || len(m.Mentions) != 0 {
		t.Errorf("got %+v\nbuttons (-want +got):\n%s", m, diff)
	}
	f.inject(emulator.Fault{Method: "envelope", Times: 1, Effect: emulator.Duplicate})
	sent := f.press(f.channel, ts, "tok:1")
	f.acked(sent)
	for _, got := range f.in.wait(t, before+2)[before:] {
		got.Time = got.Time.UTC()
		want := chats.Message{
			Chat: chat, ID: sent.TriggerID, Kind: chats.KindPress, User: f.user, UserName: "Ann Lee",
			Opener: f.user, Text: "tok:1", TargetID: ts, Time: got.Time,
		}
		if diff := cmp.Diff(want, got); diff != "" || got.Time.IsZero() {
			t.Errorf("press (-want +got):\n%s", diff)
		}
	}
	press := f.in.all()[before]
	if err := f.p.AnswerPress(t.Context(), press, "Noted: *no* <@U1>"); err != nil {
		t.Fatal(err)
	}
	if err := f.p.AnswerPress(t.Context(), press, ""); err != nil {
		t.Fatal(err)
	}
	all := f.Messages(f.channel)
	if toast := all[len(all)-1]; toast.Ephemeral != f.user || toast.Thread != root.TS || len(toast.Mentions) != 0 || !strings.HasPrefix(toast.Shown, "Noted: *no*") {
		t.Errorf("got %+v", toast)
	}
	for range 2 { // once more is no error
		if err := f.p.Edit(t.Context(), chats.Address{Chat: chat}, ts, chats.Part{Text: "_No._ @channel", Plain: "No."}); err != nil {
			t.Fatal(err)
		}
	}
	if m := f.message(f.channel, ts); m.Shown != "_No._ @channel" || len(m.Buttons) != 0 || len(m.Mentions) != 0 || m.Thread != root.TS {
		t.Errorf("got %+v", m)
	}
	if err := f.p.Edit(t.Context(), chats.Address{Chat: chat}, ts, question()); err != nil {
		t.Fatal(err)
	}
	if m := f.message(f.channel, ts); len(m.Buttons) != 2 {
		t.Errorf("got %+v", m)
	}
}

func TestPressIsAcknowledgedOnlyAfterAccept(t *testing.T) {
	cfg := quick()
	cfg.AckTimeout = 100 * time.Millisecond
	f := setup(t, cfg, nil)
	ts, err := f.send(chatOf(f.dm, ""), question())
	if err != nil {
		t.Fatal(err)
	}
	f.in.errs = []error{errors.New("disk full")}
	f.in.before = func(m chats.Message) {
		f.View(func(s emulator.State) {
			if m.Kind == chats.KindPress && s.UnackedCount() == 0 {
				t.Error("acknowledged before it was accepted")
			}
		})
	}
	first := f.press(f.dm, ts, "tok:2")
	f.run()
	f.wait(func(s emulator.State) bool { // Slack tells whoever pressed, who does it again
		e, _ := s.Envelope(first.Envelopes[0])
		return e.State == emulator.Lost
	})
	f.acked(f.press(f.dm, ts, "tok:2"))
	got := f.in.wait(t, 1)[0]
	if got.Chat != chatOf(f.dm, "") || !got.Direct || got.Opener != f.user || got.TargetID != ts || got.Text != "tok:2" {
		t.Errorf("got %+v", got)
	}
}

func TestPostedPresses(t *testing.T) {
	f := posted(t)
	ts, err := f.send(chatOf(f.channel, ""), question())
	if err != nil {
		t.Fatal(err)
	}
	f.run()
	f.acked(f.say(f.dm, "it runs", nil))
	f.in.errs = []error{errors.New("disk full")}
	first := f.press(f.channel, ts, "tok:0")
	f.wait(func(s emulator.State) bool {
		e, _ := s.Envelope(first.Envelopes[0])
		return e.State == emulator.Lost
	})
	f.acked(f.press(f.channel, ts, "tok:0"))
	if got := f.in.wait(t, 2)[1]; got.Kind != chats.KindPress || got.Chat != chatOf(f.channel, "") || got.Text != "tok:0" {
		t.Errorf("got %+v", got)
	}
}

func TestPressesThatAreNone(t *testing.T) {
	f := start(t, quick(), nil)
	const whole = `{"type":"block_actions","team":{"id":"T0ONECLAW"},"user":{"id":"U1"},"channel":{"id":"C1"},` +
		`"container":{"message_ts":"1.000001"},"actions":[{"type":"button","value":"x","action_ts":"2.000002"}],"trigger_id":"1.2.a"}`
	tests := []struct{ name, from, to, id string }{
		{"whole", "", "", "1.2.a"},
		{"no trigger", `"1.2.a"`, `""`, "2.000002-U1-1.000001"},
		{"strange trigger", `"1.2.a"`, `"a:b"`, "2.000002-U1-1.000001"},
		{"other kind", "block_actions", "view_submission", ""},
		{"other workspace", "T0ONECLAW", "T0OTHER", ""},
		{"no workspace", `{"id":"T0ONECLAW"}`, "null", ""},
		{"nobody", `"U1"`, `""`, ""},
		{"nowhere", `"C1"`, `""`, ""},
		{"no message", `"1.000001"`, `""`, ""},
		{"no action", `{"type":"button","value":"x","action_ts":"2.000002"}`, "", ""},
		{"other element", `"button"`, `"static_select"`, ""},
		{"no JSON", `{"type"`, `{"type`, ""},
		{"other shape", `[{"type":"button"`, `{"a":[{"type":"button"`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := len(f.in.all())
			payload := strings.Replace(whole, tt.from, tt.to, 1)
			if !json.Valid([]byte(payload)) {
				payload = `"` + tt.name + `"` // still an envelope
			}
			f.acked(f.SendInteraction(json.RawMessage(payload)))
			switch got := f.in.all()[before:]; {
			case tt.id == "" && len(got) != 0:
				t.Errorf("got %+v", got)
			case tt.id != "" && (len(got) != 1 || got[0].ID != tt.id):
				t.Errorf("got %+v, want %s", got, tt.id)
			}
		})
	}
}

func TestEditRefusals(t *testing.T) {
	f := setup(t, quick(), nil)
	theirs := f.say(f.dm, "mine", nil).TS
	mine, err := f.send(chatOf(f.dm, ""), question())
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name  string
		id    string
		part  chats.Part
		fault emulator.Fault
		want  chats.Outcome
	}{
		{"not there", "1.000001", question(), emulator.Fault{}, chats.Refused},
		{"no id", "", question(), emulator.Fault{}, chats.Refused},
		{"somebody else's", theirs, question(), emulator.Fault{}, chats.Refused},
		{"empty button", mine, chats.Part{Text: "x", Buttons: [][]chats.Button{{{Label: "x"}}}}, emulator.Fault{}, chats.Refused},
		{"too old", mine, question(), emulator.Fault{Effect: emulator.Refuse, Error: "edit_window_closed"}, chats.Refused},
		{"rate limit", mine, question(), emulator.Fault{Effect: emulator.TooManyRequests, RetryAfter: 3}, chats.Later},
		{"outage", mine, question(), emulator.Fault{Effect: emulator.ServerError}, chats.Unknown},
		{"trouble", mine, question(), emulator.Fault{Effect: emulator.Refuse, Error: "internal_error"}, chats.Unknown},
		{"answer lost", mine, question(), emulator.Fault{Effect: emulator.CutAfter}, chats.Unknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.fault.Effect != "" {
				tt.fault.Method, tt.fault.Times = "chat.update", 1
				f.p.api.pacer = retry.NewPacer(maxHold)
				f.inject(tt.fault)
			}
			err := f.p.Edit(t.Context(), chats.Address{Chat: chatOf(f.dm, "")}, tt.id, tt.part)
			var failure *chats.SendError
			if !errors.As(err, &failure) || failure.Outcome != tt.want {
				t.Errorf("got %v", err)
			}
		})
	}
	f.p.api.pacer = retry.NewPacer(maxHold)
	f.inject(emulator.Fault{Method: "chat.update", Times: 1, Effect: emulator.Refuse, Error: "invalid_blocks"})
	if err := f.p.Edit(t.Context(), chats.Address{Chat: chatOf(f.dm, "")}, mine, question()); err != nil {
		t.Fatal(err)
	}
	if m := f.message(f.dm, mine); m.Shown != "May I? @here" || len(m.Buttons) != 2 {
		t.Errorf("got %+v", m)
	}
}

// A card that answers a command where the bot is not lives at addresses that Slack gave
// with the command and the press.
func TestButtonsInAChannelWithoutTheBot(t *testing.T) {
	f := start(t, quick(), nil)
	f.make(emulator.ChannelSpec{ID: "C9", Members: []string{f.user}, WithoutBot: true})
	if _, err := f.Command("C9", f.user, "/oneclaw", "tools"); err != nil {
		t.Fatal(err)
	}
	msg := f.in.wait(t, 1)[0]
	id, err := f.p.Send(t.Context(), chats.Address{Chat: msg.Chat, ReplyTo: msg.ID}, question())
	if err != nil {
		t.Fatal(err)
	}
	card := f.Messages("C9")[0]
	if len(card.Buttons) != 2 || card.Ephemeral != f.user {
		t.Fatalf("got %+v", card)
	}
	f.press("C9", card.TS, "tok:0")
	press := f.in.wait(t, 2)[1]
	if press.TargetID != id || press.Chat != msg.Chat {
		t.Errorf("got %+v, want it on %s", press, id)
	}
	if err := f.p.Edit(t.Context(), chats.Address{Chat: press.Chat}, id, question()); err != nil {
		t.Fatal(err)
	}
	f.press("C9", card.TS, "tok:1")
	if again := f.in.wait(t, 3)[2]; again.TargetID != id {
		t.Errorf("got %+v, want it on %s", again, id)
	}
	if err := f.p.AnswerPress(t.Context(), press, "Thanks."); err != nil {
		t.Fatal(err)
	}
	if err := f.p.Edit(t.Context(), chats.Address{Chat: press.Chat}, press.TargetID, chats.Part{Text: "done"}); err != nil {
		t.Fatal(err)
	}
	all := f.Messages("C9")
	if len(all) != 2 || all[0].Shown != "done" || len(all[0].Buttons) != 0 || all[1].Shown != "Thanks." || all[1].Ephemeral != f.user {
		t.Errorf("got %+v", all)
	}
}

func TestLongTextsWithButtons(t *testing.T) {
	f := setup(t, quick(), nil)
	part := question()
	for _, part.Text = range []string{
		strings.Repeat("Words and *bold* words, 1 &lt; 2 &amp; so on. ", 80),
		"```\n" + strings.Repeat("x := 1 &amp;&amp; 2\n", 190) + "```",
		strings.Repeat("é", 3900),
		strings.Repeat("x\n\n", 1300),
	} {
		part.Repeat = !part.Repeat
		ts, err := f.send(chatOf(f.dm, ""), part)
		if err != nil {
			t.Fatal(err)
		}
		if m := f.message(f.dm, ts); len(m.Buttons) != 2 || strings.Count(m.Shown, "```")%2 != 0 {
			t.Errorf("got %+v", m)
		}
	}
}

func FuzzPress(f *testing.F) {
	f.Add(`{"type":"block_actions","team":{"id":"T0ONECLAW"},"user":{"id":"U1"},"channel":{"id":"C1"},"message":{"ts":"1.000001","thread_ts":"1.000000"},` +
		`"actions":[{"type":"button","value":"x","action_ts":"2.000002"}],"trigger_id":"1.2.a"}`)
	f.Add(`{"type":"view_submission","team":null}`)
	f.Add(`{"type":"block_actions","enterprise":{"id":"E1"},"container":{"message_ts":"1","channel_id":"D1","thread_ts":"1","is_ephemeral":true},"actions":[]}`)
	r := offline(f)
	r.api.timeout = 1 // nothing can be looked up
	f.Fuzz(func(t *testing.T, payload string) {
		in, err := me.decode(kindInteractive, []byte(payload))
		if err != nil || in.press == nil {
			return
		}
		_ = in.queueKey()
		m := r.convertPress(t.Context(), in.press)
		if m.ID == "" || strings.ContainsAny(m.ID, ":/ \n") || m.User == "" || m.TargetID == "" || m.Chat.ID == "" || m.Kind != chats.KindPress {
			t.Errorf("got %+v", m)
		}
	})
}

// A channel can have the name by which Slack calls direct chats; what is private does not
// belong there, and its limits hold.
func TestChannelNamedLikeADirectChatIsNone(t *testing.T) {
	f := start(t, quick(), nil)
	r := &receiver{platform: f.p, in: newInbox(), self: identity{team: "T0ONECLAW"}}
	for channel, direct := range map[string]bool{f.channel: false, f.dm: true} {
		payload := `{"type":"block_actions","team":{"id":"T0ONECLAW"},"user":{"id":"` + f.user + `","team_id":"T0ONECLAW"},
			"channel":{"id":"` + channel + `","name":"directmessage"},"container":{"message_ts":"1.1"},"trigger_id":"1.2.a",
			"actions":[{"type":"button","block_id":"b","value":"v","action_ts":"1.3"}]}`
		in, err := r.self.decodePress([]byte(payload))
		if err != nil || in.press == nil {
			t.Fatalf("%v %+v", err, in)
		}
		if m := r.convertPress(t.Context(), in.press); m.Direct != direct {
			t.Errorf("press in %s: direct %v", channel, m.Direct)
		}
		c := &command{}
		if err := json.Unmarshal([]byte(`{"channel_id":"`+channel+`","channel_name":"directmessage","user_id":"`+f.user+`","text":"status","trigger_id":"1.2.b"}`), c); err != nil {
			t.Fatal(err)
		}
		if m, _ := r.convertCommand(t.Context(), c); m == nil || m.Direct != direct {
			t.Errorf("command in %s: %+v", channel, m)
		}
	}
}
