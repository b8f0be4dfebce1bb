package main

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"oneclaw/internal/emulator/openai"
)

// TestAPersonSeesAndForgetsWhatIsRemembered: /memory shows what is remembered, a button forgets it and
// another brings it back, once each, also if the bot is killed meanwhile.
func TestAPersonSeesAndForgetsWhatIsRemembered(t *testing.T) {
	t.Parallel()
	onBothPlatforms(t, false, openai.Offline{}, seeAndForget)
	t.Run("postgres", func(t *testing.T) {
		w := newTown(t, openai.Offline{})
		w.onServer(t)
		seeAndForget(telegramStageIn(t, w, false))
	})
}

func seeAndForget(s *stage) {
	s.w.env["ONECLAW_ALLOW"] = "*"
	bot := s.start()
	s.say(0, s.sign+"memory")
	s.one("I remember nothing about you yet.")
	s.tell("remember that my cat is called Minka", "Noted: Your cat is called Minka.")
	s.tell("remember that I like tea", "Noted: You like tea.")
	s.say(0, s.sign+"memory")
	card := s.card("What I remember about you", "(2)", "I like tea", "my cat is called Minka")
	forget := card.buttons["✕ 2"]
	if got := s.press(0, card, forget, false)(); got != "Forgotten." {
		s.t.Errorf("the button says %q", got)
	}
	bot.kill(syscall.SIGKILL)
	bot = s.start()
	card = s.card("What I remember about you", "(1)", "Forgotten or replaced last: “my cat is called Minka”")
	if got := s.press(0, card, forget, true)(); got != "This has just changed. Please look again." {
		s.t.Errorf("the old button says %q", got)
	}
	told := ""
	for range 5 { // the card may be shown anew after the kill, with new buttons
		card = s.card("What I remember about you", "(1)")
		if told = s.press(0, card, card.buttons["↩ Undo"], false)(); told == "It is back." {
			break
		}
	}
	if told != "It is back." {
		s.t.Errorf("undo says %q", told)
	}
	s.card("What I remember about you", "(2)")

	s.tell("forget that I like tea", "Forgotten: You like tea. ")
	s.tell("remember that my cat is called Luna", "Noted: Your cat is called Luna.")
	s.say(0, s.sign+"clear")
	s.one("cleared")
	s.tell("what do you remember about me?", "You told me:\n• my cat is called Luna", "You told me:\n- my cat is called Luna", "my cat is called Luna")
	s.say(0, s.sign+"memory")
	card = s.card("What I remember about you", "(1)", "my cat is called Luna", "Forgotten or replaced last: “my cat is called Minka”")
	if _, ok := card.buttons["↩ Undo"]; !ok || len(card.buttons) != 2 {
		s.t.Errorf("buttons %v", card.buttons)
	}
	bot.kill(syscall.SIGTERM)
}

// tell says a text and waits for an answer that holds one of the wanted texts.
func (s *stage) tell(text string, want ...string) {
	s.t.Helper()
	s.say(0, text)
	s.until("answer to "+text, func(all []shown) bool {
		return slices.ContainsFunc(all, func(m shown) bool {
			return slices.ContainsFunc(want, func(w string) bool { return w != "" && strings.Contains(m.text, w) })
		})
	})
}

// TestTheMemoryOfAChatIsChangedByThoseWhoMay: in a shared chat a fact is forgotten by the person who had
// it saved and by administrators, and nobody else.
func TestTheMemoryOfAChatIsChangedByThoseWhoMay(t *testing.T) {
	t.Parallel()
	onBothPlatforms(t, true, openai.Offline{}, func(s *stage) {
		s.w.env["ONECLAW_ALLOW"], s.w.env["ONECLAW_ADMINS"] = "*", s.users[2]
		s.start()
		s.tell("remember that the stand-up is at nine", "Noted: The stand-up is at nine.")
		s.say(1, s.sign+"memory")
		card := s.card("What I remember in this chat", "(1)", "the stand-up is at nine")
		const denied = "Only the person who had this saved, or an administrator, can do that."
		if got := s.press(1, card, card.buttons["✕ 1"], false)(); got != denied {
			s.t.Errorf("another member is told %q", got)
		}
		if got := s.press(0, card, card.buttons["✕ 1"], false)(); got != "Forgotten." {
			s.t.Errorf("the author is told %q", got)
		}
		card = s.card("I remember nothing in this chat yet.", "Forgotten or replaced last")
		if got := s.press(1, card, card.buttons["↩ Undo"], false)(); got != denied {
			s.t.Errorf("another member is told %q", got)
		}
		if got := s.press(2, card, card.buttons["↩ Undo"], false)(); got != "It is back." {
			s.t.Errorf("an administrator is told %q", got)
		}
		s.card("What I remember in this chat", "(1)")
	})
}
