package toolgroups_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneclaw/toolgroups"
)

func TestLoadAnswersWithAllTools(t *testing.T) {
	reg := registry(t, toolgroups.RegistryConfig{Groups: []toolgroups.Group{{
		Name: "google_gmail", DisplayName: "Google Gmail", Tools: []toolgroups.Tool{fake("gmail_search"), fake("gmail_read")},
	}}})
	want := "Loaded 2 tools from group 'Google Gmail':\n- gmail_search: Does gmail_search\n- gmail_read: Does gmail_read"
	set := toolgroups.NewSet(fixed(reg), nil)
	if diff := cmp.Diff(want, load(t, set, "google_gmail")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"google_gmail"}, set.Loaded()); diff != "" {
		t.Error(diff)
	}
}

func TestLoadOfAnUnknownGroupChangesNothing(t *testing.T) {
	set := newSet(t)
	_, fault := call(t, set.Round(), "load_tool_group", `{"group_name":"nonexistent"}`, admin())
	wantFault(t, fault, "not_found", "Tool group 'nonexistent' not found. Available groups: config, pdf, documents, scheduled_tasks, "+
		"js_tool_management, google_gmail, google_gmail_settings, google_drive, google_calendar, google_contacts, "+
		"google_docs, google_sheets, google_slides, google_forms, google_tasks")
	if len(set.Loaded()) != 0 || len(set.Round().Tools()) != 13 {
		t.Error("something was loaded")
	}
	_, fault = call(t, set.Round(), "load_tool_group", `{"group_name":"PDF"}`, admin())
	if fault == nil || fault.Code != "not_found" {
		t.Errorf("another case: %v", fault)
	}
}

func TestLoadingAgainChangesNothing(t *testing.T) {
	set := newSet(t, "pdf", "google_docs", "pdf")
	before := names(set.Round().Tools())
	first := load(t, set, "pdf")
	if again := load(t, set, "pdf"); again != first || !strings.HasPrefix(again, "Loaded 3 tools from group 'Pdf':\n") {
		t.Errorf("got %q", again)
	}
	if diff := cmp.Diff(before, names(set.Round().Tools())); diff != "" {
		t.Error(diff)
	}
}

// A missing or wrong `group_name` is a fixed error.
func TestLoadWithoutAGroupNameIsRefused(t *testing.T) {
	round := newSet(t).Round()
	for _, args := range []string{
		``, `null`, `{}`, `{"group_name":null}`, `{"group_name":7}`, `{"group_name":["pdf"]}`, `{"group":"pdf"}`,
		`{"name":"pdf"}`, `[]`, `{"group_name`, `"pdf"`, `{"GROUP_NAME":"pdf"}`,
	} {
		_, fault := call(t, round, "load_tool_group", args, admin())
		wantFault(t, fault, "missing_parameter", "Required parameter 'group_name' is missing.")
	}
}

// A damaged call is skipped, the others count.
func TestLoadReadsItsArgument(t *testing.T) {
	for _, tc := range []struct {
		in, want string
		ok       bool
	}{
		{`{"group_name":"pdf"}`, "pdf", true},
		{`{"group_name":" pdf\n"}`, "pdf", true},
		{`{"group_name":"pdf",}`, "pdf", true},
		{`"{\"group_name\":\"pdf\"}"`, "pdf", true},
		{`{"group_name":{"name":"pdf"}}`, "", false},
		{`pdf`, "", false},
		{`["pdf"]`, "", false},
		{`{}`, "", false},
	} {
		if got, ok := toolgroups.ParseLoadArgument(json.RawMessage(tc.in)); got != tc.want || ok != tc.ok {
			t.Errorf("%s: %q, %v", tc.in, got, ok)
		}
	}
}

func TestEmptyGroupsAreFixedErrors(t *testing.T) {
	reg := registry(t, toolgroups.RegistryConfig{
		Groups: []toolgroups.Group{
			{Name: "bare"},
			{Name: "off", Tools: fakes("off", 2)},
			{Name: "whole", Tools: fakes("whole", 2)},
			{Name: "some", DisplayName: "Some", Tools: fakes("some", 3)},
		},
		DisabledTools: []string{"off_00", "off_01", "some_01"}, DisabledGroups: []string{"whole"},
	})
	set := toolgroups.NewSet(fixed(reg), nil)
	for _, name := range []string{"bare", "off", "whole"} {
		_, fault := call(t, set.Round(), "load_tool_group", fmt.Sprintf(`{"group_name":%q}`, name), admin())
		wantFault(t, fault, "empty_group", "Tool group '"+name+"' has no available tools.")
	}
	want := "Loaded 2 tools from group 'Some':\n- some_00: Does some_00\n- some_02: Does some_02"
	if diff := cmp.Diff(want, load(t, set, "some")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"load_tool_group", "some_00", "some_02"}, names(set.Round().Tools())); diff != "" {
		t.Error(diff)
	}
}

