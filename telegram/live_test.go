package telegram

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/platformtest"
	emulator "oneclaw/internal/emulator/telegram"
	"oneclaw/internal/redact"
)

// Telegram keeps 100 entities of a message and drops the others, so that a text with more
// is sent in parts that have fewer.
func TestAllFormattingArrives(t *testing.T) {
	var text strings.Builder
	words := map[string]bool{}
	for i := range 300 {
		word := "w" + strconv.Itoa(i)
		words[word] = true
		text.WriteString([]string{"**" + word + "**", "`" + word + "`", "*" + word + "*", "[" + word + "](https://e.org)", "**bold *" + word + "* bold**"}[i%5] + " ")
		if i%20 == 19 {
			text.WriteString("\n\n")
		}
	}
	s := newEmulated(t)
	for _, part := range s.p.Render(text.String()) {
		part.Repeat = true // which adds a line of its own
		if _, err := s.p.Send(t.Context(), to(s.ann, 0, 0), part); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range s.answers(s.ann) {
		units := []rune(m.Text) // all of it is ASCII where it counts
		for _, e := range m.Entities {
			if e.Type == "bold" || e.Type == "italic" || e.Type == "code" || e.Type == "text_link" {
				delete(words, string(units[e.Offset:e.Offset+e.Length]))
			}
		}
		if !strings.Contains(m.HTML, chats.RepeatNotice) || m.Entities[len(m.Entities)-1].Type != "italic" {
			t.Errorf("the notice has lost its formatting in %q", m.Text)
		}
	}
	if len(words) > 0 {
		t.Errorf("%d words have lost their formatting", len(words))
	}
}

// In a topic that is closed administrators alone write: the answer goes to the chat.
func TestAClosedTopic(t *testing.T) {
	s := newEmulated(t)
	forum := s.chat(t, emulator.ChatSpec{Kind: emulator.Supergroup, Title: "F", Forum: true, User: s.ann})
	topic, err := s.AddTopic(forum, "Closed")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.CloseTopic(forum, topic); err != nil {
		t.Fatal(err)
	}
	if _, err := s.p.Send(t.Context(), to(forum, topic, 0), chats.Part{Text: "hi", Plain: "hi"}); err != nil {
		t.Fatal(err)
	}
	if got := s.answers(forum); len(got) != 1 || got[0].Thread != 0 || !strings.Contains(got[0].Text, topicNotice) {
		t.Errorf("there stands %+v", got)
	}
}

// Telegram decodes percent signs in the name of a file, and servers that are older end it
// at a quote or semicolon.
func TestFileNamesArrive(t *testing.T) {
	s := newEmulated(t)
	for _, name := range []string{`a;b "c".txt`, "100%.txt", "50%41.txt", `back\slash.txt`, "grüße.txt", "a=b&c+d.txt"} {
		if _, err := s.p.SendFile(t.Context(), to(s.ann, 0, 0), chats.OutFile{Name: name, Size: 1, Content: strings.NewReader("x")}); err != nil {
			t.Fatal(err)
		}
		if list := s.answers(s.ann); list[len(list)-1].File.Name != name {
			t.Errorf("%q arrives as %q", name, list[len(list)-1].File.Name)
		}
	}
}

// A server of one's own hands out no files; with --local it tells where they lie.
//
// A Bot API server of one's own hands out no files.
func TestFilesOfAServerOfOnesOwn(t *testing.T) {
	for _, tt := range []struct {
		name string
		cfg  emulator.Config
		want string // of the error
	}{
		{"with --local", emulator.Config{LocalDir: t.TempDir()}, ""},
		{"without", emulator.Config{SelfHosted: true}, "start it with --local"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newEmulated(t, tt.cfg)
			s.say(t, s.ann, "read it", &emulator.SayOptions{Attachment: &emulator.Attachment{Name: "a.txt", MIME: "text/plain", Data: []byte("hello")}})
			in := newInbox()
			defer run(t, s.p, in)()
			file := in.wait(t, atLeast(1))[0].Files[0]
			var got bytes.Buffer
			err := s.p.FetchFile(t.Context(), file, &got)
			switch {
			case tt.want == "" && (err != nil || got.String() != "hello"):
				t.Errorf("Fetch = %q, %v", got.String(), err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), s.Token())):
				t.Errorf("Fetch = %v", err)
			}
		})
	}
}

