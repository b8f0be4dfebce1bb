package main

import (
	"strings"
	"syscall"
	"testing"

	"oneclaw/internal/emulator/openai"
)

const whichCity = "ask me which city to see: Lisbon, Rome or Oslo"

// The model's question waits through a kill, and is answered with a button or in the person's words.
func TestAQuestionIsAnsweredAcrossAKill(t *testing.T) {
	t.Parallel()
	onBothPlatforms(t, false, openai.Offline{}, func(s *botChat) {
		bot := s.start()
		s.say(0, whichCity)
		s.card("I have a question", "Which city to see?", "Please press a button, or write your own answer.", "An answer approves nothing.")
		bot.kill(syscall.SIGKILL)
		bot = s.start()
		card := s.card("Which city to see?") // a kill in the middle of the sending makes a copy, and both can be pressed
		s.press(0, card, card.buttons["“Rome”"], true)
		s.one("You said: Rome.")
		s.one("“Rome”", "Answered")

		s.say(0, "ask me which month: May or June")
		s.card("Which month?")
		bot.kill(syscall.SIGKILL)
		s.start()
		s.isShown(s.card("Which month?"))
		s.say(0, "rather in autumn")
		s.one("You said: rather in autumn.")
		s.one("“rather in autumn”", "Answered")

		s.say(0, "Plan a weekend trip, and ask me what I like") // as /help says
		card = s.card("I have 2 questions", "Where would you like to go?")
		s.press(0, card, card.buttons["“The sea”"], false)
		card = s.card("“The sea”", "How would you like to travel?")
		s.press(0, card, card.buttons["Skip"], false)
		s.one("You said: The sea.", "real model")
		s.one("“The sea”", "How would you like to travel?", "left out", "Answered")

		s.say(0, "ask me where to: North or South")
		s.isShown(s.card("Where to?"))
		s.say(0, s.sign+"stop")
		s.one("Where to?", "no answer is needed any more")
	})
}

// isShown waits until the bot knows that its card is shown, from when on a message can answer it: a press of a button that
// the card never had is told so then.
func (s *botChat) isShown(card shown) {
	s.t.Helper()
	for _, data := range card.buttons {
		token, _, _ := strings.Cut(data, "-")
		s.press(0, card, token+"-9-9", true)()
		return
	}
}

// In a group only the person who asked the bot can answer.
func TestAQuestionInAGroupIsForOnePerson(t *testing.T) {
	t.Parallel()
	onBothPlatforms(t, true, openai.Offline{}, func(s *botChat) {
		s.start()
		s.say(0, whichCity)
		card := s.card("Which city to see?", "Only “Ann", "can answer")
		if told := s.press(1, card, card.buttons["“Rome”"], false)(); told != "Only the person this is done for can answer." {
			t.Errorf("another person is told %q", told)
		}
		s.press(0, card, card.buttons["“Oslo”"], false)
		s.one("You said: Oslo.")
	})
}

// A run that nobody waits for has no such question.
func TestATaskAsksNobody(t *testing.T) {
	t.Parallel()
	onBothPlatforms(t, false, openai.Offline{}, func(s *botChat) {
		s.start()
		s.say(0, "in the background, "+whichCity)
		s.one("From the background", "which is not set up here")
	})
}
