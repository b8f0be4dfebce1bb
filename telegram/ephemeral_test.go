package telegram

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"oneclaw/bridge/chats"
	emulator "oneclaw/internal/emulator/telegram"
)

// ephemeral returns what was shown to one person alone.
func (s *emulated) ephemeral(chat int64) (list []emulator.Message) {
	s.View(func(st emulator.State) { list = st.Ephemeral(chat) })
	return list
}

func TestWhatIsForOnePersonReachesNobodyElse(t *testing.T) {
	for name, tt := range map[string]struct {
		version  string
		outsider bool // the bot does not administer the group
		inName   bool // somebody writes in the name of the group
		alone    bool
	}{
		"administers":           {alone: true},
		"former parameters":     {version: emulator.Version102, alone: true},
		"no administrator":      {outsider: true},
		"old server":            {version: emulator.Version100},
		"in the group's name":   {inName: true},
		"old and no rights too": {version: emulator.Version102, outsider: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newEmulated(t, emulator.Config{Version: tt.version})
			group := s.chat(t, emulator.ChatSpec{Kind: emulator.Supergroup, Title: "G", User: s.ann, BotAdmin: !tt.outsider})
			who := strconv.FormatInt(s.ann, 10)
			if tt.inName {
				who = strconv.FormatInt(group, 10)
			}
			for range 2 {
				id, err := s.p.SendEphemeral(t.Context(), to(group, 0, 0), who, chats.Part{Text: "<b>only you</b>", Plain: "only you"})
				if err != nil || id == "" {
					t.Fatalf("SendEphemeral = %q, %v", id, err)
				}
			}
			seen, alone := s.answers(group), s.ephemeral(group)
			if tt.alone && (len(seen) != 0 || len(alone) != 2 || alone[0].Receiver != s.ann || alone[0].Text != "only you") {
				t.Errorf("all see %+v and one %+v", seen, alone)
			}
			if !tt.alone && (len(seen) != 2 || len(alone) != 0) {
				t.Errorf("all see %+v and one %+v, want two messages for all", seen, alone)
			}
			if got, want := s.calls("editephemeralmessagetext"), 1; !tt.inName && got != want {
				t.Errorf("the server was asked %d times, want %d", got, want)
			}
		})
	}
}

// A person may have left the group, or been removed from it, since they asked.
func TestWhatIsForOnePersonWhoHasLeftIsNotShownToTheOthers(t *testing.T) {
	s := newEmulated(t)
	group := s.chat(t, emulator.ChatSpec{Kind: emulator.Supergroup, Title: "G", User: s.ann, BotAdmin: true})
	gone := strconv.FormatInt(s.ann+1000, 10)
	id, err := s.p.SendEphemeral(t.Context(), to(group, 0, 0), gone, chats.Part{Text: "<b>only you</b>", Plain: "only you"})
	if failure, ok := errors.AsType[*chats.SendError](err); !ok || failure.Outcome != chats.Refused || id != "" {
		t.Errorf("SendEphemeral = %q, %v", id, err)
	}
	if seen := s.answers(group); len(seen) != 0 {
		t.Errorf("all see %+v", seen)
	}
}

// Proxies and mocks confirm the question whether a server knows ephemeral messages (A1).
func TestAServerThatConfirmsAnEmptyEditIsAskedToSendOne(t *testing.T) {
	s := newEmulated(t)
	group := s.chat(t, emulator.ChatSpec{Kind: emulator.Supergroup, Title: "G", User: s.ann, BotAdmin: true})
	behind, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(behind)
	forward.Transport = s.transport(t)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/"+editEphemeral) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"ok":true,"result":true}`)
			return
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	s.url = front.URL
	p := s.platform(t, s.Token())
	if _, err := p.SendEphemeral(t.Context(), to(group, 0, 0), strconv.FormatInt(s.ann, 10), chats.Part{Text: "only you"}); err != nil {
		t.Fatal(err)
	}
	if seen, alone := s.answers(group), s.ephemeral(group); len(seen) != 0 || len(alone) != 1 {
		t.Errorf("all see %+v and one %+v", seen, alone)
	}
}

func (s *emulated) calls(method string) (n int) {
	s.View(func(st emulator.State) { n = st.CallCount(method) })
	return n
}

// While it is not known whether a server would show it to all, nothing is shown to anybody.
func TestNothingIsShownUntilTheServerWasAsked(t *testing.T) {
	s := newEmulated(t, emulator.Config{Version: emulator.Version100})
	group := s.chat(t, emulator.ChatSpec{Kind: emulator.Supergroup, Title: "G", User: s.ann, BotAdmin: true})
	s.inject(t, emulator.Fault{Method: editEphemeral, Times: 1, Effect: emulator.CutBefore})
	_, err := s.p.SendEphemeral(t.Context(), to(group, 0, 0), strconv.FormatInt(s.ann, 10), chats.Part{Text: "secret"})
	if failure, ok := errors.AsType[*chats.SendError](err); !ok || failure.Outcome != chats.Later || !failure.Outage {
		t.Errorf("SendEphemeral = %v, want that it can be tried later", err)
	}
	if got := s.answers(group); len(got) != 0 {
		t.Errorf("all see %+v", got)
	}
}

// The buttons under what one person sees work, and what it says can change.
func TestPressesOfWhatOnePersonSees(t *testing.T) {
	s := newEmulated(t)
	group := s.chat(t, emulator.ChatSpec{Kind: emulator.Supergroup, Title: "G", User: s.ann, BotAdmin: true})
	in := newInbox()
	stop := run(t, s.p, in)
	defer stop()
	id, err := s.p.SendEphemeral(t.Context(), to(group, 0, 0), strconv.FormatInt(s.ann, 10), chats.Part{Text: "sure?", Buttons: oneButton("Yes", "x")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.PressEphemeral(group, s.ephemeral(group)[0].Ephemeral, s.ann, "x"); err != nil {
		t.Fatal(err)
	}
	press := in.wait(t, atLeast(1))[0]
	if press.Kind != chats.KindPress || press.TargetID != id || press.Chat != chatOf(group) {
		t.Errorf("the press is %+v, want one on %s", press, id)
	}
	for range 2 {
		if err := s.p.Edit(t.Context(), to(group, 0, 0), id, chats.Part{Text: "<i>done</i>", Plain: "done"}); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.ephemeral(group); got[0].Text != "done" || len(got[0].Buttons) != 0 || len(s.answers(group)) != 0 {
		t.Errorf("one person sees %+v", got)
	}
	err = s.p.Edit(t.Context(), to(group, 0, 0), "e99u"+strconv.FormatInt(s.ann, 10), chats.Part{Text: "x"})
	if failure, ok := errors.AsType[*chats.SendError](err); !ok || failure.Outcome != chats.Refused {
		t.Errorf("the edit of what is not there: %v, want that it is refused", err)
	}
}
