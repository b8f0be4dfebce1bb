package bridge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/platformtest"
	"oneclaw/toolgroups"
)

// minded is an agent that keeps what it was asked, and what stood before that: it answers slowly
// what begins so, in parts what is long, and else as echo.
type minded struct {
	slow *slow
	mu   sync.Mutex
	// asked are the questions, seen is all that stood before the last one.
	asked, seen []string
}

func (m *minded) think(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
	text := turn.History[len(turn.History)-1].Text
	m.mu.Lock()
	m.asked, m.seen = append(m.asked, text), nil
	for _, one := range turn.History {
		m.seen = append(m.seen, one.Text)
	}
	m.mu.Unlock()
	if strings.HasPrefix(text, "long") {
		return answering("re: "+text+"\fmore of it\fthe rest of it")(ctx, turn)
	}
	return m.slow.think(ctx, turn)
}

// since returns what was asked since it was called last, and what stood before the last question.
func (m *minded) since() (asked, seen []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	asked, m.asked = m.asked, nil
	return asked, m.seen
}

// A process dies after a /stop or /clear was accepted, while any one step of what that does
// hangs. Its next life asks the model nothing of what was stopped and sends nothing of it; after
// the answer to a /clear nothing that is older is shown, and an /undo brings back what there was.
func TestACommandHoldsWhereverTheProcessDies(t *testing.T) {
	t.Parallel()
	old := []string{"slow one", "two", "long one"}
	for name, begin := range map[string]func(t *testing.T, r *harness, m *minded){
		"a turn runs and a message waits": func(t *testing.T, r *harness, m *minded) {
			r.accept(direct("1", "slow one"))
			soon(t, m.slow.asked)
			pass(t, 5)
			r.accept(direct("2", "two"))
		},
		"an answer is half delivered": func(t *testing.T, r *harness, _ *minded) {
			refused := false
			r.platform.fail = func(_ int, arrived bool) error {
				if arrived || refused || len(r.platform.shown()) < 2 {
					return nil
				}
				refused = true
				return &chats.SendError{Outcome: chats.Later, RetryAfter: time.Hour, Err: errDead}
			}
			r.accept(direct("1", "long one"))
			pass(t, 5)
		},
		"a message waits for its turn": func(t *testing.T, r *harness, m *minded) {
			r.accept(in("busy", "1", "slow there"))
			soon(t, m.slow.asked)
			r.accept(direct("2", "two"))
		},
	} {
		for _, command := range []string{"/stop", "/clear"} {
			t.Run(command+" while "+name, func(t *testing.T) {
				hangsAtEachStep(t, 6, func(t *testing.T, life *mortal) {
					m := &minded{slow: newSlow()}
					r := newHarness(t, m.think, func(cfg *bridge.Config) { cfg.Limits.MaxTurns = 1 })
					r.accept(direct("0", "before"))
					r.platform.wait(t, 1)
					r.stop()
					store, shown, hangs := r.cfg.Store, r.platform, life.hangs
					life.hangs = 0
					r.cfg.Store, r.cfg.Platforms = mortalStore{store, life}, []chats.Platform{mortalPlatform{shown, life}}
					r.start()
					begin(t, r, m)
					pass(t, 1)
					life.mu.Lock()
					life.steps, life.hangs = 0, hangs
					life.mu.Unlock()
					accepted := make(chan error, 1)
					go func() { accepted <- r.bridge.Accept(t.Context(), direct("9", command)) }()
					pass(t, 3)
					life.end()
					taken := <-accepted == nil
					r.stop()
					m.since()
					before := shown.texts()
					shown.fail = nil
					r.cfg.Store, r.cfg.Platforms = store, []chats.Platform{shown}
					r.start()
					r.accept(direct("9", command)) // the platform says it again
					pass(t, 5)
					close(m.slow.free)
					pass(t, 30)
					asked, _ := m.since()
					texts := shown.texts()
					if command == "/stop" {
						for _, text := range asked {
							if taken && slices.Contains(old, text) {
								t.Errorf("%q was asked after the /stop", text)
							}
						}
						for _, text := range texts[len(before):] {
							if taken && strings.Contains(text, " it") {
								t.Errorf("%q was sent after the /stop", text)
							}
						}
						checkNext(t, r, m, "before")
						return
					}
					cleared := slices.IndexFunc(texts, func(text string) bool { return strings.Contains(text, "Conversation cleared") })
					if cleared < 0 {
						t.Fatalf("nothing is cleared: %q", texts)
					}
					for _, text := range texts[cleared+1:] {
						if text != "re: slow there" && !strings.Contains(text, "Conversation cleared") {
							t.Errorf("%q was sent after the /clear", text)
						}
					}
					r.accept(direct("10", "/undo"))
					pass(t, 5)
					if got := shown.texts(); got[len(got)-1] != back {
						t.Errorf("undone: %q", got)
					}
					checkNext(t, r, m, "before")
				})
			})
		}
	}
}

