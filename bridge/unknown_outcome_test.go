package bridge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/platformtest"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// eager is a model that looks once for each message of a turn, has run what it is asked to, and
// then answers all that the turn was told. It says what it is doing before that.
type eager struct {
	mu    sync.Mutex
	asked []string // what the requests were about
}

func (m *eager) Complete(ctx context.Context, req agent.Request, show func(agent.Delta)) (agent.Reply, error) {
	var said []string
	results := 0
	for _, one := range req.Messages {
		switch {
		case one.BeginsTurn():
			said, results = []string{one.Text}, 0
		case one.Role == agent.RoleUser:
			said = append(said, one.Text)
		case one.Role == agent.RoleTool:
			results++
		}
	}
	m.mu.Lock()
	m.asked = append(m.asked, strings.Join(said, " + "))
	m.mu.Unlock()
	if strings.HasPrefix(said[0], "run") && results == 0 {
		show(agent.Delta{Text: "Let me do that. "})
		if err := passing(ctx, 2*time.Second); err != nil {
			return agent.Reply{}, err
		}
		return agent.Reply{Text: "Let me do that.", Calls: []agent.Call{{ID: "0", Name: "exec", Arguments: `{}`}}}, nil
	}
	if strings.HasPrefix(said[0], "work") && results < min(2, len(said)) {
		return agent.Reply{Calls: []agent.Call{{ID: fmt.Sprint(results), Name: "look", Arguments: `{}`}}}, nil
	}
	return agent.Reply{Text: "re: " + strings.Join(said, " + ")}, nil
}

// unsettled is a rig whose store fails once, before a write or after it.
type unsettled struct {
	*harness
	*flaw
	model *eager
	grows *growing
	ran   int
	look  func(n int) // what its tool that looks does, the nth time
}

func newUnsettled(t *testing.T, fails int, change ...func(*bridge.Config)) *unsettled {
	t.Helper()
	u := &unsettled{flaw: &flaw{}, model: &eager{}, grows: &growing{platform: newPlatform()}, look: func(int) {}}
	looked := 0
	reg, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Core: []toolgroups.Tool{
		{
			Name: "exec", Description: "Run.", Effect: toolgroups.Consequential, Parameters: json.RawMessage(`{"type":"object"}`),
			Run: func(context.Context, toolgroups.Call) (toolgroups.Result, error) {
				u.ran++
				return toolgroups.TextResult("done")
			},
		},
		{
			Name: "look", Description: "Look.", Effect: toolgroups.ReadOnly, Parameters: json.RawMessage(`{"type":"object"}`),
			Run: func(context.Context, toolgroups.Call) (toolgroups.Result, error) {
				looked++
				u.look(looked)
				return toolgroups.TextResult("looked")
			},
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	u.harness = newHarness(t, nil, func(c *bridge.Config) {
		c.Store, c.Platforms = flakyStore{Store: c.Store, flaw: u.flaw}, []chats.Platform{u.grows}
		c.Turns.Agent, c.Turns.Tools = agent.New(agent.Config{Model: u.model}), func() *toolgroups.Registry { return reg }
		c.Turns.RedactPartial = func(text string) string { return text }
		c.ApprovalPolicy = func(_ toolgroups.Call, tool toolgroups.Tool) interact.Policy {
			if tool.Effect == toolgroups.ReadOnly {
				return interact.Policy{Rule: interact.Allow}
			}
			return interact.Policy{}
		}
		for _, f := range change {
			f(c)
		}
	})
	u.platform = u.grows.platform
	pass(t, 1)
	u.mu.Lock()
	u.steps, u.fails = 0, fails
	u.mu.Unlock()
	return u
}

// insist gives a message until it is taken.
func (u *unsettled) insist(m chats.Message) { insist(u.t.Context(), u.bridge, m) }

// A write reports an error once, and has happened or has not, at any step: people see what they
// would have seen otherwise.
func TestAWriteOfUnknownOutcomeChangesNothing(t *testing.T) {
	t.Parallel()
	for name, does := range map[string]func(t *testing.T, u *unsettled){
		"a turn waits for an approval": func(t *testing.T, u *unsettled) {
			u.insist(direct("1", "run it"))
			pass(t, 10*60)
			all := u.platform.shown()
			card := all[len(all)-1]
			if len(all) == 2 && (all[0].buttons != nil || !strings.Contains(all[0].text, "This goes on below")) {
				t.Errorf("the preview is not over: %+v", all)
			}
			u.insist(pressOn(card, "p", "1", card.button(t, "Allow once")))
			pass(t, 120)
			// A call that may have begun is not made again: the model is told, and below the answer the person.
			got := u.platform.texts()
			if offer := len(all) + 1; len(got) == offer+1 && strings.HasSuffix(got[offer], "and do not know whether it finished. Run it again?") {
				got = got[:offer]
			}
			if len(got) != len(all)+1 || got[len(all)] != "re: run it" || u.ran > 1 {
				t.Errorf("answers %q, ran %d times", got, u.ran)
			}
		},
		"an album": func(t *testing.T, u *unsettled) {
			u.insist(piece(direct("1", "one"), "g"))
			u.insist(piece(direct("2", "two"), "g"))
			pass(t, 30*60)
			u.want(t, "re: one\ntwo")
		},
		"a turn is told more": func(t *testing.T, u *unsettled) {
			u.look = func(n int) {
				if n == 1 {
					go u.insist(direct("2", "two"))
				}
				pass(t, 2)
			}
			u.insist(direct("1", "work"))
			pass(t, 30*60)
			inOneAnswer(t, u.platform.shown(), "work", "two")
			if got := strings.Join(u.platform.texts(), " "); strings.Contains(got, "work + two") && slices.Contains(u.model.asked, "two") {
				t.Errorf("what is part of a turn was asked once more: %q", u.model.asked)
			}
		},
		"a /clear is taken back": func(t *testing.T, u *unsettled) {
			u.insist(direct("1", "one"))
			pass(t, 60)
			u.insist(direct("2", "/clear"))
			pass(t, 60)
			u.insist(direct("3", "/undo"))
			pass(t, 60)
			if got := u.platform.texts(); len(got) != 3 || got[2] != back {
				t.Errorf("answers %q", got)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble := func(t *testing.T, fails int) (steps int) {
				t.Helper()
				synctest.Test(t, func(t *testing.T) {
					u := newUnsettled(t, fails)
					does(t, u)
					pass(t, 60)
					if open := u.bridge.QueueStats().Open; open != 0 {
						t.Errorf("%d jobs are open", open)
					}
					if shown := strings.Join(u.platform.texts(), "\n"); strings.Contains(shown, incident) {
						t.Errorf("there stands %s", shown)
					}
					steps = u.steps
					u.stop()
				})
				return steps
			}
			steps := bubble(t, 0)
			if steps < 8 {
				t.Fatalf("only %d steps: the test does not see what is written", steps)
			}
			for fails := range platformtest.Steps(t, 1, steps) {
				t.Run(fmt.Sprint("step ", fails), func(t *testing.T) { bubble(t, fails) })
			}
		})
	}
}

// What became part of a turn stays so: its edit reaches the turn, too, and /why counts it.
func TestAnEditOfWhatATurnWasToldReachesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUnsettled(t, 0)
		u.look = func(n int) {
			if n == 1 {
				u.insist(direct("2", "two"))
			} else {
				u.insist(edit(direct("2", "two"), "two changed"))
			}
		}
		u.accept(direct("1", "work"))
		pass(t, 10)
		u.accept(direct("3", "/why"))
		pass(t, 5)
		u.stop()
		got := u.platform.texts()
		if len(got) != 2 || !strings.HasPrefix(got[0], "re: work + two + ") || !strings.HasSuffix(got[0], "two changed") {
			t.Errorf("answers %q", got)
		}
		if !strings.Contains(got[len(got)-1], "Added while I worked on it: 2 messages") {
			t.Errorf("/why says %q", got[len(got)-1])
		}
	})
}

