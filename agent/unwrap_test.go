package agent_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneclaw/agent"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/search"
)

// through is a call of a tool by way of tool_call.
func through(id, tool, arguments string) string {
	return fmt.Sprintf(`%s tool_call {"name":%q,"arguments":%s}`, id, tool, arguments)
}

// Whoever looks at a call sees the tool that runs.
func TestTheRealToolIsSeen(t *testing.T) {
	c, _ := routed(t, search.RoutingSearch)
	var mu sync.Mutex
	var seen []string
	note := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, fmt.Sprintf(format, args...))
	}
	c.turn.Gate = func(_ context.Context, call toolgroups.Call, tool toolgroups.Tool, _ agent.Input) (agent.Decision, error) {
		note("gate %s %s %s", call.Name, tool.Name, call.Arguments)
		return agent.Decision{}, nil
	}
	c.turn.Observe = func(e agent.Event) {
		if e.ToolEnded != nil {
			note("ended %s", e.ToolEnded.Tool)
		}
	}
	c.during = func(_ context.Context, call toolgroups.Call) error {
		note("runs %s %s", call.Name, call.Arguments)
		return nil
	}
	s := c.say("x", calls(through("a", "gmail_trash", `{"ids":["1"]}`)), says("ok"))
	want := []string{
		`gate gmail_trash gmail_trash {"ids":["1"]}`, `runs gmail_trash {"ids":["1"]}`, "ended gmail_trash",
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("seen (-want +got):\n%s", diff)
	}
	call := c.history[1].Calls[0]
	if call.Name != "tool_call" || call.Arguments != `{"name":"gmail_trash","arguments":{"ids":["1"]}}` ||
		call.Tool != "gmail_trash" || call.Input != `{"ids":["1"]}` {
		t.Errorf("recorded as %+v", call)
	}
	started, result := c.history[2], c.history[3]
	if started.Tool != "gmail_trash" || started.Hash != agent.Hash("gmail_trash", `{"ids":["1"]}`) || result.Tool != "gmail_trash" {
		t.Errorf("recorded %+v, %+v", started, result)
	}
	// The model is shown its own call again.
	if got := s.requests[1].Messages[1].Calls[0]; got.Name != "tool_call" || got.Arguments != call.Arguments {
		t.Errorf("shown as %+v", got)
	}
}

// One alone, several side by side, beside a direct one, and one that a
// restart finds open, recorded unwrapped or not.
func TestEveryPathUnwraps(t *testing.T) {
	c, _ := routed(t, search.RoutingSearch)
	c.say("x",
		calls(through("a", "pdf_info", `{}`)),
		calls(through("b", "drive_search", `"{\"q\":1}"`), "c get_current_time {}", through("d", "gmail_search", `{}`), through("e", "exec", `{}`)),
		says("ok"))
	for id, tool := range map[string]string{"a": "pdf_info", "b": "drive_search", "c": "get_current_time", "d": "gmail_search"} {
		if got := c.result(id); got.Status != agent.StatusOK || got.Tool != tool {
			t.Errorf("%s: %+v", id, got)
		}
	}
	if got := c.result("e"); got.Code != toolgroups.CodeBridge || got.Tool != "exec" {
		t.Errorf("a core tool: %+v", got)
	}
	for _, recorded := range []agent.Call{
		{ID: "f", Name: "tool_call", Arguments: `{"name":"pdf_info"}`},
		{ID: "f", Name: "tool_call", Arguments: `{"name":"pdf_info"}`, Tool: "pdf_info", Input: "{}"},
	} {
		open, _ := routed(t, search.RoutingSearch)
		open.history = []agent.Message{{Role: agent.RoleUser, Text: "x"}, {Role: agent.RoleAssistant, Calls: []agent.Call{recorded}}}
		if err := open.run(&script{t: t, replies: []agent.Reply{says("ok")}}); err != nil {
			t.Fatal(err)
		}
		if got := open.result("f"); got.Status != agent.StatusOK || got.Tool != "pdf_info" || open.count("pdf_info") != 1 {
			t.Errorf("found open: %+v", got)
		}
	}
}

