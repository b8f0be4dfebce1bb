package telegram

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oneclaw/bridge/chats"
	emulator "oneclaw/internal/emulator/telegram"
	"oneclaw/internal/markdown"
)

func pngOf(t *testing.T, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func jpegOf(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, 20, 20)), nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func out(name, caption string, data []byte) chats.OutFile {
	return chats.OutFile{Name: name, Caption: caption, Size: int64(len(data)), Content: bytes.NewReader(data)}
}

func TestPicturesAndDocumentsAreSent(t *testing.T) {
	t.Parallel()
	small := pngOf(t, 30, 20)
	for name, tt := range map[string]struct {
		file chats.OutFile
		kind string
	}{
		"png":                   {out("page.png", "page 2", small), emulator.KindPhoto},
		"jpeg":                  {out("photo.jpg", "", jpegOf(t)), emulator.KindPhoto},
		"picture by its bytes":  {out("page", "", small), emulator.KindPhoto},
		"pdf":                   {out("report.pdf", "the report", []byte("%PDF-1.7 …")), emulator.KindDocument},
		"text":                  {out("a.png", "", []byte("no picture at all")), emulator.KindDocument},
		"one byte":              {out("b.txt", "", []byte("x")), emulator.KindDocument},
		"too long for a photo":  {out("long.png", "long", pngOf(t, 3, 100)), emulator.KindDocument},
		"too large for a photo": {out("large.png", "", append(bytes.Clone(small), make([]byte, maxPhoto)...)), emulator.KindDocument},
		"broken picture":        {out("cut.png", "", small[:len(small)/4]), emulator.KindDocument},
		"largest":               {out("largest.bin", "", make([]byte, maxUpload)), emulator.KindDocument},
	} {
		t.Run(name, func(t *testing.T) {
			s := newEmulated(t)
			id, err := s.p.SendFile(t.Context(), to(s.ann, 0, 0), tt.file)
			if err != nil {
				t.Fatalf("SendFile = %v", err)
			}
			answers := s.answers(s.ann)
			if len(answers) != 1 || strconv.FormatInt(answers[0].ID, 10) != id || answers[0].Text != tt.file.Caption {
				t.Fatalf("sent %+v as %s", answers, id)
			}
			want, err := io.ReadAll(io.NewSectionReader(tt.file.Content, 0, tt.file.Size))
			if err != nil {
				t.Fatal(err)
			}
			if f := answers[0].File; f == nil || f.Kind != tt.kind || f.Name != tt.file.Name || !bytes.Equal(f.Data, want) {
				t.Errorf("arrived: %+v", f)
			}
		})
	}
}