// A group with a single tool loads like any other.
func TestAGroupOfOneToolLoads(t *testing.T) {
	reg := registry(t, toolgroups.RegistryConfig{Groups: []toolgroups.Group{{Name: "one_tool", Tools: []toolgroups.Tool{fake("x")}}}})
	set := toolgroups.NewSet(fixed(reg), nil)
	if got := load(t, set, "one_tool"); got != "Loaded 1 tools from group 'One Tool':\n- x: Does x" {
		t.Errorf("got %q", got)
	}
	if text, fault := call(t, set.Round(), "x", `{}`, admin()); fault != nil || text != "ran x" {
		t.Errorf("its tool: %q, %v", text, fault)
	}
}

// TestLoadIsBounded counts what a load allocates with the whole registry: a
// bound that a search through all tools or a copy of all schemas would break.
//
// A load makes no network call and does bounded work.
func TestLoadIsBounded(t *testing.T) {
	reg := house(t)
	small, large := loadAllocations(t, reg, "pdf"), loadAllocations(t, reg, "google_gmail")
	if perTool := (large - small) / (25 - 3); small > 250 || perTool > 25 {
		t.Errorf("loading 3 tools allocates %.0f times, each further tool %.1f times", small, perTool)
	}
}

func loadAllocations(t *testing.T, reg *toolgroups.Registry, group string) float64 {
	t.Helper()
	arguments := json.RawMessage(fmt.Sprintf(`{"group_name":%q}`, group))
	return testing.AllocsPerRun(20, func() {
		tool, fault := toolgroups.NewSet(fixed(reg), nil).Round().Lookup(toolgroups.LoadToolGroup, admin())
		if fault != nil {
			t.Fatal(fault)
		}
		if _, fault = toolgroups.Run(t.Context(), nil, tool, toolgroups.Call{Arguments: arguments}); fault != nil {
			t.Fatal(fault)
		}
	})
}

func TestRolesOfGroups(t *testing.T) {
	set := newSet(t)
	user := toolgroups.Scope{Role: toolgroups.RoleUser}
	for _, name := range []string{"config", "js_tool_management"} {
		_, fault := call(t, set.Round(), "load_tool_group", fmt.Sprintf(`{"group_name":%q}`, name), user)
		if fault == nil || fault.Code != "permission_denied" || !strings.Contains(fault.Message, "administrators") {
			t.Errorf("%s: %v", name, fault)
		}
	}
	if len(set.Loaded()) != 0 {
		t.Errorf("loaded: %v", set.Loaded())
	}
	load(t, set, "config")
	if _, fault := set.Round().Lookup("config_00", user); fault == nil || fault.Code != "permission_denied" {
		t.Errorf("a user may use what an administrator has loaded: %v", fault)
	}
	if _, fault := call(t, set.Round(), "load_tool_group", `{"group_name":"pdf"}`, toolgroups.Scope{}); fault != nil {
		t.Errorf("loading needs a role: %v", fault)
	}
}

// A load that names a tool is told which group has it.
func TestALoadOfAToolNamesItsGroup(t *testing.T) {
	for name, want := range map[string]string{
		"google_gmail_00": ". 'google_gmail_00' is a tool of the group google_gmail.",
		"exec":            ". 'exec' is a tool that needs no group: call it.",
		"made_up":         ", google_tasks",
	} {
		_, fault := call(t, newSet(t).Round(), "load_tool_group", fmt.Sprintf(`{"group_name":%q}`, name), admin())
		if fault == nil || fault.Code != "not_found" || !strings.HasSuffix(fault.Message, want) || !strings.HasPrefix(fault.Message, "Tool group '"+name+"' not found. Available groups: config, ") {
			t.Errorf("%s: %+v", name, fault)
		}
	}
}
