package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"oneclaw/internal/config"
	"oneclaw/internal/doctor"
	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/telegram"
	"oneclaw/storage"
	"oneclaw/storage/bolt"
)

// TestAMemberFloodsAGroup has one member mention the bot three hundred times
// while it answers, and another once.
func TestAMemberFloodsAGroup(t *testing.T) {
	t.Parallel()
	begun, free := make(chan struct{}, 1), make(chan struct{})
	w := newHarness(t, openai.ResponderFunc(func(ctx context.Context, req openai.Request) (openai.Reply, error) {
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
	group, say := w.team(ann, bob)
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

// TestFewDescriptorsMakeFewTurns has more people write at once than the process
// may open files. All are answered, and none is told that the model cannot be reached.
//
// The turns that run are bounded, the others wait in order.
func TestFewDescriptorsMakeFewTurns(t *testing.T) {
	t.Parallel()
	const descriptors, chats = 256, 400
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	now, worst := 0, 0
	full, free := make(chan struct{}), make(chan struct{})
	w := newHarness(t, openai.ResponderFunc(func(ctx context.Context, req openai.Request) (openai.Reply, error) {
		mu.Lock()
		now++
		if worst = max(worst, now); now == (descriptors-config.ReservedDescriptors)/config.TurnDescriptors {
			select {
			case <-full:
			default:
				close(full)
			}
		}
		mu.Unlock()
		defer func() {
			mu.Lock()
			defer mu.Unlock()
			now--
		}()
		select {
		case <-free:
		case <-ctx.Done():
		}
		return openai.Reply{Text: "re: " + req.Messages[len(req.Messages)-1].Content}, nil
	}))
	var people []int64
	for n := range chats {
		people = append(people, w.person(fmt.Sprint("person ", n)))
		w.say(people[n], "hello", nil)
	}
	bot := w.runUnder(shell, fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, descriptors))
	<-full
	last := people[chats-1]
	wantIn(t, w.ask(bot, last, "/status", nil), "busy in other chats: 1 message waits here for its turn")
	close(free)
	w.untilWithin(2*patience, bot, "all answers", func(s telegram.State) bool { return s.CountAnswers(0) >= chats+1 })
	for _, who := range people {
		if got := w.answers(who); got[len(got)-1] != "re: hello" {
			t.Errorf("chat %d got %q", who, got)
		}
	}
	if most := (descriptors - config.ReservedDescriptors) / config.TurnDescriptors; worst > most {
		t.Errorf("%d turns ran at the same time, want at most %d", worst, most)
	}
}

// runUnder runs the bot by a command of the shell, which is given the program and its
// arguments.
func (w *harness) runUnder(shell, script string) *process {
	w.t.Helper()
	self, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	named := filepath.Join(w.t.TempDir(), programName)
	if err := os.Symlink(self, named); err != nil {
		w.t.Fatal(err)
	}
	p := &process{t: w.t, out: newOutput(), done: make(chan struct{})}
	p.cmd = command(context.Background(), w.t, w.env)
	p.cmd.Path, p.cmd.Args = shell, []string{shell, "-c", script, named, "run"}
	p.begin()
	w.until(p, "a poll", func(s telegram.State) bool { return s.PollCount() > 0 })
	return p
}

// TestWhatDoesNotDecodeIsToldAndListed damages a record of a stopped bot.
func TestWhatDoesNotDecodeIsToldAndListed(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	ann := w.person("Ann")
	bot := w.run()
	w.ask(bot, ann, "/help", nil)
	bot.kill(syscall.SIGTERM)
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(w.env["ONECLAW_DATA_DIR"], databaseName)})
	if err != nil {
		t.Fatal(err)
	}
	key := fmt.Sprintf("job/open/telegram:%d/77/text", ann)
	_, err = store.Put(t.Context(), key, []byte(`{"message":`), storage.Absent)
	if err := errors.Join(err, store.Close()); err != nil {
		t.Fatal(err)
	}
	bot = w.run()
	w.until(bot, "notice", func(s telegram.State) bool { return s.CountAnswers(ann) == 2 })
	told := w.answers(ann)[1]
	wantIn(t, told, "I can no longer read a part", "Incident ")
	_, incident, _ := strings.Cut(told, "Incident ")
	for _, life := range []string{"while it runs", "after it ended"} {
		all, _ := examined(t, w.env)
		if all[deadLettersRow].Status != doctor.VerdictWarn {
			t.Errorf("%s: %+v", life, all[deadLettersRow])
		}
		wantIn(t, all[deadLettersRow].Text, key, strings.TrimSpace(incident))
		bot.kill(syscall.SIGTERM)
	}
}
