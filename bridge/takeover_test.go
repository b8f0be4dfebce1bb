package bridge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/platformtest"
	"oneclaw/storage"
	"oneclaw/storage/replicas"
	"oneclaw/toolgroups"
)

// sleeper is a process that is paused at one of its steps, beyond the time after which others
// take its chats over. When it goes on, its sign of life is still on its way for a while: it has
// not learned that it was replaced.
type sleeper struct {
	mu       sync.Mutex
	counting bool
	early    bool   // its steps are before its writes, not behind them and what else it does
	reads    string // and before it reads keys that begin so; empty for none
	steps    int
	at       int // the step at which it is paused; 0 for never
	paused   time.Time
	asleep   bool
	goOn     chan struct{} // closed when that step goes on
	alive    chan struct{} // closed when all that has begun meanwhile does
	sends    int
	edits    int // the first one is put off
	// cancelled counts the requests to its model that were ended.
	cancelled int
	late      []string // what it asked of a platform, and the tools that it started, when it was overdue
}

// before is a step before a write.
func (s *sleeper) before() { s.pause(true) }

// step is one behind what has been done.
func (s *sleeper) step() { s.pause(false) }

func (s *sleeper) pause(early bool) {
	s.mu.Lock()
	wait := (<-chan struct{})(nil)
	counts := s.counting && (early || !s.early)
	if counts {
		s.steps++
	}
	switch {
	case counts && s.steps == s.at:
		s.asleep, s.paused, wait = true, time.Now(), s.goOn
	case s.asleep:
		wait = s.alive
	}
	s.mu.Unlock()
	if wait != nil {
		<-wait
	}
}

// reaches notes what has an effect outside of the store.
func (s *sleeper) reaches(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sends++
	if !s.paused.IsZero() && time.Since(s.paused) > replicas.DefaultTTL {
		s.late = append(s.late, what)
	}
}

// sent counts what it asked of a platform, and the tools that it started.
func (s *sleeper) sent() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sends
}

type sleeperStore struct {
	storage.Store
	*sleeper
}

func (s sleeperStore) Get(ctx context.Context, key string) (storage.Entry, error) {
	s.mu.Lock()
	is := s.reads != "" && strings.HasPrefix(key, s.reads)
	s.mu.Unlock()
	if is {
		s.before()
	}
	return s.Store.Get(context.WithoutCancel(ctx), key)
}

func (s sleeperStore) Put(ctx context.Context, key string, value []byte, rev storage.Revision) (storage.Revision, error) {
	s.before()
	defer s.step()
	return s.Store.Put(context.WithoutCancel(ctx), key, value, rev)
}

func (s sleeperStore) Write(ctx context.Context, ops ...storage.Op) (storage.Revision, error) {
	s.before()
	defer s.step()
	return s.Store.Write(context.WithoutCancel(ctx), ops...)
}

func (s sleeperStore) Delete(ctx context.Context, key string, rev storage.Revision) error {
	s.before()
	defer s.step()
	return s.Store.Delete(context.WithoutCancel(ctx), key, rev)
}

type sleeperPlatform struct {
	*growing
	*sleeper
}

func (p sleeperPlatform) Send(ctx context.Context, to chats.Address, part chats.Part) (string, error) {
	p.reaches("send " + part.Text)
	defer p.step()
	return p.growing.Send(ctx, to, part)
}

func (p sleeperPlatform) Edit(ctx context.Context, to chats.Address, id string, part chats.Part) error {
	p.reaches("edit " + part.Text)
	defer p.step()
	p.sleeper.mu.Lock()
	p.edits++
	first := p.edits == 1
	p.sleeper.mu.Unlock()
	if first {
		return &chats.SendError{Outcome: chats.Later, RetryAfter: time.Second, Err: errFaulty}
	}
	return p.growing.Edit(ctx, to, id, part)
}

func (p sleeperPlatform) Begin(ctx context.Context, to chats.Address, show chats.Preview) (string, error) {
	p.reaches("begin " + show.Part.Text)
	defer p.step()
	return p.growing.Begin(ctx, to, show)
}

