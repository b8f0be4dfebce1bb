package telegram

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"oneclaw/bridge/chats"
	emulator "oneclaw/internal/emulator/telegram"
)

func TestLongAnswersArriveWhole(t *testing.T) {
	s := newEmulated(t)
	code := "```go\n" + strings.Repeat("if a < b && c > d { fmt.Println(\"🎉\") }\n", 400) + "```\n"
	bold := "**" + strings.Repeat("bold & long 🎉 words, ", 800) + "**"
	for name, text := range map[string]string{"code": code, "bold": bold, "both": bold + "\n\n" + code, "list": strings.Repeat("- item *a* [l](https://e.x/?a=\"1\"&b=2)\n", 500)} {
		parts := s.p.Render(text)
		if len(parts) < 2 {
			t.Fatalf("%s: %d parts", name, len(parts))
		}
		for i, part := range parts {
			part.Repeat = i%2 == 0
			if _, err := s.p.Send(t.Context(), to(s.ann, 0, 0), part); err != nil {
				t.Errorf("%s: part %d: %v", name, i, err)
			}
		}
		answers := s.answers(s.ann)
		answers = answers[len(answers)-len(parts):]
		for i, a := range answers {
			if a.HTML == "" {
				t.Errorf("%s: part %d went out plain", name, i)
			}
			if want := i%2 == 0; strings.HasSuffix(a.Text, chats.RepeatNotice) != want {
				t.Errorf("%s: part %d: notice shown: %v", name, i, !want)
			}
		}
		if n := len(answers); n != len(parts) {
			t.Errorf("%s: %d messages of %d parts", name, n, len(parts))
		}
	}
	words := strings.Repeat("word ", 3000)
	before := len(s.answers(s.ann))
	for _, part := range s.p.Render(words) {
		if _, err := s.p.Send(t.Context(), to(s.ann, 0, 0), part); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	for _, a := range s.answers(s.ann)[before:] {
		n += strings.Count(a.Text, "word")
	}
	if n != 3000 {
		t.Errorf("%d of 3000 words arrived", n)
	}
}

func TestRefusedMarkupGoesOutPlain(t *testing.T) {
	s := newEmulated(t)
	id, err := s.p.Send(t.Context(), to(s.ann, 0, 0), chats.Part{Text: "<b>never closed & <x>", Plain: "never closed & <x>", Repeat: true})
	if err != nil {
		t.Fatalf("Send = %v", err)
	}
	got := s.answers(s.ann)
	if len(got) != 1 || got[0].Text != "never closed & <x>\n\n"+chats.RepeatNotice || id != strconv.FormatInt(got[0].ID, 10) {
		t.Errorf("sent %+v as %s", got, id)
	}
}

func TestFaultsOfSends(t *testing.T) {
	tests := map[emulator.Effect]struct {
		outcome chats.Outcome
		arrived int
	}{
		emulator.TooManyRequests: {chats.Later, 0},
		emulator.ServerError:     {chats.Unknown, 0},
		emulator.CutBefore:       {chats.Unknown, 0},
		emulator.CutAfter:        {chats.Unknown, 1},
		emulator.BadJSON:         {chats.Unknown, 1},
	}
	for effect, tt := range tests {
		t.Run(string(effect), func(t *testing.T) {
			s := newEmulated(t)
			s.inject(t, emulator.Fault{Method: "sendMessage", Times: 1, Effect: effect, RetryAfter: 3})
			_, err := s.p.Send(t.Context(), to(s.ann, 0, 0), chats.Part{Text: "hi"})
			var got *chats.SendError
			if !errors.As(err, &got) || got.Outcome != tt.outcome {
				t.Fatalf("Send = %v, want outcome %v", err, tt.outcome)
			}
			if n := len(s.answers(s.ann)); n != tt.arrived {
				t.Errorf("%d messages arrived, want %d", n, tt.arrived)
			}
			if effect == emulator.TooManyRequests && got.RetryAfter != 3*time.Second {
				t.Errorf("retry after %v", got.RetryAfter)
			}
		})
	}
	s := newEmulated(t)
	if _, err := s.SetBlocked(s.ann, true); err != nil {
		t.Fatal(err)
	}
	_, err := s.p.Send(t.Context(), to(s.ann, 0, 0), chats.Part{Text: "hi"})
	var got *chats.SendError
	if !errors.As(err, &got) || got.Outcome != chats.Refused {
		t.Errorf("Send to who blocked the bot = %v", err)
	}
}

func TestSendThatHangsIsUnknown(t *testing.T) {
	s := newEmulated(t)
	s.inject(t, emulator.Fault{Method: "sendMessage", Times: 1, Effect: emulator.Hang})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		if err := s.WaitFor(ctx, func(st emulator.State) bool { return st.CallCount("sendmessage") == 1 }); err == nil {
			cancel()
		}
	}()
	_, err := s.p.Send(ctx, to(s.ann, 0, 0), chats.Part{Text: "hi"})
	var got *chats.SendError
	if !errors.As(err, &got) || got.Outcome != chats.Unknown {
		t.Errorf("Send = %v, want Unknown", err)
	}
}

