package bridge_test

import (
	"context"
	"testing"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/toolgroups"
)

// pupil is a router that says how many messages were sent when it learned, and from which tools.
type pupil struct {
	toolgroups.Router
	learned chan learned
	sent    func() int
}

type learned struct {
	sent  int
	tools string
}

func (p *pupil) Route(f toolgroups.RouteInput) toolgroups.Route {
	return toolgroups.Route{Tools: f.Registry.EnabledTools(nil)}
}

func (p *pupil) Learn(_ context.Context, _ toolgroups.Scope, turn []toolgroups.PastCall) error {
	l := learned{sent: p.sent()}
	for _, call := range turn {
		l.tools += call.Tool
	}
	p.learned <- l
	return nil
}

// Learning from a turn does not hold up its answer.
func TestAnAnswerIsSentBeforeItsTurnIsLearnedFrom(t *testing.T) {
	p := &pupil{learned: make(chan learned, 1)}
	a := agent.New(agent.Config{Model: lookOnce{}})
	r := newHarness(t, nil, func(c *bridge.Config) { c.Turns.Agent, c.Turns.Router = a, p })
	p.sent = func() int { return len(r.platform.texts()) }
	r.accept(direct("1", "look"))
	if got := <-p.learned; got != (learned{1, "get_current_time"}) {
		t.Errorf("after %d messages it learned from %q", got.sent, got.tools)
	}
}
