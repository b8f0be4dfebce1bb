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
	"pgregory.net/rapid"

	"oneclaw/agent"
	"oneclaw/toolgroups"
)

// obedient is a model that follows a plan by what the history shows: the n-th reply
// of the turn is the n-th of the plan. So it goes on after a restart.
func obedient(t testing.TB, plan []agent.Reply) agent.Model {
	return model(func(_ context.Context, req agent.Request) (agent.Reply, error) {
		wellFormed(t, req.Messages)
		n := 0
		for _, m := range req.Messages {
			switch m.Role {
			case agent.RoleUser:
				n = 0
			case agent.RoleAssistant:
				n++
			}
		}
		return plan[n], nil
	})
}

func plan() []agent.Reply {
	return []agent.Reply{
		calls(loads("0", "google_gmail"), "1 gmail_search {}"),
		calls(`0 gmail_search {}`, `1 gmail_trash {"id":1}`, `2 gmail_trash {"id":2}`, `3 nothing {}`, `4 exec {"c":"x"}`),
		calls(`0 write_file {"p":"x"}`, loads("1", "pdf")),
		says("all done"),
	}
}

// shape is what a conversation comes to, whatever happened on the way: the replies
// and, in their order, how each call ended.
func shape(history []agent.Message) []string {
	var out []string
	for _, m := range agent.Arrange(history) {
		out = append(out, fmt.Sprint(m.Role, " ", m.Text, " ", m.CallID, " ", m.Status, " ", m.Code))
	}
	return out
}

// A turn that is cut off behind any of its messages, and run again with what was
// stored, ends the same; no call with effects ran twice.
func TestResumeAfterEveryMessage(t *testing.T) {
	whole := newChat(t, agent.Config{})
	whole.agent.SetParallel(1)
	if err := whole.run(obedient(t, plan()), agent.Message{Role: agent.RoleUser, Text: "x"}); err != nil {
		t.Fatal(err)
	}
	for cut := 1; cut < len(whole.history); cut++ {
		t.Run(fmt.Sprint(cut, whole.history[cut-1].Role), func(t *testing.T) {
			c := newChat(t, agent.Config{})
			c.agent.SetParallel(1)
			c.history = slices.Clone(whole.history[:cut])
			if err := c.run(obedient(t, plan())); err != nil {
				t.Fatal(err)
			}
			want, got := shape(whole.history), shape(c.history)
			if m := whole.history[cut-1]; m.Role == agent.RoleStarted {
				// That one call, and no other, is reported as interrupted.
				i := slices.IndexFunc(got, func(s string) bool {
					return s == fmt.Sprint("tool ", agent.TextInterrupted, " ", m.CallID, " error interrupted")
				})
				if i < 0 {
					t.Fatalf("no call is interrupted in %q", got)
				}
				got[i] = want[i]
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("conversation (-want +got):\n%s", diff)
			}
			for _, call := range c.ran {
				if tool, _ := c.registry.Tool(call[:len(call)-len(call[indexSpace(call):])]); tool.Effect == toolgroups.ReadOnly {
					continue
				}
				if slices.ContainsFunc(whole.ran[:ranBefore(whole.history[:cut])], func(s string) bool { return s == call }) {
					t.Errorf("%s ran again", call)
				}
			}
		})
	}
}

func indexSpace(s string) int { return slices.Index([]byte(s), ' ') }

// ranBefore is how many calls had run when the history was this long: with one at a
// time, those that have a result and were not refused.
func ranBefore(history []agent.Message) int {
	n := 0
	for _, m := range history {
		if m.Role == agent.RoleTool && m.Status == agent.StatusOK && m.Tool != "load_tool_group" {
			n++
		}
	}
	return n
}

// The consumer stops at random places, several times over, with tools in parallel:
// whatever ran with effects ran at most once, and the turn comes to its end.
func TestEffectsHappenAtMostOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		c := newChat(t, agent.Config{})
		c.agent.SetParallel(rapid.IntRange(1, 4).Draw(rt, "parallel"))
		c.history = []agent.Message{{Role: agent.RoleUser, Text: "x"}}
		for range 50 {
			keep := rapid.IntRange(0, 5).Draw(rt, "messages until the crash")
			turn := c.turn
			turn.Model, turn.Set, turn.History = obedient(t, plan()), c.set(c.history), slices.Clone(c.history)
			crashed := false
			for m, err := range c.agent.Run(t.Context(), turn) {
				if err != nil {
					rt.Fatal(err)
				}
				if keep == 0 {
					crashed = true // m is lost
					break
				}
				keep--
				c.history = append(c.history, throughLog(t, m))
			}
			if !crashed {
				break
			}
		}
		seen := map[string]int{}
		for _, call := range c.ran {
			seen[call]++
		}
		for _, call := range []string{`gmail_trash {"id":1}`, `gmail_trash {"id":2}`, `exec {"c":"x"}`, `write_file {"p":"x"}`} {
			if seen[call] > 1 {
				rt.Errorf("%s ran %d times", call, seen[call])
			}
		}
		if len(c.history) > 1 && c.last().Final && c.last().Text != "all done" {
			rt.Errorf("ends with %+v", c.last())
		}
	})
}

