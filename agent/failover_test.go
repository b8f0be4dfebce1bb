package agent_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"oneclaw/agent"
)

// flaky is a model that streams some text and then fails, or replies with it.
type flaky struct {
	name   string
	kind   agent.Kind // "" for a reply
	wait   time.Duration
	deltas []agent.Delta
	asked  int
	size   int
}

func (m *flaky) Profile() agent.Profile { return agent.Profile{ContextTokens: m.size} }

func (m *flaky) Complete(ctx context.Context, _ agent.Request, onDelta func(agent.Delta)) (agent.Reply, error) {
	m.asked++
	var text strings.Builder
	for _, d := range m.deltas {
		if d.Restart {
			text.Reset()
		}
		text.WriteString(d.Text)
		if onDelta != nil {
			onDelta(d)
		}
	}
	if m.kind != "" {
		return agent.Reply{}, &agent.ModelError{Kind: m.kind, RetryAfter: m.wait, Err: errors.New(m.name + " is out of order")}
	}
	if ctx.Err() != nil {
		return agent.Reply{}, ctx.Err()
	}
	return agent.Reply{Text: text.String(), Model: m.name}, nil
}

func pieces(texts ...string) []agent.Delta {
	var out []agent.Delta
	for _, t := range texts {
		out = append(out, agent.Delta{Text: t, Restart: t == ""})
	}
	return out
}

func failover(t interface {
	Helper()
	Fatal(...any)
}, cfg agent.FailoverConfig, models ...*flaky,
) *agent.Failover {
	t.Helper()
	if cfg.Outages == nil {
		cfg.Outages = agent.NewOutages()
	}
	for _, m := range models {
		cfg.Candidates = append(cfg.Candidates, agent.Candidate{Name: m.name, Model: m})
	}
	f, err := agent.NewFailover(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// seen is what somebody who watches a reply has before him.
func seen(deltas []agent.Delta) string {
	var text strings.Builder
	for _, d := range deltas {
		if d.Restart {
			text.Reset()
		}
		text.WriteString(d.Text)
	}
	return text.String()
}

func TestNewFailoverRefuses(t *testing.T) {
	for _, c := range [][]agent.Candidate{nil, {{Name: "a"}}, {{Model: &flaky{}}}} {
		if _, err := agent.NewFailover(agent.FailoverConfig{Candidates: c}); err == nil {
			t.Errorf("%+v: no error", c)
		}
	}
}

// Whatever fails and however much it has said before, the one reply is that of the
// first model that is in order, what was shown is exactly that reply, and no model is
// asked twice.
func TestFailoverShowsOneReply(t *testing.T) {
	kinds := []agent.Kind{"", agent.KindUnavailable, agent.KindRateLimit, agent.KindCredit, agent.KindAuth}
	rapid.Check(t, func(rt *rapid.T) {
		var models []*flaky
		for i := range rapid.IntRange(1, 4).Draw(rt, "models") {
			models = append(models, &flaky{
				name: fmt.Sprint("m", i), kind: rapid.SampledFrom(kinds).Draw(rt, "kind"),
				deltas: pieces(rapid.SliceOfN(rapid.SampledFrom([]string{"", "a", "b ", "ä"}), 0, 5).Draw(rt, "deltas")...),
			})
		}
		f := failover(rt, agent.FailoverConfig{}, models...)
		var deltas []agent.Delta
		reply, err := f.Complete(context.Background(), agent.Request{}, func(d agent.Delta) { deltas = append(deltas, d) })
		first := slices.IndexFunc(models, func(m *flaky) bool { return m.kind == "" })
		for i, m := range models {
			if want := first < 0 || i <= first; m.asked > 1 || (m.asked == 1) != want {
				rt.Errorf("model %d of %d asked %d times, the first in order is %d", i, len(models), m.asked, first)
			}
		}
		if first < 0 {
			var failure *agent.ModelError
			if !errors.As(err, &failure) || failure.Kind != models[0].kind {
				rt.Errorf("error %v", err)
			}
			return
		}
		if err != nil || reply.Model != models[first].name || seen(deltas) != reply.Text {
			rt.Errorf("%+v, %v; shown %q", reply, err, seen(deltas))
		}
	})
}

// A turn goes on with the next model when a provider fails in the middle of it.
func TestFailoverInATurn(t *testing.T) {
	c := newChat(t, agent.Config{})
	primary := &script{t: t, replies: []agent.Reply{calls(`a get_current_time {}`)}}
	breaks := model(func(ctx context.Context, req agent.Request) (agent.Reply, error) {
		if len(primary.replies) == 0 {
			return agent.Reply{}, &agent.ModelError{Kind: agent.KindUnavailable, Err: errors.New("down")}
		}
		return primary.Complete(ctx, req, nil)
	})
	second := &script{t: t, replies: []agent.Reply{says("It is noon.")}}
	f, err := agent.NewFailover(agent.FailoverConfig{Candidates: []agent.Candidate{{Name: "one", Model: breaks}, {Name: "two", Model: second}}, Outages: agent.NewOutages()})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.run(f, agent.Message{Role: agent.RoleUser, Text: "What time is it?"}); err != nil {
		t.Fatal(err)
	}
	if c.last().Text != "It is noon." || c.count("get_current_time") != 1 || len(second.requests) != 1 || len(c.history) != 4 {
		t.Errorf("history %+v", c.history)
	}
	if got := second.requests[0].Messages; got[len(got)-1].Role != agent.RoleTool {
		t.Errorf("the second model was not given the result: %+v", got)
	}
}

func TestFailoverRemembersOutages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outages := agent.NewOutages()
		var log bytes.Buffer
		one := &flaky{name: "one", kind: agent.KindRateLimit, size: 100}
		two := &flaky{name: "two", deltas: pieces("hi"), size: 7}
		ask := func(want string) {
			t.Helper()
			// A failover is made for each turn; the outages are what lasts.
			f := failover(t, agent.FailoverConfig{Outages: outages, Logger: slog.New(slog.NewTextHandler(&log, nil))}, one, two)
			size := f.Profile().ContextTokens
			reply, err := f.Complete(t.Context(), agent.Request{}, nil)
			if got := fmt.Sprint(reply.Model, " ", one.asked, " ", two.asked, " ", size); err != nil || got != want {
				t.Errorf("%s, %v; want %s", got, err, want)
			}
		}
		ask("two 1 1 100")
		ask("two 1 2 7")
		time.Sleep(agent.DefaultOutage)
		one.wait = time.Hour
		ask("two 2 3 100")
		time.Sleep(14 * time.Minute)
		ask("two 2 4 7")
		time.Sleep(time.Minute)
		one.kind = ""
		ask("one 3 4 100")
		if n := strings.Count(log.String(), "another model takes over"); n != 2 {
			t.Errorf("%d switches logged:\n%s", n, &log)
		}
		// With all out of order all are asked again.
		one.kind, two.kind = agent.KindUnavailable, agent.KindAuth
		for range 2 {
			f := failover(t, agent.FailoverConfig{Outages: outages}, one, two)
			if _, err := f.Complete(t.Context(), agent.Request{}, nil); err == nil || !strings.Contains(err.Error(), "two is out of order") {
				t.Errorf("error %v", err)
			}
		}
		if one.asked != 5 || two.asked != 6 {
			t.Errorf("asked %d and %d times", one.asked, two.asked)
		}
	})
}

