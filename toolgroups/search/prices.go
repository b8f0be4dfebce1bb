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
	// Min is the length from which a prompt is cached, in tokens.
	Min int
	// MaxAge is how long at most the cache keeps unused entries; 0 if unknown.
	MaxAge time.Duration
}

// The assumed session for which prices are compared.
const (
	sessionRequests = 20   // without those that load or search
	sessionGroups   = 3    // groups that are needed
	searches        = 4    // each finds several tools
	sessionTokens   = 6000 // the system prompt and the messages of a request
	searchTokens    = 400  // result of a search
	nativeSearches  = 6    // with the provider's search: more come with the hits
	nativeFinds     = 5    // tools per such search
	nativeTokens    = 40   // to offer it
)

// maxDirect bounds the tools offered at once without loading groups: with more than 30 to 50,
// vendors say, models choose worse.
const maxDirect = 50

// sizes are the estimated tokens of tools, for RoutingAuto.
type sizes struct {
	core, deferrable int
	// call is the size of tool_describe and tool_call, bridge that of all three.
	call, bridge int
	// groups is their number, group the size of an average tool's group (a needed tool is more
	// likely in a large group).
	groups, group int
	// line is a load's text about such a group.
	line int
	// tool is the average size of a tool.
	tool int
}

func sizesOf(core []toolgroups.Tool, deferrable int, entries []Entry) sizes {
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
	s.groups, s.tool = len(tools), deferrable/len(entries)
	s.group = deferrable * squares / (len(entries) * len(entries))
	lines := utf8.RuneCountInString(Lines(Tools(entries), math.MaxInt, true)) / 4
	s.line = lines * squares / (len(entries) * len(entries))
	return s
}

// costs are the costs of a session per routing, in tokens at the plain price.
type costs struct{ all, groups, bridge, search, native float64 }

func (p Prices) costs(s sizes) costs {
	loads := min(sessionGroups, s.groups)
	asked := p.Read * sessionTokens // a request that only loads or searches
	loaded := p.added(s.line, loads) + asked*float64(loads)
	return costs{
		all: p.kept(s.core+s.deferrable, sessionRequests),
		// Everything after the array is written anew with each load.
		groups: p.kept(s.core, sessionRequests+loads) + p.added(s.group, loads) + loaded + (p.Write-p.Read)*sessionTokens*float64(loads),
		bridge: p.kept(s.core+s.call, sessionRequests+loads) + loaded,
		search: p.kept(s.core+s.bridge, sessionRequests+searches) +
			p.added(searchTokens, searches) + asked*searches,
		native: p.kept(s.core+nativeTokens, sessionRequests+nativeSearches) +
			p.added(nativeFinds*s.tool, nativeSearches) + asked*nativeSearches,
	}
}

// added returns the cost of tokens that are added so many times, evenly over a session, and
// stay.
func (p Prices) added(tokens, times int) float64 {
	cost := 0.0
	for i := range times {
		cost += p.kept(tokens, (sessionRequests+times)*(times-i)/(times+1))
	}
	return cost
}

// kept returns the cost of sending the same tokens so many times.
func (p Prices) kept(tokens, times int) float64 {
	return float64(tokens) * (p.Write + float64(times-1)*p.Read)
}

// decide chooses the routing of a session and logs the inputs.
func (r *Router) decide(f toolgroups.Facts) Routing {
	d := r.deferrable(f.Registry, f.Scope.Role)
	decision := r.cfg.Config.Decide(d.Len(), d.tokens(), f.ContextTokens)
	core := f.Registry.EnabledTools(nil)
	c := r.cfg.Prices(f.Model).costs(sizesOf(core, decision.Tokens, d.entries))
	tools := len(core) + decision.Tools
	fits := (f.MaxTools == 0 || tools < f.MaxTools) &&
		(f.ContextTokens == 0 || toolgroups.EstimateTokens(core)+decision.Tokens <= f.ContextTokens*arrayPct/100)
	mode := RoutingGroups
	switch {
	case decision.Active:
		mode = RoutingSearch
	case r.cfg.Routing == RoutingThreshold:
		mode = RoutingAll
	case decision.Tools > 0:
		mode = c.cheapest(!r.configured, tools <= maxDirect && fits)
		if f.Native && !r.configured && c.native < c.ofRouting(mode) {
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

// cheapest returns the cheapest routing, the simpler one if two cost the same. bridge and all
// say whether tools may be behind a bridge, and whether all may be offered at once.
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
