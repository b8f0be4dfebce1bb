package main

import (
	"context"
	"strings"
	"syscall"
	"testing"

	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/telegram"
)

// addBot adds the bot to the chat of a place, from which it was removed before if it was there.
func addBot(t *testing.T, where place) {
	t.Helper()
	switch p := where.(type) {
	case *telegramPlace:
		for _, status := range []string{telegram.Kicked, telegram.Member} {
			if _, err := p.w.telegram.SetBotStatus(p.chat, p.people[0], status); err != nil {
				t.Fatal(err)
			}
		}
	case *slackPlace:
		if _, err := p.server.Invite(p.chat, p.people[0]); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTheBotIntroducesItselfOnce: in a group or channel to which it is added, with what it is called by there, and
// neither after a kill nor when it is removed and added again.
func TestTheBotIntroducesItselfOnce(t *testing.T) {
	t.Parallel()
	echo := openai.ResponderFunc(func(_ context.Context, req openai.Request) (openai.Reply, error) {
		return openai.Reply{Text: "re: " + req.Messages[len(req.Messages)-1].Content}, nil
	})
	onBothPlatforms(t, true, echo, func(s *botChat) {
		bot := s.start()
		addBot(s.t, s.place)
		hello := s.one("Hello! I answer here when you mention me or reply to me.", "I can look things up on the web", s.sign+"help", "My owner decides").text
		if lines := len(strings.FieldsFunc(hello, func(r rune) bool { return r == '\n' })); lines != 3 {
			s.t.Errorf("%d lines: %q", lines, hello)
		}
		bot.kill(syscall.SIGKILL)
		addBot(s.t, s.place)
		s.start()
		addBot(s.t, s.place)
		s.say(0, "ping")
		s.one("re: ", "ping")
		hellos := 0
		for _, m := range s.until("look", func([]shown) bool { return true }) {
			if strings.Contains(m.text, "Hello!") {
				hellos++
			}
		}
		if hellos != 1 {
			s.t.Errorf("the bot has introduced itself %d times", hellos)
		}
	})
}
