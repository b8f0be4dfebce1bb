package main

import (
	"bytes"
	"image"
	"image/png"
	"strings"
	"syscall"
	"testing"

	"oneclaw/bridge/chats"
	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/slack"
	"oneclaw/internal/emulator/telegram"
)

// TestAPageIsSeenOnTelegram sends a PDF and asks to see a page: the program loads the
// tools, renders the page and sends it as a photo.
func TestAPageIsSeenOnTelegram(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	ann := w.person("Ann")
	bot := w.run()
	wantIn(t, w.ask(bot, ann, "how many pages?", samplePDF(t)), "3 pages")
	wantIn(t, w.ask(bot, ann, "show me page 2 as a picture", nil), "Here is page 2")
	w.until(bot, "photo", func(s telegram.State) bool { return s.CountAnswers(ann) == 3 })
	w.telegram.View(func(s telegram.State) {
		m := s.Answers(ann)[2]
		if m.File == nil || m.File.Kind != telegram.KindPhoto || !strings.HasSuffix(m.File.Name, "-page2.png") || !strings.HasSuffix(m.Text, "page 2") {
			t.Fatalf("arrived: %+v with %+v", m, m.File)
		}
		wantPage(t, m.File.Data)
	})
	bot.kill(syscall.SIGTERM)
}

// TestAFileCutOffByAKillComesAgainMarked kills the program while Telegram has the photo
// and has not answered: after the restart it comes once more, and says so.
func TestAFileCutOffByAKillComesAgainMarked(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	ann := w.person("Ann")
	bot := w.run()
	if _, err := w.telegram.Inject(telegram.Fault{Method: "sendPhoto", Times: 1, Effect: telegram.Hang}); err != nil {
		t.Fatal(err)
	}
	w.say(ann, "show page 2 as a picture", samplePDF(t))
	w.until(bot, "upload", func(s telegram.State) bool { return s.CallCount("sendphoto") == 1 })
	bot.kill(syscall.SIGKILL)
	bot = w.run()
	w.until(bot, "photo", func(s telegram.State) bool { return s.CountAnswers(ann) == 2 })
	w.telegram.View(func(s telegram.State) {
		text, photo := s.Answers(ann)[0], s.Answers(ann)[1]
		wantIn(t, text.Text, "Here is page 2")
		if photo.File == nil || !strings.HasSuffix(photo.Text, chats.RepeatNotice) {
			t.Errorf("arrived: %+v", photo)
		}
	})
	bot.kill(syscall.SIGTERM)
}

// TestAPageIsSeenOnSlack is the same in a thread.
func TestAPageIsSeenOnSlack(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	server, channel, members := w.withSlack(t, "Ann")
	bot := start(t, w.env, "run")
	waitSlack(t, server, "socket", func(s slack.State) bool { return s.ActiveSockets() > 0 })
	root, err := server.Say(channel, members[0], "<@U0BOT> show page 2 as a picture", &slack.SayOptions{
		Files: []slack.Attachment{{Name: "report.pdf", MIME: "application/pdf", Data: samplePDF(t).Data}},
	})
	if err != nil {
		t.Fatal(err)
	}
	waitSlack(t, server, "file", func(s slack.State) bool { return s.CountAnswers(channel) == 2 })
	server.View(func(s slack.State) {
		got := s.Thread(channel, root.TS)
		if len(got) != 3 || len(got[2].Files) != 1 || got[2].Files[0].Name != "report-page2.png" || !strings.Contains(got[2].Text, "report.\u2060pdf, page 2") {
			t.Fatalf("arrived: %+v", got)
		}
		wantPage(t, got[2].Files[0].Data)
	})
	bot.kill(syscall.SIGTERM)
}

// wantPage checks that a picture is that of a page: large, and not all of one colour.
func wantPage(t *testing.T, data []byte) {
	t.Helper()
	page, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	b := page.Bounds()
	if b.Dx() < 500 || b.Dy() < 500 {
		t.Errorf("the picture has %d x %d pixels", b.Dx(), b.Dy())
	}
	first := page.At(b.Min.X, b.Min.Y)
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			if page.At(x, y) != first {
				return
			}
		}
	}
	t.Error("the picture is empty")
}

// TestAPhotoReachesAModelThatSees has a person send a photo: the file is saved, and
// the model is shown it with the message it came with, also where the next is asked.
func TestAPhotoReachesAModelThatSees(t *testing.T) {
	t.Parallel()
	const model = "gpt-5-emulated"
	w := newHarness(t, openai.Offline{})
	var seeing *openai.Server
	seeing, w.env["OPENAI_BASE_URL"] = startModel(t, openai.Config{Responder: openai.Offline{}, Models: []string{model}, MaxTools: 200})
	w.env["OPENAI_MODEL"] = model
	ann := w.person("Ann")
	bot := w.run()
	var photo bytes.Buffer
	if err := png.Encode(&photo, image.NewGray(image.Rect(0, 0, 30, 20))); err != nil {
		t.Fatal(err)
	}
	w.ask(bot, ann, "what is this?", &telegram.Attachment{Kind: telegram.KindPhoto, Data: photo.Bytes()})
	w.ask(bot, ann, "hello", nil)
	bot.kill(syscall.SIGTERM)
	shown := 0
	for _, r := range seeing.Requests() {
		for _, m := range r.Messages {
			for _, p := range m.Pictures {
				shown++
				if !bytes.Equal(p.Data, photo.Bytes()) || !strings.HasPrefix(m.Content, "what is this?\n[file: inbox/photo") {
					t.Errorf("shown with %q: %d bytes of %s", m.Content, len(p.Data), p.MIME)
				}
			}
		}
	}
	if requests := len(seeing.Requests()); shown != 2 || requests != 2 {
		t.Errorf("the photo was shown %d times in %d requests", shown, requests)
	}
}
