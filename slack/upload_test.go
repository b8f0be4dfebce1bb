package slack

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/png"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
	emulator "oneclaw/internal/emulator/slack"
	"oneclaw/internal/retry"
	"oneclaw/toolgroups"
)

func pngOf(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 40, 40))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func out(name, caption string, data []byte) chats.OutFile {
	return chats.OutFile{Name: name, Caption: caption, Size: int64(len(data)), Content: bytes.NewReader(data)}
}

func (f *fixture) sendFile(chat chats.Chat, file chats.OutFile) (id string, err error) {
	f.t.Helper()
	return f.p.SendFile(f.t.Context(), chats.Address{Chat: chat}, file)
}

func TestFilesStandInTheThread(t *testing.T) {
	f := setup(t, quick(), nil)
	root := f.say(f.channel, "hi", nil)
	for _, tt := range []struct {
		file    chats.OutFile
		comment string
	}{
		{out("page.png", "page 2", pngOf(t)), "page 2"},
		{out("b.txt", "<!here> a & b", []byte("x")), "&lt;!here&gt; a &amp; b"},
		{out("c.txt", "", []byte("x")), ""},
		// Slack would fetch what a link in it leads to, and has no switch for that here.
		{out("h.txt", "ada.evil.example", []byte("x")), "ada.\u2060evil.\u2060example"},
		{out("i.txt", "see https://evil.example/?d=1.5 now.", []byte("x")), "see https:\u2060//evil.\u2060example/?d=1.\u20605 now."},
		{out("d.txt", strings.Repeat("é", 4000), []byte("x")), strings.Repeat("é", 2999) + "…"},
		{chats.OutFile{Name: "e.txt", Caption: "again", Repeat: true, Size: 1, Content: strings.NewReader("x")}, "again\n\n_" + chats.RepeatNotice + "_"},
		{chats.OutFile{Name: "f.txt", Repeat: true, Size: 1, Content: strings.NewReader("x")}, "_" + chats.RepeatNotice + "_"},
		{out("g.bin", "much", bytes.Repeat([]byte("0123456789"), 2<<20)), "much"},
	} {
		t.Run(tt.file.Name, func(t *testing.T) {
			id, err := f.sendFile(chatOf(f.channel, root.TS), tt.file)
			if err != nil {
				t.Fatal(err)
			}
			all := f.Messages(f.channel)
			last := all[len(all)-1]
			want := make([]byte, tt.file.Size)
			if _, err := tt.file.Content.ReadAt(want, 0); err != nil {
				t.Fatal(err)
			}
			if last.Thread != root.TS || last.Text != tt.comment || !last.FromBot || len(last.Mentions) != 0 {
				t.Errorf("got %+v", last)
			}
			if len(last.Files) != 1 || last.Files[0].ID != id || last.Files[0].Name != tt.file.Name || !bytes.Equal(last.Files[0].Data, want) {
				t.Errorf("got %d files", len(last.Files))
			}
		})
	}
}

// Slack's refusals are logged and tried again when allowed.
func TestRefusalsOfFiles(t *testing.T) {
	const ask, give, share = "files.getUploadURLExternal", "upload", "files.completeUploadExternal"
	f := setup(t, quick(), nil)
	for _, tt := range []struct {
		name  string
		fault emulator.Fault
		want  chats.Outcome
		after time.Duration
		kept  bool
	}{
		{"ask: rate limit", emulator.Fault{Method: ask, Effect: emulator.TooManyRequests, RetryAfter: 7}, chats.Later, 7 * time.Second, false},
		{"ask: too large", emulator.Fault{Method: ask, Effect: emulator.Refuse, Error: "file_upload_size_restricted"}, chats.Refused, 0, false},
		{"ask: scope", emulator.Fault{Method: ask, Effect: emulator.Refuse, Error: "missing_scope"}, chats.Refused, 0, false},
		{"ask: cut", emulator.Fault{Method: ask, Effect: emulator.CutAfter}, chats.Later, 0, false},
		{"give: trouble", emulator.Fault{Method: give, Effect: emulator.ServerError}, chats.Later, 0, false},
		{"give: too large", emulator.Fault{Method: give, Effect: emulator.ServerError, Status: 413}, chats.Refused, 0, false},
		{"give: timeout", emulator.Fault{Method: give, Effect: emulator.ServerError, Status: 504}, chats.Later, 0, false},
		{"give: cut", emulator.Fault{Method: give, Effect: emulator.CutBefore}, chats.Later, 0, false},
		{"share: rate limit", emulator.Fault{Method: share, Effect: emulator.TooManyRequests, RetryAfter: 7}, chats.Later, 7 * time.Second, false},
		{"share: archived", emulator.Fault{Method: share, Effect: emulator.Refuse, Error: "is_archived"}, chats.Refused, 0, false},
		{"share: trouble", emulator.Fault{Method: share, Effect: emulator.Refuse, Error: "internal_error"}, chats.Unknown, 0, false},
		{"share: bad gateway", emulator.Fault{Method: share, Effect: emulator.ServerError}, chats.Unknown, 0, false},
		{"share: gateway timeout", emulator.Fault{Method: share, Effect: emulator.ServerError, Status: 504}, chats.Unknown, 0, false},
		{"share: cut before", emulator.Fault{Method: share, Effect: emulator.CutBefore}, chats.Unknown, 0, false},
		{"share: cut after", emulator.Fault{Method: share, Effect: emulator.CutAfter}, chats.Unknown, 0, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.fault.Times = 1
			f.inject(tt.fault)
			f.p.api.pacer = retry.NewPacer(maxHold)
			before := len(f.Messages(f.dm))
			_, err := f.sendFile(chatOf(f.dm, ""), out("a.txt", "a", []byte("x")))
			var failure *chats.SendError
			if !errors.As(err, &failure) || failure.Outcome != tt.want || failure.RetryAfter != tt.after {
				t.Errorf("got %+v", err)
			}
			if kept := len(f.Messages(f.dm)) > before; kept != tt.kept {
				t.Errorf("kept %t", kept)
			}
		})
	}
	f.noSecrets(f.log.String())
}