func TestFailoverPassesOn(t *testing.T) {
	for _, kind := range []agent.Kind{agent.KindOverflow, agent.KindRejected, agent.KindBudget} {
		one, two := &flaky{name: "one", kind: kind}, &flaky{name: "two"}
		_, err := failover(t, agent.FailoverConfig{}, one, two).Complete(t.Context(), agent.Request{}, nil)
		var failure *agent.ModelError
		if !errors.As(err, &failure) || failure.Kind != kind || two.asked != 0 {
			t.Errorf("%s: %v, the other asked %d times", kind, err, two.asked)
		}
	}
	one, two, three := &flaky{name: "one", kind: agent.KindAuth}, &flaky{name: "two", kind: agent.KindRejected}, &flaky{name: "three"}
	if reply, err := failover(t, agent.FailoverConfig{}, one, two, three).Complete(t.Context(), agent.Request{}, nil); err != nil || reply.Model != "three" {
		t.Errorf("past a stand-in that refuses: %+v, %v", reply, err)
	}
	three.kind = agent.KindRejected
	_, err := failover(t, agent.FailoverConfig{}, one, two, three).Complete(t.Context(), agent.Request{}, nil)
	var failure *agent.ModelError
	if !errors.As(err, &failure) || failure.Kind != agent.KindRejected && failure.Kind != agent.KindAuth {
		t.Errorf("error %v", err)
	}
	// One that is asked first, because the model in front of it was out of order, is still a
	// stand-in: that it takes no such request says nothing about the request.
	outages := agent.NewOutages()
	down, wrong := &flaky{name: "down", kind: agent.KindUnavailable}, &flaky{name: "wrong", kind: agent.KindRejected}
	for _, want := range []agent.Kind{agent.KindUnavailable, agent.KindUnavailable, ""} {
		down.kind = want
		reply, err := failover(t, agent.FailoverConfig{Outages: outages}, down, wrong).Complete(t.Context(), agent.Request{}, nil)
		if errors.As(err, &failure); want == "" && (err != nil || reply.Model != "down") || want != "" && failure.Kind != want {
			t.Errorf("behind a stand-in that refuses: %+v, %v; want %q", reply, err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	gone, next := &flaky{name: "gone", kind: agent.KindUnavailable}, &flaky{name: "next"}
	if _, err := failover(t, agent.FailoverConfig{}, gone, next).Complete(ctx, agent.Request{}, nil); err == nil || next.asked != 0 {
		t.Errorf("after the turn was stopped: %v, asked %d", err, next.asked)
	}
}
