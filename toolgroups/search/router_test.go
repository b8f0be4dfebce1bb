package search_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneclaw/toolgroups"
	"oneclaw/toolgroups/search"
)

// office has the core, two small groups, and one of so many tools for administrators.
func office(t testing.TB, extra int) *toolgroups.Registry {
	t.Helper()
	cfg := toolgroups.RegistryConfig{Core: core(), Groups: []toolgroups.Group{
		{Name: "github", Source: "mcp:github", Tools: search.Tools(hub())},
		{Name: "calendar", Tools: search.Tools(desk())},
		{Name: "extra", Tools: search.Tools(many("extra", extra)), Role: toolgroups.RoleAdmin},
	}}
	reg, err := toolgroups.NewRegistry(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return reg
}

func router(t testing.TB, cfg search.RouterConfig) *search.Router {
	t.Helper()
	r, err := search.NewRouter(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRouterConfig(t *testing.T) {
	if _, err := search.NewRouter(search.RouterConfig{Routing: "magic"}); err == nil {
		t.Error("an unknown routing is accepted")
	}
	for _, c := range []search.Config{
		{Enabled: search.DeferOn}, {Enabled: search.DeferOn, SearchDefaultLimit: 9, MaxSearchLimit: 3}, {SearchDefaultLimit: 5, MaxSearchLimit: 500},
	} {
		if _, err := search.NewRouter(search.RouterConfig{Config: c}); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
	route := router(t, search.RouterConfig{}).Route(toolgroups.RouteInput{Registry: office(t, 0)})
	if route.Mode != "groups" || route.Record != "groups" || route.Unwrap != nil {
		t.Errorf("by default %+v", route)
	}
}

// The block tools.tool_search decides where no routing is set: it is what its words say. Where
// one is set, that rules.
//
// Acceptance 125: The block `tools.tool_search` decides where no routing is set; where one is, that rules.
func TestTheBlockDecidesWhereNoRoutingIsSet(t *testing.T) {
	block := func(enabled search.DeferMode) search.Config {
		c := search.DefaultConfig()
		c.Enabled = enabled
		return c
	}
	for _, tc := range []struct {
		config  search.Config
		context int
		want    string
	}{
		{search.Config{}, 1000, "groups"},
		{block(search.DeferOn), 1_000_000, "search"},
		{block(search.DeferOff), 1000, "groups"},
		{block(search.DeferAuto), 1000, "search"},
		{block(search.DeferAuto), 1_000_000, "all"},
	} {
		r := router(t, search.RouterConfig{Routing: tc.config.DefaultRouting(), Config: tc.config})
		if got := r.Route(toolgroups.RouteInput{Registry: office(t, 0), ContextTokens: tc.context, FirstRequest: true}); got.Mode != tc.want {
			t.Errorf("%q with a context of %d: %s, want %s", tc.config.Enabled, tc.context, got.Mode, tc.want)
		}
		set := router(t, search.RouterConfig{Routing: search.RoutingSearch, Config: tc.config})
		if got := set.Route(toolgroups.RouteInput{Registry: office(t, 0)}); got.Mode != "search" {
			t.Errorf("%q beside the routing search: %s", tc.config.Enabled, got.Mode)
		}
	}
}

// The limits of the block hold for the bridge that a router makes.
//
// Acceptance 99: Five hits unless asked for more, at most twenty.
func TestLimitsReachTheBridge(t *testing.T) {
	limits := search.DefaultConfig()
	limits.MaxSearchLimit, limits.SearchDefaultLimit = 3, 2
	r := router(t, search.RouterConfig{Routing: search.RoutingSearch, Config: limits})
	facts := toolgroups.RouteInput{Registry: office(t, 30), Scope: toolgroups.Scope{Role: toolgroups.RoleAdmin}}
	for _, tool := range r.Route(facts).Tools {
		if tool.Name != search.ToolSearch {
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
	r := router(t, search.RouterConfig{Routing: search.RoutingSearch})
	reg := office(t, 3)
	for role, part := range map[toolgroups.Role]string{toolgroups.RoleUser: "among 6 ", toolgroups.RoleAdmin: "among 9 ", toolgroups.RoleOwner: "among 9 "} {
		route := r.Route(toolgroups.RouteInput{Registry: reg, Scope: toolgroups.Scope{Role: role}})
		if got := route.Tools[3]; got.Name != search.ToolSearch || !strings.Contains(got.Description, part) {
			t.Errorf("%v: %s", role, got.Description)
		}
		_, _, fault := route.Unwrap(search.ToolCall, json.RawMessage(`{"name":"extra_action_00"}`))
		if role < toolgroups.RoleAdmin {
			wantCode(t, fault, toolgroups.CodeDenied)
		} else if fault != nil {
			t.Errorf("%v: %v", role, fault)
		}
	}
}

// Below the threshold the prices of the cache and the sizes of the groups decide. Where
// the block tools.tool_search was given, it has the word about bridges.
func TestAutoComparesPrices(t *testing.T) {
	given := search.DefaultConfig()
	for name, tc := range map[string]struct {
		extra, limit int
		model        string
		config       search.Config
		want         string
	}{
		"few tools":                   {model: "some-model", want: "all"},
		"few, but no room":            {model: "some-model", limit: 9, want: "bridge"},
		"few, no room, cheap to read": {model: "gpt-5", limit: 9, want: "bridge"},
		"some, cheap to read":         {extra: 38, model: "deepseek-v4-flash", want: "bridge"},
		"a large group":               {extra: 60, model: "deepseek-v4-flash", want: "search"},
		"a large group, block given":  {extra: 60, model: "deepseek-v4-flash", config: given, want: "groups"},
		"a huge group":                {extra: 300, model: "some-model", want: "search"},
		"a huge group, block given":   {extra: 300, model: "some-model", config: given, want: "groups"},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			r := router(t, search.RouterConfig{
				Routing: search.RoutingAuto, Prices: cheap, Config: tc.config, Logger: slog.New(slog.NewTextHandler(&log, nil)),
			})
			facts := toolgroups.RouteInput{
				Registry: office(t, tc.extra), Scope: toolgroups.Scope{Role: toolgroups.RoleAdmin},
				Model: tc.model, MaxTools: tc.limit, FirstRequest: true,
			}
			route := r.Route(facts)
			if route.Mode != tc.want || !strings.HasPrefix(route.Record, "auto/"+tc.want+"/") {
				t.Errorf("routed by %s, recorded %s, want %s; %s", route.Mode, route.Record, tc.want, log.String())
			}
			if !strings.Contains(log.String(), "cost_all=") || !strings.Contains(log.String(), "cost_bridge=") {
				t.Errorf("logged %s", log.String())
			}
			log.Reset()
			print := route.Record[strings.LastIndex(route.Record, "/"):]
			facts.Recorded, facts.FirstRequest = "auto/search"+print, false
			if again := r.Route(facts); again.Mode != "search" || log.Len() > 0 {
				t.Errorf("what was recorded gave %s, logged %s", again.Mode, log.String())
			}
			facts.Recorded = "another version's"
			if again := r.Route(facts); again.Mode != tc.want {
				t.Errorf("what nobody knows gave %s", again.Mode)
			}
		})
	}
}

// cheap is what the caches of the models of these tests cost.
func cheap(model string) search.Prices {
	prices := search.Prices{Write: 1, Read: 1}
	switch model {
	case "gpt-5":
		prices.Read = 0.1
	case "deepseek-v4-flash":
		prices.Read = 0.02
	}
	return prices
}

// Unreachable sources are asked for at each request.
func TestRouterNamesUnreachableSources(t *testing.T) {
	down := []search.UnavailableSource{}
	r := router(t, search.RouterConfig{Routing: search.RoutingSearch, Unavailable: func() []search.UnavailableSource { return down }})
	down = append(down, search.UnavailableSource{Name: "jira", Reason: "no connection"})
	tool := r.Route(toolgroups.RouteInput{Registry: office(t, 0)}).Tools[3]
	res, fault := toolgroups.Run(t.Context(), nil, tool, toolgroups.Call{Name: tool.Name, Arguments: json.RawMessage(`{"query":"zzqq"}`)})
	if got := decode[found](t, res.Text); fault != nil || len(got.Offline) != 1 || got.Offline[0].Name != "jira" {
		t.Errorf("got %s, %v", res.Text, fault)
	}
}

// A prompt that the cache of a model would not keep is filled from the second request on: the
// first stays as short as for any model, whatever was decided, and arrays only grow.
func TestTheFirstRequestIsNeverFilled(t *testing.T) {
	reg := office(t, 0)
	for _, recorded := range []search.Routing{search.RoutingGroups, search.RoutingBridge, search.RoutingSearch, search.RoutingNative} {
		facts := toolgroups.RouteInput{Registry: reg, NativeSearch: true, FirstRequest: true}
		record := router(t, search.RouterConfig{Routing: search.RoutingAuto}).Route(facts).Record
		facts.Recorded = "auto/" + string(recorded) + record[strings.LastIndex(record, "/"):]
		short := router(t, search.RouterConfig{Routing: search.RoutingAuto}).Route(facts)
		for least, want := range map[int]int{0: 0, 100: 0, 900: 900, 1 << 20: 0} {
			r := router(t, search.RouterConfig{Routing: search.RoutingAuto, Prices: func(string) search.Prices {
				return search.Prices{Write: 1, Read: 0.1, MinTokens: least}
			}})
			facts.FirstRequest = true
			first := r.Route(facts)
			if diff := cmp.Diff(names(short.Tools), names(first.Tools)); diff != "" {
				t.Errorf("%s, kept from %d: the first request is another (-want +got):\n%s", recorded, least, diff)
			}
			facts.FirstRequest = false
			second := r.Route(facts)
			sent := slices.DeleteFunc(slices.Clone(second.Tools), func(t toolgroups.Tool) bool { return t.Deferred })
			if filled := len(names(sent)) > len(names(slices.DeleteFunc(slices.Clone(first.Tools), func(t toolgroups.Tool) bool { return t.Deferred }))); filled != (want > 0) {
				t.Errorf("%s, kept from %d: filled %v, %v", recorded, least, filled, names(sent))
			}
			if diff := cmp.Diff(names(second.Tools), names(r.Route(facts).Tools)); diff != "" {
				t.Errorf("%s, kept from %d: the third request is another:\n%s", recorded, least, diff)
			}
		}
	}
}

// What a person may not use is not in the array of a chat with them alone. In a shared one it
// stays where it is for everyone, because the senders change and the model's cache goes by the array.
//
// Acceptance 63: Loading asks nobody for permission; groups that change the bot for all have a role.
func TestToolsForAdministratorsAreHiddenInDirectChats(t *testing.T) {
	for _, routing := range search.Routings() {
		r := router(t, search.RouterConfig{Routing: routing})
		seen := func(role toolgroups.Role, direct bool) (names []string) {
			set := toolgroups.NewSet(func() *toolgroups.Registry { return office(t, 3) }, []string{"extra", "github"})
			round := set.Route(r, toolgroups.RouteInput{Scope: toolgroups.Scope{Role: role, Direct: direct}})
			_, outside, _ := round.LoadedGroups()
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
		if got := seen(toolgroups.RoleUser, false); routing != search.RoutingNative && len(got) != 3 {
			t.Errorf("%s: in a shared chat a user is offered %v", routing, got)
		}
	}
}

// BenchmarkRoute puts together the array of a request, as happens for each.
func BenchmarkRoute(b *testing.B) {
	registry := office(b, 100)
	for name, loaded := range map[string][]string{"core": nil, "loaded": {"github"}} {
		b.Run(name, func(b *testing.B) {
			r := router(b, search.RouterConfig{Routing: search.RoutingGroups})
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
	large := search.Tools(many("extra", 200))
	for i := range large {
		large[i].Description += strings.Repeat(" and more", 300)
	}
	reg, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Core: core(), Groups: []toolgroups.Group{{Name: "extra", Source: "mcp:extra", Tools: large}}})
	if err != nil {
		t.Fatal(err)
	}
	r := router(t, search.RouterConfig{Routing: search.RoutingGroups})
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
