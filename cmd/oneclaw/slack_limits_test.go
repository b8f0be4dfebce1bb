package main

import (
	"syscall"
	"testing"
	"time"

	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/slack"
)

func TestSlackIsLimitedToItsChannels(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.ResponderFunc(repeating))
	server, channel, people := w.withSlack(t, "ann")
	other, err := server.AddChannel(slack.ChannelSpec{Members: people})
	if err != nil {
		t.Fatal(err)
	}
	w.env["SLACK_CHANNELS"] = other
	start(t, w.env, "run")
	waitSlack(t, server, "socket", func(s slack.State) bool { return s.ActiveSockets() > 0 })
	outside := sayTo(t, server, channel, people[0], "<@"+server.BotUser()+"> message 1", "")
	waitSlack(t, server, "acknowledgement", func(s slack.State) bool { return s.AllAcked(outside.Envelopes...) })
	sayTo(t, server, other, people[0], "<@"+server.BotUser()+"> message 2", "")
	waitSlack(t, server, "answer", func(s slack.State) bool { return s.CountAnswers(other) == 1 })
	server.View(func(s slack.State) {
		if n := s.CountAnswers(channel); n != 0 {
			t.Errorf("%d answers where the bot does not work", n)
		}
	})
}

// What is said while the program does not run, and never delivered, is answered when it
// runs again.
func TestWhatWasSaidMeanwhileOnSlackIsAnswered(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.ResponderFunc(repeating))
	server, channel, people := w.withSlack(t, "ann")
	bot := start(t, w.env, "run")
	root := sayTo(t, server, channel, people[0], "<@"+server.BotUser()+"> message 1", "")
	waitSlack(t, server, "answer", func(s slack.State) bool { return s.CountAnswers(channel) == 1 && s.AllAcked(root.Envelopes...) })
	bot.kill(syscall.SIGTERM)
	if _, err := server.Inject(slack.Fault{Method: "envelope", Effect: slack.Hang, Delay: time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	sayTo(t, server, channel, people[0], "message 2", root.TS)
	sayTo(t, server, channel, people[0], "<@"+server.BotUser()+"> message 3", "")
	start(t, w.env, "run")
	waitSlack(t, server, "answers", func(s slack.State) bool { return s.CountAnswers(channel) == 3 })
}
