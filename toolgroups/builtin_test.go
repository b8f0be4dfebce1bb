package toolgroups_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneclaw/toolgroups"
)

func TestAcceptance060BuiltinGroups(t *testing.T) {
	groups, err := toolgroups.BuiltinGroups()
	if err != nil {
		t.Fatal(err)
	}
	want := [][2]string{
		{"config", "Configuration"},
		{"pdf", "PDF Tools"},
		{"scheduled_tasks", "Scheduled Tasks"},
		{"js_tool_management", "JS Tool Management"},
		{"google_gmail", "Google Gmail"},
		{"google_gmail_settings", "Google Gmail Settings"},
		{"google_drive", "Google Drive"},
		{"google_calendar", "Google Calendar"},
		{"google_contacts", "Google Contacts"},
		{"google_docs", "Google Docs"},
		{"google_sheets", "Google Sheets"},
		{"google_slides", "Google Slides"},
		{"google_forms", "Google Forms"},
		{"google_tasks", "Google Tasks"},
	}
	var got [][2]string
	for _, g := range groups {
		got = append(got, [2]string{g.Name, g.DisplayName})
		if g.Description == "" || g.Source != toolgroups.SourceBuiltin {
			t.Errorf("%s: %+v", g.Name, g)
		}
		if admins := g.Name == "config" || g.Name == "js_tool_management"; admins != (g.Role == toolgroups.RoleAdmin) {
			t.Errorf("%s has role %d", g.Name, g.Role)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAcceptance028GroupsNotBuiltYetAreListedAndEmpty(t *testing.T) {
	groups, err := toolgroups.BuiltinGroups(toolgroups.Group{
		Name: "pdf", Description: "of the manifest", Tools: fakes("pdf", 3), Role: toolgroups.RoleOwner,
	})
	if err != nil {
		t.Fatal(err)
	}
	reg := registry(t, toolgroups.RegistryConfig{Groups: groups})
	if reg.Listing() != house(t).Listing() {
		t.Error("the listing depends on which groups are built")
	}
	set := toolgroups.NewSet(fixed(reg), nil)
	_, fault := call(t, set.Round(), "load_tool_group", `{"group_name":"google_docs"}`, toolgroups.Scope{})
	wantFault(t, fault, "empty_group", "Tool group 'google_docs' has no available tools.")
	load(t, set, "pdf")
	if got := len(set.Round().Tools()); got != 1+3 {
		t.Errorf("%d tools", got)
	}
}

func TestBuiltinGroupsRefusesOthers(t *testing.T) {
	for _, built := range [][]toolgroups.Group{{{Name: "weather"}}, {{Name: "pdf"}, {Name: "pdf"}}} {
		if groups, err := toolgroups.BuiltinGroups(built...); err == nil {
			t.Errorf("got %v", groups)
		}
	}
}
