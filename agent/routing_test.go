package agent_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneclaw/agent"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/search"
)

// routed is a chat whose tools go the way that the setting says. What is logged can
// be read from the buffer.
func routed(t testing.TB, routing search.Routing, change ...func(*search.RouterConfig)) (*chat, *bytes.Buffer) {
	t.Helper()
	c := newChat(t, agent.Config{})
	log := &bytes.Buffer{}
	cfg := search.RouterConfig{Routing: routing, Logger: slog.New(slog.NewTextHandler(log, nil))}
	for _, f := range change {
		f(&cfg)
	}
	router, err := search.NewRouter(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.turn.Router = router
	return c, log
}

// deferrable are the tools of all groups.
func deferrable() []string {
	return []string{"get_config", "pdf_info", "gmail_search", "gmail_trash", "drive_search", "calendar_list"}
}

func bridgeTools() []string { return []string{"tool_search", "tool_describe", "tool_call"} }

// deferrableTokens is what their schemas cost.
func (w *world) deferrableTokens() int {
	var tools []toolgroups.Tool
	for _, group := range w.registry.Groups() {
		tools = append(tools, group.Tools...)
	}
	return toolgroups.EstimateTokens(tools)
}

// narrow is a script whose provider takes short tools arrays only.
type narrow struct {
	*script
	limit int
}

func (n narrow) Profile() agent.Profile { return agent.Profile{MaxTools: n.limit} }

// capBelowCore is a cap that the core exceeds, so that there are bridge tools from the start.
const capBelowCore = 6

// sayNarrow is chat.say with a cap.
func (c *chat) sayNarrow(limit int, text string, replies ...agent.Reply) *script {
	c.t.Helper()
	s := &script{t: c.t, replies: replies}
	if err := c.run(narrow{s, limit}, agent.Message{Role: agent.RoleUser, Text: text}); err != nil {
		c.t.Fatal(err)
	}
	for i, req := range s.requests {
		if limit > 0 && len(req.Tools) > limit {
			c.t.Fatalf("request %d has %d tools, the provider takes %d", i, len(req.Tools), limit)
		}
	}
	return s
}

func wantOffered(t testing.TB, req agent.Request, want ...[]string) {
	t.Helper()
	if diff := cmp.Diff(slices.Concat(want...), offered(req)); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
}

func TestLaterGroupsBehindTheCap(t *testing.T) {
	c, _ := routed(t, search.RoutingGroups)
	s := c.sayNarrow(9, "mail and files",
		calls(loads("a", "google_gmail")),
		calls(loads("b", "google_drive")),
		calls(`c tool_call {"name":"drive_search","arguments":{"q":"x"}}`, `d gmail_search {}`, "e drive_search {}"),
		calls(loads("f", "google_calendar")),
		says("ok"))
	direct := append(core(), "gmail_search", "gmail_trash")
	wantOffered(t, s.requests[0], core())
	wantOffered(t, s.requests[1], direct)
	for _, req := range s.requests[2:] {
		wantOffered(t, req, direct, []string{"tool_describe", "tool_call"})
	}
	if got := c.result("a").Text; strings.Contains(got, "tool_call") {
		t.Errorf("what fits is said to be run through another tool: %s", got)
	}
	if got := c.result("b").Text; !strings.HasPrefix(got, "Loaded 1 tools from group 'Google Drive':\n- drive_search: Does drive_search.\n") ||
		!strings.Contains(got, "\n- drive_search(") {
		t.Errorf("the load says %s", got)
	}
	if got := c.result("c"); got.Text != `drive_search {"q":"x"} done` || got.Tool != "drive_search" {
		t.Errorf("through tool_call: %+v", got)
	}
	if got := c.result("e"); got.Status != agent.StatusOK || got.Text != "drive_search {} done" {
		t.Errorf("a direct call: %+v", got)
	}
	if s.requests[4].System != s.requests[0].System {
		t.Error("the prompt changed")
	}
}

// Not even everything at once fails, nor a cap below the core.
func TestEveryModeUnderEveryCap(t *testing.T) {
	t.Parallel()
	for _, routing := range search.Routings() {
		for limit := 1; limit <= 16; limit++ {
			c, _ := routed(t, routing)
			c.sayNarrow(limit, "x", says("ok"))
			c.sayNarrow(limit, "y", calls(loads("a", "google_gmail"), loads("b", "pdf"), loads("c", "google_drive")), says("ok"))
			for _, tool := range []string{"gmail_trash", "drive_search", "write_file"} {
				s := c.sayNarrow(limit, "z", says("which?"))
				call := fmt.Sprintf("a %s {}", tool)
				if !slices.Contains(offered(s.requests[0]), tool) {
					call = fmt.Sprintf(`a tool_call {"name":%q,"arguments":{}}`, tool)
				}
				c.sayNarrow(limit, "z", calls(call), says("ok"))
				// Where load_tool_group itself is behind the cap, nothing is loaded.
				if got := c.result("a"); got.Status != agent.StatusOK && limit > 3 {
					t.Errorf("%s, at most %d: %s is lost: %+v", routing, limit, tool, got)
				}
			}
		}
	}
}

// With routing switched off, all tools are sent.
func TestEverythingFromTheStart(t *testing.T) {
	c, _ := routed(t, search.RoutingAll)
	s := c.say("x", calls("a pdf_info {}"), says("ok"))
	for _, req := range s.requests {
		wantOffered(t, req, core(), deferrable())
	}
	if c.result("a").Status != agent.StatusOK {
		t.Errorf("result %+v", c.result("a"))
	}
}

// The block tools.tool_search where the mode is auto.
func TestAutoDefersFromItsThresholdOn(t *testing.T) {
	tokens := newWorld(t).deferrableTokens()
	bridged, plain := append(core(), bridgeTools()...), core()
	for name, tc := range map[string]struct {
		enabled search.DeferMode
		context int
		empty   bool
		want    []string
	}{
		"090 auto, just enough":     {enabled: search.DeferAuto, context: 10 * tokens, want: bridged},
		"091 auto, one too few":     {enabled: search.DeferAuto, context: 10*tokens + 1, want: plain},
		"091 auto, unknown context": {enabled: search.DeferAuto, want: plain},
		"092 on, large context":     {enabled: search.DeferOn, context: 1000 * tokens, want: bridged},
		"092 on, nothing to defer":  {enabled: search.DeferOn, context: 10 * tokens, empty: true, want: plain},
		"093 off, small context":    {enabled: search.DeferOff, context: tokens, want: plain},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := routed(t, search.RoutingAuto, func(cfg *search.RouterConfig) {
				cfg.Config = search.DefaultConfig()
				cfg.Config.Enabled = tc.enabled
			})
			if tc.empty {
				c.registry = without(t, c.registry)
			} else {
				c.registry = padded(t, c.world, 0)
			}
			c.turn.ContextTokens = tc.context
			got := offered(c.say("x", says("ok")).requests[0])
			if bridged := slices.Contains(got, "tool_call"); bridged != slices.Contains(tc.want, "tool_call") {
				t.Errorf("offered %v", got)
			}
			if slices.Contains(tc.want, "tool_call") {
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("tools (-want +got):\n%s", diff)
				}
			} else if !slices.Equal(got[:len(core())], core()) {
				t.Errorf("offered %v", got)
			}
		})
	}
}

