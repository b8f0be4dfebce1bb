package bridge_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/queue"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// deliberate is a model that says a few words, one each half second, before it asks for a command, and
// then what came of it.
type deliberate struct{}

func (deliberate) Complete(ctx context.Context, req agent.Request, show func(agent.Delta)) (agent.Reply, error) {
	reply, err := obedient{}.Complete(ctx, req, nil)
	if reply.Text = "Result: " + reply.Text + " end."; len(reply.Calls) > 0 {
		reply.Text = "I have to ask first."
	}
	for word := range strings.SplitAfterSeq(reply.Text, " ") {
		if err := halfSecond(ctx); err != nil {
			return reply, err
		}
		show(agent.Delta{Text: word})
	}
	return reply, err
}

type mortalAsking struct{ mortalGrowing }

func (m mortalAsking) Edit(ctx context.Context, to chats.Address, id string, part chats.Part) error {
	_, err := m.request(func() (string, error) { return "", m.p.Edit(ctx, to, id, part) })
	return err
}

// A kill at any step of a turn that is shown while it is made, waits for a decision and goes on:
// the command runs at most once, and the answer stands there once unless it is marked. Of what was
// sent and not on record yet, a card or the beginning of a preview, one may stay with its buttons.
func TestACrashAtAnyStepOfATurnThatAsks(t *testing.T) {
	t.Parallel()
	diesAtEachStep(t, 30, func(t *testing.T, life *mortal) {
		synctest.Test(t, func(t *testing.T) { liveAsking(t, life) })
	})
}

func liveAsking(t *testing.T, life *mortal) {
	life.dead = make(chan struct{}) // of this bubble
	w := &execTools{}
	registry := w.registry(t)
	r, p := previewRig(t, nil)
	r.stop()
	r.cfg.Turns.Agent, r.cfg.Turns.Tools = agent.New(agent.Config{Model: deliberate{}}), func() *toolgroups.Registry { return registry }
	r.cfg.ApprovalPolicy = func(toolgroups.Call, toolgroups.Tool) interact.Policy { return interact.Policy{} }
	store := r.cfg.Store
	r.cfg.Store, r.cfg.Platforms = mortalStore{store, life}, []chats.Platform{mortalAsking{mortalGrowing{mortalPlatform{p.platform, life}, p}}}
	for _, whole := range []bool{false, true} {
		if whole {
			r.stop()
			r.cfg.Store, r.cfg.Platforms = store, []chats.Platform{p}
		}
		r.start()
		_ = r.bridge.Accept(t.Context(), direct("1", "run a")) // what is dead takes nothing
		for range 60 {
			pass(t, 1)
			for _, s := range p.all() {
				if i := slices.IndexFunc(slices.Concat(s.buttons...), func(b chats.Button) bool { return b.Label == "Allow once" }); i >= 0 {
					_ = r.bridge.Accept(t.Context(), pressOn(s, "p"+s.id, "1", slices.Concat(s.buttons...)[i].Data))
				}
			}
		}
	}
	r.stop()
	for e, err := range store.List(t.Context(), storage.Range{Prefix: queue.OpenPrefix}) {
		t.Errorf("still open: %s (%v)", e.Value, err)
	}
	answers, marked, lost := 0, 0, 0
	for _, s := range p.all() {
		answer := strings.HasPrefix(s.text, "Result: ") && strings.HasSuffix(s.text, " end.")
		switch {
		case s.buttons != nil:
			lost++
		case answer && s.repeat:
			marked++
		case answer:
			answers++
		}
	}
	ran := len(w.commands())
	if ran > 1 || life.dies == 0 && (ran != 1 || lost+marked != 0) || answers > 1 || answers+marked == 0 || marked > 1 || lost > 1 {
		t.Errorf("it ran %d times, and there stands %+v\n%s", ran, p.all(), p.story())
	}
}

// all returns what stands there.
func (p *growing) all() []sent {
	p.platform.mu.Lock()
	defer p.platform.mu.Unlock()
	return slices.Clone(p.sent)
}
