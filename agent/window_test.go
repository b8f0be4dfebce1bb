package agent_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"oneclaw/agent"
)

// Any prefix of any history makes a request that no server refuses.
func TestArrangeIsWellFormed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		history := histories().Draw(t, "history")
		history = history[:rapid.IntRange(0, len(history)).Draw(t, "prefix")]
		before := slices.Clone(history)
		wellFormed(t, agent.Arrange(history))
		window, _ := agent.Window(history, rapid.IntRange(0, 500).Draw(t, "tokens"))
		wellFormed(t, window)
		checkWindow(t, history, window)
		if diff := cmp.Diff(before, history); diff != "" {
			t.Errorf("the history was changed:\n%s", diff)
		}
	})
}

// checkWindow: it begins at a user message, behind a summary if there is one, and
// holds the last user message and all after it.
func checkWindow(t *rapid.T, history, window []agent.Message) {
	arranged := agent.Arrange(history)
	last := -1
	for i, m := range arranged {
		if m.Role == agent.RoleUser {
			last = i
		}
	}
	if last < 0 {
		return
	}
	rest := window
	if arranged[0].Role == agent.RoleSummary {
		if rest[0].Role != agent.RoleSummary {
			t.Fatalf("the summary is missing in %+v", window)
		}
		rest = rest[1:]
	}
	if len(rest) < len(arranged)-last || rest[0].Role != agent.RoleUser {
		t.Fatalf("window %+v of %+v", window, arranged)
	}
	for i, m := range rest[len(rest)-(len(arranged)-last):] {
		if want := arranged[last+i]; m.Role != want.Role || m.CallID != want.CallID || m.Role != agent.RoleTool && m.Text != want.Text {
			t.Fatalf("message %d of the turn is %+v, want %+v", i, m, want)
		}
	}
}

func turns(n int) []agent.Message {
	var out []agent.Message
	for i := range n {
		r := gave("0", "read_file", agent.StatusOK)
		r.Text = strings.Repeat("r", 200)
		out = append(out,
			agent.Message{Role: agent.RoleUser, Text: fmt.Sprintf("%d %s", i, strings.Repeat("u", 100))},
			asked("0 read_file {}"), r,
			agent.Message{Role: agent.RoleAssistant, Text: strings.Repeat("a", 100), Final: true})
	}
	return out
}

// The window begins at a user message, and what is left fits.
//
// A summary ends at a person's message.
func TestWindowBeginsAtAUserMessage(t *testing.T) {
	history := turns(50)
	all := agent.EstimateTokens(history)
	for _, limit := range []int{all, all - 1, all / 2, all / 10} {
		got, _ := agent.Window(history, limit)
		if got[0].Role != agent.RoleUser || agent.EstimateTokens(got) > limit {
			t.Errorf("limit %d: %d tokens, begins with %+v", limit, agent.EstimateTokens(got), got[0])
		}
		if limit < all && agent.EstimateTokens(got) < limit/2 {
			t.Errorf("limit %d: only %d tokens", limit, agent.EstimateTokens(got))
		}
	}
	if got, _ := agent.Window(history, all); len(got) != len(history) {
		t.Errorf("what fits was cut to %d of %d messages", len(got), len(history))
	}
}

// The oldest records of a long log are not read: the rest can begin in the middle of a turn.
func TestAWindowShowsNoRestOfATurn(t *testing.T) {
	history := turns(3)
	for from := range 4 {
		want := history[from:]
		if from > 0 {
			want = history[4:]
		}
		for _, limit := range []int{0, agent.EstimateTokens(history)} {
			got, _ := agent.Window(history[from:], limit)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("from %d, limit %d (-want +got):\n%s", from, limit, diff)
			}
		}
	}
}

// Summaries that were stored by earlier versions may end in front of a message that joined a turn.
func TestBehindASummaryAWindowShowsAMessageThatJoinedATurn(t *testing.T) {
	history := append([]agent.Message{
		{Role: agent.RoleSummary, Text: "so far"},
		{Role: agent.RoleUser, Text: "hurry", JoinedRef: "j"},
		{Role: agent.RoleAssistant, Text: "done", Final: true},
	}, turns(1)...)
	for _, limit := range []int{0, agent.EstimateTokens(history)} {
		got, _ := agent.Window(history, limit)
		if diff := cmp.Diff(history, got); diff != "" {
			t.Errorf("limit %d (-want +got):\n%s", limit, diff)
		}
	}
}

// A full window does not move with every message, or no prompt cache would hold.
func TestWindowMovesSeldom(t *testing.T) {
	limit := agent.EstimateTokens(turns(20))
	moves, first := 0, ""
	for n := 21; n <= 60; n++ {
		window, _ := agent.Window(turns(n), limit)
		begins := window[0].Text
		if begins != first {
			moves++
		}
		first = begins
	}
	if moves > 12 {
		t.Errorf("the beginning moved %d times in 40 turns", moves)
	}
}

// One turn that is too large for the context by itself is shortened.
//
// An overflow in the middle of a turn is handled.
func TestLongTurnFits(t *testing.T) {
	history := turns(3)
	history = append(history, agent.Message{Role: agent.RoleUser, Text: "now"})
	for i := range 30 {
		r := gave("0", "read_file", agent.StatusOK)
		r.Text = fmt.Sprint(i, strings.Repeat("ö", 10_000))
		history = append(history, asked("0 read_file {}"), r)
	}
	const limit = 40_000
	got, _ := agent.Window(history, limit)
	if n := agent.EstimateTokens(got); n > limit {
		t.Errorf("%d tokens", n)
	}
	if got[0].Text != "now" || len(got) != 61 {
		t.Fatalf("%d messages, beginning with %q", len(got), got[0].Text)
	}
	if !strings.Contains(got[2].Text, "shortened") || strings.Contains(got[60].Text, "shortened") {
		t.Error("the oldest results are to be shortened first, the newest last")
	}
	if got[60].Text != history[len(history)-1].Text {
		t.Error("the newest result was touched")
	}
	wellFormed(t, got)
}

func TestSummaryStandsForWhatIsBeforeIt(t *testing.T) {
	history := append(turns(3), agent.Message{Role: agent.RoleSummary, Text: "so far"})
	history = append(history, agent.Message{Role: agent.RoleUser, Text: "now"})
	got, _ := agent.Window(history, 0)
	if len(got) != 2 || got[0].Text != "so far" || got[1].Text != "now" {
		t.Errorf("window %+v", got)
	}
}

// Ids that repeat themselves do not give a call the result of a later one.
func TestArrangeKeepsExchangesApart(t *testing.T) {
	ok := gave("0", "read_file", agent.StatusOK)
	ok.Text = "second"
	got := agent.Arrange([]agent.Message{
		{Role: agent.RoleUser, Text: "x"},
		asked("0 exec {}"),
		{Role: agent.RoleStarted, CallID: "0"},
		asked("0 read_file {}"), ok,
	})
	if len(got) != 5 || got[2].Code != agent.CodeInterrupted || got[4].Text != "second" {
		t.Errorf("arranged %+v", got)
	}
}

// A long conversation that fits is not copied for a request, summed up or not.
func TestAWindowThatFitsIsNotCopied(t *testing.T) {
	summed := append([]agent.Message{{Role: agent.RoleSummary, Text: "before"}}, turns(3)...)
	for name, history := range map[string][]agent.Message{"plain": turns(3), "summed up": summed} {
		shown, _ := agent.Window(history, 1000)
		if len(shown) != len(history) || &shown[0] != &history[0] {
			t.Errorf("%s: %d of %d messages in memory of their own", name, len(shown), len(history))
		}
	}
}
