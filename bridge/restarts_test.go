package bridge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// stubborn is a model that calls a tool for what is marked until so many calls have returned.
type stubborn struct {
	calls int
	meets func(step, text string)
	told  *atomic.Bool // it has seen that a turn was given up
}

func (m stubborn) Complete(ctx context.Context, req agent.Request, _ func(agent.Delta)) (agent.Reply, error) {
	question, returned := "", 0
	for _, said := range req.Messages {
		if said.Role == agent.RoleUser {
			question, returned = said.Text, 0
		} else if said.Role == agent.RoleTool && said.Status == agent.StatusOK {
			returned++
		}
		if said.Text == agent.NoteGivenUp {
			m.told.Store(true)
		}
	}
	m.meets("model", question)
	if strings.Contains(question, "slowly") {
		if err := halfSecond(ctx); err != nil {
			return agent.Reply{}, err
		}
	}
	if strings.Contains(question, "poison") && returned < m.calls {
		arguments := fmt.Sprintf(`{"n":%d}`, len(req.Messages))
		return agent.Reply{Calls: []agent.Call{{ID: fmt.Sprint(len(req.Messages)), Name: "look", Arguments: arguments}}}, nil
	}
	return agent.Reply{Text: "re: " + question}, nil
}

// lives are the lives of a bridge whose process ends whenever it comes to a step for what is
// marked.
type lives struct {
	*harness
	store storage.Store
	life  atomic.Pointer[mortal]
	armed chan struct{}
	told  atomic.Bool
	ended atomic.Int32 // how many lives the step has ended
}

// deadly is a platform whose sends are a step.
type deadly struct {
	*lives
	mortalPlatform
	step string
}

func (p deadly) Name() string { return p.mortalPlatform.Name() }

func (p deadly) Send(ctx context.Context, to chats.Address, part chats.Part) (string, error) {
	p.meets(p.step, "send", part.Text)
	return p.mortalPlatform.Send(ctx, to, part)
}

// meets ends the process where the step is the one that does.
func (l *lives) meets(deadly, step, text string) {
	if step != deadly || !strings.Contains(text, "poison") {
		return
	}
	<-l.armed
	l.life.Load().kill()
	l.ended.Add(1)
}

// live lives for a while, then the process is another one.
func (l *lives) live(step string, meanwhile func()) {
	l.t.Helper()
	life := &mortal{dead: make(chan struct{})}
	l.life.Store(life)
	l.cfg.Store, l.cfg.Platforms = mortalStore{l.store, life}, []chats.Platform{deadly{l, mortalPlatform{l.platform, life}, step}}
	l.start()
	meanwhile()
	timer := time.NewTimer(14 * time.Second)
	<-timer.C
	l.stop()
}

