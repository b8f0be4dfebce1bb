package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"

	"oneclaw/bridge/chats"
	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/slack"
	"oneclaw/internal/emulator/telegram"
)

// exchange is a platform with people in chats of their own, that can be out of order.
type exchange struct {
	start func() *process
	say   func(n int)
	// until waits for what the bot has said in each chat.
	until func(what string, cond func(answers [][]string) bool)
	// fail has all calls meet an effect until end is called, which says how many sends
	// met it. Pings wait for as many that met it, meanwhile, as they are given.
	fail func(effect string, status int) (pings func(n int), end func() (sends int))
	down func() error
	up   func(context.Context) error
}

// callers is how many people there are.
const callers = 45

func telegramExchange(t *testing.T, w *harness) *exchange {
	var people []int64
	for n := range callers {
		people = append(people, w.person(fmt.Sprint("person ", n)))
	}
	x := &exchange{start: func() *process { return start(t, w.env, "run") }, down: w.telegram.Suspend, up: w.telegram.Resume}
	x.say = func(n int) { w.say(people[n], fmt.Sprint("question ", n), nil) }
	x.until = func(what string, cond func([][]string) bool) {
		w.until(nil, what, func(s telegram.State) bool {
			answers := make([][]string, callers)
			for n, who := range people {
				for _, m := range s.Answers(who) {
					answers[n] = append(answers[n], m.Text)
				}
			}
			return cond(answers)
		})
	}
	x.fail = func(effect string, status int) (func(int), func() int) {
		inject := func(method string) int {
			id, err := w.telegram.Inject(telegram.Fault{Method: method, Effect: telegram.Effect(effect), Status: status})
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		ping, send, rest := inject("getMe"), inject("sendMessage"), inject("")
		return func(n int) {
				before := -1
				w.until(nil, "question whether it is back", func(s telegram.State) bool {
					if before < 0 {
						before = s.CallCount("getme")
					}
					return s.CallCount("getme") >= before+n
				})
			}, func() int {
				w.telegram.Remove(rest)
				w.telegram.Remove(ping)
				return w.telegram.Remove(send)
			}
	}
	return x
}

func slackExchange(t *testing.T, w *harness) *exchange {
	server, _, _ := w.withSlack(t)
	var people, rooms []string
	for n := range callers {
		who := server.AddUser(slack.User{Name: fmt.Sprint("person", n), RealName: fmt.Sprint("Person ", n)}).ID
		room, err := server.AddChannel(slack.ChannelSpec{Kind: slack.DM, Members: []string{who}})
		if err != nil {
			t.Fatal(err)
		}
		people, rooms = append(people, who), append(rooms, room)
	}
	x := &exchange{start: func() *process { return start(t, w.env, "run") }, down: server.Suspend, up: server.Resume}
	x.say = func(n int) { sayTo(t, server, rooms[n], people[n], fmt.Sprint("question ", n), "") }
	x.until = func(what string, cond func([][]string) bool) {
		waitSlack(t, server, what, func(s slack.State) bool {
			answers := make([][]string, callers)
			for n, room := range rooms {
				for _, m := range s.Answers(room) {
					answers[n] = append(answers[n], m.Text)
				}
			}
			return cond(answers)
		})
	}
	x.fail = func(effect string, status int) (func(int), func() int) {
		inject := func(method string) int {
			id, err := server.Inject(slack.Fault{Method: method, Effect: slack.Effect(effect), Status: status})
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		ping, send, rest := inject("auth.test"), inject("chat.postMessage"), inject("")
		return func(n int) {
				before := -1
				waitSlack(t, server, "question whether it is back", func(s slack.State) bool {
					if before < 0 {
						before = s.CallCount("auth.test")
					}
					return s.CallCount("auth.test") >= before+n
				})
			}, func() int {
				server.Remove(rest)
				server.Remove(ping)
				return server.Remove(send)
			}
	}
	return x
}

// TestAShortOutageLosesNoAnswer has each platform out of order while answers come
// to be sent, in each of the ways that were seen to lose them, and kills the program in the
// middle: every answer arrives, and what comes twice is marked.
func TestAShortOutageLosesNoAnswer(t *testing.T) {
	for name, platform := range map[string]func(*testing.T, *harness) *exchange{"telegram": telegramExchange, "slack": slackExchange} {
		for _, c := range []struct {
			name, effect string
			status       int
			killed       bool
		}{
			{name: "takes the request and closes", effect: "cut_before"},
			{name: "shows the message and closes", effect: "cut_after"},
			{name: "answers 504", effect: "server_error", status: 504, killed: true},
		} {
			t.Run(name+" "+c.name, func(t *testing.T) {
				t.Parallel()
				model := newFloodgate()
				w := newHarness(t, model)
				x := platform(t, w)
				bot := x.start()
				for n := range callers {
					x.say(n)
				}
				model.await(t, 8)
				pings, end := x.fail(c.effect, c.status)
				model.release()
				pings(3)
				found := 0
				if c.killed {
					bot.kill(syscall.SIGKILL)
					found = w.sending() // what was to be sent may not have left the program
					bot = x.start()
					pings(2)
				}
				vain := end()
				marks := x.each(t)
				t.Logf("%d sends in vain, %d found while they were sent, %d answers marked", vain, found, marks)
				if marks > vain+found {
					t.Errorf("%d answers are marked, but %d sends were cut off and %d found while they were sent", marks, vain, found)
				}
				bot.kill(syscall.SIGTERM)
			})
		}
		t.Run(name+" is down", func(t *testing.T) {
			t.Parallel()
			model := newFloodgate()
			x := platform(t, newHarness(t, model))
			bot := x.start()
			for n := range callers {
				x.say(n)
			}
			model.await(t, 8)
			if err := x.down(); err != nil {
				t.Fatal(err)
			}
			model.release()
			bot.out.await(t, "platform is out of order")
			bot.kill(syscall.SIGKILL)
			bot = x.start()
			bot.out.await(t, "cannot be reached")
			if err := x.up(t.Context()); err != nil {
				t.Fatal(err)
			}
			x.each(t)
			bot.kill(syscall.SIGTERM)
		})
	}
}

// each waits until everybody has their answer and nothing is on its way any more, checks
// that there is one each, and counts the marked ones. Whoever has a marked one may have it
// unmarked as well.
func (x *exchange) each(t *testing.T) (marks int) {
	t.Helper()
	var last [][]string
	x.until("answer for everybody", func(answers [][]string) bool {
		last = answers
		for n, got := range answers {
			if len(got) == 0 || !strings.HasPrefix(got[len(got)-1], fmt.Sprint("re: question ", n)) {
				return false
			}
		}
		return true
	})
	for n := range callers {
		x.say(n)
	}
	x.until("second answer for everybody", func(answers [][]string) bool {
		last = answers
		for _, got := range answers {
			if unmarked, marked := tally(got); unmarked+marked < 2 || strings.Contains(got[len(got)-1], chats.RepeatNotice) {
				return false
			}
		}
		return true
	})
	for n, got := range last {
		unmarked, marked := tally(got)
		marks += marked
		if unmarked > 2 || unmarked == 2 && marked > 1 {
			t.Errorf("person %d got %q", n, got)
		}
	}
	return marks
}

func tally(answers []string) (unmarked, marked int) {
	for _, text := range answers {
		if strings.Contains(text, chats.RepeatNotice) {
			marked++
		} else {
			unmarked++
		}
	}
	return unmarked, marked
}

// floodgate is a model that answers nobody until it is released.
type floodgate struct {
	arrived chan struct{}
	open    chan struct{}
	release func()
}

func newFloodgate() *floodgate {
	g := &floodgate{arrived: make(chan struct{}, 10*callers), open: make(chan struct{})}
	g.release = sync.OnceFunc(func() { close(g.open) })
	return g
}

// await returns once so many requests have come.
func (g *floodgate) await(t *testing.T, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for range n {
		select {
		case <-g.arrived:
		case <-ctx.Done():
			t.Fatal("the model was not asked")
		}
	}
}

// Reply implements [openai.Responder].
func (g *floodgate) Reply(ctx context.Context, req openai.Request) (openai.Reply, error) {
	g.arrived <- struct{}{}
	select {
	case <-g.open:
	case <-ctx.Done():
	}
	return openai.Reply{Text: "re: " + req.Messages[len(req.Messages)-1].Content}, nil
}
