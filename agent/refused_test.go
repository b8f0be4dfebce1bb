package agent_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"oneclaw/agent"
)

// refuses is a model that rejects some requests, in words that tell nothing.
type refuses struct {
	when    func(req agent.Request) bool
	refused int
	sent    [][]string
}

func (m *refuses) Complete(_ context.Context, req agent.Request, _ func(agent.Delta)) (agent.Reply, error) {
	m.sent = append(m.sent, offered(req))
	if m.when(req) {
		m.refused++
		return agent.Reply{}, &agent.ModelError{Kind: agent.KindRejected, Status: 400, Err: errors.New("参数有误")}
	}
	return says("ok"), nil
}

// A request that is rejected for one of its tools is answered without the tool's group, the last one first, and
// the next ones as well; the turn hears which tools were left out.
func TestARefusedGroupIsLeftOut(t *testing.T) {
	c := newChat(t, agent.Config{})
	c.say("load", calls(loads("1", "pdf"), loads("2", "google_gmail"), loads("3", "config")), says("loaded"))
	var left []string
	c.turn.OnReply = func(reply agent.Reply) { left = reply.LeftOut }
	m := &refuses{when: func(req agent.Request) bool { return slices.Contains(offered(req), "gmail_trash") }}
	for range 2 {
		if err := c.run(m, agent.Message{Role: agent.RoleUser, Text: "go"}); err != nil {
			t.Fatal(err)
		}
		if last := m.sent[len(m.sent)-1]; slices.Contains(last, "gmail_search") || !slices.Contains(last, "pdf_info") || !slices.Contains(left, "gmail_trash") {
			t.Errorf("sent %q, left out %q", last, left)
		}
	}
	if last := m.sent[len(m.sent)-1]; m.refused != 2 || !slices.Contains(last, "get_config") {
		t.Errorf("refused %d times, sent %q", m.refused, last)
	}
}

// What is rejected with and without tools is rejected, after a bounded number of requests.
func TestARefusalThatNothingHelpsIsReported(t *testing.T) {
	c := newChat(t, agent.Config{})
	c.say("load", calls(loads("1", "pdf"), loads("2", "config")), says("loaded"))
	c.turn.OnCut = func(agent.Cut) { t.Error("a cut is reported") }
	m := &refuses{when: func(agent.Request) bool { return true }}
	for range 2 {
		var failure *agent.ModelError
		if err := c.run(m, agent.Message{Role: agent.RoleUser, Text: strings.Repeat("long ", 3000)}); !errors.As(err, &failure) || failure.Kind != agent.KindRejected || len(m.sent) > 6 {
			t.Errorf("%v after %d requests", err, len(m.sent))
		}
		m.sent = nil
	}
	for _, failure := range []*agent.ModelError{{Kind: agent.KindRejected, Filtered: true}, {Kind: agent.KindRejected, Status: 404}, {Kind: agent.KindAuth}} {
		n := 0
		if err := c.run(model(func(context.Context, agent.Request) (agent.Reply, error) { n++; return agent.Reply{}, failure }), agent.Message{Role: agent.RoleUser, Text: "x"}); err == nil || n != 1 {
			t.Errorf("%v: %d requests, %v", failure, n, err)
		}
	}
}

// A refusal of a request that takes half of the context, known or guessed, is an overflow whatever its words:
// the question is answered, with less of what was said before.
func TestARefusalOfALargeRequestIsAnOverflow(t *testing.T) {
	for name, c := range map[string]struct{ context, limit int }{"known": {20_000, 12_000}, "unknown": {0, 3000}} {
		t.Run(name, func(t *testing.T) {
			chat := newChat(t, agent.Config{})
			for range 40 {
				chat.history = append(chat.history, agent.Message{Role: agent.RoleUser, Text: strings.Repeat("x", 1600)},
					agent.Message{Role: agent.RoleAssistant, Text: "ok", Final: true})
			}
			var cut agent.Cut
			chat.turn.ContextTokens = c.context
			chat.turn.OnCut = func(now agent.Cut) { cut = now }
			chat.turn.OnReply = func(reply agent.Reply) {
				if len(reply.LeftOut) > 0 {
					t.Errorf("left out %q", reply.LeftOut)
				}
			}
			m := &refuses{when: func(req agent.Request) bool { return req.EstimateTokens() > c.limit }}
			if c.limit < 5000 {
				chat.history = chat.history[60:]
			}
			if err := chat.run(m, agent.Message{Role: agent.RoleUser, Text: "now"}); err != nil || m.refused == 0 || cut.Omitted == 0 || cut.ContextTokens == 0 {
				t.Errorf("%v, refused %d times, cut %+v", err, m.refused, cut)
			}
		})
	}
}
