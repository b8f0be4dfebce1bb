package main

import (
	"strings"
	"syscall"
	"testing"
)

// TestAReactionAllowsACommandAcrossAKill: in a group 👍 of who asked lets a command run, once, through a kill right
// after it; that of another member and of a stranger does nothing, and neither does 👎 afterwards.
func TestAReactionAllowsACommandAcrossAKill(t *testing.T) {
	t.Parallel()
	test := func(s *botChat) {
		s.w.env["ONECLAW_ALLOW"] = s.users[0] + "," + s.users[1]
		bot := s.start()
		s.say(0, "do it")
		card := s.card("May I run this command?", "Or react: 👍, ✅ or ❤ is ", "Allow once", "👎 or ❌ is ")
		s.react(2, card, true)
		s.react(1, card, true)
		s.react(1, card, false)
		if toast := s.press(1, card, card.buttons["Deny"], false)(); !strings.HasPrefix(toast, "Only the person who asked for this") {
			t.Errorf("toast %q", toast)
		}
		if n := s.w.runs(); n != 0 {
			t.Fatalf("it ran %d times unasked", n)
		}
		s.react(0, card, true)
		bot.kill(syscall.SIGKILL)
		bot = s.start()
		s.one("Then:", "it has run")
		card = s.one("May I run", "Allowed once")
		if strings.Contains(card.text, "Or react") {
			t.Errorf("the decided card says %q", card.text)
		}
		s.react(0, card, false)
		bot.kill(syscall.SIGKILL)
		s.start()
		s.say(0, "hello")
		s.one("Then:", "hello")
		s.one("May I run", "Allowed once")
		if n := s.w.runs(); n != 1 {
			t.Errorf("it ran %d times", n)
		}
	}
	t.Run("telegram", func(t *testing.T) { test(telegramChatOf(t, newHarness(t, doing("exec", counting)), inGroup)) })
	t.Run("slack", func(t *testing.T) { test(slackChatIn(t, newHarness(t, doing("exec", counting)), true)) })
}

// TestACardPromisesNoReactionThatIsNotReported: Telegram tells a bot what people react in groups only if it
// administers them.
func TestACardPromisesNoReactionThatIsNotReported(t *testing.T) {
	t.Parallel()
	s := telegramChat(t, true, doing("exec", counting))
	s.w.env["ONECLAW_ALLOW"] = s.users[0]
	s.start()
	s.say(0, "do it")
	card := s.card("May I run this command?")
	if strings.Contains(card.text, "react") {
		t.Errorf("the card says %q", card.text)
	}
	s.react(0, card, true)
	s.press(0, card, card.buttons["Deny"], false)
	s.one("May I run", "Denied")
}
