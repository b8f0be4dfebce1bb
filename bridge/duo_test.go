package bridge_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/platformtest"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// worker is a talker that looks once where it is asked to work, which takes a while, and then
// answers all that its turn was told.
type worker struct{ talker }

func (m worker) Complete(ctx context.Context, req agent.Request, show func(agent.Delta)) (agent.Reply, error) {
	if _, err := m.talker.Complete(ctx, req, func(agent.Delta) {}); err != nil {
		return agent.Reply{}, err
	}
	return diligent{}.Complete(ctx, req, show)
}

// workers has the replicas of a duo answer so.
func workers(d *duo, i int, cfg *bridge.Config) {
	life := d.lives[i]
	reg, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Core: []toolgroups.Tool{{
		Name: "get_current_time", Description: "Look.", Effect: toolgroups.ReadOnly, Parameters: json.RawMessage(`{"type":"object"}`),
		Run: func(ctx context.Context, _ toolgroups.Call) (toolgroups.Result, error) {
			life.reaches("look")
			defer life.step()
			if err := passing(ctx, 2*time.Second); err != nil {
				return toolgroups.Result{}, err
			}
			return toolgroups.TextResult("looked")
		},
	}}})
	if err != nil {
		panic(err)
	}
	model := worker{talker{life, func() <-chan struct{} { return d.held(i) }, &d.mu, &d.seen}}
	cfg.Turns.Agent, cfg.Turns.Tools = agent.New(agent.Config{Model: model}), func() *toolgroups.Registry { return reg }
}

// chatOf returns a chat in which a replica answers, and in which no conversation has begun.
func (d *duo) chatOf(t *testing.T, replica int) string {
	t.Helper()
	for n := 60; n < 100; n++ {
		chat, before := fmt.Sprint(n), d.lives[replica].sent()
		d.several[0].accept(in(chat, "whoami", "/whoami"))
		if pass(t, 1); d.lives[replica].sent() > before {
			return chat
		}
	}
	t.Fatal("it answers nowhere")
	return ""
}

// block has the model of a replica answer no more, until it is let.
func (d *duo) block(replica int) (free func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	was := make(chan struct{})
	d.hold[replica] = was
	return func() { close(was) }
}

// pause is one way to pause a replica that answers in a chat, at any of its steps.
type pause struct {
	// begins is what there is before; does is what the replica is paused in, which the platform
	// then gives to the other one, that has taken the chat over by then.
	begins, does func(t *testing.T, d *duo, owner int)
	// meanwhile is what happens there until the first one goes on.
	meanwhile func(t *testing.T, d *duo, other int)
	// check is told what the model was shown with the last question.
	check func(t *testing.T, d *duo, seen []string)
	apart bool   // no message becomes part of the turn before it
	reads string // it is paused before it reads what has a key that begins so, too
	chat  string // where the last question is asked
	least int    // so many writes there have to be
}

// A replica is paused before any write of something that changes which jobs there are and which run,
// and goes on when the other one has taken its chat over and has done it, but before it knows:
// all of it has happened once.
func TestWhatAPausedReplicaBeganHappensOnce(t *testing.T) {
	t.Parallel()
	for name, p := range pauses() {
		t.Run(name, func(t *testing.T) {
			steps := p.at(t, 0)
			if steps < p.least {
				t.Fatalf("only %d writes: the test does not see what is done", steps)
			}
			for step := range platformtest.Steps(t, 1, steps) {
				t.Run(fmt.Sprint("write ", step), func(t *testing.T) { p.at(t, step) })
			}
		})
	}
}

func (p *pause) at(t *testing.T, step int) (steps int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := newDuo(t, workers, func(_ *duo, _ int, cfg *bridge.Config) { cfg.Turns.SeparateTurns = p.apart })
		owner, other := d.owner(t, "7")
		p.begins(t, d, owner)
		life := d.lives[owner]
		life.mu.Lock()
		life.counting, life.early, life.reads, life.at = true, true, p.reads, step
		life.mu.Unlock()
		given := make(chan struct{})
		go func() { p.does(t, d, owner); close(given) }()
		pass(t, 5)
		life.mu.Lock()
		life.counting, steps = false, life.steps
		life.mu.Unlock()
		if step > 0 {
			again := make(chan struct{})
			go func() { p.does(t, d, other); close(again) }()
			pass(t, takeover)
			<-again
		}
		p.meanwhile(t, d, other)
		if step > 0 {
			life.mu.Lock()
			life.asleep = false
			life.mu.Unlock()
			close(life.goOn)
			pass(t, 5)
			close(life.alive)
		}
		<-given
		pass(t, 30)
		d.several[other].accept(in(p.chat, "9", "last"))
		pass(t, 10)
		d.mu.Lock()
		seen := slices.Clone(d.seen)
		d.mu.Unlock()
		p.check(t, d, seen)
		d.once(t)
		d.stop(t)
	})
	return steps
}

