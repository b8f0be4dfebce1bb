package telegram

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"oneclaw/bridge"
	emulator "oneclaw/internal/emulator/telegram"
)

// stage is a platform against the emulator over HTTP.
type stage struct {
	*emulator.Server
	p   *Platform
	url string
	ann int64 // a user and her private chat
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s, err := emulator.New(emulator.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	address, err := s.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	st := &stage{Server: s, url: address, ann: s.AddUser(emulator.User{FirstName: "Ann"}).ID}
	st.p = st.platform(t, s.Token())
	st.chat(t, emulator.ChatSpec{Kind: emulator.Private, User: st.ann})
	return st
}

func (s *stage) platform(t *testing.T, token string) *Platform {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	p, err := New(Config{
		Token: token, APIURL: s.url, HTTPClient: &http.Client{Transport: transport},
		PollTimeout: time.Second, ConflictWait: 10 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (s *stage) chat(t *testing.T, spec emulator.ChatSpec) int64 {
	t.Helper()
	id, err := s.AddChat(spec)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func (s *stage) say(t *testing.T, chat int64, text string, opts *emulator.SayOptions) emulator.Sent {
	t.Helper()
	sent, err := s.Say(chat, s.ann, text, opts)
	if err != nil {
		t.Fatal(err)
	}
	return sent
}

func (s *stage) inject(t *testing.T, f emulator.Fault) {
	t.Helper()
	if _, err := s.Inject(f); err != nil {
		t.Fatal(err)
	}
}

func (s *stage) until(t *testing.T, cond func(emulator.State) bool) {
	t.Helper()
	if err := s.WaitFor(t.Context(), cond); err != nil {
		t.Fatal(err)
	}
}

func (s *stage) answers(chat int64) (list []emulator.Message) {
	s.View(func(st emulator.State) { list = st.Answers(chat) })
	return list
}

func to(chat, thread, reply int64) bridge.Address {
	a := bridge.Address{Chat: chatOf(chat)}
	if thread != 0 {
		a.Chat.Thread = strconv.FormatInt(thread, 10)
	}
	if reply != 0 {
		a.ReplyTo = strconv.FormatInt(reply, 10)
	}
	return a
}

func nothing() error { return nil }

func TestReceiveOverHTTP(t *testing.T) {
	s := newStage(t)
	in := newInbox()
	first := s.say(t, s.ann, "hello", nil)
	stop := run(t, s.p, in)
	defer stop()
	in.wait(t, atLeast(1))
	second := s.say(t, s.ann, "again", nil)
	got := in.wait(t, atLeast(2))
	if got[0].Text != "hello" || got[1].Text != "again" || got[0].ID != strconv.FormatInt(first.Message, 10) || !got[0].Direct {
		t.Errorf("accepted %+v", got)
	}
	s.until(t, func(st emulator.State) bool { return st.Confirmed(second.Update) })
	if _, err := s.Edit(s.ann, second.Message, "amended"); err != nil {
		t.Fatal(err)
	}
	got = in.wait(t, atLeast(3))
	if e := got[2]; e.Kind != bridge.KindEdit || e.ID != got[1].ID || e.Text != "amended" {
		t.Errorf("the edit came as %+v", e)
	}
	if err := s.p.Health(); err != nil {
		t.Errorf("Health = %v", err)
	}
}

func TestB09DuplicatesKeepTheirIdentity(t *testing.T) {
	s := newStage(t)
	in := newInbox()
	s.inject(t, emulator.Fault{Method: "getUpdates", Times: 1, Effect: emulator.Duplicate})
	s.say(t, s.ann, "hello", nil)
	stop := run(t, s.p, in)
	defer stop()
	got := in.wait(t, atLeast(2))
	if a, b := got[0], got[1]; a.Chat != b.Chat || a.ID != b.ID || a.Kind != b.Kind {
		t.Errorf("the same update came as %+v and %+v", a, b)
	}
}

func TestOutagesOfPolling(t *testing.T) {
	for _, effect := range []emulator.Effect{emulator.CutBefore, emulator.CutAfter, emulator.BadJSON, emulator.ServerError, emulator.Conflict, emulator.TooManyRequests} {
		t.Run(string(effect), func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			in := newInbox()
			s.inject(t, emulator.Fault{Method: "getUpdates", Times: 1, Effect: effect, RetryAfter: 1})
			s.say(t, s.ann, "hello", nil)
			stop := run(t, s.p, in)
			defer stop()
			if got := in.wait(t, atLeast(1)); got[0].Text != "hello" {
				t.Errorf("accepted %+v", got)
			}
		})
	}
}

func TestTwoPollers(t *testing.T) {
	s := newStage(t)
	in := newInbox()
	stop := run(t, s.p, in)
	defer stop()
	stopOther := run(t, s.platform(t, s.Token()), in)
	for i := range 3 {
		s.say(t, s.ann, strconv.Itoa(i), nil)
		in.wait(t, func(in *inbox) bool {
			return slices.ContainsFunc(in.accepted, func(m bridge.Message) bool { return m.Text == strconv.Itoa(i) })
		})
	}
	stopOther()
	s.say(t, s.ann, "alone", nil)
	in.wait(t, func(in *inbox) bool { return in.accepted[len(in.accepted)-1].Text == "alone" })
}

func TestD13WrongTokenOverHTTP(t *testing.T) {
	s := newStage(t)
	// This one has the client of its own, which must be closed when Run ends.
	p, err := New(Config{Token: "999:NOT-the-token-of-this-bot", APIURL: s.url})
	if err != nil {
		t.Fatal(err)
	}
	err = p.Run(t.Context(), newInbox())
	if err == nil || !strings.Contains(err.Error(), "TELEGRAM_BOT_TOKEN") || strings.Contains(err.Error(), "NOT-the") {
		t.Errorf("Run = %v", err)
	}
}

func TestB02Typing(t *testing.T) {
	s := newStage(t)
	forum := s.chat(t, emulator.ChatSpec{Kind: emulator.Supergroup, Forum: true, User: s.ann})
	topic, err := s.AddTopic(forum, "T")
	if err != nil {
		t.Fatal(err)
	}
	in := newInbox()
	stop := run(t, s.p, in)
	defer stop()
	s.say(t, forum, "@oneclaw_bot hi", nil)
	in.wait(t, atLeast(1)) // now it is known to be a forum
	for _, a := range []bridge.Address{to(s.ann, 0, 0), to(forum, topic, 0), to(forum, 0, 0)} {
		if err := s.p.Typing(t.Context(), a, true); err != nil {
			t.Errorf("Typing in %v = %v", a, err)
		}
		if err := s.p.Typing(t.Context(), a, false); err != nil {
			t.Errorf("Typing off in %v = %v", a, err)
		}
	}
	s.View(func(st emulator.State) {
		if got := st.Actions(s.ann); len(got) != 1 || got[0].Action != "typing" {
			t.Errorf("actions in private: %v", got)
		}
		if got := st.Actions(forum); len(got) != 2 || got[0].Thread != topic || got[1].Thread != 1 {
			t.Errorf("actions in the forum: %v", got)
		}
	})
}

func TestB10D05D06LongAnswers(t *testing.T) {
	s := newStage(t)
	code := "```go\n" + strings.Repeat("if a < b && c > d { fmt.Println(\"🎉\") }\n", 400) + "```\n"
	bold := "**" + strings.Repeat("bold & long 🎉 words, ", 800) + "**"
	for name, text := range map[string]string{"code": code, "bold": bold, "both": bold + "\n\n" + code, "list": strings.Repeat("- item *a* [l](https://e.x/?a=\"1\"&b=2)\n", 500)} {
		parts := s.p.Render(text)
		if len(parts) < 2 {
			t.Fatalf("%s: %d parts", name, len(parts))
		}
		for i, part := range parts {
			part.Repeat = i%2 == 0
			if _, err := s.p.Send(t.Context(), to(s.ann, 0, 0), part, nothing); err != nil {
				t.Errorf("%s: part %d: %v", name, i, err)
			}
		}
		answers := s.answers(s.ann)
		answers = answers[len(answers)-len(parts):]
		for i, a := range answers {
			if a.HTML == "" {
				t.Errorf("%s: part %d went out plain", name, i)
			}
			if want := i%2 == 0; strings.HasSuffix(a.Text, bridge.RepeatNotice) != want {
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
		if _, err := s.p.Send(t.Context(), to(s.ann, 0, 0), part, nothing); err != nil {
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

func TestD14RefusedMarkupGoesOutPlain(t *testing.T) {
	s := newStage(t)
	var c counted
	id, err := s.p.Send(t.Context(), to(s.ann, 0, 0), bridge.Part{Text: "<b>never closed & <x>", Plain: "never closed & <x>", Repeat: true}, c.commit)
	if err != nil || c.n != 1 {
		t.Fatalf("Send = %v after %d commits", err, c.n)
	}
	got := s.answers(s.ann)
	if len(got) != 1 || got[0].Text != "never closed & <x>\n\n"+bridge.RepeatNotice || id != strconv.FormatInt(got[0].ID, 10) {
		t.Errorf("sent %+v as %s", got, id)
	}
}

func TestCommitComesBeforeTheMessage(t *testing.T) {
	s := newStage(t)
	long := strings.Repeat("x", 4000)
	committed := 0
	_, err := s.p.Send(t.Context(), to(s.ann, 0, 0), bridge.Part{Text: long, Plain: long}, func() error {
		committed++
		if n := len(s.answers(s.ann)); n != 0 {
			t.Errorf("%d messages before the commit", n)
		}
		return nil
	})
	if err != nil || committed != 1 || len(s.answers(s.ann)) != 1 {
		t.Fatalf("Send = %v, %d commits, %d messages", err, committed, len(s.answers(s.ann)))
	}
	full := errors.New("disk full")
	_, err = s.p.Send(t.Context(), to(s.ann, 0, 0), bridge.Part{Text: long, Plain: long}, func() error { return full })
	var got *bridge.SendError
	if !errors.As(err, &got) || got.Outcome != bridge.Later || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("Send with a failing commit = %v", err)
	}
	// The next send shows that the server is past the broken one.
	if _, err := s.p.Send(t.Context(), to(s.ann, 0, 0), bridge.Part{Text: "end"}, nothing); err != nil {
		t.Fatal(err)
	}
	if all := s.answers(s.ann); len(all) != 2 || all[1].Text != "end" {
		t.Errorf("a message arrived without its commit: %d messages", len(all))
	}
}

func TestSendFaults(t *testing.T) {
	tests := map[emulator.Effect]struct {
		outcome bridge.Outcome
		arrived int
	}{
		emulator.TooManyRequests: {bridge.Later, 0},
		emulator.ServerError:     {bridge.Later, 0},
		emulator.CutBefore:       {bridge.Unknown, 0},
		emulator.CutAfter:        {bridge.Unknown, 1},
		emulator.BadJSON:         {bridge.Unknown, 1},
	}
	for effect, tt := range tests {
		t.Run(string(effect), func(t *testing.T) {
			s := newStage(t)
			s.inject(t, emulator.Fault{Method: "sendMessage", Times: 1, Effect: effect, RetryAfter: 3})
			var c counted
			_, err := s.p.Send(t.Context(), to(s.ann, 0, 0), bridge.Part{Text: "hi"}, c.commit)
			var got *bridge.SendError
			if !errors.As(err, &got) || got.Outcome != tt.outcome || c.n != 1 {
				t.Fatalf("Send = %v after %d commits, want outcome %v", err, c.n, tt.outcome)
			}
			if n := len(s.answers(s.ann)); n != tt.arrived {
				t.Errorf("%d messages arrived, want %d", n, tt.arrived)
			}
			if effect == emulator.TooManyRequests && got.RetryAfter != 3*time.Second {
				t.Errorf("retry after %v", got.RetryAfter)
			}
		})
	}
	s := newStage(t)
	if _, err := s.SetBlocked(s.ann, true); err != nil {
		t.Fatal(err)
	}
	_, err := s.p.Send(t.Context(), to(s.ann, 0, 0), bridge.Part{Text: "hi"}, nothing)
	var got *bridge.SendError
	if !errors.As(err, &got) || got.Outcome != bridge.Refused {
		t.Errorf("Send to who blocked the bot = %v", err)
	}
}

func TestSendThatHangsIsUnknown(t *testing.T) {
	s := newStage(t)
	s.inject(t, emulator.Fault{Method: "sendMessage", Times: 1, Effect: emulator.Hang})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		if err := s.WaitFor(ctx, func(st emulator.State) bool { return st.Calls("sendmessage") == 1 }); err == nil {
			cancel()
		}
	}()
	_, err := s.p.Send(ctx, to(s.ann, 0, 0), bridge.Part{Text: "hi"}, nothing)
	var got *bridge.SendError
	if !errors.As(err, &got) || got.Outcome != bridge.Unknown {
		t.Errorf("Send = %v, want Unknown", err)
	}
}

func TestTopics(t *testing.T) {
	s := newStage(t)
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
		if _, err := s.p.Send(t.Context(), bridge.Address{Chat: m.Chat, ReplyTo: m.ID}, bridge.Part{Text: "answer"}, nothing); err != nil {
			t.Fatal(err)
		}
	}
	answers := s.answers(forum)
	for i, want := range []int64{topic, 0} {
		if a := answers[i]; a.Thread != want || strconv.FormatInt(a.ReplyTo, 10) != got[i].ID {
			t.Errorf("answer %d is in topic %d replying to %d", i, a.Thread, a.ReplyTo)
		}
	}
	if err := s.CloseTopic(forum, topic); err != nil {
		t.Fatal(err)
	}
	var c counted
	if _, err := s.p.Send(t.Context(), bridge.Address{Chat: got[0].Chat, ReplyTo: got[0].ID}, bridge.Part{Text: "<b>late</b>", Plain: "late"}, c.commit); err != nil {
		t.Fatal(err)
	}
	if a := s.answers(forum)[2]; a.Thread != 0 || a.Text != topicNotice+"\n\nlate" || c.n != 1 {
		t.Errorf("the answer to a topic that is gone: %+v after %d commits", a, c.n)
	}
	if _, err := s.p.Send(t.Context(), to(forum, 0, 9999), bridge.Part{Text: "to nothing"}, nothing); err != nil {
		t.Errorf("reply to a message that is gone: %v", err)
	}
}

func TestMigration(t *testing.T) {
	s := newStage(t)
	group := s.chat(t, emulator.ChatSpec{Kind: emulator.Group, Title: "G", User: s.ann})
	in := newInbox()
	stop := run(t, s.p, in)
	defer stop()
	s.until(t, func(st emulator.State) bool { return st.Polling() })
	super, err := s.Migrate(group, s.ann)
	if err != nil {
		t.Fatal(err)
	}
	in.wait(t, func(in *inbox) bool { return len(in.moves) == 1 })
	if got := in.moves[0]; got != [2]bridge.Chat{chatOf(group), chatOf(super)} {
		t.Errorf("moved %v", got)
	}
	_, err = s.p.Send(t.Context(), to(group, 0, 0), bridge.Part{Text: "hi"}, nothing)
	var got *bridge.SendError
	if !errors.As(err, &got) || got.Outcome != bridge.Later || got.MovedTo != chatOf(super).ID {
		t.Errorf("Send to the old chat = %v", err)
	}
}

func TestFetch(t *testing.T) {
	s := newStage(t)
	in := newInbox()
	stop := run(t, s.p, in)
	defer stop()
	data := bytes.Repeat([]byte("data "), 1000)
	s.say(t, s.ann, "read", &emulator.SayOptions{Attachment: &emulator.Attachment{Name: "a b.txt", MIME: "text/plain", Data: data}})
	s.say(t, s.ann, "", &emulator.SayOptions{Attachment: &emulator.Attachment{Kind: emulator.KindPhoto, Data: []byte("\xff\xd8\xff")}})
	s.say(t, s.ann, "", &emulator.SayOptions{Attachment: &emulator.Attachment{Name: "big.bin", Data: data, Size: maxFile + 1}})
	got := in.wait(t, atLeast(3))
	var buf bytes.Buffer
	if err := s.p.Fetch(t.Context(), got[0].Files[0], &buf); err != nil || !bytes.Equal(buf.Bytes(), data) || got[0].Files[0].Name != "a b.txt" {
		t.Errorf("fetched %d bytes of %+v, %v", buf.Len(), got[0].Files[0], err)
	}
	buf.Reset()
	if err := s.p.Fetch(t.Context(), got[1].Files[0], &buf); err != nil || buf.Len() != 3 {
		t.Errorf("fetched %d bytes of a photo, %v", buf.Len(), err)
	}
	if len(got[2].Files) != 0 || len(got[2].Skipped) != 1 {
		t.Errorf("a file over the limit came as %+v", got[2])
	}
	if err := s.p.Fetch(t.Context(), bridge.Attachment{Ref: "x", Size: maxFile + 1}, &buf); !errors.Is(err, bridge.ErrTooLarge) {
		t.Errorf("Fetch over the limit = %v", err)
	}
	if err := s.p.Fetch(t.Context(), bridge.Attachment{Ref: "nothing"}, &buf); err == nil {
		t.Error("an unknown file was fetched")
	}
}

func TestIsAdmin(t *testing.T) {
	s := newStage(t)
	bob, eve := s.AddUser(emulator.User{}).ID, s.AddUser(emulator.User{}).ID
	group := s.chat(t, emulator.ChatSpec{Kind: emulator.Supergroup, User: s.ann, Admins: []int64{bob}, Members: []int64{eve}})
	id := func(n int64) string { return strconv.FormatInt(n, 10) }
	for user, want := range map[string]bool{
		id(s.ann): true, id(bob): true, id(eve): false, id(group): true, "-1005": false, "": false,
	} {
		if got, err := s.p.IsAdmin(t.Context(), chatOf(group), user); err != nil || got != want {
			t.Errorf("IsAdmin(%q) = %v, %v, want %v", user, got, err, want)
		}
	}
	if got, err := s.p.IsAdmin(t.Context(), chatOf(s.ann), id(s.ann)); err != nil || got {
		t.Errorf("IsAdmin in private = %v, %v", got, err)
	}
	asked := 0
	s.View(func(st emulator.State) { asked = st.Calls("getchatmember") })
	if got, err := s.p.IsAdmin(t.Context(), chatOf(group), id(bob)); err != nil || !got {
		t.Errorf("IsAdmin = %v, %v", got, err)
	}
	s.View(func(st emulator.State) {
		if st.Calls("getchatmember") != asked {
			t.Error("asked again within the minute")
		}
	})
	s.inject(t, emulator.Fault{Method: "getChatMember", Effect: emulator.ServerError})
	if got, err := s.p.IsAdmin(t.Context(), bridge.Chat{Platform: Name, ID: "-100999"}, id(bob)); err == nil || got {
		t.Errorf("IsAdmin without an answer = %v, %v", got, err)
	}
}

func TestAnnounce(t *testing.T) {
	s := newStage(t)
	list := []bridge.CommandInfo{{Name: "help", Description: "what I can do"}, {Name: "clear", Description: strings.Repeat("ä", 300)}, {Name: "new"}}
	for range 2 {
		if err := s.p.Announce(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}
	s.View(func(st emulator.State) {
		if st.Calls("setmycommands") != 1 {
			t.Errorf("set %d times, want once", st.Calls("setmycommands"))
		}
		if got := string(st.Commands()); !strings.Contains(got, `"clear"`) || !strings.Contains(got, `"new"`) {
			t.Errorf("commands %s", got)
		}
	})
	if err := s.p.Announce(t.Context(), []bridge.CommandInfo{{Name: "Not-one"}}); err == nil {
		t.Error("a bad name was announced")
	}
	group := s.chat(t, emulator.ChatSpec{Kind: emulator.Supergroup, User: s.ann})
	in := newInbox()
	stop := run(t, s.p, in)
	defer stop()
	s.say(t, group, "/start", nil)
	s.say(t, group, "/help", nil)
	s.say(t, group, "/clear@oneclaw_bot", nil)
	if got := in.wait(t, atLeast(2)); got[0].Text != "/help" || got[1].Text != "/clear" {
		t.Errorf("commands came as %q and %q", got[0].Text, got[1].Text)
	}
}

func TestPressIsAnswered(t *testing.T) {
	s := newStage(t)
	in := newInbox()
	stop := run(t, s.p, in)
	defer stop()
	id, err := s.p.Send(t.Context(), to(s.ann, 0, 0), bridge.Part{Text: "hi"}, nothing)
	if err != nil {
		t.Fatal(err)
	}
	message, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	s.until(t, func(st emulator.State) bool { return st.Polling() })
	press, err := s.Press(s.ann, message, s.ann, "x", true)
	if err != nil {
		t.Fatal(err)
	}
	s.until(t, func(st emulator.State) bool { c, _ := st.Callback(press.Callback); return c.Answered })
}
