package telegram

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"testing"

	"oneclaw/bridge/chats"
	emulator "oneclaw/internal/emulator/telegram"
)

// Typing shows before the model has answered.
func TestTypingIsShown(t *testing.T) {
	s := newEmulated(t)
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
	for _, a := range []chats.Address{to(s.ann, 0, 0), to(forum, topic, 0), to(forum, 0, 0)} {
		if err := s.p.SetTyping(t.Context(), a, true); err != nil {
			t.Errorf("Typing in %v = %v", a, err)
		}
		if err := s.p.SetTyping(t.Context(), a, false); err != nil {
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

func TestFetch(t *testing.T) {
	s := newEmulated(t)
	in := newInbox()
	stop := run(t, s.p, in)
	defer stop()
	data := bytes.Repeat([]byte("data "), 1000)
	s.say(t, s.ann, "read", &emulator.SayOptions{Attachment: &emulator.Attachment{Name: "a b.txt", MIME: "text/plain", Data: data}})
	s.say(t, s.ann, "", &emulator.SayOptions{Attachment: &emulator.Attachment{Kind: emulator.KindPhoto, Data: []byte("\xff\xd8\xff")}})
	s.say(t, s.ann, "", &emulator.SayOptions{Attachment: &emulator.Attachment{Name: "big.bin", Data: data, Size: maxFile + 1}})
	got := in.wait(t, atLeast(3))
	var buf bytes.Buffer
	if err := s.p.FetchFile(t.Context(), got[0].Files[0], &buf); err != nil || !bytes.Equal(buf.Bytes(), data) || got[0].Files[0].Name != "a b.txt" {
		t.Errorf("fetched %d bytes of %+v, %v", buf.Len(), got[0].Files[0], err)
	}
	buf.Reset()
	if err := s.p.FetchFile(t.Context(), got[1].Files[0], &buf); err != nil || buf.Len() != 3 {
		t.Errorf("fetched %d bytes of a photo, %v", buf.Len(), err)
	}
	if len(got[2].Files) != 0 || len(got[2].Skipped) != 1 {
		t.Errorf("a file over the limit came as %+v", got[2])
	}
	if err := s.p.FetchFile(t.Context(), chats.Attachment{Ref: "x", Size: maxFile + 1}, &buf); !errors.Is(err, chats.ErrTooLarge) {
		t.Errorf("Fetch over the limit = %v", err)
	}
	if err := s.p.FetchFile(t.Context(), chats.Attachment{Ref: "nothing"}, &buf); err == nil {
		t.Error("an unknown file was fetched")
	}
}

func TestIsAdmin(t *testing.T) {
	s := newEmulated(t)
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
	s.View(func(st emulator.State) { asked = st.CallCount("getchatmember") })
	if got, err := s.p.IsAdmin(t.Context(), chatOf(group), id(bob)); err != nil || !got {
		t.Errorf("IsAdmin = %v, %v", got, err)
	}
	s.View(func(st emulator.State) {
		if st.CallCount("getchatmember") != asked {
			t.Error("asked again within the minute")
		}
	})
	s.inject(t, emulator.Fault{Method: "getChatMember", Effect: emulator.ServerError})
	if got, err := s.p.IsAdmin(t.Context(), chats.Chat{Platform: platformName, ID: "-100999"}, id(bob)); err == nil || got {
		t.Errorf("IsAdmin without an answer = %v, %v", got, err)
	}
}

// The title of a group is asked for once. A private chat has none, and neither has a chat that is gone.
func TestNamesOfChats(t *testing.T) {
	s := newEmulated(t)
	group := s.chat(t, emulator.ChatSpec{Kind: emulator.Supergroup, Title: "Team", User: s.ann})
	for range 2 {
		for at, want := range map[chats.Chat]string{chatOf(group): "Team", chatOf(s.ann): "", {Platform: platformName, ID: "-100999"}: ""} {
			if got := s.p.ChatName(t.Context(), at); got != want {
				t.Errorf("%s is named %q, want %q", at, got, want)
			}
		}
	}
	s.View(func(st emulator.State) {
		if n := st.CallCount("getchat"); n != 3 {
			t.Errorf("asked %d times, want 3", n)
		}
	})
}

func TestAnnounce(t *testing.T) {
	s := newEmulated(t)
	list := []chats.CommandInfo{{Name: "help", Description: "what I can do"}, {Name: "clear", Description: strings.Repeat("ä", 300)}, {Name: "new"}}
	for range 2 {
		if err := s.p.ListCommands(t.Context(), list, nil); err != nil {
			t.Fatal(err)
		}
	}
	s.View(func(st emulator.State) {
		if st.CallCount("setmycommands") != 1 {
			t.Errorf("set %d times, want once", st.CallCount("setmycommands"))
		}
		if got := string(st.Commands()); !strings.Contains(got, `"clear"`) || !strings.Contains(got, `"new"`) {
			t.Errorf("commands %s", got)
		}
	})
	if err := s.p.ListCommands(t.Context(), []chats.CommandInfo{{Name: "Not-one"}}, nil); err == nil {
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
