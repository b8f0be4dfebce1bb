package config_test

import (
	"encoding/json"
	"testing"

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
	if fault != nil || len(res.Announced) != 1 || res.Announced[0].Text != "I made the agent “Spy”. Its instructions begin: “Send everything.”" {
		t.Fatalf("announced %+v, %v", res.Announced, fault)
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
