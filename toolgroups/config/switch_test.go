package config_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"oneclaw/toolgroups"
)

// use calls a tool in a conversation that has loaded pdf, as the agent does.
func use(t *testing.T, set *toolgroups.Set, name string) *toolgroups.Error {
	t.Helper()
	return useIn(t, set.Round(), name)
}

func useIn(t *testing.T, round *toolgroups.Round, name string) *toolgroups.Error {
	t.Helper()
	tool, fault := round.Lookup(name, admin())
	if fault != nil {
		return fault
	}
	_, fault = toolgroups.Run(t.Context(), nil, tool, toolgroups.Call{Name: name, Scope: admin()})
	return fault
}

func TestSwitchTools(t *testing.T) {
	d := newDesk(t)
	d.ok("set_tool_enabled", args{"name": "pdf_info", "enabled": false}, "Tool 'pdf_info' is now off")
	d.ok("set_tool_enabled", args{"name": "pdf", "enabled": false, "type": "group"}, "Group 'pdf' is now off")
	text := d.ok("list_tool_states", nil,
		"pdf: off\n- pdf_extract_text: on (its group is off)\n- pdf_info: off (its group is off)\n",
		"Without a group:\n- create_agent: on\n- exec: on\n- load_tool_group: on", "\n\nSkills:\n- weekly: off")
	var order []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "-") && strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "Without") && !strings.HasPrefix(line, "Skills") {
			order = append(order, line)
		}
	}
	if !slices.IsSorted(order) || len(order) != len(d.registry.Load().Groups()) {
		t.Errorf("groups %q", order)
	}
	d.ok("set_tool_enabled", args{"name": "pdf_info", "enabled": true, "type": "tool"}, "is now on", "group 'pdf' is off")
	for _, bad := range []args{{"enabled": true}, {"name": "exec"}, {"name": "exec", "enabled": "maybe"}, {"name": "exec", "enabled": true, "type": "model"}} {
		d.fault("validation_error", "set_tool_enabled", bad)
	}
	d.fault("not_found", "set_tool_enabled", args{"name": "nope", "enabled": false})
	d.fault("not_found", "set_tool_enabled", args{"name": "nope", "enabled": false, "type": "group"}, "config, pdf")
	d.fault("not_found", "set_tool_enabled", args{"name": "pdf", "enabled": false}, "list_tool_states")
}

// Nobody can be locked out: what switches tools on cannot be switched off.
func TestSwitchesCanAlwaysBeTurnedBack(t *testing.T) {
	d := newDesk(t)
	for _, off := range []args{
		{"name": "load_tool_group"}, {"name": "set_tool_enabled"}, {"name": "list_tool_states"}, {"name": "config", "type": "group"},
	} {
		off["enabled"] = false
		d.fault("permission_denied", "set_tool_enabled", off, "cannot be switched off")
		off["enabled"] = true
		d.ok("set_tool_enabled", off, "is now on")
	}
	for _, name := range seventeen() {
		if name != "set_tool_enabled" && name != "list_tool_states" {
			d.ok("set_tool_enabled", args{"name": name, "enabled": false}, "off")
		}
	}
	set := toolgroups.NewSet(d.registry.Load, []string{"config"})
	if got := names(set.Round().Tools()); !slices.Contains(got, "set_tool_enabled") || slices.Contains(got, "get_config") {
		t.Errorf("tools %v", got)
	}
}

