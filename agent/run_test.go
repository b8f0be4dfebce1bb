package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneclaw/agent"
	"oneclaw/toolgroups"
)

// Planning texts are messages, but only the last one is the answer.
//
// Only the last answer of a turn reaches the chat.
func TestOnlyTheLastReplyIsFinal(t *testing.T) {
	c := newChat(t, agent.Config{})
	plan := calls("a read_file {}")
	plan.Text, plan.Usage, plan.Model = "I will read it.", agent.Usage{Input: 100, Cached: 64, Output: 5}, "m-1"
	c.say("x", plan, says("It says hello."))
	if m := c.history[1]; m.Final || m.Text != "I will read it." || m.Model != "m-1" {
		t.Errorf("planning message %+v", m)
	}
	if u := c.history[1].Usage; u == nil || u.Input != 100 || u.Cached != 64 || u.Output != 5 || u.Tools == 0 {
		t.Errorf("usage %+v", u)
	}
	if m := c.last(); !m.Final || m.Text != "It says hello." {
		t.Errorf("answer %+v", m)
	}
}

func TestNothingToAnswer(t *testing.T) {
	for name, history := range map[string][]agent.Message{
		"empty":     nil,
		"answered":  {{Role: agent.RoleUser, Text: "x"}, {Role: agent.RoleAssistant, Text: "y", Final: true}},
		"compacted": {{Role: agent.RoleSummary, Text: "x"}},
		"stray":     {{Role: agent.RoleTool, CallID: "1"}, {Role: agent.RoleStarted, CallID: "1"}},
	} {
		c := newChat(t, agent.Config{})
		c.history = history
		if err := c.run(&script{t: t}); err != nil || len(c.history) != len(history) {
			t.Errorf("%s: %v, history %+v", name, err, c.history)
		}
	}
}

// Two messages in a row are answered in order.
//
// Two quick messages are answered in order.
func TestTwoMessagesInARow(t *testing.T) {
	c := newChat(t, agent.Config{})
	c.history = []agent.Message{{Role: agent.RoleUser, Text: "first"}}
	s := c.say("second", says("both"))
	if got := s.requests[0].Messages; len(got) != 2 || got[0].Text != "first" || got[1].Text != "second" {
		t.Errorf("messages %+v", got)
	}
}

// Results follow their call, wherever the log has them.
//
// Each result follows its call.
func TestResultsFollowTheirCalls(t *testing.T) {
	c := newChat(t, agent.Config{})
	c.history = []agent.Message{
		{Role: agent.RoleUser, Text: "x"},
		asked("a read_file {}", "b get_current_time {}"),
		gave("b", "get_current_time", agent.StatusOK),
		{Role: agent.RoleUser, Text: "quick"},
		gave("a", "read_file", agent.StatusOK),
	}
	s := c.say("y", says("ok"))
	var got []string
	for _, m := range s.requests[0].Messages {
		got = append(got, string(m.Role)+m.CallID)
	}
	if diff := cmp.Diff([]string{"user", "assistant", "toola", "toolb", "user", "user"}, got); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}

// What the provider refuses is reported at once and by kind.
//
// A provider's error is a prompt, clear sentence.
func TestModelErrorEndsTheTurn(t *testing.T) {
	c := newChat(t, agent.Config{})
	refused := &agent.ModelError{Kind: agent.KindAuth, Status: 401, Err: errors.New("no such key")}
	err := c.run(model(func(context.Context, agent.Request) (agent.Reply, error) { return agent.Reply{}, refused }),
		agent.Message{Role: agent.RoleUser, Text: "x"})
	var failure *agent.ModelError
	if !errors.As(err, &failure) || failure.Kind != agent.KindAuth {
		t.Errorf("error %v", err)
	}
	if len(c.history) != 1 {
		t.Errorf("history %+v", c.history)
	}
	if err := c.run(&script{t: t, replies: []agent.Reply{says("ok")}}); err != nil || c.last().Text != "ok" {
		t.Errorf("run again: %v, %+v", err, c.last())
	}
}

func TestEmptyAnswerIsAskedForOnce(t *testing.T) {
	c := newChat(t, agent.Config{})
	first := says(" \n")
	first.Usage = agent.Usage{Input: 10, Output: 1}
	second := says("here")
	second.Usage = agent.Usage{Input: 20, Output: 2}
	s := c.say("x", first, second)
	if got := s.requests[1].Messages; got[len(got)-1].Role != agent.RoleUser || len(got) != 2 {
		t.Errorf("second request %+v", got)
	}
	if u := c.last().Usage; len(c.history) != 2 || u.Input != 30 || u.Output != 3 {
		t.Errorf("history %+v, usage %+v", c.history, u)
	}
	err := c.run(&script{t: t, replies: []agent.Reply{says(""), says("")}}, agent.Message{Role: agent.RoleUser, Text: "y"})
	var failure *agent.ModelError
	if !errors.As(err, &failure) || failure.Kind != agent.KindUnavailable {
		t.Errorf("error %v", err)
	}
}