// After a stop the model sees that the turn is over.
func TestStoppedTurnIsOver(t *testing.T) {
	c := newChat(t, agent.Config{})
	c.history = []agent.Message{
		{Role: agent.RoleUser, Text: "x"},
		asked("a exec {}", "b read_file {}"),
		{Role: agent.RoleStarted, CallID: "a", Tool: "exec"},
		gave("b", "read_file", agent.StatusOK),
	}
	c.history = append(c.history, agent.StopMessages(c.history, agent.NoteStopped)...)
	if got := c.result("a"); got.Code != agent.CodeStopped {
		t.Errorf("open call: %+v", got)
	}
	if m := c.last(); !m.Final || m.Text != agent.NoteStopped {
		t.Errorf("note %+v", m)
	}
	if again := agent.StopMessages(c.history, agent.NoteStopped); again != nil {
		t.Errorf("stopped twice: %+v", again)
	}
	if err := c.run(&script{t: t}); err != nil {
		t.Errorf("run: %v", err)
	}
	s := c.say("y", says("ok"))
	if n := len(s.requests[0].Messages); n != 6 || c.count("exec") != 0 {
		t.Errorf("request of %d messages, exec ran %d times", n, c.count("exec"))
	}
	if got := agent.StopMessages([]agent.Message{{Role: agent.RoleUser, Text: "z"}}, agent.NoteStopped); len(got) != 1 {
		t.Errorf("stop before the first reply: %+v", got)
	}
}

// A turn that was given up with calls open does not run them for the next message.
func TestOpenCallsOfAnEarlierTurnAreNotRun(t *testing.T) {
	c := newChat(t, agent.Config{})
	c.history = []agent.Message{{Role: agent.RoleUser, Text: "x"}, asked("a exec {}")}
	s := c.say("never mind", says("ok"))
	if c.count("exec") != 0 || s.requests[0].Messages[2].Code != agent.CodeInterrupted {
		t.Errorf("exec ran %d times; request %+v", c.count("exec"), s.requests[0].Messages)
	}
}

func TestGate(t *testing.T) {
	c := newChat(t, agent.Config{})
	verdict := agent.Pending
	var asked []string
	c.turn.Gate = func(_ context.Context, call toolgroups.Call, tool toolgroups.Tool, _ agent.Input) (agent.Decision, error) {
		asked = append(asked, call.ID+" "+tool.Name)
		switch tool.Name {
		case "exec":
			return agent.Decision{Verdict: verdict, Reason: "not on a Sunday"}, nil
		case "write_file":
			return agent.Decision{Verdict: agent.Deny, Reason: "read only"}, nil
		}
		return agent.Decision{}, nil
	}
	s := &script{t: t, replies: []agent.Reply{calls("a exec {}", "b read_file {}", "c write_file {}", "d unknown {}"), says("ok")}}
	err := c.run(s, agent.Message{Role: agent.RoleUser, Text: "x"})
	if !errors.Is(err, agent.ErrSuspended) || len(s.requests) != 1 {
		t.Fatalf("error %v after %d requests", err, len(s.requests))
	}
	if c.result("b").Status != agent.StatusOK || c.result("c").Code != agent.CodeGated || c.count("exec") != 0 {
		t.Errorf("history %+v", c.history)
	}
	if diff := cmp.Diff([]string{"a exec", "b read_file", "c write_file"}, asked); diff != "" {
		t.Errorf("the gate was asked (-want +got):\n%s", diff)
	}
	// Asked again while nothing is decided, it is suspended again and adds nothing.
	n := len(c.history)
	if err := c.run(s); !errors.Is(err, agent.ErrSuspended) || len(c.history) != n {
		t.Fatalf("error %v, history %+v", err, c.history[n:])
	}
	verdict = agent.Allow
	if err := c.run(s); err != nil {
		t.Fatal(err)
	}
	if c.count("exec") != 1 || c.count("read_file") != 1 || c.last().Text != "ok" {
		t.Errorf("ran %v", c.ran)
	}
}