func newLives(t *testing.T, step string, calls int, look func(l *lives)) *lives {
	t.Helper()
	l := &lives{armed: make(chan struct{})}
	reg, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Core: []toolgroups.Tool{{
		Name: "look", Description: "Look.", Effect: toolgroups.ReadOnly, Parameters: json.RawMessage(`{"type":"object"}`),
		Run: func(context.Context, toolgroups.Call) (toolgroups.Result, error) {
			look(l)
			return toolgroups.Result{Text: "looked"}, nil
		},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	model := stubborn{calls, func(at, text string) { l.meets(step, at, text) }, &l.told}
	l.harness = newHarness(t, nil, func(c *bridge.Config) {
		c.Turns.Agent, c.Turns.Tools, c.Turns.SeparateTurns = agent.New(agent.Config{Model: model}), func() *toolgroups.Registry { return reg }, true
		c.Commands = append(c.Commands, bridge.Command{CommandInfo: chats.CommandInfo{Name: "usage", Description: "Usage"}, Run: func(context.Context, bridge.CommandCall) (string, error) {
			l.meets(step, "command", "poison")
			return "re: poison", nil
		}})
	})
	l.stop()
	l.store = l.cfg.Store
	return l
}

// What ends the process whenever it is carried on is given up after some restarts, with a line
// that names an incident; other chats, and what waits behind it, are answered (A3).
func TestWhatEndsTheProcessEachTimeIsGivenUp(t *testing.T) {
	for _, c := range []struct{ step, text string }{
		{"tool", "poison"}, {"model", "poison"}, {"send", "poison"}, {"command", "/usage"},
	} {
		t.Run(c.step, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLives(t, c.step, 1, func(l *lives) { l.meets(c.step, "tool", "poison") })
				l.live(c.step, func() {
					l.accept(direct("1", c.text), direct("2", "next"), group("3", "2", "other"))
					close(l.armed)
				})
				for n := 0; !strings.Contains(fmt.Sprint(l.platform.texts()), "re: next"); n++ {
					if n > 20 {
						t.Fatalf("still not given up after %d lives: %q", n, l.platform.texts())
					}
					l.live(c.step, func() {})
				}
				if got := l.ended.Load(); got < 6 {
					t.Errorf("given up after it ended %d lives", got)
				}
				shown := strings.Join(l.platform.texts(), "\n")
				if strings.Count(shown, incident) != 1 || !strings.Contains(shown, "re: other") || strings.Contains(shown, "re: poison") {
					t.Errorf("answers: %s", shown)
				}
				if inside := c.step == "tool"; l.told.Load() != inside {
					t.Errorf("the conversation tells that a turn was given up: %v", l.told.Load())
				}
				l.live(c.step, func() { l.accept(direct("4", "last"), group("5", "2", "last")) })
				if shown := strings.Join(l.platform.texts(), "\n"); strings.Count(shown, "re: last") != 2 {
					t.Errorf("answers: %s", shown)
				}
			})
		})
	}
}

// A turn that comes further between the ends of the process is carried on for as long as it takes.
func TestATurnThatComesFurtherAfterEachRestartIsNotGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls = 12
		looked := 0
		l := newLives(t, "tool", calls, func(l *lives) {
			if looked++; looked%2 == 0 {
				l.meets("tool", "tool", "poison")
			}
		})
		close(l.armed)
		l.live("tool", func() { l.accept(direct("1", "poison")) })
		for range 3 * calls {
			l.live("tool", func() {})
		}
		if got := l.platform.texts(); len(got) != 1 || got[0] != "re: poison" {
			t.Errorf("answers after %d ended lives: %q", l.ended.Load(), got)
		}
		if l.ended.Load() < 8 {
			t.Errorf("the process ended %d times only", l.ended.Load())
		}
	})
}

// What runs beside that which ends the process, and is ended with it each time, is answered.
func TestWhatIsEndedByAnotherMessageIsNotGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLives(t, "model", 1, func(*lives) {})
		close(l.armed)
		others := func() int {
			// Where the process ended around the sending, there is a marked copy beside the answer or in its place.
			answered, unmarked := map[string]bool{}, map[string]bool{}
			for _, one := range l.platform.shown() {
				if !strings.HasPrefix(one.text, "re: slowly") {
					continue
				}
				chat := one.to.Chat.ID
				if !one.repeat && unmarked[chat] {
					t.Errorf("%s is answered twice", chat)
				}
				answered[chat], unmarked[chat] = true, unmarked[chat] || !one.repeat
			}
			return len(answered)
		}
		const beside = 5
		l.live("model", func() {
			for n := range beside {
				l.accept(in(fmt.Sprint("other", n), fmt.Sprint(n), "slowly"))
			}
			l.accept(direct("1", "poison"))
		})
		for n := 0; others() < beside || !strings.Contains(fmt.Sprint(l.platform.texts()), incident); n++ {
			if n > 20 {
				t.Fatalf("after %d lives: %q", n, l.platform.texts())
			}
			l.live("model", func() {})
		}
		if got := strings.Count(fmt.Sprint(l.platform.texts()), incident); got != 1 || others() != beside {
			t.Errorf("%d were given up: %q", got, l.platform.texts())
		}
	})
}
