package toolgroups_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"oneclaw/toolgroups"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// coreNames are the other twelve core tools, in another order than theirs.
func coreNames() []string {
	return []string{
		"http_request", "get_current_time", "write_file", "read_file", "create_agent", "browser", "webfetch",
		"js_eval", "exec", "search_history", "save_memory", "load_skill",
	}
}

// fake is a tool that answers with its own name.
func fake(name string) toolgroups.Tool {
	return toolgroups.Tool{
		Name:        name,
		Description: "Does " + name,
		Parameters:  json.RawMessage(`{"type":"object","properties":{"q":{"type":"string"}}}`),
		Run: func(_ context.Context, call toolgroups.Call) (toolgroups.Result, error) {
			return toolgroups.Text("ran %s", call.Name)
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

// sizes are the numbers of tools of the built-in groups, in their order.
func sizes() []int { return []int{17, 3, 5, 4, 25, 14, 15, 14, 7, 8, 9, 7, 5, 8} }

// house is the whole of the program with fake tools: 13 + 141.
func house(t testing.TB, change ...func(*toolgroups.RegistryConfig)) *toolgroups.Registry {
	t.Helper()
	base, err := toolgroups.BuiltinGroups()
	if err != nil {
		t.Fatal(err)
	}
	for i, g := range base {
		base[i].Tools = fakes(g.Name, sizes()[i])
	}
	cfg := toolgroups.RegistryConfig{Core: coreTools(), Groups: base}
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