// A call that is recorded as another tool is not run where the bridge is no more.
func TestRecordedUnwrappingIsNoPermission(t *testing.T) {
	c, _ := routed(t, search.RoutingGroups)
	c.history = []agent.Message{{Role: agent.RoleUser, Text: "x"}, {Role: agent.RoleAssistant, Calls: []agent.Call{
		{ID: "a", Name: "tool_call", Arguments: `{"name":"pdf_info"}`, Tool: "pdf_info", Input: "{}"},
	}}}
	if err := c.run(&script{t: t, replies: []agent.Reply{says("ok")}}); err != nil {
		t.Fatal(err)
	}
	if got := c.result("a"); got.Code != toolgroups.CodeNotFound || len(c.ran) > 0 {
		t.Errorf("result %+v, ran %v", got, c.ran)
	}
}

// A description stays in sight of later turns.
func TestADescriptionStaysInTheConversation(t *testing.T) {
	c, _ := routed(t, search.RoutingSearch)
	c.say("x", calls(`a tool_describe {"name":"drive_search"}`), says("I know"))
	s := c.say("y", calls(through("b", "drive_search", `{}`)), says("done"))
	described := slices.ContainsFunc(s.requests[0].Messages, func(m agent.Message) bool {
		return m.Tool == "tool_describe" && strings.Contains(m.Text, "Does drive_search.")
	})
	if !described || c.result("b").Status != agent.StatusOK {
		t.Errorf("messages %+v, result %+v", s.requests[0].Messages, c.result("b"))
	}
}

// No load is needed, but what is switched off or forbidden stays so.
func TestUnloadedRunsDisabledDoesNot(t *testing.T) {
	c, _ := routed(t, search.RoutingSearch)
	s := c.say("x", calls(through("a", "pdf_info", `{}`)), says("ok"))
	wantOffered(t, s.requests[1], core(), bridgeTools())
	if got := c.result("a"); got.Status != agent.StatusOK {
		t.Errorf("result %+v", got)
	}
	all := c.registry
	change := func(cfg toolgroups.RegistryConfig) {
		for _, tool := range all.Core() {
			if tool.Name != toolgroups.LoadToolGroup {
				cfg.Core = append(cfg.Core, tool)
			}
		}
		cfg.Groups = all.Groups()
		cfg.Groups[0].Role = toolgroups.RoleAdmin
		reg, err := toolgroups.NewRegistry(cfg)
		if err != nil {
			t.Fatal(err)
		}
		c.registry = reg
	}
	change(toolgroups.RegistryConfig{DisabledTools: []string{"gmail_trash"}, DisabledGroups: []string{"pdf"}})
	c.say("y", calls(through("a", "pdf_info", `{}`), through("b", "gmail_trash", `{}`), through("c", "get_config", `{}`),
		through("d", "gmail_search", `{}`), through("e", "made_up", `{}`)), says("ok"))
	for id, tool := range map[string]string{"a": "pdf_info", "b": "gmail_trash"} {
		if got := c.result(id); got.Code != toolgroups.CodeNotAvailable ||
			!strings.HasPrefix(got.Text, "Tool '"+tool+"' is not available for this agent. It is switched off") {
			t.Errorf("%s: %+v", tool, got)
		}
	}
	if got := c.result("c"); got.Code != toolgroups.CodeDenied {
		t.Errorf("an administrator's tool: %+v", got)
	}
	if got := c.result("d"); got.Status != agent.StatusOK {
		t.Errorf("what is on: %+v", got)
	}
	if got := c.result("e"); got.Code != toolgroups.CodeNotFound {
		t.Errorf("a tool that is not: %+v", got)
	}
}

// A switch that is thrown between the reply and the run counts.
func TestSwitchedOffInBetween(t *testing.T) {
	c, _ := routed(t, search.RoutingSearch)
	on := c.registry
	cfg := toolgroups.RegistryConfig{Groups: on.Groups(), DisabledTools: []string{"pdf_info"}}
	off, err := toolgroups.NewRegistry(cfg)
	if err != nil {
		t.Fatal(err)
	}
	m := model(func(_ context.Context, req agent.Request) (agent.Reply, error) {
		if req.Messages[len(req.Messages)-1].Role == agent.RoleTool {
			return says("ok"), nil
		}
		c.registry = off // The round goes on with what it began with.
		return calls(through("a", "pdf_info", `{}`)), nil
	})
	if err := c.run(m, agent.Message{Role: agent.RoleUser, Text: "x"}); err != nil {
		t.Fatal(err)
	}
	if got := c.result("a"); got.Code != toolgroups.CodeDisabled || c.count("pdf_info") != 0 {
		t.Errorf("result %+v", got)
	}
}

