package bridge_test

import (
	"context"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/chats"
)

// A command that there is not gets the nearest one and costs no call of the model; a path is a
// question like any other.
func TestUnknownCommandsGetTheNearest(t *testing.T) {
	calls := 0
	r := newHarness(t, func(_ context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
		calls++
		return func(yield func(agent.Message, error) bool) {
			yield(agent.Message{Role: agent.RoleAssistant, Text: "asked", Final: true}, nil)
		}
	})
	for n, c := range []struct{ said, want string }{
		{"/claer", "There is no /claer. Did you mean /clear?"},
		{"/xyzzyplugh now", "There is no /xyzzyplugh. /help lists the commands."},
		{"/help clear", "/clear – Close this conversation"},
		{"/help /stop", "/stop – "},
		{"/help claer", "Did you mean /clear?"},
		{"/start", "Hello! Write what you need"},
	} {
		r.accept(direct(string(rune('a'+n)), c.said))
		if got := texts(r.platform.wait(t, n+1)); !strings.Contains(got[n], c.want) {
			t.Errorf("%s: %q, want %q", c.said, got[n], c.want)
		}
	}
	if calls != 0 {
		t.Errorf("the model was asked %d times", calls)
	}
	r.accept(direct("z", "/usr/bin/env is what?"))
	if got := texts(r.platform.wait(t, 7)); got[6] != "asked" {
		t.Errorf("a path: %q", got[6])
	}
}

// Platforms without a slash ask which words are commands: those of all parts, hidden ones too, but not the
// one that no person types, which may be an answer to a question.
func TestPlatformsAskForCommands(t *testing.T) {
	r := newHarness(t, echo, func(cfg *bridge.Config) {
		cfg.Commands = []bridge.Command{{CommandInfo: chats.CommandInfo{Name: "tea"}}}
	})
	for name, want := range map[string]struct{ known, ofThread bool }{
		"clear": {true, true}, "new": {true, true}, "undo": {true, true}, "stop": {true, true},
		"help": {true, false}, "claim": {true, false}, "tea": {true, false}, "start": {}, "coffee": {}, "": {},
	} {
		if info, known := r.bridge.Command(name); known != want.known || info.NeedsThread != want.ofThread {
			t.Errorf("%q: %+v, %t", name, info, known)
		}
	}
}

// A text that stands for a command at the moment runs it, also during a turn, and the model never sees it.
func TestATextThatStandsForACommandIsNotForTheModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &minded{slow: newSlow()}
		r := newHarness(t, m.think, func(cfg *bridge.Config) {
			cfg.Commands = []bridge.Command{{CommandInfo: chats.CommandInfo{Name: "tea"}, Run: func(_ context.Context, call bridge.CommandCall) (string, error) {
				return "tea with " + call.Args, nil
			}}}
			cfg.Hooks.CommandFor = func(_ context.Context, m chats.Message) (string, error) {
				if m.Text == "ABCD-2345" {
					return "/tea " + m.Text, nil
				}
				return "", nil
			}
		})
		r.accept(direct("1", "slow"))
		soon(t, m.slow.asked)
		r.accept(direct("2", "ABCD-2345"))
		pass(t, 5)
		close(m.slow.free)
		pass(t, 5)
		r.accept(direct("3", "next"))
		pass(t, 5)
		r.stop()
		if got := r.platform.texts(); !slices.Equal(got, []string{"tea with ABCD-2345", "re: slow", "re: next"}) {
			t.Errorf("the chat shows %q", got)
		}
		if _, seen := m.since(); strings.Contains(strings.Join(seen, " "), "ABCD") {
			t.Errorf("the model has seen %q", seen)
		}
	})
}

// What others wrote stands for no command of the sender: the code could be one that somebody else was shown.
func TestATextOfOthersStandsForNoCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &minded{slow: newSlow()}
		r := newHarness(t, m.think, func(cfg *bridge.Config) {
			cfg.Hooks.CommandFor = func(context.Context, chats.Message) (string, error) { return "/whoami", nil }
		})
		r.accept(byOthers(direct("1", "ABCD-2345")))
		pass(t, 5)
		r.stop()
		if got := r.platform.texts(); !slices.Equal(got, []string{"re: ABCD-2345"}) {
			t.Errorf("the chat shows %q", got)
		}
	})
}
