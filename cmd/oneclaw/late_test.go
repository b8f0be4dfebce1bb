package main

import (
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/telegram"
)

// TestMessagesOfADowntimeSayThatTheyWaited writes to a bot that is down for hours.
func TestMessagesOfADowntimeSayThatTheyWaited(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	var behind atomic.Int64
	server, err := telegram.New(telegram.Config{Now: func() time.Time { return time.Now().Add(-time.Duration(behind.Load())) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	url, err := server.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.telegram = server
	w.env["TELEGRAM_BOT_TOKEN"], w.env["TELEGRAM_API_URL"] = server.Token(), url
	ann := w.person("Ann")

	bot := w.run()
	if got := w.ask(bot, ann, "hello", nil); strings.Contains(got, "waited") {
		t.Errorf("a fresh message got %q", got)
	}
	bot.kill(syscall.SIGTERM)
	behind.Store(int64(3 * time.Hour))
	w.say(ann, "hello?", nil)
	w.say(ann, "hello, are you there?", nil)
	behind.Store(0)
	bot = w.run()
	w.until(bot, "three answers", func(s telegram.State) bool { return s.CountAnswers(ann) == 3 })
	w.ask(bot, ann, "hello again", nil)
	var told []bool
	w.telegram.View(func(s telegram.State) {
		for _, m := range s.Answers(ann) {
			told = append(told, strings.Contains(m.Text, "I was away: this waited for 3 hours."))
		}
	})
	if len(told) != 4 || told[0] || !told[1] || told[2] || told[3] {
		t.Errorf("answers that say they waited: %v, want the second of four", told)
	}
}