func (p sleeperPlatform) Update(ctx context.Context, to chats.Address, id string, show chats.Preview) error {
	p.reaches("update " + show.Part.Text)
	defer p.step()
	return p.growing.Update(ctx, to, id, show)
}

func (p sleeperPlatform) Finish(ctx context.Context, to chats.Address, id string, part chats.Part) error {
	p.reaches("finish " + part.Text)
	defer p.step()
	return p.growing.Finish(ctx, to, id, part)
}

// talker is a model that is a step of its process. It says what begins with grow word by word,
// has a tool run for what begins with run, and answers in two parts what it is asked to.
type talker struct {
	*sleeper
	held func() <-chan struct{}
	mu   *sync.Mutex
	seen *[]string
}

func (m talker) Complete(ctx context.Context, req agent.Request, show func(agent.Delta)) (agent.Reply, error) {
	defer m.step()
	select {
	case <-m.held():
	case <-ctx.Done():
		m.sleeper.mu.Lock()
		m.cancelled++
		m.sleeper.mu.Unlock()
		return agent.Reply{}, context.Cause(ctx)
	}
	var said []string
	for _, one := range req.Messages {
		if one.Role == agent.RoleUser {
			said = append(said, one.Text)
		}
	}
	m.mu.Lock()
	*m.seen = said
	m.mu.Unlock()
	if last := req.Messages[len(req.Messages)-1]; strings.HasPrefix(last.Text, "grow") {
		for word := range strings.SplitAfterSeq("here it is word by word", " ") {
			show(agent.Delta{Text: word})
			if err := halfSecond(ctx); err != nil {
				return agent.Reply{}, err
			}
		}
		return agent.Reply{Text: "here it is word by word\fand all of it"}, nil
	}
	if last := req.Messages[len(req.Messages)-1]; last.Role == agent.RoleTool && last.Text == "done" && strings.HasSuffix(said[len(said)-1], "then more") {
		return agent.Reply{Calls: []agent.Call{{ID: "more", Name: "look", Arguments: "{}"}}}, nil
	}
	reply, err := obedient{}.Complete(ctx, req, show)
	if reply.Text != "" {
		reply.Text += "\fthat is all"
	}
	return reply, err
}

// duo are two replicas that can be paused, on one store and one platform.
type duo struct {
	several
	lives []*sleeper
	shown *platform
	mu    sync.Mutex
	seen  []string        // what stood in the last request to a model
	hold  []chan struct{} // closed for the replicas whose model answers
}

