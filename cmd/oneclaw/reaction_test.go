package main

import (
	"context"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"oneclaw/internal/emulator/openai"
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

// TestAReactionAnswersAQuestionOfTheModel: 👍 on an answer that ends with a question reaches the model as a reply to it,
// once, through a kill; it names the question, which is not taken for the person's words.
func TestAReactionAnswersAQuestionOfTheModel(t *testing.T) {
	t.Parallel()
	brain := openai.ResponderFunc(func(_ context.Context, req openai.Request) (openai.Reply, error) {
		last := req.Messages[len(req.Messages)-1].Content
		if strings.Contains(last, "what now") {
			return openai.Reply{Text: "There are two.\n\nShall I take the first?"}, nil
		}
		return openai.Reply{Text: "Then: " + last[strings.LastIndex(last, "\n")+1:] + " to " + strings.Join(regexp.MustCompile(`Shall.*`).FindAllString(last, -1), " ")}, nil
	})
	onBothPlatforms(t, false, brain, func(s *botChat) {
		bot := s.start()
		s.say(0, "what now")
		asked := s.one("Shall I take the first?")
		s.why("Answered.")
		s.react(0, asked, true)
		bot.kill(syscall.SIGKILL)
		bot = s.start()
		s.one("Then:", "(reacted with 👍)", "to Shall I take the first?")
		s.why("Answered.")
		bot.kill(syscall.SIGKILL)
		s.start()
		s.react(0, asked, false)
		s.say(0, "the end")
		s.one("Then:", "the end")
		for _, m := range s.until("all", func([]shown) bool { return true }) {
			if strings.Contains(m.text, "👎") {
				s.t.Errorf("a second reaction was answered: %q", m.text)
			}
		}
	})
}