func TestGateErrorRunsNothing(t *testing.T) {
	c := newChat(t, agent.Config{})
	broken := errors.New("disk full")
	c.turn.Gate = func(context.Context, toolgroups.Call, toolgroups.Tool, agent.Input) (agent.Decision, error) {
		return agent.Decision{}, broken
	}
	err := c.run(&script{t: t, replies: []agent.Reply{calls("a exec {}")}}, agent.Message{Role: agent.RoleUser, Text: "x"})
	if !errors.Is(err, broken) || len(c.ran) != 0 {
		t.Errorf("error %v, ran %v", err, c.ran)
	}
}

// crash runs the turn until one of its calls reaches a point where the program ends, and
// keeps what was stored by then.
func (c *chat) crash(m agent.Model, at string) {
	c.t.Helper()
	ctx, kill := context.WithCancel(c.t.Context())
	defer kill()
	c.during = func(_ context.Context, call toolgroups.Call) error {
		if call.Name == at {
			kill()
			return context.Canceled
		}
		return nil
	}
	turn := c.turn
	turn.Model, turn.History, turn.Set = m, slices.Clone(c.history), c.set(c.history)
	if err := c.store(c.agent.Run(ctx, turn)); !errors.Is(err, context.Canceled) {
		c.t.Fatalf("the program lives on: %v", err)
	}
	c.during = nil
}

// A call that only reads is run again after it was cut off, and not a third time; those
// beside it come to their results. The same call of a later reply is not run either.
func TestACallCutOffTwiceIsNotRunAThirdTime(t *testing.T) {
	c := newChat(t, agent.Config{})
	c.history = []agent.Message{{Role: agent.RoleUser, Text: "x"}}
	killer := &script{t: t, replies: []agent.Reply{calls(`k read_file {"path":"evil"}`, "o get_current_time {}")}}
	c.crash(killer, "read_file")
	c.crash(killer, "read_file")
	s := &script{t: t, replies: []agent.Reply{calls(`k read_file {"path":"evil"}`), calls(`k read_file {"path":"good"}`), says("ok")}}
	if err := c.run(s); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{`read_file {"path":"good"}`}, c.ran[len(c.ran)-1:]); diff != "" {
		t.Errorf("ran last (-want +got):\n%s", diff)
	}
	evil := 0
	for _, call := range c.ran {
		if call == `read_file {"path":"evil"}` {
			evil++
		}
	}
	if evil != 2 {
		t.Errorf("the call that ends the program ran %d times: %q", evil, c.ran)
	}
	told := s.requests[0].Messages
	if got := told[2]; got.Code != agent.CodeCrashed || got.Text != agent.TextCrashed {
		t.Errorf("the model is told %+v", got)
	}
	if got := told[3]; got.CallID != "o" || got.Status != agent.StatusOK {
		t.Errorf("the call beside it: %+v", got)
	}
	if got := s.requests[1].Messages; got[len(got)-1].Code != agent.CodeLoop {
		t.Errorf("the call again: %+v", got[len(got)-1])
	}
}

// Reads that may have ended the program run one by one when they run again: the one that does
// takes no other with it.
func TestReadsThatMayHaveBeenCutOffRunOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChat(t, agent.Config{})
		c.history = []agent.Message{{Role: agent.RoleUser, Text: "x"}}
		c.crash(&script{t: t, replies: []agent.Reply{calls(`a read_file {"path":"a"}`, `b read_file {"path":"b"}`, `c read_file {"path":"c"}`)}}, "read_file")
		most, running := 0, 0
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
		if err := c.run(&script{t: t, replies: []agent.Reply{says("ok")}}); err != nil {
			t.Fatal(err)
		}
		if most != 1 {
			t.Errorf("%d at a time", most)
		}
	})
}

// Calls that only read begin before those with effects, whatever their order in the reply.
func TestReadsBeginFirst(t *testing.T) {
	c := newChat(t, agent.Config{})
	c.agent.SetParallel(1)
	c.say("x", calls(`a exec {}`, `b read_file {}`, `c write_file {}`, `d get_current_time {}`), says("ok"))
	if diff := cmp.Diff([]string{"read_file {}", "get_current_time {}", "exec {}", "write_file {}"}, c.ran); diff != "" {
		t.Errorf("ran (-want +got):\n%s", diff)
	}
}
