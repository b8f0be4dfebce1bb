package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"oneclaw/agent"
	"oneclaw/toolgroups"
)

// Results are yielded as each call ends and shown to the model in request order.
func TestResultsComeAsTheyEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChat(t, agent.Config{})
		c.during = func(_ context.Context, call toolgroups.Call) error {
			d, err := time.ParseDuration(call.ID)
			time.Sleep(d)
			return err
		}
		s := c.say("x", calls("3s read_file {}", "1s write_file {}", "2s get_current_time {}"), says("ok"))
		var got []string
		for _, m := range c.history[2 : len(c.history)-1] {
			got = append(got, string(m.Role)+" "+m.CallID)
		}
		if diff := cmp.Diff([]string{"started 1s", "tool 1s", "tool 2s", "tool 3s"}, got); diff != "" {
			t.Errorf("yielded (-want +got):\n%s", diff)
		}
		got = nil
		for _, m := range s.requests[1].Messages[2:] {
			got = append(got, m.CallID)
		}
		if diff := cmp.Diff([]string{"3s", "1s", "2s"}, got); diff != "" {
			t.Errorf("requested (-want +got):\n%s", diff)
		}
	})
}

func TestParallelIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChat(t, agent.Config{})
		c.agent.SetParallel(3)
		running, most := 0, 0
		c.during = func(context.Context, toolgroups.Call) error {
			c.mu.Lock()
			running++
			most = max(most, running)
			c.mu.Unlock()
			time.Sleep(time.Second)
			c.mu.Lock()
			running--
			c.mu.Unlock()
			return nil
		}
		var list []string
		for i := range 10 {
			list = append(list, fmt.Sprintf("%d read_file {}", i))
		}
		began := time.Now()
		c.say("x", calls(list...), says("ok"))
		if most != 3 || time.Since(began) != 4*time.Second {
			t.Errorf("%d at a time, %v in all", most, time.Since(began))
		}
	})
}

// A call with effects is on record before it runs; one that only reads is not.
func TestStartIsOnRecordFirst(t *testing.T) {
	c := newChat(t, agent.Config{})
	stored := make(chan agent.Message, 100)
	c.during = func(_ context.Context, call toolgroups.Call) error {
		if call.Name == "read_file" {
			return nil
		}
		for {
			select {
			case m := <-stored:
				if m.Role == agent.RoleStarted && m.CallID == call.ID {
					if m.Hash != agent.Hash(call.Name, `{"a":1}`) || m.Tool != call.Name {
						t.Errorf("record %+v", m)
					}
					return nil
				}
			default:
				t.Errorf("%s runs and is not on record", call.Name)
				return nil
			}
		}
	}
	turn := c.turn
	turn.History = []agent.Message{{Role: agent.RoleUser, Text: "x"}}
	turn.Model, turn.Set = &script{t: t, replies: []agent.Reply{calls(`a read_file {}`, `b exec {"a":1}`), says("ok")}}, c.set(nil)
	starts := 0
	for m, err := range c.agent.Run(t.Context(), turn) {
		if err != nil {
			t.Fatal(err)
		}
		if m.Role == agent.RoleStarted {
			starts++
		}
		stored <- m
	}
	if starts != 1 {
		t.Errorf("%d starts", starts)
	}
}

// When the consumer stops, what runs is cancelled and waited for.
func TestConsumerStops(t *testing.T) {
	c := newChat(t, agent.Config{})
	ended := make(chan struct{}, 2)
	c.during = func(ctx context.Context, call toolgroups.Call) error {
		if call.Name == "get_current_time" {
			return nil
		}
		<-ctx.Done()
		ended <- struct{}{}
		return ctx.Err()
	}
	turn := c.turn
	turn.History = []agent.Message{{Role: agent.RoleUser, Text: "x"}}
	turn.Model = &script{t: t, replies: []agent.Reply{calls("a read_file {}", "b exec {}", "c get_current_time {}")}}
	turn.Set = c.set(nil)
	for m, err := range c.agent.Run(t.Context(), turn) {
		if err != nil {
			t.Fatal(err)
		}
		if m.CallID == "c" {
			break
		}
	}
	if len(ended) != 2 {
		t.Errorf("%d of 2 tools have ended", len(ended))
	}
}

// When ctx ends, an interrupted call has no result, so that a later run reports it
// as interrupted, or runs it if it only reads.
func TestContextEndsDuringTools(t *testing.T) {
	c := newChat(t, agent.Config{})
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped by the user")
	c.during = func(ctx context.Context, call toolgroups.Call) error {
		switch call.Name {
		case "write_file":
			cancel(stopped)
			return nil // It did its work all the same.
		default:
			<-ctx.Done()
			return ctx.Err()
		}
	}
	turn := c.turn
	c.history = []agent.Message{{Role: agent.RoleUser, Text: "x"}}
	turn.History = slices.Clone(c.history)
	turn.Model = &script{t: t, replies: []agent.Reply{calls("a read_file {}", "b exec {}", "c write_file {}")}}
	turn.Set = c.set(nil)
	if err := c.store(c.agent.Run(ctx, turn)); !errors.Is(err, stopped) {
		t.Fatalf("error %v", err)
	}
	if c.result("c").Status != agent.StatusOK {
		t.Error("the call that succeeded has no result")
	}
	if slices.ContainsFunc(c.history, func(m agent.Message) bool { return m.Role == agent.RoleTool && m.CallID != "c" }) {
		t.Errorf("history %+v", c.history)
	}
	c.during = nil
	if err := c.run(&script{t: t, replies: []agent.Reply{says("ok")}}); err != nil {
		t.Fatal(err)
	}
	if c.result("a").Status != agent.StatusOK || c.result("b").Code != agent.CodeInterrupted || c.count("exec") != 1 {
		t.Errorf("history %+v", c.history)
	}
}

func TestContextEndsDuringTheRequest(t *testing.T) {
	c := newChat(t, agent.Config{})
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped by the user")
	turn := c.turn
	turn.History, turn.Set = []agent.Message{{Role: agent.RoleUser, Text: "x"}}, c.set(nil)
	turn.Model = model(func(ctx context.Context, _ agent.Request) (agent.Reply, error) {
		cancel(stopped)
		<-ctx.Done()
		return agent.Reply{}, &agent.ModelError{Kind: agent.KindUnavailable, Err: ctx.Err()}
	})
	if err := c.store(c.agent.Run(ctx, turn)); !errors.Is(err, stopped) || len(c.history) != 0 {
		t.Errorf("error %v, history %+v", err, c.history)
	}
}

// The facts of a failing tool reach the model, not a stack.
func TestToolFailures(t *testing.T) {
	c := newChat(t, agent.Config{})
	c.during = func(_ context.Context, call toolgroups.Call) error {
		switch call.ID {
		case "a":
			return errors.New("disk on fire")
		case "b":
			panic("oh no")
		}
		return nil
	}
	c.say("x", calls("a read_file {}", "b exec {}", "c write_file nonsense"), says("ok"))
	for id, code := range map[string]string{"a": "execution_error", "b": "execution_error", "c": "validation_error"} {
		if got := c.result(id); got.Status != agent.StatusError || got.Code != code || got.Text == "" {
			t.Errorf("%s: %+v", id, got)
		}
	}
}