// without is a registry of the core alone.
func without(t testing.TB, reg *toolgroups.Registry) *toolgroups.Registry {
	t.Helper()
	tools := slices.DeleteFunc(reg.Core(), func(t toolgroups.Tool) bool { return t.Name == toolgroups.LoadToolGroup })
	bare, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Core: tools})
	if err != nil {
		t.Fatal(err)
	}
	return bare
}

// padded has one more group, "extra", whose schemas cost about so many tokens; none
// for 0.
func padded(t testing.TB, w *world, tokens int) *toolgroups.Registry {
	t.Helper()
	cfg := toolgroups.RegistryConfig{Groups: w.registry.Groups()}
	for _, tool := range w.registry.Core() {
		if tool.Name != toolgroups.LoadToolGroup {
			cfg.Core = append(cfg.Core, tool)
		}
	}
	if tokens > 0 {
		extra := toolgroups.Group{Name: "extra"}
		for i := range 60 {
			tool := w.tool(fmt.Sprintf("extra_%02d", i), toolgroups.ReadOnly)
			frame := toolgroups.EstimateTokens([]toolgroups.Tool{tool})
			tool.Description = strings.Repeat("word ", max(0, tokens/60-frame)*4/5)
			extra.Tools = append(extra.Tools, tool)
		}
		cfg.Groups = append(cfg.Groups, extra)
	}
	reg, err := toolgroups.NewRegistry(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return reg
}

// Core tools are always direct, in tasks too.
func TestCoreIsDirectInEveryMode(t *testing.T) {
	for _, routing := range search.Routings() {
		for _, scheduled := range []bool{false, true} {
			c, _ := routed(t, routing)
			c.turn.Scope.Scheduled = scheduled
			s := c.say("x", calls("a get_current_time {}", "b load_tool_group {}"), says("ok"))
			for _, req := range s.requests {
				if got := offered(req); !slices.Equal(got[:len(core())], core()) {
					t.Errorf("%s: offered %v", routing, got)
				}
			}
			if got := c.result("a"); got.Status != agent.StatusOK {
				t.Errorf("%s: %+v", routing, got)
			}
		}
	}
}

// What changes in between shows in the next request.
func TestCatalogueFollows(t *testing.T) {
	c, _ := routed(t, search.RoutingSearch)
	s := c.say("x", calls(`a tool_search {"query":"extra 07"}`), says("no"))
	if strings.Contains(c.result("a").Text, "extra_07") {
		t.Fatalf("found %s", c.result("a").Text)
	}
	c.registry = padded(t, c.world, 3000)
	s2 := c.say("y", calls(`a tool_search {"query":"extra 07"}`), calls(`b tool_call {"name":"extra_07"}`), says("yes"))
	if !strings.Contains(c.result("a").Text, "extra_07") || c.result("b").Status != agent.StatusOK {
		t.Errorf("found %s, ran %+v", c.result("a").Text, c.result("b"))
	}
	for tool, req := range map[string]agent.Request{"6": s.requests[0], "66": s2.requests[0]} {
		at := slices.Index(offered(req), "tool_search")
		if !strings.Contains(req.Tools[at].Description, " "+tool+" ") {
			t.Errorf("described as %s", req.Tools[at].Description)
		}
	}
	c.registry = without(t, c.registry)
	wantOffered(t, c.say("z", says("ok")).requests[0], core())
}

// Tools that are added or removed in the middle of a session change the mode with the next request, whose
// array is another one anyway.
func TestAutoFollowsTheTools(t *testing.T) {
	c, _ := routed(t, search.RoutingAuto)
	c.turn.ContextTokens = 128_000
	for i, want := range []string{"all", "search", "all"} {
		c.registry = padded(t, c.world, 3_000+9_900*(i%2))
		c.say("x", says("ok"))
		if got := c.last().Routing; got != want {
			t.Errorf("with %d tokens of tools the mode is %s, want %s", c.deferrableTokens(), got, want)
		}
	}
}

// One setting chooses between groups, search and both.
func TestEveryModeReachesEveryTool(t *testing.T) {
	for _, routing := range search.Routings() {
		t.Run(string(routing), func(t *testing.T) {
			c, _ := routed(t, routing)
			c.turn.ContextTokens = 10
			first := c.say("x", says("hello"))
			if !slices.Contains(offered(first.requests[0]), "load_tool_group") {
				t.Error("load_tool_group is not offered")
			}
			c.say("y", calls(loads("a", "pdf")), says("ok"))
			s := c.say("z", says("which?"))
			call := "b pdf_info {}"
			if !slices.Contains(offered(s.requests[0]), "pdf_info") {
				call = `b tool_call {"name":"pdf_info","arguments":{}}`
			}
			c.say("z", calls(call), says("ok"))
			if got := c.result("b"); got.Status != agent.StatusOK || got.Tool != "pdf_info" {
				t.Errorf("result %+v", got)
			}
		})
	}
	if _, err := search.NewRouter(search.RouterConfig{Routing: "both"}); err == nil || !strings.Contains(err.Error(), "groups search all auto") {
		t.Errorf("an unknown mode: %v", err)
	}
}

// A loaded group is there once, whichever way it is called.
func TestLoadedIsDirect(t *testing.T) {
	c, _ := routed(t, search.RoutingSearch)
	s := c.say("x", calls(loads("a", "google_drive")),
		calls(`b drive_search {}`, `c tool_call {"name":"drive_search"}`, `d tool_search {"query":"drive_search"}`, `e tool_call {"name":"exec","arguments":{}}`),
		says("ok"))
	wantOffered(t, s.requests[0], core(), bridgeTools())
	wantOffered(t, s.requests[1], core(), bridgeTools(), []string{"drive_search"})
	if c.count("drive_search") != 2 || !strings.Contains(c.result("d").Text, `"call_directly":true`) {
		t.Errorf("ran %d times; found %s", c.count("drive_search"), c.result("d").Text)
	}
	if got := c.result("e"); got.Code != toolgroups.CodeBridge || c.count("exec") != 0 {
		t.Errorf("a core tool through the bridge: %+v", got)
	}
}

// The decision of a session, and its numbers in the log.
func TestDecisionIsLogged(t *testing.T) {
	for _, tc := range []struct {
		context, threshold int
		want               search.Routing
	}{{128_000, 12_800, search.RoutingSearch}, {200_000, 20_000, search.RoutingAll}} {
		c, log := routed(t, search.RoutingAuto, func(cfg *search.RouterConfig) {
			cfg.Config = search.DefaultConfig()
		})
		c.registry = padded(t, c.world, 12_900)
		c.turn.ContextTokens = tc.context
		c.say("x", says("ok"))
		tokens := c.deferrableTokens()
		if tokens < 12_800 || tokens > 14_000 {
			t.Fatalf("the schemas cost %d tokens", tokens)
		}
		want := fmt.Sprintf("routing=%s auto.active=%t auto.mode=auto auto.tools=66 auto.tokens=%d auto.threshold=%d auto.context=%d",
			tc.want, tc.want == search.RoutingSearch, tokens, tc.threshold, tc.context)
		if got := log.String(); !strings.Contains(got, want) || strings.Count(got, "\n") != 1 {
			t.Errorf("logged %s, want %s", got, want)
		}
		c.say("y", says("ok"))
		if strings.Count(log.String(), "\n") != 1 {
			t.Errorf("decided again: %s", log)
		}
	}
}
