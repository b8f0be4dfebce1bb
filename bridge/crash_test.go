package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/platformtest"
	"oneclaw/storage"
)

// pass lets seconds pass in a synctest bubble.
func pass(t *testing.T, seconds int) {
	t.Helper()
	timer := time.NewTimer(time.Duration(seconds) * time.Second)
	<-timer.C
}

// answering answers with a fixed text.
func answering(text string) thinker {
	return func(context.Context, agent.Turn) iter.Seq2[agent.Message, error] {
		return func(yield func(agent.Message, error) bool) {
			yield(agent.Message{Role: agent.RoleAssistant, Text: text, Final: true}, nil)
		}
	}
}

var errDead = errors.New("the process is dead")

// mortal stands for a process that is killed: from one step on nothing that it does
// has any effect. Each write to the store and each send are two steps, before and
// after it takes effect.
type mortal struct {
	mu    sync.Mutex
	steps int
	dies  int // the step at which it dies; 0 for never
	hangs int // the step that hangs until it is dead; 0 for none
	dead  chan struct{}
}

func (m *mortal) step() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.steps++
	if m.hangs != 0 && m.steps == m.hangs {
		m.mu.Unlock()
		<-m.dead
		m.mu.Lock()
		return errDead
	}
	if m.dies != 0 && m.steps == m.dies {
		close(m.dead)
	}
	if m.dies != 0 && m.steps >= m.dies {
		return errDead
	}
	return nil
}

// end kills the process now.
func (m *mortal) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.steps++
	m.dies = m.steps
	close(m.dead)
}

func (m *mortal) around(effect func() error) error {
	if err := m.step(); err != nil {
		return err
	}
	if err := effect(); err != nil {
		return err
	}
	return m.step()
}

type mortalStore struct {
	storage.Store
	life *mortal
}

func (s mortalStore) Append(ctx context.Context, log string, after storage.Position, records ...storage.Record) (last storage.Position, err error) {
	err = s.life.around(func() error {
		last, err = s.Store.Append(ctx, log, after, records...)
		return err
	})
	return last, err
}

func (s mortalStore) Put(ctx context.Context, key string, value []byte, rev storage.Revision) (got storage.Revision, err error) {
	err = s.life.around(func() error {
		got, err = s.Store.Put(ctx, key, value, rev)
		return err
	})
	return got, err
}

func (s mortalStore) Write(ctx context.Context, ops ...storage.Op) (got storage.Revision, err error) {
	err = s.life.around(func() error {
		got, err = s.Store.Write(ctx, ops...)
		return err
	})
	return got, err
}

func (s mortalStore) Delete(ctx context.Context, key string, rev storage.Revision) error {
	return s.life.around(func() error { return s.Store.Delete(ctx, key, rev) })
}

type mortalPlatform struct {
	*platform
	life *mortal
}

func (p mortalPlatform) Send(ctx context.Context, to chats.Address, part chats.Part) (string, error) {
	return p.request(func() (string, error) { return p.platform.Send(ctx, to, part) })
}

func (p mortalPlatform) SendFile(ctx context.Context, to chats.Address, file chats.OutFile) (string, error) {
	return p.request(func() (string, error) { return p.platform.SendFile(ctx, to, file) })
}

func (p mortalPlatform) request(send func() (string, error)) (id string, err error) {
	failure := p.life.around(func() error {
		id, err = send()
		return err
	})
	if _, refused := errors.AsType[*chats.SendError](failure); refused {
		return "", failure
	}
	if failure != nil {
		return "", &chats.SendError{Outcome: chats.Later, Err: failure}
	}
	return id, nil
}

