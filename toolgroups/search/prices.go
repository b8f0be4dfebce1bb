package search

import (
	"math"
	"time"
	"unicode/utf8"

	"oneclaw/toolgroups"
)

// Prices is what input tokens cost that a provider writes to its prompt cache or
// reads from it, as multiples of the price of one that is neither.
type Prices struct {
	Write, Read float64
	// Min is how long a prompt must be, in tokens, to be kept at all.
	Min int
	// Kept is how long the cache keeps at most what is not asked for; 0 where that is unknown.
	Kept time.Duration
}

// The session that prices are compared for: an assumption, not a measurement.
const (
	sessionRequests = 20   // without those that load or search
	sessionGroups   = 3    // groups that are needed
	searches        = 4    // which find the tools that are needed, several at a time
	sessionTokens   = 6000 // the system prompt and the messages of a request
	searchTokens    = 400  // what a search answers
	nativeSearches  = 6    // of a provider that finds tools: others come with what is found
	nativeFinds     = 5    // tools that such a search finds
	nativeTokens    = 40   // what offering it costs
)

// maxDirect is how many tools a model is left to choose from where it need not load
// groups: with more than 30 to 50 models choose worse, by what their makers say.
const maxDirect = 50

// sizes is what auto knows of the tools, in estimated tokens.
type sizes struct {
	core, deferrable int
	// call is tool_describe and tool_call, bridge all three bridge tools.
	call, bridge int
	// groups is how many there are, group how large that of a tool is on average: a
	// tool that is needed is rather in a large group.
	groups, group int
	// line is what a load says of the tools of such a group.
	line int
	// tool is how large a tool is on average.
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

// costs is what a session costs under each routing, in tokens at the plain price.
type costs struct{ all, groups, bridge, search, native float64 }

func (p Prices) costs(s sizes) costs {
	loads := min(sessionGroups, s.groups)
	asked := p.Read * sessionTokens // a request that does nothing but load or search
	loaded := p.added(s.line, loads) + asked*float64(loads)
	return costs{
		all: p.kept(s.core+s.deferrable, sessionRequests),
		// What stands behind the array is written anew at each load.
		groups: p.kept(s.core, sessionRequests+loads) + p.added(s.group, loads) + loaded + (p.Write-p.Read)*sessionTokens*float64(loads),
		bridge: p.kept(s.core+s.call, sessionRequests+loads) + loaded,
		search: p.kept(s.core+s.bridge, sessionRequests+searches) +
			p.added(searchTokens, searches) + asked*searches,
		native: p.kept(s.core+nativeTokens, sessionRequests+nativeSearches) +
			p.added(nativeFinds*s.tool, nativeSearches) + asked*nativeSearches,
	}
}

// added is what tokens cost that come so many times, evenly over a session, and stay.
func (p Prices) added(tokens, times int) float64 {
	cost := 0.0
	for i := range times {
		cost += p.kept(tokens, (sessionRequests+times)*(times-i)/(times+1))
	}
	return cost
}

// kept is what it costs to send the same tokens so many times.
func (p Prices) kept(tokens, times int) float64 {
	return float64(tokens) * (p.Write + float64(times-1)*p.Read)
}

// decide chooses the routing of a session and logs the numbers that it rests on.
func (r *Router) decide(f toolgroups.Facts) Routing {
	d := r.deferrable(f.Registry, f.Scope.Role)
	decision := r.cfg.Config.Decide(d.Len(), d.tokens(), f.ContextTokens)
	core := f.Registry.Offer(nil)
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
		if f.Native && !r.configured && c.native < c.of(mode) {
			mode = RoutingNative
		}
	}
	r.cfg.Logger.Info("tools routed", "session", f.Scope.Session, "routing", string(mode), "auto", decision, "model", f.Model,
		"cost_all", math.Round(c.all), "cost_groups", math.Round(c.groups), "cost_bridge", math.Round(c.bridge), "cost_search", math.Round(c.search), "cost_native", math.Round(c.native))
	return mode
}

// of is the cost of a routing.
func (c costs) of(mode Routing) float64 {
	return map[Routing]float64{RoutingAll: c.all, RoutingBridge: c.bridge, RoutingSearch: c.search, RoutingNative: c.native, RoutingGroups: c.groups}[mode]
}

// cheapest is the routing that costs least, the plainer one where two cost the same.
// bridge and all say whether tools may stay behind a bridge, and whether all of them
// may be offered at once.
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