func TestFileToAnotherPlatform(t *testing.T) {
	f := setup(t, quick(), nil)
	var failure *chats.SendError
	if _, err := f.sendFile(chats.Chat{Platform: "telegram", ID: "1"}, out("a.txt", "", []byte("x"))); !errors.As(err, &failure) || failure.Outcome != chats.Refused {
		t.Errorf("to a chat of another platform: %v", err)
	}
}

// sender is an agent whose tool makes the files that the message names.
type sender struct {
	make func(workspace, name string)

	mu    sync.Mutex
	saved [][]byte // the first file of each message, as the model can read it
}

func (s *sender) Run(_ context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
	return func(yield func(agent.Message, error) bool) {
		question := turn.History[len(turn.History)-1]
		if len(question.Files) > 0 {
			data, _ := turn.ReadFile(question.Files[0].Path, 1<<20)
			s.mu.Lock()
			s.saved = append(s.saved, data)
			s.mu.Unlock()
		}
		result := agent.Message{Role: agent.RoleTool, CallID: "0", Status: agent.StatusOK, Text: "made"}
		for name := range strings.FieldsSeq(question.Text) {
			s.make(turn.Scope.Workspace, name)
			result.Files = append(result.Files, toolgroups.File{Path: name, Caption: "this is " + name})
		}
		_ = yield(agent.Message{Role: agent.RoleAssistant, Calls: []agent.Call{{ID: "0", Name: "make"}}}, nil) &&
			yield(result, nil) && yield(agent.Message{Role: agent.RoleAssistant, Text: "**here**", Final: true}, nil)
	}
}

func TestFilesThroughTheBridge(t *testing.T) {
	t.Parallel()
	f := setup(t, quick(), nil)
	picture := pngOf(t)
	model := &sender{make: func(workspace, name string) {
		if name == "gone.png" {
			return
		}
		if err := os.WriteFile(filepath.Join(workspace, name), picture, 0o600); err != nil {
			t.Error(err)
		}
	}}
	f.bridged(model)
	f.inject(emulator.Fault{Method: "files.completeUploadExternal", Times: 1, Effect: emulator.CutAfter})
	root := f.say(f.channel, "<@U0BOT> page.png gone.png", &emulator.SayOptions{
		Files: []emulator.Attachment{{Name: "mine.png", MIME: "image/png", Data: picture}},
	})
	f.wait(func(s emulator.State) bool { return s.CountAnswers(f.channel) == 4 })
	var got []string
	f.View(func(s emulator.State) {
		for _, m := range s.Thread(f.channel, root.TS)[1:] {
			line := m.Text
			for _, file := range m.Files {
				line = file.Name + ": " + line
				if !bytes.Equal(file.Data, picture) {
					t.Error("another picture arrived")
				}
			}
			got = append(got, line)
		}
	})
	want := []string{
		"*here*", "page.png: this is page.\u2060png", "page.png: this is page.\u2060png\n\n_" + chats.RepeatNotice + "_",
		"[gone.png could not be sent: the file is gone]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("shown (-want +got):\n%s", diff)
	}
	model.mu.Lock()
	defer model.mu.Unlock()
	if len(model.saved) != 1 || !bytes.Equal(model.saved[0], picture) {
		t.Errorf("%d pictures can be read", len(model.saved))
	}
}
