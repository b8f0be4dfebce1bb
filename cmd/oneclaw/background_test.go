package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/telegram"
)

var resultOf = regexp.MustCompile(`^\[The background task "(\d+)" is done\.`)

// employing starts a background task for "start N", which adds a line to a file, and answers its result
// with "result N".
func employing(_ context.Context, req openai.Request) (openai.Reply, error) {
	at := 0
	for i, m := range req.Messages {
		if m.Role == "user" {
			at = i
		}
	}
	said := req.Messages[at].Content
	if m := resultOf.FindStringSubmatch(said); m != nil {
		return openai.Reply{Text: "result " + m[1], Delay: time.Duration(rand.IntN(30)) * time.Millisecond}, nil
	}
	last := req.Messages[len(req.Messages)-1]
	call := func(name, arguments string) (openai.Reply, error) {
		return openai.Reply{Calls: []openai.ToolCall{{ID: "call_1", Name: name, Arguments: arguments}}}, nil
	}
	verb, number, _ := strings.Cut(said, " ")
	switch {
	case verb == "work" && last.Role == "user":
		return call("write_file", fmt.Sprintf(`{"path":%q,"content":%q,"mode":"append"}`, effects, said+"\n"))
	case verb == "work":
		return openai.Reply{Text: "worked " + number, Delay: time.Duration(rand.IntN(100)) * time.Millisecond}, nil
	case verb != "start":
		return openai.Reply{Text: "What?"}, nil
	case strings.Contains(last.Content, "which is the limit"):
		return openai.Reply{Text: "refused " + number}, nil
	case last.Role == "tool" && strings.HasPrefix(last.Content, "Started "):
		return openai.Reply{Text: "started " + number}, nil
	}
	for _, tool := range req.Tools {
		if tool.Name == "start_background_task" {
			return call(tool.Name, fmt.Sprintf(`{"task":"work %s","title":"%s"}`, number, number))
		}
	}
	return call("load_tool_group", `{"group_name":"background"}`)
}

// TestKilledWithTasksInTheBackground kills the program, with -9 and with SIGTERM, while background tasks
// begin, work and end. Each task does its work at most once, and its result is answered once, but for
// answers that a kill found in the middle of their sending, which are marked.
func TestKilledWithTasksInTheBackground(t *testing.T) {
	t.Parallel()
	w := newTown(t, openai.ResponderFunc(employing))
	w.env["ONECLAW_STEERING"] = "false" // so that each result has its own answer
	var people []int64
	for n := range 4 {
		people = append(people, w.person(fmt.Sprint("person ", n)))
	}
	bot := w.run()
	for round := range rounds() {
		for _, who := range people {
			w.say(who, fmt.Sprint("start ", round), nil)
		}
		calls := func(s telegram.State) int { return s.CallCount("sendmessage") + s.CallCount("editmessagetext") }
		sent, more := 0, rand.IntN(4*len(people))
		w.telegram.View(func(s telegram.State) { sent = calls(s) })
		w.until(nil, "messages before the kill", func(s telegram.State) bool { return calls(s) >= sent+more })
		signal := syscall.SIGKILL
		if round%4 == 3 {
			signal = syscall.SIGTERM
		}
		bot.kill(signal)
		bot = w.run()
	}
	results := func(answers []string, round int) (once, marked int, refused bool) {
		for _, answer := range answers {
			text, note, _ := strings.Cut(answer, "\n")
			switch {
			case text == fmt.Sprint("refused ", round):
				refused = true
			case text != fmt.Sprint("result ", round):
			case strings.Contains(note, chats.RepeatNotice):
				marked++
			default:
				once++
			}
		}
		return once, marked, refused
	}
	w.until(bot, "answers to all results", func(s telegram.State) bool {
		for _, who := range people {
			var answers []string
			for _, m := range s.Answers(who) {
				answers = append(answers, m.Text)
			}
			for round := range rounds() {
				if once, marked, refused := results(answers, round); once+marked == 0 && !refused {
					return false
				}
			}
		}
		return true
	})
	bot.kill(syscall.SIGTERM)
	for _, who := range people {
		answers := w.answers(who)
		for round := range rounds() {
			if once, marked, refused := results(answers, round); once > 1 || refused && once+marked > 0 {
				t.Errorf("task %d: %d answers, %d marked, refused %v: %q", round, once, marked, refused, answers)
			}
		}
	}
	t.Logf("%d kills, %d effects, none twice", rounds(), w.effects(t))
}

// The offline model starts a task, goes on, and tells the result.
func TestAnOfflineTaskInTheBackground(t *testing.T) {
	t.Parallel()
	w := newTown(t, openai.Offline{})
	ann := w.person("Ann")
	bot := w.run()
	w.say(ann, "in the background, what time is it in Tokyo?", nil)
	wantIn(t, w.shows(bot, ann, "I work on it in the background: what time is it in Tokyo?"), "the result comes here")
	wantIn(t, w.shows(bot, ann, "From the background, what time is it in Tokyo?"), "The clock in Asia/Tokyo says")
}
