package main

import (
	"context"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"oneclaw/internal/emulator/openai"
)

// TestFeedbackOutlivesAKill kills the bot while the model thinks about a voice
// note and another message waits, and again when somebody has said what they think of the
// answer to that.
func TestFeedbackOutlivesAKill(t *testing.T) {
	t.Parallel()
	reached := make(chan struct{}, 2)
	var asked atomic.Int32
	brain := openai.ResponderFunc(func(ctx context.Context, req openai.Request) (openai.Reply, error) {
		if asked.Add(1)%3 == 1 {
			reached <- struct{}{}
			<-ctx.Done() // its client is killed
			return openai.Reply{}, ctx.Err()
		}
		text := req.Messages[len(req.Messages)-1].Content
		_, said, heard := strings.Cut(text, "as a machine wrote it down]\n")
		if !heard {
			said = text[strings.LastIndex(text, "\n")+1:]
		}
		said, _, _ = strings.Cut(said, "\n")
		return openai.Reply{Text: "re: " + said}, nil
	})
	onBothPlatforms(t, false, brain, func(s *botChat) {
		s.w.env["ONECLAW_VOICE_MODEL"] = openai.DefaultModel
		s.w.env["ONECLAW_ALLOW"] = "*"
		s.w.env["ONECLAW_REACTIONS"] = "true"
		bot := s.start()
		s.speak(saying{text: "water the plants", voice: true})
		<-reached
		s.say(0, "feed the cat")
		s.seen(1)
		bot.kill(syscall.SIGKILL)
		bot = s.start()
		const answer, line = "re: water the plants", "🎤 “water the plants”"
		said := ""
		s.until("the answer", func(all []shown) bool {
			said = ""
			for _, one := range all {
				said += one.text + "\n"
			}
			return strings.Contains(said, answer) && strings.Contains(said, line)
		})
		// What was on its way in the moment of the kill may come again, and says so.
		marks := strings.Count(said, "Possible repeat")
		if strings.Count(said, line)+strings.Count(said, answer) != 2+marks {
			s.t.Errorf("there stands %q", said)
		}
		if n := s.w.model.TranscriptionCount(); n != 1 {
			s.t.Errorf("it was heard %d times", n)
		}
		last := s.one("re: feed the cat")
		s.seen(0)
		s.why("Answered.")
		s.react(0, last, true)
		bot.kill(syscall.SIGKILL)
		s.start()
		s.why("👍 1, 👎 0")
	})
}

// cli runs a command beside the bot, and returns what it prints.
func (s *botChat) cli(args ...string) string {
	s.t.Helper()
	cmd := command(s.t.Context(), s.t, s.w.env, args...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("oneclaw %q: %v, %s", args, err, errs.String())
	}
	return string(out)
}
