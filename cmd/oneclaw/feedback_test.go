package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"oneclaw/internal/emulator/openai"
)

// TestFeedbackOutlivesAKill kills the bot while the model thinks about a voice
// note and another message waits, and again when somebody has said what they think of the
// answer to that. What was judged is exported then, beside the running bot, and runs again.
func TestFeedbackOutlivesAKill(t *testing.T) {
	t.Parallel()
	reached := make(chan struct{}, 2)
	var asked atomic.Int32
	brain := openai.ResponderFunc(func(ctx context.Context, req openai.Request) (openai.Reply, error) {
		if strings.Contains(req.Messages[0].Content, "a prompt of a test") {
			return openai.Reply{Text: "again: feed the cat"}, nil
		}
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
	onBothPlatforms(t, false, brain, func(s *stage) {
		s.w.env["ONECLAW_VOICE_MODEL"] = openai.DefaultModel
		s.w.env["ONECLAW_ALLOW"] = "*"
		s.w.env["ONECLAW_REACTIONS"] = "true"
		s.w.env["ONECLAW_EXPORT_JUDGED"] = "true"
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
		s.one("my operator may export", s.sign+"learning no")
		s.learns("re: feed the cat", "again: feed the cat")
		s.say(0, s.sign+"learning no")
		s.one("Your conversations will not be exported")
		wantIn(s.t, s.cli("export", "eval", filepath.Join(s.t.TempDir(), "none.jsonl")), "0 cases (left out: 1 because a person said no")
	})
}

// learns exports the only answer that was judged, and runs it with another prompt.
func (s *stage) learns(was, now string) {
	s.t.Helper()
	file, prompt := filepath.Join(s.t.TempDir(), "cases.jsonl"), filepath.Join(s.t.TempDir(), "prompt")
	if err := os.WriteFile(prompt, []byte("This is a prompt of a test."), 0o600); err != nil {
		s.t.Fatal(err)
	}
	wantIn(s.t, s.cli("export", "eval", file), "1 cases (left out: 0", file)
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		s.t.Fatalf("the cases: %v %v, want mode 0600", info, err)
	}
	data, err := os.ReadFile(file)
	data = regexp.MustCompile(`"(time|ended)":"[^"]*"`).ReplaceAll(data, nil) // with the digits of any id
	if _, id, _ := strings.Cut(s.users[0], ":"); err != nil || strings.Contains(string(data), id) || strings.Contains(string(data), "Ann") {
		s.t.Errorf("the cases name people: %s, %v", data, err)
	}
	wantIn(s.t, s.cli("eval", "replay", "--prompt", prompt, "--json", file), `"answer":"`+was+`"`, `"answer":"`+now+`"`, `{"sum":{"cases":1,`)
}

// cli runs a command beside the bot, and returns what it prints.
func (s *stage) cli(args ...string) string {
	s.t.Helper()
	cmd := command(s.t.Context(), s.t, s.w.env, args...)
	if args[0] == "eval" {
		cmd.Args[0] = labName
	}
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("oneclaw %q: %v, %s", args, err, errs.String())
	}
	return string(out)
}