// once checks that nothing stands there twice without a mark.
func (d *duo) once(t *testing.T) {
	t.Helper()
	n := make(map[string]int)
	for _, one := range d.shown.shown() {
		if one.repeat {
			continue
		}
		key := one.to.Chat.ID + " " + one.text
		if n[key]++; n[key] > 1 {
			t.Errorf("%q stands there twice: %q", one.text, d.shown.texts())
		}
	}
}

// give has a replica take messages.
func (d *duo) give(replica int, messages ...chats.Message) {
	insist(context.Background(), d.several[replica].bridge, messages...)
}

func pauses() map[string]*pause {
	none := func(*testing.T, *duo, int) {}
	all := map[string]*pause{
		"messages become part of a turn": {
			begins: none,
			does: func(t *testing.T, d *duo, owner int) {
				d.give(owner, in("7", "1", "work"))
				pass(t, 1)
				d.give(owner, in("7", "2", "two"), in("7", "3", "three"))
			},
			meanwhile: none,
			check: func(t *testing.T, d *duo, seen []string) {
				inOneAnswer(t, d.shown.in("7"), "work", "two", "three", "last")
				if want := []string{"whose is it", "work", "two", "three", "last"}; !slices.Equal(seen, want) {
					t.Errorf("the conversation has %q, want %q", seen, want)
				}
			},
			chat: "7", least: 12,
		},
	}
	for command, want := range map[string][]string{"/stop": {"whose is it", "after", "last"}, "/clear": {"after", "last"}} {
		var free []func()
		all["a turn is ended by "+command[1:]] = &pause{
			begins: func(t *testing.T, d *duo, owner int) {
				free = []func(){d.block(0), d.block(1)}
				d.several[owner].accept(in("7", "1", "one"))
				pass(t, 1)
			},
			does: func(_ *testing.T, d *duo, owner int) { d.give(owner, in("7", "1", "one"), in("7", "2", command)) },
			meanwhile: func(t *testing.T, d *duo, other int) {
				for _, f := range free {
					f()
				}
				d.several[other].accept(in("7", "3", "after"))
				pass(t, 5)
			},
			check: func(t *testing.T, d *duo, seen []string) {
				got := strings.Join(texts(d.shown.in("7")), "\n")
				if strings.Contains(got, "re: one") || !strings.Contains(got, "re: after") || !strings.Contains(got, "re: last") ||
					!strings.Contains(got, "Stopped.") && !strings.Contains(got, "cleared") {
					t.Errorf("there stands %q", got)
				}
				// What was stopped may be part of it.
				if seen = slices.DeleteFunc(seen, func(text string) bool { return text == "one" && command == "/stop" }); !slices.Equal(seen, want) {
					t.Errorf("the conversation has %q, want %q", seen, want)
				}
			},
			chat: "7", least: 5, reads: "session/",
		}
	}
	for _, own := range []bool{true, false} {
		name := "a chat moves in which a message waits to one of the other replica"
		if own {
			name = "a chat moves in which a message waits"
		}
		all[name] = moves(own)
	}
	return all
}

// moves has a replica be paused while a chat moves to one that is its own, or the other one's.
func moves(own bool) *pause {
	var free func()
	p := &pause{least: 5, apart: true}
	p.begins = func(t *testing.T, d *duo, owner int) {
		to := 1 - owner
		if own {
			to = owner
		}
		p.chat = d.chatOf(t, to)
		d.occupy(t, owner, func() { free = d.block(owner) })
		d.several[owner].accept(in("7", "1", "one"))
		pass(t, 1)
	}
	p.does = func(_ *testing.T, d *duo, owner int) {
		d.give(owner, in("7", "1", "one"))
		for d.several[owner].bridge.Moved(context.Background(), in("7", "", "").Chat, in(p.chat, "", "").Chat) != nil {
			_ = halfSecond(context.Background())
		}
		d.give(owner, in(p.chat, "2", "two"), in("7", "3", "late"))
	}
	p.meanwhile = func(t *testing.T, d *duo, other int) {
		free()
		d.several[other].accept(in(p.chat, "4", "after"))
		pass(t, 10)
	}
	p.check = func(t *testing.T, d *duo, seen []string) {
		for _, want := range []string{"re: one", "re: late", "re: two", "re: after", "re: last"} {
			// The first one may have been answered before the other one was told of the move.
			if !slices.Contains(texts(d.shown.in(p.chat)), want) && (want != "re: one" || !slices.Contains(d.shown.texts(), want)) {
				t.Errorf("%q is not answered in the new chat: there %q, in the old one %q", want, texts(d.shown.in(p.chat)), texts(d.shown.in("7")))
			}
		}
		want := []string{"whose is it", "one", "after", "last", "late", "two"}
		first := 2 // what waited comes first, as far as the replica that has it knows of the move
		if !own {
			first = 1
			slices.Sort(want[first:])
		}
		slices.Sort(seen[min(first, len(seen)):])
		if !slices.Equal(seen, want) {
			t.Errorf("the conversation has %q, want %q", seen, want)
		}
	}
	return p
}

// starting has a process be paused before it stores that a call begins.
type starting struct {
	storage.Store
	life  *sleeper
	armed *atomic.Bool
}