func newDuo(t *testing.T, change ...func(d *duo, i int, cfg *bridge.Config)) *duo {
	t.Helper()
	d := &duo{shown: newPlatform()}
	grows := &growing{platform: d.shown}
	for range 2 {
		free := make(chan struct{})
		close(free)
		d.lives, d.hold = append(d.lives, &sleeper{goOn: make(chan struct{}), alive: make(chan struct{})}), append(d.hold, free)
	}
	n := 0
	var store storage.Store
	d.several = newSeveral(t, 2, nil, func(cfg *bridge.Config) {
		i, life := n, d.lives[n]
		n++
		if store == nil {
			store = cfg.Store
		}
		cfg.Store = sleeperStore{store, life}
		cfg.Platforms = []chats.Platform{sleeperPlatform{grows, life}}
		reg, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Core: []toolgroups.Tool{{
			Name: "exec", Description: "Run a command.", Effect: toolgroups.Consequential,
			Parameters: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}`),
			Run: func(context.Context, toolgroups.Call) (toolgroups.Result, error) {
				life.reaches("exec")
				defer life.step()
				return toolgroups.TextResult("done")
			},
		}, {
			Name: "look", Description: "Look.", Effect: toolgroups.ReadOnly, Parameters: json.RawMessage(`{"type":"object"}`),
			Run: func(context.Context, toolgroups.Call) (toolgroups.Result, error) {
				life.reaches("look")
				defer life.step()
				return toolgroups.TextResult("looked")
			},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		cfg.Turns.Agent = agent.New(agent.Config{Model: talker{life, func() <-chan struct{} { return d.held(i) }, &d.mu, &d.seen}})
		cfg.Turns.Tools = func() *toolgroups.Registry { return reg }
		cfg.Limits.MaxTurns = 1
		cfg.Turns.RedactPartial = func(text string) string { return text }
		cfg.ApprovalPolicy = func(call toolgroups.Call, _ toolgroups.Tool) interact.Policy {
			if strings.Contains(string(call.Arguments), "asked") {
				return interact.Policy{}
			}
			return interact.Policy{Rule: interact.Allow}
		}
		for _, c := range change {
			c(d, i, cfg)
		}
	})
	return d
}

func (d *duo) held(i int) <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.hold[i]
}

// owner returns who answers in a chat, and who does not.
func (d *duo) owner(t *testing.T, chat string) (owner, other int) {
	t.Helper()
	before := d.lives[0].sent()
	d.several[0].accept(in(chat, "side", "whose is it"))
	pass(t, 3)
	if d.lives[0].sent() == before {
		return 1, 0
	}
	return 0, 1
}

// occupy takes the only turn of a replica, in a chat that is its own, once its model answers no more.
func (d *duo) occupy(t *testing.T, replica int, block func()) {
	t.Helper()
	for n := 20; n < 60; n++ {
		chat := fmt.Sprint(n)
		if owner, _ := d.owner(t, chat); owner == replica {
			block()
			d.several[replica].accept(in(chat, "busy", "busy"))
			return
		}
	}
	t.Fatal("it answers nowhere")
}

// A replica is paused at any of its steps until it is past its time-out and the other one has
// taken its chat over, and goes on before it knows. It sends, edits and shows nothing from then
// on, starts no tool and writes nothing into the conversation, whether the other one is at work
// on the same message by then, has answered it, or has begun another conversation.
func TestAReplicaPastItsTimeoutDoesNothingMore(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		says string
		acts func(t *testing.T, d *duo, owner int) // what follows the question
		// others is what the other one does when it goes on.
		others []string
	}{
		"a tool and two parts": {"run a", nil, []string{"answers", "is at work, and clears"}},
		"an answer that grows": {"grow", nil, []string{"is at work"}},
		"an approval and its card": {"run asked", func(t *testing.T, d *duo, owner int) {
			pass(t, 1)
			card := d.shown.shown()
			if len(card) < 2+1 || card[2].buttons == nil {
				return // it is paused
			}
			press := pressOn(card[2], "p", "1", card[2].button(t, "Allow once"))
			go func() { _ = d.several[owner].bridge.Accept(context.Background(), press) }()
		}, []string{"is at work"}},
		"a tool and another": {"run a, then more", nil, []string{"has no turn free"}},
	} {
		for _, other := range tt.others {
			t.Run(name+", and the other one "+other, func(t *testing.T) {
				steps := overdue(t, 0, tt.says, tt.acts, other)
				if steps < 12 {
					t.Fatalf("only %d steps: the test does not see what is done", steps)
				}
				for step := range platformtest.Steps(t, 1, steps) {
					t.Run(fmt.Sprint("step ", step), func(t *testing.T) { overdue(t, step, tt.says, tt.acts, other) })
				}
			})
		}
	}
}

func overdue(t *testing.T, step int, says string, acts func(*testing.T, *duo, int), meanwhile string) (steps int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := newDuo(t)
		owner, other := d.owner(t, "7")
		life := d.lives[owner]
		free := d.hold[other]
		block := func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.hold[other] = make(chan struct{})
			free = d.hold[other]
		}
		if meanwhile == "has no turn free" {
			d.occupy(t, other, block)
		}
		life.mu.Lock()
		life.counting, life.at = true, step
		life.mu.Unlock()
		accepted := make(chan struct{})
		question := in("7", "1", says)
		go func() {
			_ = d.several[owner].bridge.Accept(t.Context(), question) // it may be told that it is dead
			close(accepted)
		}()
		if acts != nil {
			acts(t, d, owner)
		}
		pass(t, 5)
		life.mu.Lock()
		steps = life.steps
		life.counting = false
		life.mu.Unlock()
		if step == 0 {
			<-accepted
			if meanwhile == "has no turn free" {
				close(free)
			}
			for _, r := range d.several {
				r.stop()
			}
			return
		}
		if strings.HasPrefix(meanwhile, "is at work") {
			block()
		}
		d.several[other].accept(question) // the platform gives it again
		pass(t, takeover)
		if strings.HasSuffix(meanwhile, "clears") {
			d.several[other].accept(in("7", "2", "/clear"))
			pass(t, 1)
		}
		life.mu.Lock()
		life.asleep = false
		life.mu.Unlock()
		close(life.goOn)
		pass(t, 5)
		life.mu.Lock()
		late := slices.Clone(life.late)
		life.paused = time.Time{}
		life.mu.Unlock()
		if len(late) > 0 {
			t.Errorf("past its time-out it does %q", late)
		}
		close(life.alive)
		if meanwhile != "answers" {
			close(free)
		}
		<-accepted
		pass(t, 30)
		d.check(t, d.several[other], says, strings.HasSuffix(meanwhile, "clears"))
	})
	return steps
}

// check checks that all was answered, once unless that is marked, in one conversation.
func (d *duo) check(t *testing.T, r *harness, says string, cleared bool) {
	t.Helper()
	if says == "run asked" && !cleared { // where that is still to be decided
		all := d.shown.shown()
		for i, one := range all {
			if one.buttons != nil && strings.Contains(one.text, "May I run") {
				r.accept(pressOn(all[i], fmt.Sprint("late", i), "1", one.button(t, "Allow once")))
			}
		}
		pass(t, 10)
	}
	r.accept(in("7", "9", "next"))
	pass(t, 10)
	n := make(map[string]int)
	for _, one := range d.shown.in("7") {
		if !one.repeat {
			n[one.text]++
		}
		if n[one.text] > 1 && one.text != "that is all" {
			t.Errorf("%q stands there twice: %q", one.text, d.shown.texts())
		}
	}
	if n["re: next"] != 1 {
		t.Errorf("the next message is not answered: %q", d.shown.texts())
	}
	want := []string{"whose is it", says, "next"}
	if cleared {
		want = want[2:]
	}
	d.mu.Lock()
	if !slices.Equal(d.seen, want) {
		t.Errorf("the conversation has %q, want %q", d.seen, want)
	}
	d.mu.Unlock()
	d.stop(t)
}

// A replica that was replaced ends what it still does for its former chats as soon as it knows, and
// when it has them again its model is not shown what the other one has erased.
func TestAReplacedReplicaEndsItsTurnsAndForgets(t *testing.T) {
	t.Parallel()
	for _, answered := range []bool{false, true} {
		t.Run(fmt.Sprint("answered ", answered), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { replaced(t, answered) })
		})
	}
}

// replaced has a replica be replaced when it has answered, or is about to.
func replaced(t *testing.T, answered bool) {
	t.Helper()
	d := newDuo(t)
	owner, other := d.owner(t, "7")
	life, free := d.lives[owner], d.hold[owner]
	if !answered {
		d.mu.Lock()
		d.hold[owner] = make(chan struct{})
		d.mu.Unlock()
	}
	d.several[owner].accept(in("7", "1", "secret"))
	pass(t, 2)
	life.mu.Lock()
	life.counting, life.at = true, 1 // a sign of life
	life.mu.Unlock()
	pass(t, takeover)
	life.mu.Lock()
	life.asleep, life.counting = false, false
	life.mu.Unlock()
	close(life.goOn)
	close(life.alive)
	pass(t, 3)
	life.mu.Lock()
	if (life.cancelled == 1) == answered {
		t.Errorf("%d requests to its model were ended", life.cancelled)
	}
	life.mu.Unlock()
	d.mu.Lock()
	d.hold[owner] = free
	d.mu.Unlock()
	d.several[other].accept(in("7", "2", "/forget"))
	pass(t, 3)
	all := d.shown.in("7")
	card := all[len(all)-1]
	press := pressOn(card, "p", "1", card.button(t, "Forget me"))
	press.Direct = true
	d.several[other].accept(press)
	pass(t, 10)
	d.several[other].stop()
	pass(t, 30)
	d.several[owner].accept(in("7", "3", "next"))
	pass(t, 10)
	d.mu.Lock()
	if !slices.Equal(d.seen, []string{"next"}) {
		t.Errorf("the model is shown %q", d.seen)
	}
	d.mu.Unlock()
	d.stop(t)
}