func TestCaptionsFit(t *testing.T) {
	for name, tt := range map[string]struct {
		caption string
		repeat  bool
		want    string
	}{
		"as it is":       {" <b>& _x_ ", false, "<b>& _x_"},
		"repeat":         {"page 2", true, "page 2\n\n" + chats.RepeatNotice},
		"mentions":       {"@ann, @\u202ebob, @\reve", false, "@\u200bann, @\u200bbob, @\u200beve"},
		"repeat alone":   {"", true, chats.RepeatNotice},
		"longest":        {strings.Repeat("🎉", 512), false, strings.Repeat("🎉", 512)},
		"too long":       {strings.Repeat("🎉", 600), false, strings.Repeat("🎉", 511) + "…"},
		"invalid":        {"a\xffb", false, "a\uFFFDb"},
		"long and again": {strings.Repeat("x", 2000), true, strings.Repeat("x", maxCaption-3-markdown.UTF16Len(chats.RepeatNotice)) + "…\n\n" + chats.RepeatNotice},
	} {
		t.Run(name, func(t *testing.T) {
			s := newEmulated(t)
			f := out("a.txt", tt.caption, []byte("x"))
			f.Repeat = tt.repeat
			if _, err := s.p.SendFile(t.Context(), to(s.ann, 0, 0), f); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, s.answers(s.ann)[0].Text); diff != "" {
				t.Errorf("caption (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFilesStandInTheirTopic(t *testing.T) {
	s := newEmulated(t)
	forum := s.chat(t, emulator.ChatSpec{Kind: emulator.Supergroup, Forum: true, User: s.ann})
	topic, err := s.AddTopic(forum, "T")
	if err != nil {
		t.Fatal(err)
	}
	asked := s.say(t, forum, "@oneclaw_bot here", &emulator.SayOptions{Thread: topic})
	f := out("a.txt", "the file", []byte("x"))
	if _, err := s.p.SendFile(t.Context(), to(forum, topic, asked.Message), f); err != nil {
		t.Fatal(err)
	}
	if a := s.answers(forum)[0]; a.Thread != topic || a.ReplyTo != asked.Message {
		t.Errorf("in topic %d, replying to %d", a.Thread, a.ReplyTo)
	}
	if err := s.DeleteTopic(forum, topic); err != nil {
		t.Fatal(err)
	}
	if _, err := s.p.SendFile(t.Context(), to(forum, topic, asked.Message), f); err != nil {
		t.Fatal(err)
	}
	if a := s.answers(forum)[1]; a.Thread != 0 || a.Text != topicNotice+"\n\nthe file" || a.File == nil {
		t.Errorf("the file of a topic that is gone: %+v", a)
	}
}

func TestFaultsOfFiles(t *testing.T) {
	for effect, tt := range map[emulator.Effect]struct {
		outcome chats.Outcome
		arrived int
	}{
		emulator.TooManyRequests: {chats.Later, 0},
		emulator.ServerError:     {chats.Unknown, 0},
		emulator.CutBefore:       {chats.Unknown, 0},
		emulator.CutAfter:        {chats.Unknown, 1},
		emulator.BadJSON:         {chats.Unknown, 1},
	} {
		t.Run(string(effect), func(t *testing.T) {
			s := newEmulated(t)
			s.inject(t, emulator.Fault{Method: "sendPhoto", Times: 1, Effect: effect, RetryAfter: 3})
			_, err := s.p.SendFile(t.Context(), to(s.ann, 0, 0), out("a.png", "", pngOf(t, 30, 20)))
			var got *chats.SendError
			if !errors.As(err, &got) || got.Outcome != tt.outcome {
				t.Fatalf("SendFile = %v, want outcome %v", err, tt.outcome)
			}
			if n := len(s.answers(s.ann)); n != tt.arrived {
				t.Errorf("%d messages arrived, want %d", n, tt.arrived)
			}
			if effect == emulator.TooManyRequests && got.RetryAfter != 3*time.Second {
				t.Errorf("retry after %v", got.RetryAfter)
			}
		})
	}
}

func TestFilesThatAreRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		status int
		body   string
		want   chats.SendError
	}{
		"blocked":   {403, `{"ok":false,"error_code":403,"description":"Forbidden: bot was blocked by the user"}`, chats.SendError{Outcome: chats.Refused}},
		"bad":       {400, `{"ok":false,"error_code":400,"description":"Bad Request: wrong type of the web page content"}`, chats.SendError{Outcome: chats.Refused}},
		"too large": {413, "<html>Request Entity Too Large", chats.SendError{Outcome: chats.Refused}},
		"moved": {
			400, `{"ok":false,"error_code":400,"description":"Bad Request: group chat was upgraded","parameters":{"migrate_to_chat_id":-100123}}`,
			chats.SendError{Outcome: chats.Later, MovedTo: "-100123"},
		},
		"gateway":  {502, "<html>", chats.SendError{Outcome: chats.Unknown}},
		"no token": {401, `{"ok":false,"error_code":401,"description":"Unauthorized"}`, chats.SendError{Outcome: chats.Later}},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := newPlatform(config{Settings: Settings{Token: testToken}, httpClient: &http.Client{Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
				if _, err := io.Copy(io.Discard, req.Body); err != nil {
					return nil, err
				}
				return &http.Response{StatusCode: tt.status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(tt.body)), Request: req}, req.Body.Close()
			})}})
			if err != nil {
				t.Fatal(err)
			}
			_, err = p.SendFile(t.Context(), private, out("a.txt", "", []byte("x")))
			var got *chats.SendError
			if !errors.As(err, &got) || got.Outcome != tt.want.Outcome || got.MovedTo != tt.want.MovedTo {
				t.Errorf("SendFile = %+v, want %+v", err, tt.want)
			}
		})
	}
}

func TestFileBeforeAnythingIsOut(t *testing.T) {
	s := newEmulated(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	var got *chats.SendError
	if _, err := s.p.SendFile(ended, to(s.ann, 0, 0), out("a.bin", "", []byte("x"))); !errors.As(err, &got) || got.Outcome != chats.Later {
		t.Errorf("without time: %v", err)
	}
	if n := len(s.answers(s.ann)); n != 0 {
		t.Errorf("%d files arrived", n)
	}
}

// An upload may take minutes. If another process may own the chat in the middle of it, the rest is not sent, and a
// file without its rest is not shown.
func TestTheOwnerIsCheckedWhileAFileIsSent(t *testing.T) {
	for _, protocol := range []string{"http/1.1", "h2"} {
		t.Run(protocol, func(t *testing.T) {
			s := newSecureEmulated(t, protocol)
			file := out("a.bin", "", bytes.Repeat([]byte("0123456789abcdef"), 1<<16))
			checks, errLost := 0, errors.New("another process answers")
			ctx := chats.WithPrecondition(t.Context(), func() error {
				if checks++; checks < 12 { // the fields of the form are some parts, and the file is many
					return nil
				}
				return errLost
			})
			_, err := s.p.SendFile(ctx, to(s.ann, 0, 0), file)
			var got *chats.SendError
			if !errors.As(err, &got) || got.Outcome != chats.Later || !errors.Is(err, errLost) {
				t.Errorf("SendFile = %v, want the error of the precondition", err)
			}
			if n := len(s.answers(s.ann)); n != 0 {
				t.Errorf("%d files arrived, want none", n)
			}
			ctx = chats.WithPrecondition(t.Context(), func() error { return nil })
			if _, err := s.p.SendFile(ctx, to(s.ann, 0, 0), file); err != nil {
				t.Errorf("SendFile with a precondition that holds: %v", err)
			}
			if n := len(s.answers(s.ann)); n != 1 {
				t.Errorf("%d files arrived, want one", n)
			}
		})
	}
}
