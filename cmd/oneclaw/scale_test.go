package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/telegram"
)

func TestTwentyMessagesAtOnceAreAnsweredInOrder(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.ResponderFunc(repeating))
	ann := w.person("Ann")
	for n := range 20 {
		w.say(ann, fmt.Sprint("message ", n+1), nil)
	}
	bot := w.run()
	w.until(bot, "20 answers", func(s telegram.State) bool { return s.CountAnswers(ann) >= 20 })
	checkFlood(t, w.answers(ann), 20)
}

func TestFiveHundredChatsAtOnceAreServedSideBySide(t *testing.T) {
	t.Parallel()
	// All requests are held until 500 are there, or the patience is over: served one
	// after another, not even two would ever meet.
	const chats = 500
	meeting := newMeeting(chats)
	w := newHarness(t, openai.ResponderFunc(func(ctx context.Context, req openai.Request) (openai.Reply, error) {
		meeting.join(ctx)
		return openai.Reply{Text: "re: " + req.Messages[len(req.Messages)-1].Content}, nil
	}))
	var people []int64
	for n := range chats {
		people = append(people, w.person(fmt.Sprint("person ", n)))
	}
	bot := w.run()
	for _, who := range people {
		w.say(who, "hello", nil)
	}
	w.untilWithin(2*patience, bot, "500 answers", func(s telegram.State) bool { return s.CountAnswers(0) >= chats })
	for _, who := range people {
		if got := w.answers(who); len(got) != 1 || got[0] != "re: hello" {
			t.Errorf("chat %d got %q", who, got)
		}
	}
}

// meeting holds those who join until enough have.
type meeting struct {
	mu   sync.Mutex
	left int
	all  chan struct{}
}

func newMeeting(n int) *meeting { return &meeting{left: n, all: make(chan struct{})} }

func (m *meeting) join(ctx context.Context) {
	m.mu.Lock()
	if m.left--; m.left == 0 {
		close(m.all)
	}
	m.mu.Unlock()
	select {
	case <-m.all:
	case <-ctx.Done():
	}
}

func TestAModelThatHangsInOneChatDelaysNoOther(t *testing.T) {
	t.Parallel()
	free := make(chan struct{})
	w := newHarness(t, openai.ResponderFunc(func(ctx context.Context, req openai.Request) (openai.Reply, error) {
		text := req.Messages[len(req.Messages)-1].Content
		if strings.HasPrefix(text, "hang") {
			select {
			case <-free:
			case <-ctx.Done():
			}
		}
		return openai.Reply{Text: "re: " + text}, nil
	}))
	ann, bob := w.person("Ann"), w.person("Bob")
	bot := w.run()
	w.say(ann, "hang", nil)
	for range 5 {
		if got := w.ask(bot, bob, "quick", nil); got != "re: quick" {
			t.Errorf("got %q", got)
		}
	}
	if got := w.ask(bot, ann, "/stop", nil); !strings.HasPrefix(got, "Stopped") {
		t.Errorf("/stop in the hanging chat answers %q", got)
	}
	close(free)
	if got := w.ask(bot, ann, "quick again", nil); got != "re: quick again" {
		t.Errorf("after /stop: %q", got)
	}
}

func TestFloodControlLosesNothing(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.ResponderFunc(repeating))
	ann, bob := w.person("Ann"), w.person("Bob")
	for _, f := range []telegram.Fault{
		{Method: "sendMessage", Chat: ann, Nth: 1, Effect: telegram.TooManyRequests, RetryAfter: 1},
		{Method: "sendMessage", Chat: ann, Nth: 2, Effect: telegram.ServerError},
		{Method: "sendMessage", Chat: ann, Nth: 3, Effect: telegram.CutAfter},
	} {
		if _, err := w.telegram.Inject(f); err != nil {
			t.Fatal(err)
		}
	}
	bot := w.run()
	for n := range 5 {
		w.say(ann, fmt.Sprint("message ", n+1), nil)
	}
	if got := w.ask(bot, bob, "message 1", nil); got != "re: message 1" {
		t.Errorf("the other chat got %q", got)
	}
	w.until(bot, "answers", func(s telegram.State) bool { return s.CountAnswers(ann) >= 6 })
	if marks := checkFlood(t, w.answers(ann), 5); marks != 2 {
		t.Errorf("%d answers are marked, want the one that met an error, and again when its answer was dropped", marks)
	}
}

func TestLongAnswersArriveWholeInValidParts(t *testing.T) {
	t.Parallel()
	var long strings.Builder
	for n := range 400 { // more formatting than a message may have goes as a file behind the tenth
		fmt.Fprintf(&long, "**line %d** with %s\n\n", n, []string{"`code`", "[a link](https://example.com/?a=1&b=\"2\")"}[n%2])
	}
	w := newHarness(t, openai.NewScript(openai.Reply{Text: long.String()}))
	ann := w.person("Ann")
	bot := w.run()
	w.say(ann, "at length", nil)
	w.until(bot, "all parts", func(s telegram.State) bool {
		answers := s.Answers(ann)
		return len(answers) > 1 && strings.Contains(answers[len(answers)-1].Text, "line 399")
	})
	all := strings.Join(w.answers(ann), "\n")
	for n := range 400 {
		if !strings.Contains(all, fmt.Sprintf("line %d ", n)) {
			t.Fatalf("line %d is lost", n)
		}
	}
	for _, m := range w.telegram.Messages(ann) {
		if m.FromBot && m.HTML == "" {
			t.Error("a part was sent plain: its HTML was refused")
		}
	}
}

// Only the last answer of a turn reaches the chat.
func TestOnlyTheLastAnswerReachesTheChat(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.NewScript(
		openai.Reply{Text: "First I look at the clock.", Calls: []openai.ToolCall{{ID: "1", Name: "get_current_time", Arguments: "{}"}}},
		openai.Reply{Text: "It is late."},
	))
	ann := w.person("Ann")
	bot := w.run()
	if got := w.ask(bot, ann, "what time is it?", nil); got != "It is late." {
		t.Errorf("got %q", got)
	}
}