// The limits of files are those of the server.
func TestTheLimitsOfFilesFollowTheServer(t *testing.T) {
	for name, tt := range map[string]struct {
		cfg   emulator.Config
		takes bool
	}{
		"with --local": {emulator.Config{LocalDir: t.TempDir()}, true},
		"without":      {emulator.Config{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newEmulated(t, tt.cfg)
			data := make([]byte, maxFile+5<<20)
			s.say(t, s.ann, "read it", &emulator.SayOptions{Attachment: &emulator.Attachment{Name: "a.bin", Data: data, Size: len(data)}})
			in := newInbox()
			defer run(t, s.p, in)()
			m := in.wait(t, atLeast(1))[0]
			if tt.takes != (len(m.Files) == 1) || tt.takes == (len(m.Skipped) == 1) {
				t.Fatalf("it came as %+v", m)
			}
			if tt.takes {
				var got bytes.Buffer
				if err := s.p.FetchFile(t.Context(), m.Files[0], &got); err != nil || got.Len() != len(data) {
					t.Errorf("fetched %d bytes: %v", got.Len(), err)
				}
			}
			large := make([]byte, maxUpload+1)
			if size := int64(len(large)); tt.takes != (size <= s.p.MaxFile()) {
				t.Errorf("%d bytes may be sent", s.p.MaxFile())
			}
			if _, err := s.p.SendFile(t.Context(), to(s.ann, 0, 0), chats.OutFile{Name: "b.bin", Size: int64(len(large)), Content: bytes.NewReader(large)}); (err == nil) != tt.takes {
				t.Errorf("SendFile = %v", err)
			}
		})
	}
}

// What Telegram itself answers is never taken for a file of this machine, and what is no
// file is not read.
//
// A Bot API server of one's own hands out no files.
func TestNothingElseOfTheMachineIsRead(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{secret, filepath.Dir(secret)} {
		p, _ := newFake(t, func(_ context.Context, method string, _ url.Values) (int, string, error) {
			if method == "getFile" {
				return ok(`{"file_id":"x","file_path":` + strconv.Quote(path) + `}`)
			}
			return 404, "", nil
		})
		p.api.official = path == secret
		var got bytes.Buffer
		if err := p.FetchFile(t.Context(), chats.Attachment{Ref: "x"}, &got); err == nil || got.Len() > 0 {
			t.Errorf("%s was read: %q, %v", path, got.String(), err)
		}
	}
}

// A folder that is not there has the token in its name.
//
// A Bot API server of one's own hands out no files.
func TestAFolderThatIsElsewhere(t *testing.T) {
	p, _ := newFake(t, nil)
	err := p.api.copyLocal(filepath.Join(t.TempDir(), testToken, "documents", "file_1.txt"), io.Discard)
	if err == nil || !strings.Contains(err.Error(), "at the same path") || strings.Contains(err.Error(), testToken) {
		t.Errorf("it says %v", err)
	}
}

// Privacy mode is on for every new bot, and doctor says what it keeps from the bot.
//
// Privacy mode keeps plain group messages from a Telegram bot.
func TestDoctorTellsOfPrivacyMode(t *testing.T) {
	for _, all := range []bool{false, true} {
		s := newEmulated(t, emulator.Config{NoPrivacyMode: all})
		found := (&Settings{Token: redact.Secret(s.Token()), APIURL: s.url}).Doctor(t.Context())
		if found.Status != "ok" || strings.Contains(found.Text, "privacy mode") == all {
			t.Errorf("%+v", found)
		}
	}
}

// A newer poll ends the older one, so that nobody waits for the poll of a bot that has
// crashed, and two that fight are found out soon.
func TestTheFormerPollKeepsNobodyOut(t *testing.T) {
	s := newEmulated(t)
	ended := make(chan error, 1)
	former := s.platform(t, s.Token())
	go func() { ended <- former.api.do(t.Context(), "getUpdates", map[string]string{"timeout": "50"}, nil) }()
	s.until(t, func(st emulator.State) bool { return st.IsPolling() })
	in := newInbox()
	stop := run(t, s.p, in)
	defer stop()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "409") {
		t.Errorf("the former poll ends with %v", err)
	}
	s.say(t, s.ann, "hello", nil)
	in.wait(t, atLeast(1))
	if err := s.p.Health(); err != nil || defaultConflictWait > 10*time.Second {
		t.Errorf("Health = %v, and a conflict is waited out for %v", err, defaultConflictWait)
	}
}

// Where an address takes the connection and then says nothing, nothing has been sent: it is
// sent later, and not marked as a repeat.
func TestAnAddressThatAnswersSlowly(t *testing.T) {
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	p, err := newPlatform(config{Settings: Settings{Token: testToken, APIURL: "https://" + platformtest.MuteAddress(t)}, httpClient: client, callTimeout: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	var failed *chats.SendError
	_, err = p.Send(t.Context(), to(1, 0, 0), chats.Part{Text: "x", Plain: "x"})
	if !errors.As(err, &failed) || failed.Outcome != chats.Later || !failed.Outage {
		t.Errorf("Send = %v", err)
	}
	if p.Ping(t.Context()) == nil {
		t.Error("it is taken for reachable")
	}
}
