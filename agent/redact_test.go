package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"oneclaw/agent"
	"oneclaw/toolgroups"
)

func hidePictures(text string) string { return strings.ReplaceAll(text, "SECRET", "••••") }

// What tools return is masked before it is cut, stored and shown to the model; calls are
// run and kept as the model made them.
func TestResultsAreMasked(t *testing.T) {
	w := newWorld(t)
	w.fails["exec"] = "no such host: SECRET.example"
	w.during = func(_ context.Context, call toolgroups.Call) error {
		if call.Name == "write_file" {
			return errors.New("write SECRET: disk full")
		}
		return nil
	}
	long := strings.Repeat("x", toolgroups.MaxText-len("read_file ")-len(`{"path":"`)-3)
	var shown []agent.Message
	var history []agent.Message
	turn := agent.Turn{
		History: []agent.Message{{Role: agent.RoleUser, Text: "use SECRET"}}, Redact: hidePictures,
		Set: toolgroups.NewSet(func() *toolgroups.Registry { return w.registry }, nil),
		Model: model(func(_ context.Context, req agent.Request) (agent.Reply, error) {
			shown = req.Messages
			if len(req.Messages) > 1 {
				return agent.Reply{Text: "It was SECRET"}, nil
			}
			r := calls(`1 read_file {"path":"`+long+`SECRET"}`, `2 exec {"command":"SECRET"}`, `3 write_file {"path":"SECRET"}`, `4 get_current_time {}`)
			r.Text = "I look at SECRET"
			return r, nil
		}),
	}
	a := agent.New(agent.Config{})
	for m, err := range a.Run(t.Context(), turn) {
		if err != nil {
			t.Fatal(err)
		}
		history = append(history, m)
		if strings.Contains(m.Text, "SECRE") {
			t.Errorf("a %s message of %s shows it: %.200q", m.Role, m.Tool, m.Text)
		}
	}
	if got := history[0].Calls[1].Arguments; got != `{"command":"SECRET"}` || w.count("exec") != 1 || !strings.Contains(strings.Join(w.ran, " "), "SECRET") {
		t.Errorf("the call became %s, ran %q", got, w.ran)
	}
	if shown[0].Text != "use SECRET" {
		t.Errorf("what the user wrote became %q", shown[0].Text)
	}
	for _, m := range history {
		if m.Role != agent.RoleTool {
			continue
		}
		want := map[string]string{"exec": "no such host: ••••.example", "write_file": "write ••••: disk full", "get_current_time": "get_current_time {} done"}[m.Tool]
		if m.Tool == "read_file" {
			want = m.Text
			if !strings.Contains(m.Text, "[cut:") || strings.Contains(m.Text, "SE") {
				t.Errorf("a result that is cut in the middle of a secret ends with %q", m.Text[len(m.Text)-100:])
			}
		}
		if m.Text != want {
			t.Errorf("%s: %q, want %q", m.Tool, m.Text, want)
		}
	}
}

// A person has to see what a call has done, so its line hides less than its result.
func TestLinesAreMaskedByThemselves(t *testing.T) {
	c := newChat(t, agent.Config{})
	c.turn.Redact, c.turn.RedactLines = hidePictures, func(text string) string { return strings.ReplaceAll(text, "KNOWN", "••••") }
	c.during = func(_ context.Context, call toolgroups.Call) error {
		if got := call.MaskedLine("SECRET KNOWN"); got != "SECRET ••••" {
			t.Errorf("a line that a tool cuts is %q", got)
		}
		return nil
	}
	c.say("read", calls(`1 exec {"command":"x"}`), says("done"))
}

// A model that may write a text back is told that something is missing in it.
func TestMaskedResultsSaySo(t *testing.T) {
	c := newChat(t, agent.Config{})
	c.turn.Redact = hidePictures
	c.during = func(_ context.Context, call toolgroups.Call) error {
		if call.Name == "exec" && call.Masked("half a SECRET") != "half a ••••" {
			t.Error("a tool cannot mask what it cuts")
		}
		return nil
	}
	c.say("read", calls(`1 read_file {"path":"SECRET"}`, `2 read_file {"path":"plain"}`, `4 exec {"command":"••••"}`), says("done"))
	results := map[string]string{}
	for _, m := range c.history {
		results[m.CallID] = m.Text
	}
	if !strings.HasSuffix(results["1"], agent.NoteMasked) || strings.Contains(results["2"], agent.NoteMasked) || !strings.HasSuffix(results["4"], agent.NoteMasked) {
		t.Errorf("results %q", results)
	}
}
