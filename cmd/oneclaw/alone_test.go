package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/telegram"
)

// On Telegram nobody but the bot sees a reply to what it showed one person alone.
func TestAReplyThatTheBotAloneSeesIsNotForTheGroup(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{}, strongModel)
	w.env["ONECLAW_MODELS_DEEP"] = "preset/" + strongModel // for /deep
	p := w.onTelegram(inGroup, "Ann", "Bob")
	ann, bot := p.people[0], w.run()
	// alone waits until Ann alone was shown so many messages of the bot, and returns the last one.
	alone := func(count int) (last telegram.Message) {
		t.Helper()
		w.until(bot, "what Ann alone is shown", func(s telegram.State) bool {
			n := 0
			for _, m := range s.Ephemeral(p.chat) {
				if m.Receiver == ann {
					last, n = m, n+1
				}
			}
			return n >= count
		})
		return last
	}
	p.speak(saying{text: "/tols"})
	first := alone(1)
	asked := w.model.Count()
	for n, text := range []string{"I meant: is my heliotrope PIN safe?", "/deep is my heliotrope PIN safe?", "", "/observe on", "/agent Poet", "/clear", "stop"} {
		var file *telegram.Attachment
		if text == "" {
			file = &telegram.Attachment{Name: "heliotrope.txt", MIME: "text/plain", Data: []byte("heliotrope")}
		}
		if _, err := w.telegram.ReplyEphemeral(p.chat, first.Ephemeral, ann, text, file); err != nil {
			t.Fatal(err)
		}
		wantIn(t, alone(n+2).Text, "Only you and I see this message")
	}
	if _, err := w.telegram.ReplyEphemeral(p.chat, first.Ephemeral, ann, "/help", nil); err != nil {
		t.Fatal(err)
	}
	wantIn(t, alone(9).Text, "/clear")
	w.telegram.View(func(s telegram.State) {
		if got := s.Answers(p.chat); len(got) != 0 {
			t.Errorf("all see %+v", got)
		}
	})
	if got := w.model.Count(); got != asked {
		t.Errorf("the model was asked %d times", got-asked)
	}
	bot.kill(syscall.SIGTERM)
	w.keepsNothingOf("heliotrope")
	err := filepath.WalkDir(w.env["ONECLAW_DATA_DIR"], func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.Contains(path, "heliotrope") {
			t.Errorf("kept: %s", path)
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
}
