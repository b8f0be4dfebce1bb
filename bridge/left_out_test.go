package bridge_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/turn"
	"oneclaw/toolgroups"
)

// A tool that the model's server refuses is named once under an answer, and no message is blamed for it.
func TestARefusedToolIsNamedAndNoMessageBlamed(t *testing.T) {
	broken := false
	r := newHarness(t, func(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
		if broken {
			return func(yield func(agent.Message, error) bool) {
				yield(agent.Message{}, &agent.ModelError{Kind: agent.KindRejected, Status: 400, AboutTools: true, Err: errors.New("tools.3: no")})
			}
		}
		turn.OnReply(agent.Reply{LeftOut: []string{"crm_a", "crm_b", "crm_c", "crm_d", "crm_e", "crm_f", "crm_g"}})
		return echo(ctx, turn)
	})
	for i, want := range []bool{true, false} {
		r.accept(direct(string(rune('1'+i)), "question"))
		got := r.platform.wait(t, i+1)[i].text
		if strings.Contains(got, "refuses the tools `crm_a`, `crm_b`, `crm_c`, `crm_d`, `crm_e` and 2 more") != want {
			t.Errorf("answer %d: %q", i, got)
		}
	}
	broken = true
	r.accept(direct("3", "question"))
	if got := r.platform.wait(t, 3)[2].text; strings.Contains(got, "did not accept your message") || strings.Contains(got, turn.NoticeLeftOut) {
		t.Errorf("the message is blamed: %q", got)
	}
	broken = false
	r.accept(direct("4", "again"))
	if got := r.platform.wait(t, 4)[3].text; !strings.Contains(got, "again") {
		t.Errorf("%q", got)
	}
}

// toolless is a model whose server takes no tools.
type toolless struct{ agent.Model }

func (toolless) Profile() agent.Profile { return agent.Profile{NoTools: true} }

// A model without tools still talks; that it has none is said once in a conversation, and by /status.
func TestAModelWithoutToolsSaysSoOnce(t *testing.T) {
	r := newHarness(t, echo, func(c *bridge.Config) {
		c.Turns.Profile = func(context.Context, toolgroups.Scope, turn.Purpose) (turn.Profile, error) {
			return turn.Profile{Model: toolless{}}, nil
		}
	})
	for i, want := range []bool{true, false} {
		r.accept(direct(string(rune('1'+i)), "question"))
		if got := r.platform.wait(t, i+1)[i].text; strings.Contains(got, "takes no tools") != want {
			t.Errorf("answer %d: %q", i, got)
		}
	}
	r.accept(direct("3", "/status"))
	if got := r.platform.wait(t, 3)[2].text; !strings.Contains(got, "Tools: none") {
		t.Errorf("%q", got)
	}
}

// The owner hears that the server of a model leaves calls in the text.
func TestCallsInTheTextAreToldToAdministrators(t *testing.T) {
	told := map[string]string{}
	r := newHarness(t, func(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
		turn.OnReply(agent.Reply{CallsInText: true})
		return echo(ctx, turn)
	}, func(c *bridge.Config) {
		c.Hooks.Report = func(_ context.Context, key, text string) (int, error) { told[key] = text; return 1, nil }
	})
	for i := range 2 {
		r.accept(direct(string(rune('1'+i)), "question"))
		r.platform.wait(t, i+1)
	}
	for _, text := range told {
		if len(told) != 1 || !strings.Contains(text, "leaves the model's tool calls in the text") {
			t.Errorf("told %q", told)
		}
	}
	if len(told) == 0 {
		t.Error("nobody is told")
	}
}

// The first message of a chat is not blamed for a refusal: no request has ever been accepted, so the settings are the
// likely cause. An administrator hears it, and a button asks again. Later messages, and filtered ones, are blamed as
// before.
func TestTheFirstMessageIsNotBlamed(t *testing.T) {
	failure := &agent.ModelError{Kind: agent.KindRejected, Status: 400, Err: errors.New("Either x-portkey-config or x-portkey-provider header is required")}
	broken := true
	var told []string
	r := newHarness(t, func(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
		if broken {
			return func(yield func(agent.Message, error) bool) { yield(agent.Message{}, failure) }
		}
		return echo(ctx, turn)
	}, func(c *bridge.Config) {
		c.Hooks.Report = func(_ context.Context, _, text string) (int, error) { told = append(told, text); return 1, nil }
	})
	for i := range 2 {
		r.accept(direct(string(rune('1'+i)), "question"))
		if got := r.platform.wait(t, i+1)[i].text; strings.Contains(got, "your message") || !strings.Contains(got, "I can't answer right now. I've told") {
			t.Errorf("%q", got)
		}
	}
	if len(told) != 2 || !strings.Contains(told[0], "does not accept my requests") {
		t.Errorf("told %q", told)
	}
	broken = false
	r.accept(direct("3", "and now?"))
	if got := r.platform.wait(t, 3)[2].text; got != "re: and now?" {
		t.Errorf("%q", got)
	}
	broken = true
	r.accept(direct("4", "question"))
	if got := r.platform.wait(t, 4)[3].text; !strings.Contains(got, turn.NoticeLeftOut) {
		t.Errorf("%q", got)
	}
}
