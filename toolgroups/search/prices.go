package search

import (
	"math"
	"time"
	"unicode/utf8"

	"oneclaw/toolgroups"
)

// Prices are the costs of input tokens that are written to or read from a provider's prompt
// cache, as multiples of the plain price.
type Prices struct {
	Write, Read float64
	// MinTokens is the length from which a prompt is cached.
	MinTokens int
	// MaxAge is the longest time for which the cache keeps unused entries, 0 if unknown.
	MaxAge time.Duration
}

// The assumed session for which costs are compared.
const (
	sessionRequests = 20   // requests other than those that load or search
	sessionGroups   = 3    // groups that are needed
	sessionSearches = 4    // searches, each of which finds several tools
	sessionTokens   = 6000 // the system prompt and the messages of a request
	searchTokens    = 400  // result of a search
	nativeSearches  = 6    // searches with the provider's own tool search
	nativeFinds     = 5    // tools that such a search finds
	nativeTokens    = 40   // definition of the provider's tool search
)

// maxDirect bounds the tools offered at once without loading groups. According to vendors, models
// choose worse with more than 30 to 50 tools.
const maxDirect = 50

// sizes are the estimated sizes of tools in tokens, for RoutingAuto.
type sizes struct {
	core, deferrable int
	// call is the size of tool_describe and tool_call, bridge the size of all three bridge tools.
	call, bridge int
	// groupCount is the number of groups. group is the average size of the group of a needed tool (a needed
	// tool is more likely in a large group).
	groupCount, groupTokens int
	// loadTokens is the size of the result of loading such a group.
	loadTokens int
	// toolTokens is the average size of a tool.
	toolTokens int
}

func estimateSizes(core []toolgroups.Tool, deferrable int, entries []Entry) sizes {
	s := sizes{
		core: toolgroups.EstimateTokens(core), deferrable: deferrable,
		call:   toolgroups.EstimateTokens(newBridge(BridgeConfig{CallOnly: true}).Tools()),
		bridge: toolgroups.EstimateTokens(newBridge(BridgeConfig{}).Tools()),
	}
	if len(entries) == 0 {
		return s
	}
	tools := map[string]int{}
	for _, e := range entries {
		tools[e.Group]++
	}
	squares := 0
	for _, n := range tools {
		squares += n * n
	}
	s.groupCount, s.toolTokens = len(tools), deferrable/len(entries)
	s.groupTokens = deferrable * squares / (len(entries) * len(entries))
	lines := utf8.RuneCountInString(FormatTools(Tools(entries), math.MaxInt, true)) / 4
	s.loadTokens = lines * squares / (len(entries) * len(entries))
	return s
}

// costs are the costs of a session per routing, in tokens at the plain price.
type costs struct{ all, groups, bridge, search, native float64 }

func (p Prices) sessionCosts(s sizes) costs {
	loads := min(sessionGroups, s.groupCount)
	asked := p.Read * sessionTokens // a request that only loads or searches
	loaded := p.addedCost(s.loadTokens, loads) + asked*float64(loads)
	return costs{
		all: p.repeatedCost(s.core+s.deferrable, sessionRequests),
		// Everything after the array is written anew with each load.
		groups: p.repeatedCost(s.core, sessionRequests+loads) + p.addedCost(s.groupTokens, loads) + loaded + (p.Write-p.Read)*sessionTokens*float64(loads),
		bridge: p.repeatedCost(s.core+s.call, sessionRequests+loads) + loaded,
		search: p.repeatedCost(s.core+s.bridge, sessionRequests+sessionSearches) +
			p.addedCost(searchTokens, sessionSearches) + asked*sessionSearches,
		native: p.repeatedCost(s.core+nativeTokens, sessionRequests+nativeSearches) +
			p.addedCost(nativeFinds*s.toolTokens, nativeSearches) + asked*nativeSearches,
	}
}

// addedCost returns the cost of tokens that are added several times, evenly over a session, and
// stay in the later requests.
func (p Prices) addedCost(tokens, times int) float64 {
	cost := 0.0
	for i := range times {
		cost += p.repeatedCost(tokens, (sessionRequests+times)*(times-i)/(times+1))
	}
	return cost
}

// repeatedCost returns the cost of sending the same tokens in several requests: the first writes them
// to the cache, the others read them.
func (p Prices) repeatedCost(tokens, times int) float64 {
	return float64(tokens) * (p.Write + float64(times-1)*p.Read)
}

// decide chooses the routing of a session and logs the inputs.
func (r *Router) decide(f toolgroups.RouteInput) Routing {
	d := r.deferrableCatalogue(f.Registry, f.Scope.Role)
	decision := r.cfg.Config.Decide(d.Len(), d.estimateTokens(), f.ContextTokens)
	core := f.Registry.EnabledTools(nil)
	c := r.cfg.Prices(f.Model).sessionCosts(estimateSizes(core, decision.Tokens, d.entries))
	tools := len(core) + decision.ToolCount
	fits := (f.MaxTools == 0 || tools < f.MaxTools) &&
		(f.ContextTokens == 0 || toolgroups.EstimateTokens(core)+decision.Tokens <= f.ContextTokens*arrayPct/100)
	mode := RoutingGroups
	switch {
	case decision.Active:
		mode = RoutingSearch
	case r.cfg.Routing == RoutingThreshold:
		mode = RoutingAll
	case decision.ToolCount > 0:
		mode = c.cheapest(!r.configured, tools <= maxDirect && fits)
		if f.NativeSearch && !r.configured && c.native < c.ofRouting(mode) {
			mode = RoutingNative
		}
	}
	r.cfg.Logger.Info("tools routed", "session", f.Scope.Session, "routing", string(mode), "auto", decision, "model", f.Model,
		"cost_all", math.Round(c.all), "cost_groups", math.Round(c.groups), "cost_bridge", math.Round(c.bridge), "cost_search", math.Round(c.search), "cost_native", math.Round(c.native))
	return mode
}

// ofRouting returns the cost of a routing.
func (c costs) ofRouting(mode Routing) float64 {
	return map[Routing]float64{RoutingAll: c.all, RoutingBridge: c.bridge, RoutingSearch: c.search, RoutingNative: c.native, RoutingGroups: c.groups}[mode]
}

// cheapest returns the cheapest routing except [RoutingNative], and the simpler one if two cost the same.
// bridge allows tools behind a bridge, and all allows all tools at once.
func (c costs) cheapest(bridge, all bool) Routing {
	mode, least := RoutingGroups, c.groups
	if all && c.all <= least {
		mode, least = RoutingAll, c.all
	}
	if bridge && c.bridge < least {
		mode, least = RoutingBridge, c.bridge
	}
	if bridge && c.search < least {
		mode = RoutingSearch
	}
	return mode
}
