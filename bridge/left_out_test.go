package bridge_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"oneclaw/agent"
	"oneclaw/bridge/turn"
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
		turn.OnLeftOut([]string{"crm_a", "crm_b", "crm_c", "crm_d", "crm_e", "crm_f", "crm_g"})
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
