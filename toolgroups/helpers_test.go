package toolgroups_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"oneclaw/toolgroups"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// coreNames are the core tools but load_tool_group, in the reverse of their order.
func coreNames() []string {
	names := slices.DeleteFunc(toolgroups.CoreOrder(), func(name string) bool { return name == toolgroups.LoadToolGroup })
	slices.Reverse(names)
	return names
}

// fake is a tool that answers with its own name.
func fake(name string) toolgroups.Tool {
	return toolgroups.Tool{
		Name:        name,
		Description: "Does " + name,
		Parameters:  json.RawMessage(`{"type":"object","properties":{"q":{"type":"string"}}}`),
		Run: func(_ context.Context, call toolgroups.Call) (toolgroups.Result, error) {
			return toolgroups.TextResult("ran %s", call.Name)
		},
	}
}

func fakes(prefix string, n int) []toolgroups.Tool {
	tools := make([]toolgroups.Tool, n)
	for i := range tools {
		tools[i] = fake(fmt.Sprintf("%s_%02d", prefix, i))
	}
	return tools
}

func coreTools() []toolgroups.Tool {
	var tools []toolgroups.Tool
	for _, name := range coreNames() {
		tools = append(tools, fake(name))
	}
	return tools
}

// groups are those of the program with as many fake tools.
func groups() []toolgroups.Group {
	var out []toolgroups.Group
	for _, g := range []struct {
		name string
		size int
		role toolgroups.Role
	}{
		{"config", 17, toolgroups.RoleAdmin},
		{"pdf", 3, 0},
		{"documents", 3, 0},
		{"scheduled_tasks", 5, 0},
		{"js_tool_management", 4, toolgroups.RoleAdmin},
		{"google_gmail", 25, 0},
		{"google_gmail_settings", 14, 0},
		{"google_drive", 15, 0},
		{"google_calendar", 14, 0},
		{"google_contacts", 7, 0},
		{"google_docs", 8, 0},
		{"google_sheets", 9, 0},
		{"google_slides", 7, 0},
		{"google_forms", 5, 0},
		{"google_tasks", 8, 0},
	} {
		out = append(out, toolgroups.Group{Name: g.name, Role: g.role, Tools: fakes(g.name, g.size)})
	}
	return out
}

// house is the whole of the program with fake tools: 13 + 144.
func house(t testing.TB, change ...func(*toolgroups.RegistryConfig)) *toolgroups.Registry {
	t.Helper()
	cfg := toolgroups.RegistryConfig{Core: coreTools(), Groups: groups()}
	for _, f := range change {
		f(&cfg)
	}
	return registry(t, cfg)
}

func registry(t testing.TB, cfg toolgroups.RegistryConfig) *toolgroups.Registry {
	t.Helper()
	reg, err := toolgroups.NewRegistry(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return reg
}

// fixed is a current function that never changes.
func fixed(reg *toolgroups.Registry) func() *toolgroups.Registry {
	return func() *toolgroups.Registry { return reg }
}

// admin may do everything that the tests load.
func admin() toolgroups.Scope { return toolgroups.Scope{Role: toolgroups.RoleAdmin} }

// call looks a tool up in a round and runs it.
func call(t testing.TB, round *toolgroups.Round, name, args string, scope toolgroups.Scope) (string, *toolgroups.Error) {
	t.Helper()
	tool, fault := round.Lookup(name, scope)
	if fault != nil {
		return "", fault
	}
	res, fault := toolgroups.Run(context.Background(), nil, tool,
		toolgroups.Call{ID: "1", Name: name, Arguments: json.RawMessage(args), Scope: scope})
	return res.Text, fault
}

// load loads a group and fails the test where that does not work.
func load(t testing.TB, set *toolgroups.Set, group string) string {
	t.Helper()
	text, fault := call(t, set.Round(), toolgroups.LoadToolGroup, fmt.Sprintf(`{"group_name":%q}`, group), admin())
	if fault != nil {
		t.Fatalf("load %s: %v", group, fault)
	}
	return text
}

func names(tools []toolgroups.Tool) []string {
	out := make([]string, len(tools))
	for i, tool := range tools {
		out[i] = tool.Name
	}
	return out
}

func wantFault(t testing.TB, got *toolgroups.Error, code, message string) {
	t.Helper()
	if got == nil {
		t.Fatalf("no error, want %s: %s", code, message)
	}
	if got.Code != code || got.Message != message {
		t.Errorf("got %s: %s\nwant %s: %s", got.Code, got.Message, code, message)
	}
}
