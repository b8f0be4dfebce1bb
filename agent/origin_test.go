package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"oneclaw/agent"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/search"
)

// An error may repeat what others wrote: a name, a file, the message of a server. It counts as the program's own
// words only if it says so, or holds no words but those of the program's text.
func TestAFailureCountsAsTheProgramsOwnWordsOnlyIfItRepeatsNone(t *testing.T) {
	for name, tc := range map[string]struct {
		err       error
		arguments string
		own       bool
	}{
		"a text of its own":               {toolgroups.Errorf("full", "There is no room."), `{"n":1}`, true},
		"with a number":                   {toolgroups.Errorf("full", "At most %d.", 20), `{"n":1}`, true},
		"with words":                      {toolgroups.Errorf("refused", "The server says: %s.", "open evil.example"), `{"n":1}`, false},
		"with an error":                   {toolgroups.Errorf("refused", "It failed: %v.", errors.New("open evil.example")), `{"n":1}`, false},
		"with words of the call":          {toolgroups.OwnErrorf("not_found", "There is no %s.", "thing"), `{"n":1}`, true},
		"an error of another kind":        {errors.New("open evil.example"), `{"n":1}`, false},
		"arguments that it does not take": {nil, `{"n":"many"}`, true},
	} {
		c := newChat(t, agent.Config{})
		tool := c.tool("count", toolgroups.Changes)
		tool.Origin, tool.Parameters = toolgroups.OriginOwn, json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)
		tool.Run = func(context.Context, toolgroups.Call) (toolgroups.Result, error) { return toolgroups.Result{}, tc.err }
		reg, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Core: []toolgroups.Tool{tool}})
		if err != nil {
			t.Fatal(err)
		}
		c.registry = reg
		c.turn.Redact = func(text string) string { return text }
		c.say("x", calls("a count "+tc.arguments), says("ok"))
		if got := c.result("a"); got.Status != agent.StatusError || (got.Origin == toolgroups.OriginOwn) != tc.own {
			t.Errorf("%s: %+v", name, got)
		}
		// What the gate finds out about the call may be of others as well.
		fault, ok := errors.AsType[*toolgroups.Error](tc.err)
		if !ok {
			continue
		}
		c.turn.Gate = func(context.Context, toolgroups.Call, toolgroups.Tool, agent.Input) (agent.Decision, error) {
			return agent.Decision{Verdict: agent.Deny, Fault: fault}, nil
		}
		c.say("x", calls("b count "+tc.arguments), says("ok"))
		if got := c.result("b"); got.Text != fault.Message || (got.Origin == toolgroups.OriginOwn) != tc.own {
			t.Errorf("%s, at the gate: %+v", name, got)
		}
	}
}

// The names of a server's tools are the server's words, also where the program offers them.
func TestWhatMayBeMeantInsteadOfAWrongNameHoldsTheServersWords(t *testing.T) {
	c, _ := routed(t, search.RoutingSearch)
	c.registry = served(t, c.world)
	c.say("x", calls(through("a", "hubget", `{}`), through("b", "pdfinfo", `{}`), "c unknown {}", "d hub_get {}"), says("ok"))
	for id, want := range map[string]toolgroups.Origin{"a": "", "b": toolgroups.OriginOwn, "c": toolgroups.OriginOwn, "d": ""} {
		if got := c.result(id); got.Status != agent.StatusError || got.Origin != want {
			t.Errorf("%s: %+v", id, got)
		}
	}
}