// checkNext checks that the next message is answered, in a conversation in which that was said.
func checkNext(t *testing.T, r *harness, m *minded, said string) {
	t.Helper()
	r.accept(direct("next", "next"))
	pass(t, 5)
	if got := r.platform.texts(); got[len(got)-1] != "re: next" {
		t.Errorf("the next answer is %q", got)
	}
	if _, seen := m.since(); len(seen) == 0 || seen[0] != said {
		t.Errorf("the conversation is %q, want %q in it", seen, said)
	}
	r.stop()
	if open := r.bridge.QueueStats().Open; open != 0 {
		t.Errorf("%d jobs are open", open)
	}
}

// An approval is there, and its turn waits for others to end: a /stop or /clear ends it, and its
// call is not made.
func TestACommandEndsATurnThatWaitsToGoOn(t *testing.T) {
	for command, want := range map[string]string{"/stop": "Stopped.", "/clear": "I stopped what I was doing."} {
		for _, restarted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s restarted %v", command, restarted), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, w := newSlow(), &execTools{}
					r := w.guarded(t, func(c *bridge.Config) {
						c.Limits.MaxTurns, c.Limits.DrainTimeout = 1, -1
						c.Turns.Agent = s.or(c.Turns.Agent)
					})
					r.accept(direct("1", "run a"))
					card := r.platform.wait(t, 1)[0]
					synctest.Wait()
					r.accept(in("busy", "1", "slow")) // the only turn
					soon(t, s.asked)
					r.accept(pressOn(card, "p", "1", card.button(t, "Allow once")))
					if got := r.platform.toast(t, "p"); got != "Allowed once." {
						t.Fatalf("told %q", got)
					}
					synctest.Wait()
					r.accept(direct("2", command))
					r.platform.wait(t, 2)
					synctest.Wait() // that it was sent is on record
					if restarted {
						r.restart()
					}
					r.platform.mu.Lock()
					r.platform.typing = nil
					r.platform.mu.Unlock()
					close(s.free)
					pass(t, 5)
					r.platform.mu.Lock()
					if slices.Contains(r.platform.typing, "fake:1 true") {
						t.Error("it looks as if it went on")
					}
					r.platform.mu.Unlock()
					r.accept(direct("3", "next"))
					pass(t, 10)
					r.stop()
					if ran := w.commands(); len(ran) > 0 {
						t.Errorf("ran %q", ran)
					}
					got := r.platform.in("1")
					if len(got) != 3 || !strings.Contains(got[1].text, want) || got[2].text != "re: next" {
						t.Errorf("there stands %q", texts(got))
					}
				})
			})
		}
	}
}

// A /stop that comes at any step of a turn which comes to wait for an approval ends it: its call
// is not made, whatever is pressed, and the next message is answered.
func TestAStopAtAnyStepOfATurnThatComesToWaitEndsIt(t *testing.T) {
	t.Parallel()
	bubble := func(t *testing.T, step int) (steps int) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			life := &sleeper{goOn: make(chan struct{}), alive: make(chan struct{})}
			close(life.alive) // that step alone is held up
			w := &execTools{}
			r := w.guarded(t, func(c *bridge.Config) { c.Store = sleeperStore{c.Store, life} })
			life.mu.Lock()
			life.counting, life.at = true, step
			life.mu.Unlock()
			accepted := make(chan error, 2)
			go func() { accepted <- r.bridge.Accept(t.Context(), direct("1", "run a")) }()
			pass(t, 5)
			life.mu.Lock()
			life.counting, steps = false, life.steps
			life.mu.Unlock()
			go func() { accepted <- r.bridge.Accept(t.Context(), direct("2", "/stop")) }()
			pass(t, 5)
			close(life.goOn)
			for range 2 {
				if err := soon(t, accepted); err != nil {
					t.Error(err)
				}
			}
			pass(t, 5)
			r.accept(direct("3", "next"))
			pass(t, 5) // it does not wait for a decision
			if got := r.platform.texts(); got[len(got)-1] != "re: next" {
				t.Errorf("there stands %q", got)
			}
			for i, one := range r.platform.shown() {
				if one.buttons != nil {
					r.accept(pressOn(one, fmt.Sprint("p", i), "1", one.button(t, "Allow once")))
				}
			}
			pass(t, 5)
			r.stop()
			if ran := w.commands(); len(ran) > 0 {
				t.Errorf("ran %q", ran)
			}
			if open := r.bridge.QueueStats().Open; open != 0 {
				t.Errorf("%d jobs are open", open)
			}
		})
		return steps
	}
	steps := bubble(t, 0)
	if steps < 8 {
		t.Fatalf("only %d steps: the test does not see what is written", steps)
	}
	for step := range platformtest.Steps(t, 3, steps) { // before them nothing is accepted that it could end
		t.Run(fmt.Sprint("step ", step), func(t *testing.T) { bubble(t, step) })
	}
}