func TestTruncatedReplies(t *testing.T) {
	c := newChat(t, agent.Config{})
	cut := calls(`a write_file {"text":"abc`, `b read_file {"path":"x"}`)
	cut.Truncated = true
	long := says("a long story")
	long.Truncated = true
	c.say("x", cut, long)
	if got := c.result("a"); got.Code != agent.CodeTruncated || c.count("write_file") != 0 {
		t.Errorf("cut call: %+v", got)
	}
	if got := c.result("b"); got.Status != agent.StatusOK {
		t.Errorf("whole call: %+v", got)
	}
	if got := c.last(); got.Text != "a long story\n\n[The answer was cut off at the model's output limit.]" || !got.Truncated || !got.Final {
		t.Errorf("answer %+v", got)
	}
	filtered := says("a bold")
	filtered.Truncated, filtered.Filtered = true, true
	c.say("x", filtered)
	if got := c.last(); got.Text != "a bold\n\n[The provider's filter cut the answer off.]" || !got.Final {
		t.Errorf("answer %+v", got)
	}
}

func TestRoundLimit(t *testing.T) {
	c := newChat(t, agent.Config{})
	c.turn.MaxRounds = 3
	s := &script{t: t}
	for i := range 3 {
		s.replies = append(s.replies, calls(fmt.Sprintf("a write_file {\"n\":%d}", i)))
	}
	asked := 0
	c.turn.Gate = func(context.Context, toolgroups.Call, toolgroups.Tool, agent.Input) (agent.Decision, error) {
		asked++
		return agent.Decision{}, nil
	}
	err := c.run(s, agent.Message{Role: agent.RoleUser, Text: "x"})
	var failure *agent.ModelError
	if !errors.As(err, &failure) || failure.Kind != agent.KindRounds {
		t.Errorf("error %v", err)
	}
	for i, req := range s.requests {
		if nudged := req.Messages[len(req.Messages)-1].Role == agent.RoleUser && i > 0; nudged != (i == 2) {
			t.Errorf("request %d ends with %+v", i, req.Messages[len(req.Messages)-1])
		}
		if diff := cmp.Diff(core(), offered(req)); diff != "" {
			t.Errorf("request %d (-want +got):\n%s", i, diff)
		}
	}
	// The model was told that the last reply's calls are not run.
	if diff := cmp.Diff([]string{`write_file {"n":0}`, `write_file {"n":1}`}, c.ran); diff != "" || asked != 2 {
		t.Errorf("%d calls were to be approved, and ran (-want +got):\n%s", asked, diff)
	}
	if last := c.history[len(c.history)-1]; last.Code != agent.CodeLastStep {
		t.Errorf("the last call has the result %+v", last)
	}
	// The bound is one of the turn: a restart does not begin it anew.
	if err := c.run(&script{t: t}); !errors.As(err, &failure) || failure.Kind != agent.KindRounds {
		t.Errorf("run again: %v", err)
	}
	c.say("y", says("ok"))
}

func TestIdsAreMadeUnique(t *testing.T) {
	c := newChat(t, agent.Config{})
	c.say("x", calls("1 read_file {}", "1 write_file {}", " read_file {}", " read_file {}", "1_2 get_current_time {}"), says("ok"))
	seen := map[string]bool{}
	for _, call := range c.history[1].Calls {
		if call.ID == "" || seen[call.ID] {
			t.Errorf("id %q", call.ID)
		}
		seen[call.ID] = true
		if c.result(call.ID).Tool != call.Name {
			t.Errorf("result of %s is %+v", call.ID, c.result(call.ID))
		}
	}
}

func TestOverflowHalvesTheWindow(t *testing.T) {
	c := newChat(t, agent.Config{})
	for range 40 {
		c.history = append(c.history, agent.Message{Role: agent.RoleUser, Text: strings.Repeat("x", 400)},
			agent.Message{Role: agent.RoleAssistant, Text: "ok", Final: true})
	}
	var sizes []int
	m := model(func(_ context.Context, req agent.Request) (agent.Reply, error) {
		wellFormed(t, req.Messages)
		sizes = append(sizes, agent.EstimateTokens(req.Messages))
		if len(sizes) < 3 {
			return agent.Reply{}, &agent.ModelError{Kind: agent.KindOverflow, Err: errors.New("too long")}
		}
		return says("ok"), nil
	})
	if err := c.run(m, agent.Message{Role: agent.RoleUser, Text: "now"}); err != nil {
		t.Fatal(err)
	}
	if len(sizes) != 3 || sizes[1] > sizes[0]/2 || sizes[2] > sizes[1]/2 {
		t.Errorf("sizes %v", sizes)
	}
	always := model(func(context.Context, agent.Request) (agent.Reply, error) {
		return agent.Reply{}, &agent.ModelError{Kind: agent.KindOverflow, Err: errors.New("too long")}
	})
	var failure *agent.ModelError
	if err := c.run(always, agent.Message{Role: agent.RoleUser, Text: "now"}); !errors.As(err, &failure) || failure.Kind != agent.KindOverflow {
		t.Errorf("error %v", err)
	}
}