// Behind a cap a tool runs by its name and through tool_call once its group is loaded, and not before.
func TestToolsBehindTheCapRunOnceTheirGroupIsLoaded(t *testing.T) {
	c, _ := routed(t, search.RoutingGroups)
	s := c.sayNarrow(capBelowCore, "x",
		calls(through("a", "pdf_info", `{}`), "b pdf_info {}"),
		calls(loads("c", "pdf")),
		calls(through("d", "pdf_info", `{}`), "e pdf_info {}", `f tool_call {"name":"tool_search"}`, "g tool_search {}"),
		says("ok"))
	for _, req := range s.requests {
		wantOffered(t, req, core()[:capBelowCore-2], []string{"tool_describe", "tool_call"})
	}
	for id, code := range map[string]string{
		"a": toolgroups.CodeNotAvailable, "b": toolgroups.CodeNotAvailable,
		"f": toolgroups.CodeNotFound, "g": toolgroups.CodeNotFound,
	} {
		if got := c.result(id); got.Code != code {
			t.Errorf("%s: %+v, want %s", id, got, code)
		}
	}
	for id, part := range map[string]string{
		"a": `load_tool_group(group_name="pdf")`, "b": `load_tool_group(group_name=`,
		"c": "Not listed as tools of their own: run them with tool_call(name, arguments). " +
			"Parameters are strings where no type is given; tool_describe(names) shows all about them.\n- pdf_info()",
	} {
		if got := c.result(id); !strings.Contains(got.Text, part) {
			t.Errorf("%s: %s, want %s", id, got.Text, part)
		}
	}
	for _, id := range []string{"d", "e"} {
		if got := c.result(id); got.Status != agent.StatusOK || c.count("pdf_info") != 2 {
			t.Errorf("after the load: %+v", got)
		}
	}
}

// A group that is loaded again while the first answer is in view is answered in one line.
func TestASecondLoadIsOneLine(t *testing.T) {
	c, _ := routed(t, search.RoutingSearch)
	c.say("x", calls(loads("a", "pdf")), calls(loads("b", "pdf")), says("ok"))
	if got, want := c.result("b").Text, "Loaded 1 tools from group 'Pdf', as shown above."; got != want {
		t.Errorf("told %q, want %q", got, want)
	}
}

// A turn that misuses the bridge over and over, or searches in vain, comes to an end.
func TestBridgeMisuseIsBroken(t *testing.T) {
	for name, call := range map[string]func(i int) string{
		"core tool":           func(int) string { return through("a", "exec", `{}`) },
		"bridge in bridge":    func(int) string { return through("a", "tool_call", `{}`) },
		"ever other names":    func(i int) string { return through("a", fmt.Sprintf("no_%d", i), `{}`) },
		"ever other mistakes": func(i int) string { return fmt.Sprintf(`a tool_call {"name":"pdf_info","arguments":[%d]}`, i) },
		"search in vain":      func(i int) string { return fmt.Sprintf(`a tool_search {"query":"zq%d xv%d"}`, i, i) },
		"same search":         func(int) string { return `a tool_search {"query":"pdf"}` },
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := routed(t, search.RoutingSearch)
			rounds := 0
			m := model(func(context.Context, agent.Request) (agent.Reply, error) {
				rounds++
				return calls(call(rounds)), nil
			})
			err := c.run(m, agent.Message{Role: agent.RoleUser, Text: "x"})
			if err == nil || rounds > 20 || c.result("a").Code != agent.CodeLoop {
				t.Errorf("%v after %d rounds; last result %+v", err, rounds, c.result("a"))
			}
		})
	}
}

// Arguments that the output limit has cut off are not mended and run.
func TestTruncatedBridgeCallIsNotRun(t *testing.T) {
	c, _ := routed(t, search.RoutingSearch)
	cut := calls(`a tool_call {"name":"drive_search","arguments":{"q":"all"}`)
	cut.Truncated = true
	c.say("x", cut, says("again"))
	if got := c.result("a"); got.Code != agent.CodeTruncated || c.count("drive_search") != 0 {
		t.Errorf("result %+v", got)
	}
}
