package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/telegram"
)

// TestAttack08AMemberFloodsAGroup has one member mention the bot three hundred times
// while it answers, and another once.
func TestAttack08AMemberFloodsAGroup(t *testing.T) {
	begun, free := make(chan struct{}, 1), make(chan struct{})
	w := newTown(t, openai.BrainFunc(func(ctx context.Context, req openai.Request) (openai.Reply, error) {
		select {
		case begun <- struct{}{}:
		default:
		}
		select {
		case <-free:
		case <-ctx.Done():
		}
		return openai.Reply{Text: "re: " + req.Messages[len(req.Messages)-1].Content}, nil
	}))
	w.env["ONECLAW_MAX_WAITING_MEMBER"] = "3"
	ann, bob := w.person("Ann"), w.person("Bob")
	group, err := w.telegram.AddChat(telegram.ChatSpec{Kind: telegram.Supergroup, Title: "Team", User: ann, Members: []int64{bob}})
	if err != nil {
		t.Fatal(err)
	}
	say := func(who int64, text string) {
		t.Helper()
		if _, err := w.telegram.Say(group, who, "@"+w.telegram.Bot().Username+" "+text, nil); err != nil {
			t.Fatal(err)
		}
	}
	bot := w.run()
	say(ann, "first")
	<-begun
	for n := range 300 {
		say(ann, fmt.Sprint("flood ", n))
	}
	say(bob, "the other")
	const refusal = "so I take no more of yours"
	w.until(bot, "notice", func(s telegram.State) bool {
		answers := s.Answers(group)
		return len(answers) == 1 && strings.Contains(answers[0].Text, refusal)
	})
	// Whatever came in a batch before the second of these is taken or refused.
	w.ask(bot, bob, "/help", nil)
	w.ask(bot, bob, "/help", nil)
	close(free)
	w.until(bot, "answer to the other", func(s telegram.State) bool {
		answers := s.Answers(group)
		return strings.Contains(answers[len(answers)-1].Text, "the other")
	})
	// The notice, the first, three of the flood, and the other.
	if got := w.answers(group); len(got) != 6 {
		t.Errorf("answers: %q", got)
	}
}
