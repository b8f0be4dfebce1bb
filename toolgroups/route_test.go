package toolgroups_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneclaw/toolgroups"
)

// Without a router an array is cut where it has to be; what is behind is called all the same.
func TestWithoutARouter(t *testing.T) {
	set := newSet(t, "pdf", "config")
	round := set.Route(nil, toolgroups.RouteInput{MaxTools: 15})
	if got := names(round.Tools()); len(got) != 15 || got[14] != "pdf_01" {
		t.Errorf("offered %v", got)
	}
	if text, fault := call(t, round, "config_00", `{}`, admin()); fault != nil || text != "ran config_00" {
		t.Errorf("behind the cap: %s, %v", text, fault)
	}
	_, fault := round.Lookup("google_docs_00", admin())
	if fault == nil || fault.Code != toolgroups.CodeNotAvailable {
		t.Errorf("of a group that is not loaded: %v", fault)
	}
	if name, input, fault := round.Unwrap("pdf_00", nil); name != "pdf_00" || input != nil || fault != nil {
		t.Errorf("unwrapped to %s %s, %v", name, input, fault)
	}
}

func TestReservedNamesAreRefused(t *testing.T) {
	for _, name := range toolgroups.ReservedNames() {
		for place, cfg := range map[string]toolgroups.RegistryConfig{
			"the core":             {Core: []toolgroups.Tool{fake(name)}},
			`group "tool" (mcp:x)`: {Groups: []toolgroups.Group{{Name: "tool", Source: "mcp:x", Tools: []toolgroups.Tool{fake(name)}}}},
		} {
			_, err := toolgroups.NewRegistry(cfg)
			if err == nil || !strings.Contains(err.Error(), "tool \""+name+"\" in "+place+": the name is reserved") {
				t.Errorf("%s: %v", place, err)
			}
		}
	}
}

func TestRefusalSaysWhatHelps(t *testing.T) {
	reg := house(t, func(cfg *toolgroups.RegistryConfig) { cfg.DisabledTools = []string{"pdf_01", "config_01"} })
	user := toolgroups.Scope{Role: toolgroups.RoleUser}
	for name, want := range map[string]string{
		"pdf_00":    "tool_not_available",
		"pdf_01":    "tool_not_available",
		"config_00": "permission_denied",
		"config_01": "tool_not_available",
		"exec":      "tool_not_available",
	} {
		if fault := reg.Refusal(name, user); fault == nil || fault.Code != want {
			t.Errorf("%s: %+v, want %s", name, fault, want)
		}
	}
	if fault := reg.Refusal("made_up", user); fault != nil {
		t.Errorf("a tool that is not: %v", fault)
	}
}

// router is a router that is a function.
type router func(f toolgroups.RouteInput) toolgroups.Route

func (r router) Route(f toolgroups.RouteInput) toolgroups.Route { return r(f) }

// A router's own tools run, what it adds to a load is told, and it is given the facts.
func TestRouterDecides(t *testing.T) {
	set := newSet(t, "pdf")
	var facts toolgroups.RouteInput
	r := router(func(f toolgroups.RouteInput) toolgroups.Route {
		facts = f
		return toolgroups.Route{
			Mode: "mine", Tools: append(f.Registry.EnabledTools(nil), fake(toolgroups.ToolSearch)),
			Advice: func(name string) string { return "Ask for " + name + "." },
			LoadText: func(loaded []string, group toolgroups.Group, _ []toolgroups.Tool) string {
				return group.DisplayName + "\nnow " + strings.Join(loaded, "+")
			},
		}
	})
	round := set.Route(r, toolgroups.RouteInput{Scope: admin(), MaxTools: 99})
	if diff := cmp.Diff([]string{"pdf"}, facts.Loaded); diff != "" || facts.Registry != round.Registry() || facts.MaxTools != 99 {
		t.Errorf("facts %+v", facts)
	}
	if round.Mode() != "mine" {
		t.Errorf("mode %s", round.Mode())
	}
	if text, fault := call(t, round, toolgroups.ToolSearch, `{}`, admin()); fault != nil || text != "ran tool_search" {
		t.Errorf("%s, %v", text, fault)
	}
	_, fault := round.Lookup(toolgroups.ToolCall, admin())
	wantFault(t, fault, toolgroups.CodeNotFound, "Tool 'tool_call' not found")
	_, fault = round.Lookup("pdf_00", admin())
	if fault == nil || fault.Code != toolgroups.CodeNotAvailable || !strings.HasSuffix(fault.Message, ". Ask for pdf_00.") {
		t.Errorf("not offered: %v", fault)
	}
	if _, fault := round.LookupUnwrapped("pdf_00", admin()); fault != nil {
		t.Errorf("through another: %v", fault)
	}
	_, fault = round.LookupUnwrapped("made_up", admin())
	wantFault(t, fault, toolgroups.CodeNotFound, "Tool 'made_up' not found")
	text, fault := call(t, round, toolgroups.LoadToolGroup, `{"group_name":"google_docs"}`, admin())
	if fault != nil || !strings.HasSuffix(text, "\nnow pdf+google_docs") {
		t.Errorf("%s, %v", text, fault)
	}
}
