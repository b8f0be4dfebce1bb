package search

import (
	"math"
	"strings"

	"oneclaw/toolgroups"
)

// Prices is what input tokens cost that a provider writes to its prompt cache or
// reads from it, as multiples of the price of one that is neither.
type Prices struct{ Write, Read float64 }

// uncached are the prices of a provider without a cache.
var uncached = Prices{Write: 1, Read: 1}

// PriceTable has prices by the beginning of a model's name; the longest one counts.
// What stands before a slash in the name of a model (a router's vendor) is ignored.
type PriceTable map[string]Prices

// DefaultPrices returns what the providers' pages on prompt caching said in late
// 2026: Anthropic, OpenAI (writing costs extra from GPT-5.6 on), Google, DeepSeek.
func DefaultPrices() PriceTable {
	return PriceTable{
		"claude":            {Write: 1.25, Read: 0.1},
		"gpt-4o":            {Write: 1, Read: 0.5},
		"gpt-4.1":           {Write: 1, Read: 0.25},
		"gpt-5":             {Write: 1, Read: 0.1},
		"gpt-5.6":           {Write: 1.25, Read: 0.1},
		"gemini-2.5":        {Write: 1, Read: 0.1},
		"gemini-3":          {Write: 1, Read: 0.1},
		"deepseek":          {Write: 1, Read: 0.033},
		"deepseek-v4-flash": {Write: 1, Read: 0.02},
	}
}

// Of returns the prices of a model; those of no cache for one it does not have.
func (t PriceTable) Of(model string) Prices {
	model = strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	best, found := uncached, ""
	for prefix, p := range t {
		if strings.HasPrefix(model, prefix) && len(prefix) >= len(found) {
			best, found = p, prefix
		}
	}
	return best
}

// The session that prices are compared for: an assumption, not a measurement.
const (
	sessionRequests = 20   // without those that load a group
	sessionLoads    = 2    // groups that are needed
	sessionTokens   = 6000 // the system prompt and the messages of a request
)

// maxDirect is how many tools a model is left to choose from where it need not load
// groups: with more than 30 to 50 models choose worse, by what their makers say.
const maxDirect = 50

// everything is what the tools array of a session costs that offers all tools, in
// tokens at the plain price.
func (p Prices) everything(core, deferrable int) float64 {
	return p.kept(core+deferrable, sessionRequests)
}

// loading is what it costs a session to load groups: the tools array, the requests
// that do nothing else, and what stands behind the array and is written anew.
func (p Prices) loading(core, deferrable, groups int) float64 {
	loads := min(sessionLoads, groups)
	requests := sessionRequests + loads
	cost := p.kept(core, requests)
	for i := range loads {
		cost += p.kept(deferrable/groups, requests*(loads-i)/(loads+1))
		cost += sessionTokens * (p.Write - p.Read)
		cost += sessionTokens * p.Read
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
	decision := r.cfg.Config.decide(d.catalogue.Len(), d.tokens(), f.ContextTokens)
	core := f.Registry.Offer(nil)
	coreTokens := toolgroups.EstimateTokens(core)
	prices := r.cfg.Prices.Of(f.Model)
	everything := prices.everything(coreTokens, decision.Tokens)
	loading := prices.loading(coreTokens, decision.Tokens, max(1, len(d.catalogue.Origins())))
	tools := len(core) + decision.Tools
	mode := RoutingGroups
	switch {
	case decision.Active:
		mode = RoutingSearch
	case decision.Tools > 0 && everything <= loading && tools <= maxDirect && (f.MaxTools == 0 || tools < f.MaxTools):
		mode = RoutingAll
	}
	r.log.Info("tools routed", "session", f.Scope.Session, "routing", string(mode), "auto", decision,
		"model", f.Model, "cost_all", math.Round(everything), "cost_groups", math.Round(loading))
	return mode
}
