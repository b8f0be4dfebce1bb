package main

import (
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/telegram"
)

// frontDoor is what stands in front of the bot: it speaks https and knows where the bot is.
type frontDoor struct{ bot string }

func (p frontDoor) RoundTrip(req *http.Request) (*http.Response, error) {
	behind := req.Clone(req.Context())
	behind.URL.Scheme, behind.URL.Host = "http", p.bot
	return http.DefaultTransport.RoundTrip(behind)
}

// TestTelegramPostsToTheProgram has the program answer what is posted to its port, also what
// was said while it was down.
func TestTelegramPostsToTheProgram(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	address := freeAddress(t)
	service, err := telegram.New(telegram.Config{WebhookClient: &http.Client{Transport: frontDoor{address}}, WebhookRetryDelay: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = service.Close() })
	if w.env["TELEGRAM_API_URL"], err = service.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.telegram = service
	w.env["ONECLAW_LISTEN"], w.env["ONECLAW_PUBLIC_URL"], w.env["ONECLAW_TELEGRAM_WEBHOOK"] = address, "https://bot.example", "true"
	ann := w.person("Ann")
	bot := start(t, w.env, "run")
	w.until(bot, "webhook", func(s telegram.State) bool {
		at, _ := s.Webhook()
		return at == "https://bot.example/telegram/updates"
	})
	wantIn(t, w.ask(bot, ann, "hello", nil), "the real one")
	bot.kill(syscall.SIGKILL)
	w.say(ann, "are you there?", nil)
	w.until(nil, "try to post", func(s telegram.State) bool { _, why := s.Webhook(); return why != "" })
	bot = start(t, w.env, "run")
	w.until(bot, "answer to what was said meanwhile", func(s telegram.State) bool {
		// The kill may have been quicker than the record of the first answer, which comes again then.
		answers := slices.DeleteFunc(slices.Clone(s.Answers(ann)), func(m telegram.Message) bool { return strings.Contains(m.Text, chats.RepeatNotice) })
		return len(answers) == 2 && s.PendingCount() == 0 && s.PollCount() == 0
	})
}
