package telegram

import (
	"bytes"
	"context"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/access"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/turn"
	emulator "oneclaw/internal/emulator/telegram"
	"oneclaw/storage/bolt"
	"oneclaw/toolgroups"
)

// sender is an agent whose tool makes the files that the message names.
type sender struct {
	make func(workspace, name string)

	mu    sync.Mutex
	asked []agent.Message
	saved [][]byte // the first file of each message, as the model can read it
}

func (s *sender) Run(_ context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
	return func(yield func(agent.Message, error) bool) {
		question := turn.History[len(turn.History)-1]
		s.mu.Lock()
		s.asked = append(s.asked, question)
		if len(question.Files) > 0 {
			data, _ := turn.ReadFile(question.Files[0].Path, 1<<20)
			s.saved = append(s.saved, data)
		}
		s.mu.Unlock()
		result := agent.Message{Role: agent.RoleTool, CallID: "0", Status: agent.StatusOK, Text: "made"}
		for name := range strings.FieldsSeq(question.Text) {
			s.make(turn.Scope.Workspace, name)
			result.Files = append(result.Files, toolgroups.File{Path: name, Caption: "this is " + name})
		}
		_ = yield(agent.Message{Role: agent.RoleAssistant, Calls: []agent.Call{{ID: "0", Name: "make"}}}, nil) &&
			yield(result, nil) && yield(agent.Message{Role: agent.RoleAssistant, Text: "**here**", Final: true}, nil)
	}
}

// serve runs a bridge with this agent over a platform.
func serve(t *testing.T, p chats.Platform, s *sender) {
	t.Helper()
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "db"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	reg, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := bridge.New(bridge.Config{
		Store: store, Turns: turn.Settings{Agent: s, Tools: func() *toolgroups.Registry { return reg }}, Platforms: []chats.Platform{p},
		Access: access.Access{Allow: []string{"*"}}, DataDir: t.TempDir(), Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
}

// arrived is what a chat shows, in short.
func arrived(messages []emulator.Message) (list []string) {
	for _, m := range messages {
		line := m.Text
		if m.File != nil {
			line = m.File.Kind + " " + m.File.Name + ": " + line
		}
		list = append(list, line)
	}
	return list
}

func TestFilesOfToolsReachTheChat(t *testing.T) {
	t.Parallel()
	s := newEmulated(t)
	picture := pngOf(t, 40, 40)
	serve(t, s.p, &sender{make: func(workspace, name string) {
		var err error
		switch path := filepath.Join(workspace, name); name {
		case "gone.png":
		case "large.bin":
			if err = os.WriteFile(path, nil, 0o600); err == nil {
				err = os.Truncate(path, maxUpload+1)
			}
		case "page.png":
			err = os.WriteFile(path, picture, 0o600)
		default:
			err = os.WriteFile(path, []byte("text"), 0o600)
		}
		if err != nil {
			t.Error(err)
		}
	}})
	s.inject(t, emulator.Fault{Method: "sendPhoto", Times: 1, Effect: emulator.CutAfter})
	s.say(t, s.ann, "page.png gone.png large.bin notes.txt", nil)
	s.until(t, func(st emulator.State) bool { return st.CountAnswers(s.ann) == 6 })
	want := []string{
		"here",
		"photo page.png: this is page.png",
		"photo page.png: this is page.png\n\n" + chats.RepeatNotice,
		"[gone.png could not be sent: the file is gone]",
		"[large.bin could not be sent: it is larger than the 50 MB that I can send here]",
		"document notes.txt: this is notes.txt",
	}
	answers := s.answers(s.ann)
	if diff := cmp.Diff(want, arrived(answers)); diff != "" {
		t.Errorf("shown (-want +got):\n%s", diff)
	}
	if !bytes.Equal(answers[1].File.Data, picture) {
		t.Error("another picture arrived")
	}
}

func TestPicturesReachTheModel(t *testing.T) {
	t.Parallel()
	s := newEmulated(t)
	picture := pngOf(t, 40, 40)
	model := &sender{}
	model.make = func(string, string) {}
	serve(t, s.p, model)
	photo := &emulator.SayOptions{Attachment: &emulator.Attachment{Kind: emulator.KindPhoto, Data: picture}}
	s.say(t, s.ann, "", photo)
	s.until(t, func(st emulator.State) bool { return st.CountAnswers(s.ann) >= 1 })
	// A file that the platform does not hand out any more is named; the text is answered.
	s.inject(t, emulator.Fault{Method: "getFile", Times: 3, Effect: emulator.ServerError})
	s.say(t, s.ann, "what", photo)
	s.until(t, func(st emulator.State) bool { return st.CountAnswers(s.ann) >= 2 })
	model.mu.Lock()
	defer model.mu.Unlock()
	if len(model.saved) != 1 || !bytes.Equal(model.saved[0], picture) {
		t.Errorf("%d pictures can be read", len(model.saved))
	}
	if got := model.asked[0].Files; len(got) != 1 || got[0].Path != "inbox/photo.jpg" {
		t.Errorf("the model is told of %v", got)
	}
	if got := model.asked[1].Text; !strings.HasPrefix(got, "what\n[not received: photo.jpg") {
		t.Errorf("the model is asked %q", got)
	}
}

// An edit carries the files of its message, and one that replaces only the file is no mere repeat.
func TestAnEditCarriesTheFilesOfItsMessage(t *testing.T) {
	s := newEmulated(t)
	in := newInbox()
	defer run(t, s.p, in)()
	sent := s.say(t, s.ann, "look", &emulator.SayOptions{Attachment: &emulator.Attachment{Kind: emulator.KindPhoto, Data: []byte("a")}})
	in.wait(t, atLeast(1))
	for _, file := range []*emulator.Attachment{{Name: "b.txt", Data: []byte("b")}, {Name: "c.txt", Data: []byte("c")}, nil} {
		if _, err := s.EditFile(s.ann, sent.Message, "look", file); err != nil {
			t.Fatal(err)
		}
	}
	got := in.wait(t, atLeast(4))
	for i, want := range []string{"b.txt", "c.txt", ""} {
		name, m := "", got[i+1]
		if len(m.Files) == 1 {
			name = m.Files[0].Name
		}
		if m.Kind != chats.KindEdit || m.Text != "look" || name != want {
			t.Errorf("edit %d came as %+v, want the file %q", i+1, m, want)
		}
	}
	if _, err := s.EditFile(s.ann, sent.Message, "look", nil); err != nil { // nothing has changed
		t.Fatal(err)
	}
	last := s.say(t, s.ann, "that was it", nil)
	s.until(t, func(st emulator.State) bool { return st.IsConfirmed(last.Update) })
	if got := in.wait(t, atLeast(5)); len(got) != 5 || got[4].Text != "that was it" {
		t.Errorf("accepted %+v", got[4:])
	}
}