// twoRounds plans, uses a tool whose effects are counted, and answers.
func twoRounds(effects *sync.Map) thinker {
	return func(_ context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
		return func(yield func(agent.Message, error) bool) {
			question, last := "", turn.History[len(turn.History)-1]
			for _, m := range turn.History {
				if m.Role == agent.RoleUser {
					question = m.Text
				}
			}
			if last.Role == agent.RoleUser {
				last = agent.Message{Role: agent.RoleAssistant, Text: "planning", Calls: []agent.Call{{ID: "0", Name: "x"}}}
				if !yield(last, nil) {
					return
				}
			}
			if last.Role == agent.RoleAssistant {
				n, _ := effects.LoadOrStore(question, new(atomic.Int32))
				n.(*atomic.Int32).Add(1)
				if !yield(agent.Message{Role: agent.RoleTool, CallID: "0", Status: agent.StatusOK, Text: "done"}, nil) {
					return
				}
			}
			yield(agent.Message{Role: agent.RoleAssistant, Text: "re: " + question, Final: true}, nil)
		}
	}
}

// TestACrashAtAnyStepLosesNothing kills the bridge at every single step of three
// messages and goes on with a new one on the same store.
func TestACrashAtAnyStepLosesNothing(t *testing.T) {
	t.Parallel()
	diesAtEachStep(t, 30, live)
}

// diesAtEachStep lives once to the end, then once for each of its steps, which there have
// to be at least so many of, until that step.
func diesAtEachStep(t *testing.T, least int, live func(*testing.T, *mortal)) {
	t.Helper()
	whole := &mortal{dead: make(chan struct{})}
	live(t, whole)
	if whole.steps < least {
		t.Fatalf("only %d steps: the crash test does not see what is written and sent", whole.steps)
	}
	for dies := range platformtest.Steps(t, 1, whole.steps) {
		t.Run(fmt.Sprint("step ", dies), func(t *testing.T) {
			live(t, &mortal{dies: dies, dead: make(chan struct{})})
		})
	}
}

// hangsAtEachStep lives once to the end, then once for each of the steps that are counted until
// then, which hangs while everything else goes on: so the process dies in any state that the
// order of its steps allows.
func hangsAtEachStep(t *testing.T, least int, live func(*testing.T, *mortal)) {
	t.Helper()
	bubble := func(t *testing.T, hangs int) (steps int) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			life := &mortal{hangs: hangs, dead: make(chan struct{})}
			live(t, life)
			steps = life.steps
		})
		return steps
	}
	steps := bubble(t, 0)
	if steps < least {
		t.Fatalf("only %d steps: the test does not see what is written and sent", steps)
	}
	for hangs := range platformtest.Steps(t, 1, steps) {
		t.Run(fmt.Sprint("step ", hangs), func(t *testing.T) { bubble(t, hangs) })
	}
}

func live(t *testing.T, life *mortal) {
	t.Helper()
	var effects sync.Map
	r := newHarness(t, twoRounds(&effects))
	r.stop()
	store, shown := r.cfg.Store, r.platform
	r.cfg.Store, r.cfg.Platforms = mortalStore{store, life}, []chats.Platform{mortalPlatform{shown, life}}
	r.start()
	messages := []chats.Message{direct("1", "one"), direct("2", "two"), direct("3", "three")}
	accepted := make([]bool, len(messages))
	for i, m := range messages {
		accepted[i] = r.bridge.Accept(t.Context(), m) == nil
	}
	if life.dies == 0 {
		shown.wait(t, 3)
	} else {
		waitDead(t, life, shown)
	}
	r.stop()
	r.cfg.Store, r.cfg.Platforms = store, []chats.Platform{shown}
	r.start()
	// The platform delivers again whatever was not accepted, and one that was.
	r.accept(messages...)
	waitAnswered(t, shown, "re: one", "re: two", "re: three")
	r.stop()
	checkAnswers(t, shown)
}

