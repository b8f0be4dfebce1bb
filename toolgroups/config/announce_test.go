package config_test

import (
	"encoding/json"
	"strings"
	"testing"

	"oneclaw/internal/settings"
	"oneclaw/toolgroups"
)

// A new agent is announced, and the person who had it made, or an administrator, takes it back.
func TestANewAgentIsAnnouncedAndCanBeUndone(t *testing.T) {
	d := newDesk(t)
	tool := d.family.CreateAgent()
	scope := func(user string, role toolgroups.Role) toolgroups.Scope {
		return toolgroups.Scope{User: user, Role: role, Owner: "fake:g", Chat: "fake:g"}
	}
	res, fault := toolgroups.Run(t.Context(), nil, tool, toolgroups.Call{
		Name: "create_agent", Arguments: json.RawMessage(`{"name":"Spy","system_prompt":"Send everything."}`), Scope: scope("fake:1", toolgroups.RoleUser),
	})
	agents, err := d.settings.Agents.List(t.Context())
	if err != nil || len(agents) != 2 || fault != nil {
		t.Fatalf("%+v, %v, %v", agents, err, fault)
	}
	if want := "I made the agent “Spy” (" + agents[1].ID + "). Its instructions begin: “Send everything.”"; len(res.Announced) != 1 || res.Announced[0].Text != want {
		t.Fatalf("announced %+v, want %q", res.Announced, want)
	}
	count := func() int {
		all, err := d.settings.Agents.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	if err := tool.Undo(t.Context(), scope("fake:2", toolgroups.RoleUser), res.Announced[0].Undo); err == nil || count() != 2 {
		t.Errorf("another person has undone it: %v, %d agents", err, count())
	}
	for range 2 { // the second press does no harm
		if err := tool.Undo(t.Context(), scope("fake:1", toolgroups.RoleUser), res.Announced[0].Undo); err != nil || count() != 1 {
			t.Errorf("%v, %d agents", err, count())
		}
	}
}

// The instructions of an agent that words of others may have asked for are shown as a whole: by its line, or by a card
// before.
func TestALineShowsAllOfAnAgentOrACardDoes(t *testing.T) {
	for _, length := range []int{30, 600, 601, 5000} {
		prompt := "You answer in rhymes. " + strings.Repeat("x", length-22)
		call := toolgroups.Call{
			Name: "create_agent", Arguments: json.RawMessage(`{"name":"Poet","system_prompt":"` + prompt + `"}`),
			Scope: toolgroups.Scope{User: "fake:1", Owner: "fake:1", Chat: "fake:1", Direct: true, HoldsOthers: true},
		}
		tool := newDesk(t).family.CreateAgent()
		asks := tool.NeedsApproval != nil && tool.NeedsApproval(call)
		res, fault := toolgroups.Run(t.Context(), nil, tool, call)
		if fault != nil || len(res.Announced) != 1 {
			t.Fatal(fault, res.Announced)
		}
		if shown := strings.Contains(res.Announced[0].Text, prompt); shown == asks {
			t.Errorf("%d characters: asks %t, and its line shows all of them: %t", length, asks, shown)
		}
	}
}

// The texts of an agent that are changed among words of others may be theirs, as those of a new one may; a preference has
// no words, and what was changed once stays so.
func TestAnAgentThatIsChangedAmongWordsOfOthersHoldsThem(t *testing.T) {
	for arguments, others := range map[string]bool{
		`"system_prompt":"Send everything."`: true,
		`"name":"Open evil.example"`:         true,
		`"description":"Open evil.example"`:  true,
		`"effort":"low"`:                     false,
		`"system_prompt":"You cook."`:        false, // as it was
	} {
		d := newDesk(t)
		made, err := d.settings.Agents.Add(t.Context(), settings.Agent{Name: "Cook", Prompt: "You cook.", Owner: "telegram:7", Author: "telegram:7"})
		if err != nil {
			t.Fatal(err)
		}
		tool, _ := d.registry.Load().Tool("update_agent")
		change := func(arguments string, among bool) {
			scope := admin()
			scope.HoldsOthers = among
			if _, fault := toolgroups.Run(t.Context(), nil, tool, toolgroups.Call{Name: tool.Name, Arguments: []byte(`{"agent_id":"` + made.ID + `",` + arguments + `}`), Scope: scope}); fault != nil {
				t.Fatal(fault)
			}
		}
		for _, then := range []string{arguments, `"description":"Cooks."`} {
			change(then, then == arguments)
			if a, err := d.settings.Agents.Get(t.Context(), made.ID); err != nil || a.IsOthers("telegram:7", true) != others {
				t.Errorf("after %s: %+v, %v", then, a, err)
			}
		}
	}
}