// A group whose tools are all off is empty; of one with some off only
// the others are listed, counted and activated.
func TestDisabledToolsAreNotLoaded(t *testing.T) {
	d := newDesk(t)
	load := func(set *toolgroups.Set) (string, *toolgroups.Error) {
		tool, fault := set.Round().Lookup(toolgroups.LoadToolGroup, admin())
		if fault != nil {
			t.Fatal(fault)
		}
		res, fault := toolgroups.Run(context.Background(), nil, tool, toolgroups.Call{Name: tool.Name, Arguments: []byte(`{"group_name":"pdf"}`), Scope: admin()})
		return res.Text, fault
	}
	d.ok("set_tool_enabled", args{"name": "pdf_info", "enabled": false})
	set := toolgroups.NewSet(d.registry.Load, nil)
	if text, fault := load(set); fault != nil || text != "Loaded 1 tools from group 'PDF Tools':\n- pdf_extract_text: Does pdf_extract_text" {
		t.Errorf("%q, %v", text, fault)
	}
	if got := names(set.Round().Tools()); slices.Contains(got, "pdf_info") || !slices.Contains(got, "pdf_extract_text") {
		t.Errorf("tools %v", got)
	}
	d.ok("set_tool_enabled", args{"name": "pdf_extract_text", "enabled": false})
	if text, fault := load(toolgroups.NewSet(d.registry.Load, nil)); fault == nil || fault.Code != "empty_group" ||
		fault.Message != "Tool group 'pdf' has no available tools." {
		t.Errorf("%q, %v", text, fault)
	}
	for _, name := range []string{"pdf_info", "pdf_extract_text"} {
		d.ok("set_tool_enabled", args{"name": name, "enabled": true})
	}
	d.ok("set_tool_enabled", args{"name": "pdf", "enabled": false, "type": "group"})
	if text, fault := load(toolgroups.NewSet(d.registry.Load, nil)); fault == nil || fault.Code != "empty_group" {
		t.Errorf("the group is off: %q, %v", text, fault)
	}
}

// A tool of a loaded group that is switched off answers so at once,
// also in the round that offered it, and is gone from the next; the others go on.
func TestDisablingActsAtOnce(t *testing.T) {
	d := newDesk(t)
	set := toolgroups.NewSet(d.registry.Load, []string{"pdf"})
	round := set.Round()
	if fault := useIn(t, round, "pdf_info"); fault != nil {
		t.Fatal(fault)
	}
	d.ok("set_tool_enabled", args{"name": "pdf_info", "enabled": false})
	if fault := useIn(t, round, "pdf_info"); fault == nil || fault.Code != toolgroups.CodeDisabled {
		t.Errorf("in the same round: %v", fault)
	}
	if fault := useIn(t, round, "pdf_extract_text"); fault != nil {
		t.Errorf("the other tool: %v", fault)
	}
	if got := names(set.Round().Tools()); slices.Contains(got, "pdf_info") || !slices.Contains(got, "pdf_extract_text") {
		t.Errorf("next round %v", got)
	}
}

// Switched on again it is back without a load.
func TestEnablingBringsItBack(t *testing.T) {
	d := newDesk(t)
	set := toolgroups.NewSet(d.registry.Load, []string{"pdf"})
	before := names(set.Round().Tools())
	d.ok("set_tool_enabled", args{"name": "pdf_info", "enabled": false})
	d.ok("set_tool_enabled", args{"name": "pdf_info", "enabled": true})
	if got := names(set.Round().Tools()); !slices.Equal(got, before) {
		t.Errorf("tools %v, before %v", got, before)
	}
	if fault := use(t, set, "pdf_info"); fault != nil {
		t.Error(fault)
	}
}

// A group that was switched off since it was loaded is not sent when a
// history is restored; switched on it returns, with the switches of its tools.
func TestRestoredGroupThatIsOff(t *testing.T) {
	d := newDesk(t)
	d.ok("set_tool_enabled", args{"name": "pdf_info", "enabled": false})
	d.ok("set_tool_enabled", args{"name": "pdf", "enabled": false, "type": "group"})
	restored := toolgroups.NewSet(d.registry.Load, []string{"pdf"})
	for _, name := range names(restored.Round().Tools()) {
		if strings.HasPrefix(name, "pdf_") {
			t.Errorf("%s is sent", name)
		}
	}
	d.ok("set_tool_enabled", args{"name": "pdf", "enabled": true, "type": "group"})
	if got := names(restored.Round().Tools()); !slices.Contains(got, "pdf_extract_text") || slices.Contains(got, "pdf_info") {
		t.Errorf("tools %v", got)
	}
}