// An edit of a message whose approval is there, and which waits to go on, changes nothing of it.
func TestAnEditOfWhatWaitsToGoOnLeavesItAsItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := newSlow(), &execTools{}
		r := w.guarded(t, func(c *bridge.Config) {
			c.Limits.MaxTurns = 1
			c.Turns.Agent = s.or(c.Turns.Agent)
		})
		r.accept(direct("1", "run a"))
		card := r.platform.wait(t, 1)[0]
		synctest.Wait()
		r.accept(in("busy", "1", "slow")) // the only turn
		soon(t, s.asked)
		r.accept(pressOn(card, "p", "1", card.button(t, "Allow once")))
		r.platform.toast(t, "p")
		synctest.Wait()
		r.accept(edit(direct("1", "run a"), "run b"))
		synctest.Wait()
		r.accept(direct("2", "/why"))
		pass(t, 5)
		why := r.platform.in("1")
		close(s.free)
		pass(t, 10)
		r.stop()
		if ran := fmt.Sprint(w.commands()); ran != "[a]" {
			t.Errorf("ran %s", ran)
		}
		if got := why[len(why)-1].text; strings.Contains(got, "run b") {
			t.Errorf("/why says %q", got)
		}
	})
}

// What a tool returns is kept, although a /stop or the end of the time for the turn comes before:
// the next question is asked with it.
func TestTheResultOfAToolThatEndsLateIsKept(t *testing.T) {
	for name, stop := range map[string]bool{"a /stop": true, "the time limit": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var results []string
				reg, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Core: []toolgroups.Tool{{
					Name: "get_current_time", Description: "Look.", Effect: toolgroups.Consequential, Parameters: json.RawMessage(`{"type":"object"}`),
					Run: func(context.Context, toolgroups.Call) (toolgroups.Result, error) {
						pass(t, 60) // whatever its context says
						return toolgroups.TextResult("it is done")
					},
				}}})
				if err != nil {
					t.Fatal(err)
				}
				r := newHarness(t, nil, func(c *bridge.Config) {
					c.Turns.Timeout = 30 * time.Second
					if stop {
						c.Turns.Timeout = time.Hour
					}
					c.Turns.Tools = func() *toolgroups.Registry { return reg }
					c.Turns.Agent = agent.New(agent.Config{Model: spy(func(req agent.Request) {
						mu.Lock()
						defer mu.Unlock()
						results = nil
						for _, m := range req.Messages {
							if m.Role == agent.RoleTool {
								results = append(results, m.Text)
							}
						}
					})})
				})
				r.accept(direct("1", "look"))
				pass(t, 10)
				if stop {
					r.accept(direct("2", "/stop"))
				}
				pass(t, 120)
				r.accept(direct("3", "next"))
				pass(t, 10)
				r.stop()
				if !slices.Equal(results, []string{"it is done"}) {
					t.Errorf("the model is shown %q: %q", results, r.platform.texts())
				}
			})
		})
	}
}

// spy is told what is asked of an obedient model.
type spy func(req agent.Request)

func (s spy) Complete(ctx context.Context, req agent.Request, show func(agent.Delta)) (agent.Reply, error) {
	s(req)
	return obedient{}.Complete(ctx, req, show)
}
