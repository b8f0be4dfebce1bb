package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"oneclaw/agent"
)

// stubborn makes the same reply until it is told no to.
func stubborn(t testing.TB, requests *[]agent.Request, reply func(n int) agent.Reply) agent.Model {
	return model(func(_ context.Context, req agent.Request) (agent.Reply, error) {
		wellFormed(t, req.Messages)
		*requests = append(*requests, req)
		return reply(len(*requests)), nil
	})
}

// A model that calls a tool over and over though it is refused is
// told which group to load, then stopped. The field report had 61 such calls.
func TestRepeatedRefusalsEndTheTurn(t *testing.T) {
	c := newChat(t, agent.Config{})
	var requests []agent.Request
	err := c.run(stubborn(t, &requests, func(n int) agent.Reply {
		return calls(fmt.Sprintf(`a gmail_trash {"id":%d}`, n))
	}), agent.Message{Role: agent.RoleUser, Text: "delete the spam ones"})
	var failure *agent.ModelError
	if !errors.As(err, &failure) || failure.Kind != agent.KindRounds {
		t.Errorf("error %v", err)
	}
	if len(requests) > 12 {
		t.Errorf("%d requests", len(requests))
	}
	got := c.last()
	if got.Code != agent.CodeLoop || !strings.Contains(got.Text, "'gmail_trash'") ||
		!strings.Contains(got.Text, "google_gmail") || !strings.Contains(got.Text, "8 times") {
		t.Errorf("last result %+v", got)
	}
	if c.count("gmail_trash") != 0 {
		t.Error("it ran")
	}
	// The next message begins anew.
	c.say("then load it", calls(loads("a", "google_gmail")), calls(`b gmail_trash {"id":1}`), says("ok"))
	if c.count("gmail_trash") != 1 {
		t.Error("it did not run in the next turn")
	}
}

// A tool that was refused until its group was loaded can be called then.
func TestRefusalsDoNotCountAgainstALoadedTool(t *testing.T) {
	c := newChat(t, agent.Config{})
	var replies []agent.Reply
	for i := range 9 {
		replies = append(replies, calls(fmt.Sprintf(`a gmail_trash {"id":%d}`, i)))
	}
	c.say("x", append(replies, calls(loads("b", "google_gmail")), calls("a gmail_trash {}"), says("ok"))...)
	if c.result("a").Status != agent.StatusOK || c.count("gmail_trash") != 1 {
		t.Errorf("last call: %+v", c.result("a"))
	}
}

func TestSameFailingCallIsNotRunForEver(t *testing.T) {
	c := newChat(t, agent.Config{})
	c.fails["exec"] = "no such command"
	var requests []agent.Request
	err := c.run(stubborn(t, &requests, func(int) agent.Reply { return calls(`a exec {"c":"x"}`) }),
		agent.Message{Role: agent.RoleUser, Text: "x"})
	var failure *agent.ModelError
	if !errors.As(err, &failure) || failure.Kind != agent.KindRounds || c.count("exec") != 3 || len(requests) != 6 {
		t.Errorf("error %v after %d requests, exec ran %d times", err, len(requests), c.count("exec"))
	}
}

func TestToolThatFailsInARowIsStopped(t *testing.T) {
	c := newChat(t, agent.Config{})
	c.fails["exec"] = "broken"
	var replies []agent.Reply
	for i := range 10 {
		replies = append(replies, calls(fmt.Sprintf(`a exec {"n":%d}`, i), "b read_file {}"))
	}
	c.say("x", append(replies, says("sorry"))...)
	if c.count("exec") != 8 || c.count("read_file") != 10 || c.result("a").Code != agent.CodeLoop {
		t.Errorf("exec ran %d times, read_file %d; %+v", c.count("exec"), c.count("read_file"), c.result("a"))
	}
}

// Failures between successes are no loop.
func TestSuccessEndsARowOfFailures(t *testing.T) {
	c := newChat(t, agent.Config{})
	var replies []agent.Reply
	for i := range 20 {
		replies = append(replies, calls(fmt.Sprintf(`a exec {"n":%d}`, i)))
	}
	n := 0
	m := model(func(context.Context, agent.Request) (agent.Reply, error) {
		n++
		if n > len(replies) {
			return says("ok"), nil
		}
		delete(c.fails, "exec")
		if n%5 != 0 {
			c.fails["exec"] = "flaky"
		}
		return replies[n-1], nil
	})
	if err := c.run(m, agent.Message{Role: agent.RoleUser, Text: "x"}); err != nil || c.count("exec") != 20 {
		t.Errorf("%v, exec ran %d times", err, c.count("exec"))
	}
}

// The counts come from the history, so a restart does not set them back.
func TestCountedFailuresSurviveARestart(t *testing.T) {
	c := newChat(t, agent.Config{})
	c.history = []agent.Message{{Role: agent.RoleUser, Text: "x"}}
	for range 3 {
		r := gave("a", "exec", agent.StatusError)
		r.Code = "api_error"
		c.history = append(c.history, asked(`a exec {"c":"x"}`), r)
	}
	c.history = append(c.history, asked(`a exec {"c":"x"}`))
	if err := c.run(&script{t: t, replies: []agent.Reply{says("ok")}}); err != nil {
		t.Fatal(err)
	}
	if c.count("exec") != 0 || c.result("a").Code != agent.CodeLoop {
		t.Errorf("exec ran %d times, %+v", c.count("exec"), c.result("a"))
	}
}

// 61 calls in one reply are not 61 effects.
func TestTooManyCallsInOneReply(t *testing.T) {
	c := newChat(t, agent.Config{})
	var list []string
	for i := range 61 {
		list = append(list, fmt.Sprintf(`%d gmail_trash {"id":%d}`, i, i))
	}
	c.say("x", calls(loads("a", "google_gmail")), calls(list...), says("ok"))
	if c.count("gmail_trash") != 32 {
		t.Errorf("%d ran", c.count("gmail_trash"))
	}
	refused := 0
	for _, m := range c.history {
		if m.Code == agent.CodeTooMany {
			refused++
			if !strings.Contains(m.Text, "61") || !strings.Contains(m.Text, "32") {
				t.Errorf("text %q", m.Text)
			}
		}
	}
	if refused != 29 {
		t.Errorf("%d were refused", refused)
	}
	if !slices.ContainsFunc(c.history, func(m agent.Message) bool { return m.CallID == "31" && m.Status == agent.StatusOK }) {
		t.Error("the last of those allowed has no result")
	}
}
