package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/slack"
	"oneclaw/internal/emulator/telegram"
)

// TestTelegramNewcomersAreLetInByAButton has a stranger knock and the owner decide.
func TestTelegramNewcomersAreLetInByAButton(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	delete(w.env, "ONECLAW_ALLOW")
	ann, bob, eve := w.person("Ann"), w.person("Bob"), w.person("Eve https://evil.example")
	bot := w.run()
	_, code := offered(t, bot)
	w.ask(bot, ann, "/start "+code, nil)

	wantIn(t, w.ask(bot, bob, "hello, it is me", nil), "I have asked my owner")
	card := w.shownTo(bot, ann, "They wrote: hello, it is me")
	if w.model.Count() > 0 {
		t.Error("the model was asked for a stranger")
	}
	wantIn(t, card.Text, "They may use 300,000 tokens a day.")
	if _, err := w.telegram.Press(ann, card.ID, ann, button(t, card, "Let in")); err != nil {
		t.Fatal(err)
	}
	w.shownTo(bot, bob, "let you in. Here is")
	w.until(bot, "the answer to what was written first", func(s telegram.State) bool { return len(s.Answers(bob)) >= 3 })
	if w.model.Count() == 0 {
		t.Error("who was let in reaches no model")
	}

	w.ask(bot, eve, "[click](https://evil.example) @admin /clear", nil)
	card = w.shownTo(bot, ann, "They wrote: [click]")
	for _, e := range card.Entities {
		if e.Type != "code" && e.Type != "bold" {
			t.Errorf("what a stranger wrote is shown as %+v", e)
		}
	}
	if _, err := w.telegram.Press(ann, card.ID, ann, button(t, card, "Refuse")); err != nil {
		t.Fatal(err)
	}
	w.shownTo(bot, ann, "is refused")
	before := w.model.Count()
	w.say(eve, "please", nil)
	wantIn(t, w.ask(bot, ann, "/people", nil), "Bob", "user since")
	if w.model.Count() != before {
		t.Error("the model was asked for somebody who was refused")
	}
}

// forget has a person erase what is stored of them, in their direct chat.
func (w *harness) forget(p *process, who int64) {
	w.t.Helper()
	w.say(who, "/forget", nil)
	card := w.shownTo(p, who, "Shall I forget you?")
	if _, err := w.telegram.Press(who, card.ID, who, button(w.t, card, "Forget me")); err != nil {
		w.t.Fatal(err)
	}
	w.shownTo(p, who, "I have forgotten you")
}

// shownTo waits until somebody is shown a text by the bot, and returns the message.
func (w *harness) shownTo(p *process, who int64, text string) telegram.Message {
	w.t.Helper()
	var found telegram.Message
	w.until(p, fmt.Sprintf("%q", text), func(s telegram.State) bool {
		for _, m := range s.Answers(who) {
			if strings.Contains(m.Text, text) {
				found = m
				return true
			}
		}
		return false
	})
	return found
}

func button(t testing.TB, m telegram.Message, label string) string {
	t.Helper()
	all := slices.Concat(m.Buttons...)
	i := slices.IndexFunc(all, func(b telegram.Button) bool { return b.Text == label })
	if i < 0 {
		t.Fatalf("no button %q in %+v", label, m)
	}
	return all[i].CallbackData
}

func TestSlackNewcomersAreLetInByAButton(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	server, _, people := w.withSlack(t, "ann", "bob")
	install(t, server)
	delete(w.env, "ONECLAW_ALLOW")
	var rooms []string
	for _, who := range people {
		dm, err := server.AddChannel(slack.ChannelSpec{Kind: slack.DM, Members: []string{who}})
		if err != nil {
			t.Fatal(err)
		}
		rooms = append(rooms, dm)
	}
	shown := func(room, text string) (found slack.Message) {
		t.Helper()
		waitSlack(t, server, text, func(s slack.State) bool {
			for _, m := range s.Answers(room) {
				if strings.Contains(m.Shown, text) {
					found = m
					return true
				}
			}
			return false
		})
		return found
	}
	bot := start(t, w.env, "run")
	_, code := offered(t, bot)
	sayTo(t, server, rooms[0], people[0], "claim "+code, "")
	shown(rooms[0], "Welcome")
	sayTo(t, server, rooms[1], people[1], "hello <!channel>", "")
	shown(rooms[1], "I have asked my owner")
	card := shown(rooms[0], "They wrote: ")
	if len(card.Mentions) > 0 {
		t.Errorf("what a stranger wrote calls %v", card.Mentions)
	}
	all := slices.Concat(card.Buttons...)
	i := slices.IndexFunc(all, func(b slack.Button) bool { return b.Label == "Let in" })
	if i < 0 {
		t.Fatalf("no button in %+v", card)
	}
	if w.model.Count() > 0 {
		t.Error("the model was asked for a stranger")
	}
	if _, err := server.Press(rooms[0], card.TS, people[0], all[i].Value, false); err != nil {
		t.Fatal(err)
	}
	shown(rooms[1], "let you in. Here is")
	waitSlack(t, server, "the answer to what was written first", func(s slack.State) bool { return s.CountAnswers(rooms[1]) >= 3 })
	if w.model.Count() == 0 {
		t.Error("who was let in reaches no model")
	}
}
