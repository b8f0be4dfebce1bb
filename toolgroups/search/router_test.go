package search

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"oneclaw/toolgroups"
)

// office has the core, two small groups, and one of so many tools for administrators.
func office(t testing.TB, extra int) *toolgroups.Registry {
	t.Helper()
	cfg := toolgroups.RegistryConfig{Core: core(), Groups: []toolgroups.Group{
		{Name: "github", Source: "mcp:github", Tools: toolsOf(hub())},
		{Name: "calendar", Tools: toolsOf(desk())},
		{Name: "extra", Tools: toolsOf(many("extra", extra)), Role: toolgroups.RoleAdmin},
	}}
	reg, err := toolgroups.NewRegistry(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return reg
}

func router(t testing.TB, cfg RouterConfig) *Router {
	t.Helper()
	r, err := NewRouter(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRouterConfig(t *testing.T) {
	if _, err := NewRouter(RouterConfig{Routing: "magic"}); err == nil {
		t.Error("an unknown routing is accepted")
	}
	for _, c := range []Config{
		{Enabled: DeferOn}, {Enabled: DeferOn, SearchDefaultLimit: 9, MaxSearchLimit: 3}, {SearchDefaultLimit: 5, MaxSearchLimit: 500},
	} {
		if _, err := NewRouter(RouterConfig{Config: c}); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
	route := router(t, RouterConfig{}).Route(toolgroups.RouteInput{Registry: office(t, 0)})
	if route.Mode != "groups" || route.Unwrap != nil {
		t.Errorf("by default %+v", route)
	}
}

// The block tools.tool_search decides where no routing is set: it is what its words say. Where
// one is set, that rules.
//
// The block `tools.tool_search` decides where no routing is set; where one is, that rules.
func TestTheBlockDecidesWhereNoRoutingIsSet(t *testing.T) {
	block := func(enabled DeferMode) Config {
		c := DefaultConfig()
		c.Enabled = enabled
		return c
	}
	for _, tc := range []struct {
		config  Config
		context int
		want    string
	}{
		{Config{}, 1000, "groups"},
		{block(DeferOn), 1_000_000, "search"},
		{block(DeferOff), 1000, "groups"},
		{block(DeferAuto), 1000, "search"},
		{block(DeferAuto), 1_000_000, "all"},
	} {
		r := router(t, RouterConfig{Routing: tc.config.DefaultRouting(), Config: tc.config})
		if got := r.Route(toolgroups.RouteInput{Registry: office(t, 0), ContextTokens: tc.context}); got.Mode != tc.want {
			t.Errorf("%q with a context of %d: %s, want %s", tc.config.Enabled, tc.context, got.Mode, tc.want)
		}
		if auto := router(t, RouterConfig{Routing: RoutingAuto, Config: tc.config}); tc.config.Enabled != "" {
			if got := auto.Route(toolgroups.RouteInput{Registry: office(t, 0), ContextTokens: tc.context}); got.Mode != tc.want {
				t.Errorf("%q beside the routing auto: %s, want %s", tc.config.Enabled, got.Mode, tc.want)
			}
		}
		set := router(t, RouterConfig{Routing: RoutingSearch, Config: tc.config})
		if got := set.Route(toolgroups.RouteInput{Registry: office(t, 0)}); got.Mode != "search" {
			t.Errorf("%q beside the routing search: %s", tc.config.Enabled, got.Mode)
		}
	}
}

// The limits of the block hold for the bridge that a router makes.
//
// Five hits unless asked for more, at most twenty.
func TestLimitsReachTheBridge(t *testing.T) {
	limits := DefaultConfig()
	limits.MaxSearchLimit, limits.SearchDefaultLimit = 3, 2
	r := router(t, RouterConfig{Routing: RoutingSearch, Config: limits})
	facts := toolgroups.RouteInput{Registry: office(t, 30), Scope: toolgroups.Scope{Role: toolgroups.RoleAdmin}}
	for _, tool := range r.Route(facts).Tools {
		if tool.Name != toolgroups.ToolSearch {
			continue
		}
		for arguments, want := range map[string]int{`{"query":"thing"}`: 2, `{"query":"thing","limit":50}`: 3} {
			res, fault := toolgroups.Run(t.Context(), nil, tool, toolgroups.Call{Name: tool.Name, Arguments: json.RawMessage(arguments)})
			if got := decode[found](t, res.Text); fault != nil || len(got.Matches) != want {
				t.Errorf("%s: %d hits, %v", arguments, len(got.Matches), fault)
			}
		}
		return
	}
	t.Error("no search is offered")
}

// What a sender may not use can be neither found nor run.
func TestRouterKeepsToTheRole(t *testing.T) {
	r := router(t, RouterConfig{Routing: RoutingSearch})
	reg := office(t, 3)
	for role, part := range map[toolgroups.Role]string{toolgroups.RoleUser: "among 6 ", toolgroups.RoleAdmin: "among 9 ", toolgroups.RoleOwner: "among 9 "} {
		route := r.Route(toolgroups.RouteInput{Registry: reg, Scope: toolgroups.Scope{Role: role}})
		if got := route.Tools[3]; got.Name != toolgroups.ToolSearch || !strings.Contains(got.Description, part) {
			t.Errorf("%v: %s", role, got.Description)
		}
		_, _, fault := route.Unwrap(toolgroups.ToolCall, json.RawMessage(`{"name":"extra_action_00"}`))
		if role < toolgroups.RoleAdmin {
			wantCode(t, fault, toolgroups.CodeDenied)
		} else if fault != nil {
			t.Errorf("%v: %v", role, fault)
		}
	}
}

// Unreachable sources are asked for at each request.
func TestRouterNamesUnreachableSources(t *testing.T) {
	down := []UnavailableSource{}
	r := router(t, RouterConfig{Routing: RoutingSearch, Unavailable: func() []UnavailableSource { return down }})
	down = append(down, UnavailableSource{Name: "jira", Reason: "no connection"})
	tool := r.Route(toolgroups.RouteInput{Registry: office(t, 0)}).Tools[3]
	res, fault := toolgroups.Run(t.Context(), nil, tool, toolgroups.Call{Name: tool.Name, Arguments: json.RawMessage(`{"query":"zzqq"}`)})
	if got := decode[found](t, res.Text); fault != nil || len(got.Offline) != 1 || got.Offline[0].Name != "jira" {
		t.Errorf("got %s, %v", res.Text, fault)
	}
}

// What a person may not use is not in the array of a chat with them alone. In a shared one it
// stays where it is for everyone, because the senders change and the model's cache goes by the array.
//
// Loading asks nobody for permission; groups that change the bot for all have a role.
func TestToolsForAdministratorsAreHiddenInDirectChats(t *testing.T) {
	for _, routing := range Routings() {
		r := router(t, RouterConfig{Routing: routing})
		seen := func(role toolgroups.Role, direct bool) (names []string) {
			set := toolgroups.NewSet(func() *toolgroups.Registry { return office(t, 3) }, []string{"extra", "github"})
			round := set.Route(r, toolgroups.RouteInput{Scope: toolgroups.Scope{Role: role, Direct: direct}})
			_, outside := round.LoadedGroups()
			return slices.DeleteFunc(slices.Concat(toolgroups.Names(round.Tools()), outside), func(name string) bool { return !strings.HasPrefix(name, "extra_") })
		}
		if got := seen(toolgroups.RoleUser, true); len(got) > 0 {
			t.Errorf("%s: a user is offered %v in a direct chat", routing, got)
		}
		for _, direct := range []bool{true, false} {
			if got := seen(toolgroups.RoleAdmin, direct); len(got) != 3 {
				t.Errorf("%s, direct %t: an administrator is offered %v", routing, direct, got)
			}
		}
		if got := seen(toolgroups.RoleUser, false); len(got) != 3 {
			t.Errorf("%s: in a shared chat a user is offered %v", routing, got)
		}
	}
}

// BenchmarkRoute puts together the array of a request, as happens for each.
func BenchmarkRoute(b *testing.B) {
	registry := office(b, 100)
	for name, loaded := range map[string][]string{"core": nil, "loaded": {"github"}} {
		b.Run(name, func(b *testing.B) {
			r := router(b, RouterConfig{Routing: RoutingGroups})
			b.ReportAllocs()
			for b.Loop() {
				r.Route(toolgroups.RouteInput{Registry: registry, Loaded: loaded, ContextTokens: 1_000_000})
			}
		})
	}
}

// A server with many large tools leaves room for the conversation also with a model that does not say how much
// it takes; the load says how to reach the rest.
func TestToolsThatMayNotFitAreReachedThroughACall(t *testing.T) {
	large := toolsOf(many("extra", 200))
	for i := range large {
		large[i].Description += strings.Repeat(" and more", 300)
	}
	reg, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Core: core(), Groups: []toolgroups.Group{{Name: "extra", Source: "mcp:extra", Tools: large}}})
	if err != nil {
		t.Fatal(err)
	}
	r := router(t, RouterConfig{Routing: RoutingGroups})
	f := toolgroups.RouteInput{Registry: reg, Loaded: []string{"extra"}, Scope: toolgroups.Scope{Role: toolgroups.RoleOwner}}
	route := r.Route(f)
	if got := toolgroups.EstimateTokens(route.Tools); got > 70_000 || got < 50_000 {
		t.Errorf("the array takes %d tokens", got)
	}
	group, _ := reg.Group("extra")
	if text := route.LoadText([]string{"extra"}, group, group.Tools); !strings.Contains(text, "Not listed as tools of their own: run them with tool_call") {
		t.Errorf("the load says %.300s", text)
	}
	f.ContextTokens = 1_000_000
	if got := len(r.Route(f).Tools); got < 200 {
		t.Errorf("%d tools with a large context", got)
	}
}