// A message is about to become part of a turn, by a write that reports an error, and the turn is
// stopped with its button before it is tried again. The message is answered where that write has
// not happened, and nothing is asked about it where it has: it was part of what was stopped.
func TestAMessageThatMayBePartOfAStoppedTurnIsAnsweredOnceOrNotAtAll(t *testing.T) {
	for _, happens := range []bool{true, false} {
		t.Run(fmt.Sprint("the write has happened: ", happens), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var failed atomic.Bool
				u := newUnsettled(t, 0, func(c *bridge.Config) {
					c.Store = &faulty{Store: c.Store, write: func(ops []storage.Op, do func() (storage.Revision, error)) (storage.Revision, error) {
						joins := slices.ContainsFunc(ops, func(op storage.Op) bool {
							return op.Kind == storage.KindDelete && strings.HasSuffix(op.Key, "/2/text")
						})
						if !joins || failed.Swap(true) {
							return do()
						}
						if happens {
							if _, err := do(); err != nil {
								t.Error(err)
							}
						}
						return 0, errFaulty
					}}
				})
				u.look = func(n int) {
					if n == 1 {
						pass(t, 6) // later it is no part of the question
						u.insist(direct("2", "two"))
						pass(t, 1)
					}
				}
				u.insist(direct("1", "work"))
				for !failed.Load() {
					_ = passing(t.Context(), 100*time.Millisecond)
				}
				shown := u.platform.shown()[0]
				u.accept(pressOn(shown, "p", "1", shown.buttons[0][0].Data))
				pass(t, 60)
				u.stop()
				answered := slices.Contains(u.platform.texts(), "re: two")
				if asked := slices.Contains(u.model.asked, "two"); asked == happens || answered == happens {
					t.Errorf("asked %v, answered %v: %q", asked, answered, u.platform.texts())
				}
			})
		})
	}
}
