package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"oneclaw/bridge"
	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/telegram"
)

// rounds is how often the flood test kills the bot: 8 unless ONECLAW_TEST_KILLS says.
func rounds() int {
	if n, err := strconv.Atoi(os.Getenv("ONECLAW_TEST_KILLS")); err == nil && n > 0 {
		return n
	}
	return 8
}

// repeating answers "re: " and the last message of the user; every third time it
// looks at the clock first, so that turns have tool rounds in them.
func repeating(_ context.Context, req openai.Request) (openai.Reply, error) {
	last := req.Messages[len(req.Messages)-1]
	text := ""
	for _, m := range req.Messages {
		if m.Role == "user" {
			text = m.Content
		}
	}
	n, _ := strconv.Atoi(text[strings.LastIndex(text, " ")+1:])
	if last.Role == "user" && n%3 == 0 {
		return openai.Reply{Calls: []openai.ToolCall{{ID: "call_1", Name: "get_current_time", Arguments: "{}"}}}, nil
	}
	return openai.Reply{Text: "re: " + text, Delay: time.Duration(rand.IntN(30)) * time.Millisecond}, nil
}

// TestKilledInAFlood kills the program, with -9 and with SIGTERM, while messages come
// in from many chats. Every message must be answered in the end, in order within its
// chat, once, but for answers whose sending was cut off, and those are marked.
func TestKilledInAFlood(t *testing.T) {
	const chats, perRound = 8, 3
	w := newTown(t, openai.BrainFunc(repeating))
	var people []int64
	for n := range chats {
		people = append(people, w.person(fmt.Sprint("person ", n)))
	}
	said := 0
	bot := w.run()
	for round := range rounds() {
		for range perRound {
			said++
			for _, who := range people {
				w.say(who, fmt.Sprint("message ", said), nil)
			}
		}
		// The moment of the kill is what is random here; nothing depends on it.
		<-time.After(time.Duration(rand.IntN(150)) * time.Millisecond)
		signal := syscall.SIGKILL
		if round%4 == 3 {
			signal = syscall.SIGTERM
		}
		bot.kill(signal)
		bot = w.run()
	}
	last := fmt.Sprint("re: message ", said)
	w.until(bot, "answer to everything", func(s telegram.State) bool {
		for _, who := range people {
			answers := s.Answers(who)
			if len(answers) == 0 || !strings.HasPrefix(answers[len(answers)-1].Text, last) {
				return false
			}
		}
		return true
	})
	bot.kill(syscall.SIGTERM)
	marks := 0
	for _, who := range people {
		marks += checkFlood(t, w.answers(who), said)
	}
	cut := 0
	w.telegram.View(func(s telegram.State) { cut = s.CutOff() })
	t.Logf("%d messages in %d chats, %d kills: %d answers marked as possible repeats, %d sends cut off",
		said*chats, chats, rounds(), marks, cut)
	if marks > cut {
		t.Errorf("%d answers are marked as possible repeats, but only %d sends were cut off", marks, cut)
	}
}

func (w *town) answers(who int64) (texts []string) {
	w.telegram.View(func(s telegram.State) {
		for _, m := range s.Answers(who) {
			texts = append(texts, m.Text)
		}
	})
	return texts
}

// checkFlood checks the answers of one chat and counts the marked ones.
func checkFlood(t *testing.T, answers []string, said int) (marks int) {
	t.Helper()
	next := 1
	seen := map[string]bool{}
	for _, answer := range answers {
		text, _, marked := strings.Cut(answer, "\n\n"+bridge.RepeatNotice)
		switch want := fmt.Sprint("re: message ", next); {
		case marked && seen[text]:
		case text == want:
			next++
		case seen[text]:
			t.Errorf("%q came twice without a mark", answer)
		default:
			t.Errorf("got %q where %q was due", answer, want)
		}
		seen[text] = true
		if marked {
			marks++
		}
	}
	if next != said+1 {
		t.Errorf("%d of %d messages were answered", next-1, said)
	}
	return marks
}