func TestEvents(t *testing.T) {
	c := newChat(t, agent.Config{})
	var got []string
	c.turn.Observe = func(e agent.Event) {
		switch {
		case e.Request != nil:
			if e.Request.ToolTokens <= 0 || e.Request.AllTokens <= e.Request.ToolTokens {
				t.Errorf("request %+v", e.Request)
			}
			got = append(got, fmt.Sprint("request ", len(e.Request.Tools), e.Request.Groups))
		case e.Reply != nil:
			got = append(got, fmt.Sprint("reply ", e.Reply.Err))
		case e.Delta != nil:
			got = append(got, "delta "+e.Delta.Text)
		case e.ToolEnded != nil:
			got = append(got, "ended "+e.ToolEnded.Tool+" "+string(e.ToolEnded.Status))
		}
	}
	replies := []agent.Reply{calls(loads("a", "pdf")), says("ok")}
	if err := c.run(model(func(context.Context, agent.Request) (agent.Reply, error) {
		r := replies[0]
		replies = replies[1:]
		return r, nil
	}), agent.Message{Role: agent.RoleUser, Text: "x"}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"request 5 []", "reply <nil>", "ended load_tool_group ok",
		"request 6 [pdf]", "delta ok", "reply <nil>",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestTurnWithoutModelOrSet(t *testing.T) {
	c := newChat(t, agent.Config{})
	c.turn.History = []agent.Message{{Role: agent.RoleUser, Text: "x"}}
	for name, turn := range map[string]agent.Turn{
		"no model": {History: c.turn.History, Set: c.set(nil)},
		"no set":   {History: c.turn.History, Model: &script{t: t}},
	} {
		if err := c.store(c.agent.Run(t.Context(), turn)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// The facts about who asks reach the tool; the agent's own model is the default.
func TestScopeReachesTheTool(t *testing.T) {
	s := &script{t: t, replies: []agent.Reply{calls("a read_file {}"), says("ok")}}
	c := newChat(t, agent.Config{Model: s})
	c.turn.Scope = toolgroups.Scope{User: "telegram:1", Chat: "telegram:2", Session: "s", Role: toolgroups.RoleUser}
	c.turn.CacheKey = "key"
	c.during = func(_ context.Context, call toolgroups.Call) error {
		if diff := cmp.Diff(c.turn.Scope, call.Scope); diff != "" {
			t.Errorf("scope (-want +got):\n%s", diff)
		}
		return nil
	}
	if err := c.run(nil, agent.Message{Role: agent.RoleUser, Text: "x"}); err != nil {
		t.Fatal(err)
	}
	if s.requests[0].CacheKey != "key" || c.count("read_file") != 1 {
		t.Errorf("request %+v", s.requests[0])
	}
}

// The history given is never written to, even where it has room behind it.
func TestHistoryIsLeftAlone(t *testing.T) {
	c := newChat(t, agent.Config{})
	backing := make([]agent.Message, 10)
	backing[0] = agent.Message{Role: agent.RoleUser, Text: "x"}
	turn := c.turn
	turn.History, turn.Set = backing[:1], c.set(nil)
	turn.Model = &script{t: t, replies: []agent.Reply{calls("a read_file {}"), says("ok")}}
	for _, err := range c.agent.Run(t.Context(), turn) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if slices.ContainsFunc(backing[1:], func(m agent.Message) bool { return m.Role != "" }) {
		t.Errorf("written to: %+v", backing)
	}
}

func TestATurnHasItsOwnBoundOfRounds(t *testing.T) {
	c := newChat(t, agent.Config{})
	turn := c.turn
	turn.History, turn.Set, turn.MaxRounds = []agent.Message{{Role: agent.RoleUser, Text: "x"}}, c.set(nil), 2
	turn.Model = &script{t: t, replies: []agent.Reply{calls("a read_file {}"), calls("b read_file {}")}}
	var last error
	for _, err := range c.agent.Run(t.Context(), turn) {
		last = err
	}
	failure, ok := errors.AsType[*agent.ModelError](last)
	if !ok || failure.Kind != agent.KindRounds {
		t.Errorf("after two rounds: %v", last)
	}
}