func TestTopics(t *testing.T) {
	s := newEmulated(t)
	forum := s.chat(t, emulator.ChatSpec{Kind: emulator.Supergroup, Forum: true, User: s.ann})
	topic, err := s.AddTopic(forum, "T")
	if err != nil {
		t.Fatal(err)
	}
	in := newInbox()
	stop := run(t, s.p, in)
	defer stop()
	s.say(t, forum, "@oneclaw_bot here", &emulator.SayOptions{Thread: topic})
	s.say(t, forum, "@oneclaw_bot there", nil)
	got := in.wait(t, atLeast(2))
	if got[0].Chat != to(forum, topic, 0).Chat || got[1].Chat != to(forum, 0, 0).Chat {
		t.Fatalf("came from %v and %v", got[0].Chat, got[1].Chat)
	}
	for _, m := range got {
		if _, err := s.p.Send(t.Context(), chats.Address{Chat: m.Chat, ReplyTo: m.ID}, chats.Part{Text: "answer"}); err != nil {
			t.Fatal(err)
		}
	}
	answers := s.answers(forum)
	for i, want := range []int64{topic, 0} {
		if a := answers[i]; a.Thread != want || strconv.FormatInt(a.ReplyTo, 10) != got[i].ID {
			t.Errorf("answer %d is in topic %d replying to %d", i, a.Thread, a.ReplyTo)
		}
	}
	if err := s.DeleteTopic(forum, topic); err != nil {
		t.Fatal(err)
	}
	if _, err := s.p.Send(t.Context(), chats.Address{Chat: got[0].Chat, ReplyTo: got[0].ID}, chats.Part{Text: "<b>late</b>", Plain: "late"}); err != nil {
		t.Fatal(err)
	}
	if a := s.answers(forum)[2]; a.Thread != 0 || a.Text != topicNotice+"\n\nlate" {
		t.Errorf("the answer to a topic that is gone: %+v", a)
	}
	// An edit keeps the line.
	id, err := s.p.Begin(t.Context(), chats.Address{Chat: got[0].Chat}, chats.Preview{Part: chats.Part{Text: "one"}})
	if err != nil {
		t.Fatal(err)
	}
	check := func(want string) {
		t.Helper()
		if a := s.answers(forum)[3]; a.Thread != 0 || a.Text != topicNotice+"\n\n"+want {
			t.Errorf("the preview in a topic that is gone: %+v", a)
		}
	}
	check("one")
	if err := s.p.Update(t.Context(), chats.Address{Chat: got[0].Chat}, id, chats.Preview{Part: chats.Part{Text: "one two"}}); err != nil {
		t.Fatal(err)
	}
	check("one two")
	if err := s.p.Finish(t.Context(), chats.Address{Chat: got[0].Chat}, id, chats.Part{Text: "one two three"}); err != nil {
		t.Fatal(err)
	}
	check("one two three")
	if _, err := s.p.Send(t.Context(), to(forum, 0, 9999), chats.Part{Text: "to nothing"}); err != nil {
		t.Errorf("reply to a message that is gone: %v", err)
	}
}

func TestEditsKeepTheLineAboutTheTopic(t *testing.T) {
	s := newEmulated(t)
	forum := s.chat(t, emulator.ChatSpec{Kind: emulator.Supergroup, Forum: true, User: s.ann, BotAdmin: true})
	topic, err := s.AddTopic(forum, "T")
	if err != nil {
		t.Fatal(err)
	}
	place := to(forum, topic, 0)
	send := func() string {
		t.Helper()
		id, err := s.p.Send(t.Context(), place, chats.Part{Text: "one"})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	edit := func(id string) {
		t.Helper()
		if err := s.p.Edit(t.Context(), place, id, chats.Part{Text: "two"}); err != nil {
			t.Fatal(err)
		}
	}
	inside := send()
	if err := s.DeleteTopic(forum, topic); err != nil {
		t.Fatal(err)
	}
	outside := send()
	alone, err := s.p.SendEphemeral(t.Context(), place, strconv.FormatInt(s.ann, 10), chats.Part{Text: "one"})
	if err != nil {
		t.Fatal(err)
	}
	edit(alone)
	if got := s.ephemeral(forum)[0].Text; got != topicNotice+"\n\ntwo" {
		t.Errorf("the message for one person says %q", got)
	}
	s.p = s.platform(t, s.Token()) // after a restart
	edit(inside)
	edit(outside)
	if got := s.answers(forum); got[0].Text != "two" || got[1].Text != topicNotice+"\n\ntwo" {
		t.Errorf("there stands %q and %q", got[0].Text, got[1].Text)
	}
}

// TestAServerErrorIsNoFlood: an error of the server is no word about the pace.
func TestAServerErrorIsNoFlood(t *testing.T) {
	s := newEmulated(t)
	for _, status := range []int{500, 502, 503, 504} {
		for range 5 {
			s.inject(t, emulator.Fault{Method: "sendMessage", Times: 1, Effect: emulator.ServerError, Status: status})
			if _, err := s.p.Send(t.Context(), to(s.ann, 0, 0), chats.Part{Text: "x"}); err == nil {
				t.Error("no error")
			}
		}
	}
	if address := to(s.ann, 0, 0); !s.p.pacer.isIdle(address.Chat.ID) {
		t.Error("sends are held back")
	}
}

func TestPingShowsAnOutage(t *testing.T) {
	s := newEmulated(t)
	for _, effect := range []emulator.Effect{emulator.CutBefore, emulator.CutAfter, emulator.ServerError, emulator.BadJSON} {
		s.inject(t, emulator.Fault{Method: "getMe", Times: 1, Effect: effect, Status: 504})
		if err := s.p.Ping(t.Context()); err == nil {
			t.Errorf("%s: no error", effect)
		}
		if err := s.p.Ping(t.Context()); err != nil {
			t.Errorf("after %s: %v", effect, err)
		}
	}
}
