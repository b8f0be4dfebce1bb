package main

import (
	"context"
	"strings"
	"syscall"
	"testing"

	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/slack"
	"oneclaw/internal/emulator/telegram"
)

// TestAReplyLargerThanARecordIsPaidForOnce: 1.5 MB of "<" take more than 8 MiB in
// a record.
func TestAReplyLargerThanARecordIsPaidForOnce(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("<", 1_500_000)
	w := newHarness(t, openai.ResponderFunc(func(_ context.Context, req openai.Request) (openai.Reply, error) {
		if last := req.Messages[len(req.Messages)-1].Content; last != "much" {
			return openai.Reply{Text: "re: " + last}, nil
		}
		return openai.Reply{Text: large}, nil
	}))
	ann := w.person("Ann")
	bot := w.run()
	wantIn(t, w.ask(bot, ann, "much", nil), "too long for me to keep")
	if got := w.ask(bot, ann, "next", nil); got != "re: next" {
		t.Errorf("the next message got %.100q", got)
	}
	if n := w.model.Count(); n != 2 {
		t.Errorf("the model was asked %d times, want 2", n)
	}
}

// TestAnEnormousAnswerIsAFewMessagesAndAFile: 1 MB without a space.
func TestAnEnormousAnswerIsAFewMessagesAndAFile(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x<", 500_000)
	t.Run("telegram", func(t *testing.T) {
		w := newHarness(t, openai.NewScript(openai.Reply{Text: large}))
		w.env["ONECLAW_MAX_PARTS"] = "3"
		ann := w.person("Ann")
		bot := w.run()
		w.say(ann, "much", nil)
		w.until(bot, "file", func(s telegram.State) bool { return s.CountAnswers(ann) >= 4 })
		w.telegram.View(func(s telegram.State) {
			all := s.Answers(ann)
			if last := all[len(all)-1]; len(all) != 4 || last.File == nil || string(last.File.Data) != large || !strings.HasPrefix(all[2].Text, "x<") {
				t.Errorf("%d messages, the last is %.200q", len(all), last.Text)
			}
		})
		bot.kill(syscall.SIGTERM)
	})
	t.Run("slack", func(t *testing.T) {
		w := newHarness(t, openai.NewScript(openai.Reply{Text: large}))
		server, channel, members := w.withSlack(t, "Ann")
		bot := start(t, w.env, "run")
		waitSlack(t, server, "socket", func(s slack.State) bool { return s.ActiveSockets() > 0 })
		sayTo(t, server, channel, members[0], "<@"+server.BotUser()+"> much", "")
		waitSlack(t, server, "file", func(s slack.State) bool { return s.CountAnswers(channel) >= 11 })
		server.View(func(s slack.State) {
			all := s.Answers(channel)
			if last := all[len(all)-1]; len(all) != 11 || len(last.Files) != 1 || string(last.Files[0].Data) != large {
				t.Errorf("%d messages, the last is %.200q", len(all), last.Text)
			}
		})
		bot.kill(syscall.SIGTERM)
	})
}
