package openai_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"oneclaw/agent"
	"oneclaw/agent/openai"
	emulator "oneclaw/internal/emulator/openai"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/search"
)

// large is the size of the program: 13 tools in the core, 144 in fifteen groups.
func large(t *testing.T) *toolgroups.Registry {
	t.Helper()
	fake := func(name string) toolgroups.Tool {
		return toolgroups.Tool{Name: name, Description: "Does " + name + ".", Run: func(_ context.Context, call toolgroups.Call) (toolgroups.Result, error) {
			return toolgroups.TextResult("%s ran", call.Name)
		}}
	}
	cfg := toolgroups.RegistryConfig{}
	for i := range 12 {
		cfg.Core = append(cfg.Core, fake(fmt.Sprintf("core_%02d", i)))
	}
	for i, size := range []int{17, 3, 5, 4, 25, 14, 15, 14, 7, 8, 9, 7, 5, 8} {
		g := toolgroups.Group{Name: fmt.Sprintf("group_%02d", i)}
		for n := range size {
			g.Tools = append(g.Tools, fake(fmt.Sprintf("tool_%02d_%02d", i, n)))
		}
		cfg.Groups = append(cfg.Groups, g)
	}
	registry, err := toolgroups.NewRegistry(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return registry
}

// With all groups loaded 157 tools are wanted, and a server that takes
// no more than 128 refuses nothing: the last place is tool_call's.
func TestAllGroupsAtAServerWithACap(t *testing.T) {
	t.Parallel()
	registry := large(t)
	for _, routing := range search.Routings() {
		t.Run(string(routing), func(t *testing.T) {
			server := capServer(t, registry)
			url, err := server.Start(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			c, err := openai.New(openai.Config{BaseURL: url, Model: emulator.DefaultModel})
			if err != nil {
				t.Fatal(err)
			}
			a := agent.New(agent.Config{Model: c})
			router, err := search.NewRouter(search.RouterConfig{Routing: routing})
			if err != nil {
				t.Fatal(err)
			}
			turn := agent.Turn{
				History: []agent.Message{{Role: agent.RoleUser, Text: "everything"}}, Router: router,
				Set: toolgroups.NewSet(func() *toolgroups.Registry { return registry }, nil),
			}
			var last, result agent.Message
			for m, err := range a.Run(t.Context(), turn) {
				if err != nil {
					t.Fatal(err)
				}
				if m.Role == agent.RoleTool {
					result = m
				}
				last = m
			}
			if last.Text != "all of it" || result.Text != "tool_13_07 ran" || result.Tool != "tool_13_07" {
				t.Errorf("answer %+v after %+v", last, result)
			}
			before := []byte("[")
			for i, req := range server.Requests() {
				if !bytes.HasPrefix(req.ToolsJSON, before) || len(req.Tools) > 128 {
					t.Errorf("request %d: %d tools, %.200s", i, len(req.Tools), req.ToolsJSON)
				}
				before = bytes.TrimSuffix(req.ToolsJSON, []byte("]"))
			}
			if names := server.Requests()[2].ToolNames(); routing == search.RoutingGroups && (len(names) != 128 || names[127] != "tool_call") {
				t.Errorf("%d tools, the last ones %v", len(names), names[120:])
			}
		})
	}
}

// capServer is a model that loads all groups, calls the last tool of the last one as
// it can, and answers.
func capServer(t *testing.T, registry *toolgroups.Registry) *emulator.Server {
	t.Helper()
	server, err := emulator.New(emulator.Config{Responder: emulator.ResponderFunc(func(_ context.Context, req emulator.Request) (emulator.Reply, error) {
		last := req.Messages[len(req.Messages)-1]
		var reply emulator.Reply
		switch {
		case last.Role == "user":
			for _, name := range registry.GroupNames() {
				reply.Calls = append(reply.Calls, emulator.ToolCall{Name: "load_tool_group", Arguments: fmt.Sprintf(`{"group_name":%q}`, name)})
			}
		case !strings.HasPrefix(last.Content, "Loaded"):
			reply.Text = "all of it"
		case slices.Contains(req.ToolNames(), "tool_13_07"):
			reply.Calls = []emulator.ToolCall{{Name: "tool_13_07", Arguments: "{}"}}
		default:
			reply.Calls = []emulator.ToolCall{{Name: "tool_call", Arguments: `{"name":"tool_13_07","arguments":{}}`}}
		}
		return reply, nil
	})})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return server
}
