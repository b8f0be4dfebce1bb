package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/slack"
)

// botChat is a place with the bot on either platform, direct with the first person or shared by all.
type botChat struct {
	place

	t *testing.T
	w *harness
	// users are the people as the bot names them.
	users []string
	// sign is what commands begin with.
	sign  string
	start func() *process
}

// onBothPlatforms runs a test in a chat of each platform.
func onBothPlatforms(t *testing.T, shared bool, brain openai.Responder, test func(*botChat)) {
	t.Helper()
	t.Run("telegram", func(t *testing.T) { test(telegramChat(t, shared, brain)) })
	t.Run("slack", func(t *testing.T) { test(slackChatIn(t, newHarness(t, brain), shared)) })
}

func telegramChat(t *testing.T, shared bool, brain openai.Responder) *botChat {
	return telegramChatIn(t, newHarness(t, brain), shared)
}

func telegramChatIn(t *testing.T, w *harness, shared bool) *botChat {
	kind := inPrivate
	if shared {
		kind = inTeam
	}
	return telegramChatOf(t, w, kind)
}

func telegramChatOf(t *testing.T, w *harness, kind int) *botChat {
	where := w.onTelegram(kind, "Ann", "Bob", "Zoe")
	s := &botChat{place: where, t: t, w: w, sign: "/", start: w.run}
	for _, id := range where.people {
		s.users = append(s.users, fmt.Sprint("telegram:", id))
	}
	return s
}

func slackChatIn(t *testing.T, w *harness, shared bool) *botChat {
	server, channel, people := w.withSlack(t, "Ann", "Bob", "Zoe")
	install(t, server)
	where := &slackPlace{t: t, server: server, people: people, chat: channel, kind: inTeam}
	if !shared {
		where.kind, where.chat = inPrivate, where.channel(slack.ChannelSpec{Kind: slack.DM, Members: people[:1]})
	}
	where.threads = true
	s := &botChat{place: where, t: t, w: w, sign: "!", start: func() *process {
		before := 0
		server.View(func(s slack.State) { before = s.OpenedSockets() })
		p := start(t, w.env, "run")
		waitSlack(t, server, "socket", func(s slack.State) bool { return s.OpenedSockets() > before && s.ActiveSockets() > 0 })
		return p
	}}
	for _, id := range people {
		s.users = append(s.users, "slack:"+id)
	}
	return s
}

// say has a person write to the bot.
func (s *botChat) say(who int, text string) {
	s.t.Helper()
	s.speak(saying{who: who, text: text})
}

// until returns what the bot has written, without what one person alone sees, once it is as it should be.
func (s *botChat) until(what string, cond func([]shown) bool) (all []shown) {
	s.t.Helper()
	s.place.until(what, func(every []shown) bool {
		all = slices.DeleteFunc(every, func(m shown) bool { return m.only != "" })
		return cond(all)
	})
	return all
}

// why asks what became of the last message until the answer holds a text.
func (s *botChat) why(want string) {
	s.t.Helper()
	for range 50 {
		before := 0
		s.until("look", func(all []shown) bool { before = len(all); return true })
		s.say(0, s.sign+"why")
		if all := s.until("answer to /why", func(all []shown) bool { return len(all) > before }); strings.Contains(all[before].text, want) {
			return
		}
	}
	s.t.Errorf("/why never told %q", want)
}

// one waits for a message that holds all these texts and returns it as it then is.
func (s *botChat) one(texts ...string) (found shown) {
	s.t.Helper()
	s.until(fmt.Sprintf("message with %q", texts), func(all []shown) bool {
		i := slices.IndexFunc(all, func(m shown) bool {
			return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(m.text, text) })
		})
		if i >= 0 {
			found = all[i]
		}
		return i >= 0
	})
	return found
}

// card waits for a message with these texts that has buttons.
func (s *botChat) card(texts ...string) (found shown) {
	s.t.Helper()
	s.until(fmt.Sprintf("card with %q", texts), func(all []shown) bool {
		i := slices.IndexFunc(all, func(m shown) bool {
			return len(m.buttons) > 0 && !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(m.text, text) })
		})
		if i >= 0 {
			found = all[i]
		}
		return i >= 0
	})
	return found
}
