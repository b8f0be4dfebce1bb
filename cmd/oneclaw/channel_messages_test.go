package main

import (
	"strings"
	"testing"

	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/telegram"
)

// TestPeopleWhoWriteToAChannelDoNotShareAConversation: what one person says in the direct messages of a channel
// is in no request for another, and each is answered in their own topic.
func TestPeopleWhoWriteToAChannelDoNotShareAConversation(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	ann, bob, owner := w.person("Ann"), w.person("Bob"), w.person("Owner")
	channel, err := w.telegram.AddChat(telegram.ChatSpec{Kind: telegram.Supergroup, DirectMessages: true, Title: "News", User: owner, Members: []int64{ann, bob}})
	if err != nil {
		t.Fatal(err)
	}
	bot := w.run()
	tell := func(who int64, text string) {
		t.Helper()
		before := 0
		w.telegram.View(func(s telegram.State) { before = s.CountAnswers(channel) })
		if _, err := w.telegram.Say(channel, who, text, nil); err != nil {
			t.Fatal(err)
		}
		w.until(bot, "an answer", func(s telegram.State) bool { return s.CountAnswers(channel) > before })
		w.telegram.View(func(s telegram.State) {
			if a := s.Answers(channel)[before]; a.Thread != who {
				t.Errorf("%d is answered in the topic of %d: %q", who, a.Thread, a.Text)
			}
		})
	}
	last := func() string {
		all := w.model.Requests()
		return string(all[len(all)-1].MessagesJSON)
	}
	tell(ann, "my code is marzipan")
	tell(bob, "what is the code?")
	if strings.Contains(last(), "marzipan") {
		t.Errorf("the request for the second person holds the first one's words: %s", last())
	}
	tell(ann, "and again")
	wantIn(t, last(), "marzipan")
	tell(bob, "/clear")
	tell(bob, "/status")
}
