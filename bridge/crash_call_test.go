package bridge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/interact"
	"oneclaw/toolgroups"
)

// lookOnce is a model that calls a tool once and repeats what it was told of it.
type lookOnce struct{}

func (lookOnce) Complete(_ context.Context, req agent.Request, _ func(agent.Delta)) (agent.Reply, error) {
	if last := req.Messages[len(req.Messages)-1]; last.Role == agent.RoleTool {
		return agent.Reply{Text: "told " + last.Code + ": " + last.Text}, nil
	}
	return agent.Reply{Calls: []agent.Call{{ID: "0", Name: "get_current_time", Arguments: "{}"}}}, nil
}

// TestACallThatEndsTheProcessRunsTwice kills the process whenever a tool runs that
// only reads. The call is not run a third time, and the model is told so. A wait for its approval is
// no run.
func TestACallThatEndsTheProcessRunsTwice(t *testing.T) {
	for name, approved := range map[string]bool{"unasked": false, "after an approval": true} {
		t.Run(name, func(t *testing.T) { runsTwice(t, approved) })
	}
}

func runsTwice(t *testing.T, approved bool) {
	var life *mortal
	runs := make(chan int, 10)
	n := 0
	reg, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Core: []toolgroups.Tool{{
		Name: "get_current_time", Description: "Look.", Effect: toolgroups.ReadOnly, Parameters: json.RawMessage(`{"type":"object"}`),
		Run: func(ctx context.Context, _ toolgroups.Call) (toolgroups.Result, error) {
			n++
			life.kill()
			runs <- n
			<-ctx.Done()
			return toolgroups.Result{}, ctx.Err()
		},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	a := agent.New(agent.Config{Model: lookOnce{}})
	r := newHarness(t, nil, func(c *bridge.Config) {
		c.Turns.Agent, c.Turns.Tools = a, func() *toolgroups.Registry { return reg }
		if approved {
			c.ApprovalPolicy = func(toolgroups.Call, toolgroups.Tool) interact.Policy { return interact.Policy{} }
		}
	})
	store := r.cfg.Store
	for crash := 1; crash <= 2; crash++ {
		r.stop()
		life = &mortal{dead: make(chan struct{})}
		r.cfg.Store = mortalStore{store, life}
		r.start()
		if crash == 1 {
			r.accept(direct("1", "look"))
			if approved {
				card := r.platform.wait(t, 1)[0]
				r.accept(pressOn(card, "p", "1", card.button(t, "Allow once")))
			}
		}
		if got := <-runs; got != crash {
			t.Fatalf("run %d before crash %d", got, crash)
		}
	}
	r.stop()
	r.cfg.Store = store
	r.start()
	waitAnswered(t, r.platform, fmt.Sprintf("told %s: %s", agent.CodeCrashed, agent.TextCrashed))
	r.stop()
	if n != 2 || len(runs) > 0 {
		t.Errorf("the call ran %d times", n)
	}
}