// waitDead returns at the crash, or when all was over before the step came.
func waitDead(t *testing.T, life *mortal, p *platform) {
	t.Helper()
	all := make(chan struct{})
	go func() {
		defer close(all)
		for range 2000 {
			if len(p.texts()) >= 3 {
				return
			}
			select {
			case <-life.dead:
				return
			case <-t.Context().Done():
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	<-all
}

func waitAnswered(t *testing.T, p *platform, want ...string) {
	t.Helper()
	for n := 1; ; n++ {
		all := strings.Join(texts(p.wait(t, n)), "\n")
		missing := 0
		for _, w := range want {
			if !strings.Contains(all, w) {
				missing++
			}
		}
		if missing == 0 {
			return
		}
	}
}

func checkAnswers(t *testing.T, p *platform) {
	t.Helper()
	var order []string
	for _, s := range p.sent {
		// A receipt that was not written in time lets an answer come again behind later
		// ones, with its mark.
		if !slices.Contains(order, s.text) {
			order = append(order, s.text)
		}
	}
	if got := strings.Join(order, ", "); got != "re: one, re: two, re: three" {
		t.Errorf("answers in the order %s", got)
	}
	noneTwiceUnmarked(t, p.sent)
}

// noneTwiceUnmarked checks that a text that was sent again has the mark of a possible repeat.
func noneTwiceUnmarked(t *testing.T, all []sent) {
	t.Helper()
	unmarked := map[string]int{}
	for _, s := range all {
		if !s.repeat {
			unmarked[s.text]++
		}
	}
	for text, n := range unmarked {
		if n > 1 {
			t.Errorf("%q was sent %d times without a mark", text, n)
		}
	}
}

// TestAFailedWriteAsksNothingTwice lets the store fail once, after the write or before
// it, at every write of a turn: the job is tried again in the same process, and no tool
// runs twice.
func TestAFailedWriteAsksNothingTwice(t *testing.T) {
	t.Parallel()
	for fails := range platformtest.Steps(t, 1, 16) {
		t.Run(fmt.Sprint("step ", fails), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var effects sync.Map
				r := newHarness(t, twoRounds(&effects))
				r.stop()
				r.cfg.Store = flakyStore{Store: r.cfg.Store, flaw: &flaw{fails: fails}}
				r.start()
				for _, m := range []chats.Message{direct("1", "one"), direct("2", "two")} {
					for r.bridge.Accept(t.Context(), m) != nil {
						pass(t, 1)
					}
				}
				waitAnswered(t, r.platform, "re: one", "re: two")
				pass(t, 120)
				r.stop()
				for _, question := range []string{"one", "two"} {
					n, _ := effects.Load(question)
					if n == nil || n.(*atomic.Int32).Load() > 2 {
						t.Errorf("the tool of %q ran %v times", question, n)
					}
				}
				if got := strings.Join(r.platform.texts(), ", "); got != "re: one, re: two" {
					t.Errorf("answers: %s", got)
				}
				if got := countHistory(t, r, 1); got != 8 {
					t.Errorf("the log has %d messages, want two questions with three each", got)
				}
			})
		})
	}
}

// flaw makes one step of a store fail: odd ones before the write, even ones after it.
type flaw struct {
	mu    sync.Mutex
	steps int
	fails int
}

func (f *flaw) around(effect func() error) error {
	for _, run := range []func() error{effect, func() error { return nil }} {
		f.mu.Lock()
		f.steps++
		failing := f.steps == f.fails
		f.mu.Unlock()
		if failing {
			return errDead
		}
		if err := run(); err != nil {
			return err
		}
	}
	return nil
}

type flakyStore struct {
	storage.Store
	flaw *flaw
}

func (s flakyStore) Append(ctx context.Context, log string, after storage.Position, records ...storage.Record) (last storage.Position, err error) {
	err = s.flaw.around(func() error {
		last, err = s.Store.Append(ctx, log, after, records...)
		return err
	})
	return last, err
}

func (s flakyStore) Put(ctx context.Context, key string, value []byte, rev storage.Revision) (got storage.Revision, err error) {
	err = s.flaw.around(func() error {
		got, err = s.Store.Put(ctx, key, value, rev)
		return err
	})
	return got, err
}

func (s flakyStore) Write(ctx context.Context, ops ...storage.Op) (got storage.Revision, err error) {
	err = s.flaw.around(func() error {
		got, err = s.Store.Write(ctx, ops...)
		return err
	})
	return got, err
}