func (s starting) Write(ctx context.Context, ops ...storage.Op) (storage.Revision, error) {
	begins := slices.ContainsFunc(ops, func(op storage.Op) bool {
		return slices.ContainsFunc(op.Records, func(r storage.Record) bool { return bytes.Contains(r.Data, []byte(agent.RoleStarted)) })
	})
	if begins && s.armed.Swap(false) {
		s.life.mu.Lock()
		s.life.counting, s.life.at = true, s.life.steps+1
		s.life.mu.Unlock()
	}
	return s.Store.Write(ctx, ops...)
}

// A replica is paused before it stores that a call begins, and goes on when the other one has its
// job and no turn for it: the call has not begun, so it is made there.
func TestACallThatAPausedReplicaWasAboutToMakeIsMadeByTheOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ran atomic.Int32
		var armed atomic.Bool
		d := newDuo(t, func(d *duo, i int, cfg *bridge.Config) {
			cfg.Store = starting{cfg.Store, d.lives[i], &armed}
			reg, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Core: []toolgroups.Tool{{
				Name: "exec", Description: "Run.", Effect: toolgroups.Consequential, Parameters: json.RawMessage(`{"type":"object"}`),
				Run: func(context.Context, toolgroups.Call) (toolgroups.Result, error) {
					ran.Add(1)
					return toolgroups.TextResult("done")
				},
			}}})
			if err != nil {
				t.Fatal(err)
			}
			cfg.Turns.Tools = func() *toolgroups.Registry { return reg }
		})
		owner, other := d.owner(t, "7")
		var free func()
		d.occupy(t, other, func() { free = d.block(other) })
		armed.Store(true)
		d.several[owner].accept(in("7", "1", "run a"))
		pass(t, takeover)
		d.lives[owner].wake()
		pass(t, 5)
		close(d.lives[owner].alive)
		free()
		pass(t, 30)
		if got := texts(d.shown.in("7")); ran.Load() != 1 || !slices.Contains(got, "done") {
			t.Errorf("it was made %d times, and there stands %q", ran.Load(), got)
		}
		d.stop(t)
	})
}

// wake has a process go on at the step at which it is paused.
func (s *sleeper) wake() {
	s.mu.Lock()
	s.asleep, s.counting = false, false
	s.mu.Unlock()
	close(s.goOn)
}

// What a person has the bot forget in a group goes out of its conversation, whose end stays as it
// is. A replica that has answered there before is not to show it to the model when it does again.
func TestAReplicaThatTakesAChatOverShowsNothingThatWasErasedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDuo(t)
		owner, other := d.owner(t, "8") // any
		say := func(id, user, text string) chats.Message {
			m := in("7", id, text)
			m.User, m.Direct = user, false
			return m
		}
		before := d.lives[owner].sent()
		d.several[owner].accept(say("1", "1", "secret"))
		pass(t, 3)
		if d.lives[owner].sent() == before {
			owner, other = other, owner
		}
		d.several[owner].accept(say("2", "6", "mine"))
		pass(t, 3)
		life := d.lives[owner]
		life.mu.Lock()
		life.counting, life.at = true, 1 // a sign of life
		life.mu.Unlock()
		pass(t, takeover)
		d.several[other].accept(direct("3", "/forget"))
		pass(t, 3)
		all := d.shown.in("1")
		card := all[len(all)-1]
		d.several[other].accept(pressOn(card, "p", "1", card.button(t, "Forget me")))
		pass(t, 30)
		life.wake()
		close(life.alive)
		d.several[other].stop()
		pass(t, 30)
		d.several[owner].accept(say("4", "6", "next"))
		pass(t, 10)
		d.mu.Lock()
		if !slices.Equal(d.seen, []string{"mine", "next"}) {
			t.Errorf("the model is shown %q", d.seen)
		}
		d.mu.Unlock()
		d.stop(t)
	})
}

// before has something happen before a write about a key that begins so, once.
func before(store *faulty, prefix string, happens func()) {
	var happened atomic.Bool
	store.write = func(ops []storage.Op, do func() (storage.Revision, error)) (storage.Revision, error) {
		if strings.HasPrefix(ops[0].Key, prefix) && !happened.Swap(true) {
			happens()
		}
		return do()
	}
}

// Two replicas have the same thing to say in a chat: it stands there once, also where the second
// one has looked before the first one had said it, and writes when that is over.
func TestACardIsPostedOnceByTwoReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &faulty{}
		all := newSeveral(t, 2, echo, func(cfg *bridge.Config) {
			if store.Store == nil {
				store.Store = cfg.Store
			}
			cfg.Store = store
			voting(&voter{})(cfg)
		})
		owner, other := all.sides(t, "7")
		before(store, "card/", func() {
			owner.post("key", in("7", "", "").Chat, vote())
			pass(t, 5) // it was delivered, and its job is closed
		})
		other.post("key", in("7", "", "").Chat, vote())
		pass(t, 10)
		all.once(t, "Tea?")
		all.stop(t)
	})
}
