package search

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sort"
	"strings"
	"sync"
	"unicode/utf8"

	"oneclaw/toolgroups"
)

// Routing is how the model reaches grouped tools: the setting tools.routing.
type Routing string

// The routings.
const (
	// RoutingGroups appends the tools of loaded groups to the core.
	RoutingGroups Routing = "groups"
	// RoutingBridge never changes the array: loading a group returns the signatures of its tools,
	// [ToolDescribe] their schemas, and [ToolCall] runs them.
	RoutingBridge Routing = "bridge"
	// RoutingSearch appends the bridge tools to the core, and then the loaded groups.
	RoutingSearch Routing = "search"
	// RoutingAll offers everything.
	RoutingAll Routing = "all"
	// RoutingNative defers all grouped tools for the search of the model's provider; loading a
	// group shows all its tools. If the provider has none, or loaded tools do not fit into the
	// model's context, it is [RoutingSearch].
	RoutingNative Routing = "native"
	// RoutingAuto decides at the first request of a session: see [Router].
	RoutingAuto Routing = "auto"
	// RoutingThreshold follows the block tools.tool_search: [RoutingSearch] if the schemas take
	// threshold_pct percent of the model's context, else [RoutingAll].
	RoutingThreshold Routing = "threshold"
)

// Routings returns all routings, the default first.
func Routings() []Routing {
	return []Routing{RoutingGroups, RoutingBridge, RoutingSearch, RoutingAll, RoutingNative, RoutingAuto, RoutingThreshold}
}

// Default returns the routing if none is set: the one of the block tools.tool_search or, without
// the block, [RoutingGroups].
func (c Config) Default() Routing {
	switch {
	case c.isUnset():
		return RoutingGroups
	case c.Enabled == ModeOn:
		return RoutingSearch
	case c.Enabled == ModeOff:
		return RoutingGroups
	}
	return RoutingThreshold
}

// RouterConfig configures a [Router].
type RouterConfig struct {
	// Routing is the setting tools.routing. Empty means [RoutingGroups].
	Routing Routing
	// Config is the block tools.tool_search. The zero value means [DefaultConfig].
	Config Config
	// Prices returns the cache prices of a model, for [RoutingAuto]; 1 and 1 without a cache. Nil
	// means that no model has a cache.
	Prices func(model string) Prices
	// Unavailable, if not nil, returns the sources that cannot be reached now.
	Unavailable func() []Unavailable
	// Ranker ranks the tools. Nil means [Words].
	Ranker Ranker
	// Logger logs the decision for each session. Nil discards it.
	Logger *slog.Logger
}

// Router assembles the tools array of each request. If the array exceeds the provider's limit or
// half of the model's context, [ToolDescribe] and [ToolCall] come last and run the tools that do
// not fit.
//
// With [RoutingAuto] the first request of a session chooses the routing with which a session of
// usual length costs least at the model's cache prices, given the sizes of the schemas;
// everything is offered at once only if that leaves few enough tools to choose from. If the
// block tools.tool_search says that tools are to be deferred, it is [RoutingSearch]; if the
// block says no, no tool is behind a bridge. The decision is recorded with the conversation, so
// that a restart keeps it. If the tools have changed since, it is made again as soon as the next
// request misses the model's cache anyway.
//
// A router only caches catalogues. It may be used concurrently.
type Router struct {
	cfg RouterConfig
	// configured says that the block tools.tool_search is set.
	configured bool

	mu       sync.Mutex
	registry *toolgroups.Registry
	byRole   map[toolgroups.Role]*Catalogue
}

var _ toolgroups.Router = (*Router)(nil)

// NewRouter makes a router.
func NewRouter(cfg RouterConfig) (*Router, error) {
	if cfg.Routing == "" {
		cfg.Routing = RoutingGroups
	}
	if !slices.Contains(Routings(), cfg.Routing) {
		return nil, fmt.Errorf("search: routing %q is none of %v", cfg.Routing, Routings())
	}
	configured := !cfg.Config.isUnset()
	if !configured {
		cfg.Config = DefaultConfig()
	}
	if c := cfg.Config; c.SearchDefaultLimit < 1 || c.SearchDefaultLimit > c.MaxSearchLimit || c.MaxSearchLimit > MaxSearchLimit {
		return nil, errors.New("search: the limits of tool_search are out of range")
	}
	if cfg.Prices == nil {
		cfg.Prices = func(string) Prices { return Prices{Write: 1, Read: 1} }
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	return &Router{cfg: cfg, configured: configured}, nil
}

// Route implements [toolgroups.Router].
func (r *Router) Route(f toolgroups.Facts) toolgroups.Route {
	before, known := parseRecord(f.Recorded)
	now := record{mode: r.cfg.Routing}
	if r.decides() {
		now = before
		print := r.deferrable(f.Registry, toolgroups.RoleOwner).print()
		if !before.decided || known && before.print != print && r.cold(before.mode, f) {
			now = record{mode: r.decide(f), decided: true, print: print}
		}
	} else if f.First {
		d := r.deferrable(f.Registry, f.Scope.Role)
		r.cfg.Logger.Info("tools routed", "session", f.Scope.Session, "routing", string(now.mode),
			"deferrable", d.Len(), "tokens", d.tokens(), "max_tools", f.MaxTools)
	}
	route := r.route(now.mode, f)
	route.Record = now.String()
	route.Switched = known && before.mode != now.mode
	route.Cold = r.expired(f)
	return route
}

// decides reports whether the router chooses the routing of each session.
func (r *Router) decides() bool {
	return r.cfg.Routing == RoutingAuto || r.cfg.Routing == RoutingThreshold
}

// cold reports whether the next request misses the model's cache in any case: the cache has
// nothing of the conversation, or the array changes with the available tools.
func (r *Router) cold(mode Routing, f toolgroups.Facts) bool {
	return r.expired(f) || mode == RoutingSearch || mode == RoutingNative || mode == RoutingAll
}

// expired reports whether the model's cache holds nothing of the conversation: it has no cache,
// or the entry has expired.
func (r *Router) expired(f toolgroups.Facts) bool {
	p := r.cfg.Prices(f.Model)
	kept := cmp.Or(f.Kept, p.MaxAge)
	return p.Read >= 1 || kept > 0 && f.Idle > kept
}

// record is stored with a conversation: the mode and, if a router chose it, that it did, for
// which tools.
type record struct {
	mode    Routing
	decided bool
	print   string
}

// String formats the record: "groups", or "auto/bridge/1a2b3c4d" if chosen.
func (r record) String() string {
	if !r.decided {
		return string(r.mode)
	}
	return string(RoutingAuto) + "/" + string(r.mode) + "/" + r.print
}

// parseRecord parses a record; false if it is invalid.
func parseRecord(text string) (record, bool) {
	r := record{mode: Routing(text)}
	if rest, ok := strings.CutPrefix(text, string(RoutingAuto)+"/"); ok {
		mode, print, _ := strings.Cut(rest, "/")
		r = record{mode: Routing(mode), decided: true, print: print}
	}
	if !slices.Contains(Routings(), r.mode) || r.mode == RoutingAuto || r.mode == RoutingThreshold {
		return record{}, false
	}
	return r, true
}

// Recorded returns the mode in a [toolgroups.Round.Record]; empty if there is none.
func Recorded(text string) Routing {
	r, _ := parseRecord(text)
	return r.mode
}

func (r *Router) route(mode Routing, f toolgroups.Facts) toolgroups.Route {
	var b *Bridge
	var tools []toolgroups.Tool
	groups := f.Loaded
	if mode == RoutingNative && (!f.Native || !fitsDeferred(f)) {
		mode = RoutingSearch
		if r.cfg.Config.Enabled == ModeOff {
			mode = RoutingGroups
		}
	}
	switch mode {
	case RoutingNative:
		tools = r.native(f)
	case RoutingBridge:
		b, tools = r.bridged(f)
	case RoutingSearch:
		b, tools = r.searched(f)
	case RoutingAll:
		groups = f.Registry.GroupNames()
		b, tools = r.direct(f, groups)
	default:
		b, tools = r.direct(f, f.Loaded)
	}
	route := toolgroups.Route{Mode: string(mode), Tools: tools, Groups: groups, LoadText: r.loadText(mode, f)}
	if b != nil {
		route.Unwrap, route.Advice = b.Resolve, b.advice
	}
	return route
}

// direct offers the core and groups; a bridge only for what does not fit.
func (r *Router) direct(f toolgroups.Facts, groups []string) (*Bridge, []toolgroups.Tool) {
	first := r.baseTools(f)
	tools := r.offer(f, first, groups)
	affordable := tools[:fittingTools(f, tools, len(first))]
	if len(affordable) == len(tools) && (f.MaxTools == 0 || len(tools)+callOnlyTools <= f.MaxTools) {
		return nil, tools
	}
	return r.callOnly(f, affordable, groups)
}

// arrayPct bounds the tools, in percent of the model's context: the rest is for the conversation
// and the reply.
const arrayPct = 50

// fittingTools returns how many of the tools fit into the model's context, at least least (those
// that [Router.baseTools] offers). It ignores the tools behind them, so that more tools change
// nothing in front.
func fittingTools(f toolgroups.Facts, tools []toolgroups.Tool, least int) int {
	if f.ContextTokens == 0 {
		return len(tools)
	}
	return least + sort.Search(len(tools)-least, func(more int) bool {
		return toolgroups.EstimateTokens(tools[:least+more+1]) > f.ContextTokens*arrayPct/100
	})
}

// baseTools offers the core, and with [RoutingAuto] from the second request on enough grouped tools
// for the prompt to be cached: an uncached prompt is paid in full each time, which costs more
// than cached tools. The first request stays short, which loses nothing: it cannot be cached
// anyway.
func (r *Router) baseTools(f toolgroups.Facts) []toolgroups.Tool {
	tools := f.Registry.EnabledTools(nil)
	p := r.cfg.Prices(f.Model)
	size := toolgroups.EstimateTokens(tools) + len(f.Registry.Listing())/4 + promptTokens
	want := p.Min * fillPct / 100
	if r.cfg.Routing != RoutingAuto || f.First || want <= size || float64(want)*p.Read >= float64(size) {
		return tools
	}
	// Only tools that every user may use, so that the requests of a shared chat begin alike.
	for _, e := range Deferrable(f.Registry, toolgroups.RoleUser) {
		if size >= want || f.MaxTools > 0 && len(tools)+len(toolgroups.ReservedNames()) >= f.MaxTools {
			break
		}
		tools = append(tools, e.Tool)
		size += toolgroups.EstimateTokens([]toolgroups.Tool{e.Tool})
	}
	return tools
}

// promptTokens is an assumed size of an agent's prompt.
const promptTokens = 300

// fillPct is how far a prompt is filled, in percent of the cache's minimum. Token counts are
// estimates, for schemas a little too low.
const fillPct = 100

// offer returns first, followed by the grouped tools that the sender may see.
func (r *Router) offer(f toolgroups.Facts, first []toolgroups.Tool, groups []string) []toolgroups.Tool {
	if len(groups) == 0 {
		return first
	}
	return append(slices.Clip(first), slices.DeleteFunc(difference(f.Registry.EnabledTools(groups), first), func(t toolgroups.Tool) bool {
		return t.Group != "" && f.Scope.Hides(t)
	})...)
}

// difference returns the tools that are not in others.
func difference(tools, others []toolgroups.Tool) []toolgroups.Tool {
	names := toolgroups.Names(others)
	return slices.DeleteFunc(slices.Clone(tools), func(t toolgroups.Tool) bool { return slices.Contains(names, t.Name) })
}

// fitsDeferred reports whether the loaded deferred groups fit into the model's context: the
// provider puts whole definitions into the conversation.
func fitsDeferred(f toolgroups.Facts) bool {
	loaded := Tools(enabled(f.Registry, f.Loaded, f.Scope.Role))
	return f.ContextTokens == 0 || toolgroups.EstimateTokens(loaded) <= f.ContextTokens*arrayPct/100
}

// maxDeferred bounds the deferred tools (Anthropic's documentation of its tool search, 2026-11).
const maxDeferred = 10_000

// native offers the core, and defers all grouped tools that the sender may use.
func (r *Router) native(f toolgroups.Facts) []toolgroups.Tool {
	tools := r.baseTools(f)
	all := difference(Tools(Deferrable(f.Registry, f.Scope.Role)), tools)
	for _, t := range all[:min(len(all), maxDeferred)] {
		t.Deferred = true
		tools = append(tools, t)
	}
	return tools
}

// bridged offers the core, [ToolDescribe] and [ToolCall], whatever is loaded.
func (r *Router) bridged(f toolgroups.Facts) (*Bridge, []toolgroups.Tool) {
	core := r.baseTools(f)
	if len(f.Registry.GroupNames()) == 0 && (f.MaxTools == 0 || len(core) <= f.MaxTools) {
		return nil, core
	}
	return r.callOnly(f, core, f.Loaded)
}

// callOnlyTools is the number of bridge tools without a search.
const callOnlyTools = 2

// callOnly offers as many of the tools as fit, and then [ToolDescribe] and [ToolCall] for the
// groups and the rest.
func (r *Router) callOnly(f toolgroups.Facts, tools []toolgroups.Tool, groups []string) (*Bridge, []toolgroups.Tool) {
	kept, _, cut := fit(tools, nil, callOnlyTools, f.MaxTools)
	b := newBridge(BridgeConfig{
		Config: r.cfg.Config, Catalogue: NewCatalogue(append(enabled(f.Registry, groups, toolgroups.RoleOwner), ungrouped(cut)...)),
		Direct: toolgroups.Names(kept), CallOnly: true, Outside: outside(f), Shown: f.Shown, Limit: min(loadLimit(f.ContextTokens), toolgroups.MaxText),
	})
	tools = append(kept, b.Tools()...)
	if f.MaxTools > 0 && len(tools) > f.MaxTools {
		tools = tools[len(tools)-f.MaxTools:] // not even the bridge fits
	}
	return b, tools
}

// searched offers the core, the bridge and the loaded groups.
func (r *Router) searched(f toolgroups.Facts) (*Bridge, []toolgroups.Tool) {
	catalogue := r.deferrable(f.Registry, f.Scope.Role)
	if catalogue.Len() == 0 {
		return r.direct(f, f.Loaded)
	}
	core := r.baseTools(f)
	all := slices.Clip(r.offer(f, core, f.Loaded))
	all = all[:fittingTools(f, all, len(core))]
	core, loaded, cut := fit(core, all[len(core):], len(toolgroups.ReservedNames()), f.MaxTools)
	if len(cut) > 0 {
		catalogue = NewCatalogue(append(slices.Clone(catalogue.entries), ungrouped(cut)...))
	}
	cfg := BridgeConfig{
		Config: r.cfg.Config, Catalogue: catalogue, Direct: toolgroups.Names(slices.Concat(core, loaded)),
		Outside: outside(f), Ranker: r.cfg.Ranker, Shown: f.Shown, Limit: min(loadLimit(f.ContextTokens), toolgroups.MaxText),
		Turn: slices.DeleteFunc(slices.Clone(f.Past), func(p toolgroups.PastCall) bool { return !toolgroups.Reserved(p.Tool) }),
	}
	if r.cfg.Unavailable != nil {
		cfg.Unavailable = r.cfg.Unavailable()
	}
	b := newBridge(cfg)
	tools := b.Assemble(core, loaded)
	if f.MaxTools > 0 && len(tools) > f.MaxTools {
		tools = tools[len(tools)-f.MaxTools:] // not even the bridge fits
	}
	return b, tools
}

// outside returns errors for known tools that cannot be reached through the bridge.
func outside(f toolgroups.Facts) func(string) *toolgroups.Error {
	return func(name string) *toolgroups.Error { return f.Registry.Refusal(name, f.Scope) }
}

// fit cuts the tools array to the core, this many bridge tools and the loaded tools, which are
// dropped first. limit 0 is none. cut are the dropped tools of the core.
func fit(core, loaded []toolgroups.Tool, bridge, limit int) (keptCore, keptLoaded, cut []toolgroups.Tool) {
	if limit == 0 {
		return core, loaded, nil
	}
	n := min(len(core), max(0, limit-bridge))
	m := min(len(loaded), max(0, limit-bridge-n))
	return core[:n:n], loaded[:m:m], core[n:]
}

// ungrouped makes entries of the array's tools that did not fit. Grouped ones are in the
// catalogue already, where the first entry counts.
func ungrouped(tools []toolgroups.Tool) []Entry {
	entries := make([]Entry, len(tools))
	for i, t := range tools {
		entries[i] = Entry{Tool: t, Source: toolgroups.SourceBuiltin}
	}
	return entries
}

// loadText answers a load. Tools in the array are described as in S1, with [RoutingSearch] only
// named; others get one line each: name, parameters and first sentence. With [RoutingGroups] S1
// describes all if the model's context has room for that and the parameters. See [Lines] for
// what is left out of a long text.
func (r *Router) loadText(mode Routing, f toolgroups.Facts) func([]string, string, []toolgroups.Tool) string {
	return func(loaded []string, display string, tools []toolgroups.Tool) string {
		after := f
		after.Loaded, after.First = loaded, false
		listed := toolgroups.Names(r.route(mode, after).Tools)
		var within, outside []toolgroups.Tool
		for _, t := range tools {
			if slices.Contains(listed, t.Name) {
				within = append(within, t)
			} else {
				outside = append(outside, t)
			}
		}
		limit := loadLimit(f.ContextTokens)
		if mode == RoutingBridge || mode == RoutingSearch {
			text := fmt.Sprintf("Loaded %d tools from group '%s'", len(tools), display)
			full := text + "."
			if len(within) > 0 {
				full += " Listed as tools of their own now: " + strings.Join(toolgroups.Names(within), ", ") + "."
			}
			if len(outside) > 0 {
				full += " " + loadedOutside
				full += Lines(outside, limit-utf8.RuneCountInString(full), true)
			}
			if f.Shown != nil && slices.Contains(f.Shown(), full) {
				return text + ", as shown above."
			}
			return full
		}
		if len(outside) == 0 {
			return toolgroups.LoadText(display, tools, limit)
		}
		note := "\n\n" + loadedOutside
		size := utf8.RuneCountInString
		s1 := toolgroups.LoadText(display, tools, limit/2)
		if mode == RoutingGroups && size(s1+Lines(outside, limit, false)) <= limit {
			return s1 + note + Lines(outside, limit-size(s1+note), false)
		}
		// The definitions of those within are in the array: shorten the signatures of the others
		// first.
		rest := note + Lines(outside, limit-size(toolgroups.LoadText(display, within, 0)+note), true)
		_, lines, _ := strings.Cut(toolgroups.LoadText(display, within, limit-size(rest)), "\n")
		return strings.TrimSuffix(fmt.Sprintf("Loaded %d tools from group '%s':\n%s", len(tools), display, lines), "\n") + rest
	}
}

// loadedOutside says how to run tools that are not in the array.
const loadedOutside = "Not listed as tools of their own: run them with " + ToolCall + "(name, arguments). Parameters are strings " +
	"where no type is given; " + ToolDescribe + "(names) shows all about them.\n"

// Bounds of the answer to a load, in characters.
const (
	minLoadText = 4_000
	maxLoadText = 60_000
)

// loadLimit bounds the answer to a load: about a quarter of the model's context, in characters.
func loadLimit(contextTokens int) int {
	if contextTokens == 0 {
		return toolgroups.MaxText
	}
	return min(max(contextTokens, minLoadText), maxLoadText)
}

// deferrable returns the catalogue of tools that can be found, cached by registry and role.
func (r *Router) deferrable(reg *toolgroups.Registry, role toolgroups.Role) *Catalogue {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.registry != reg {
		r.registry, r.byRole = reg, map[toolgroups.Role]*Catalogue{}
	}
	c, ok := r.byRole[role]
	if !ok {
		c = NewCatalogue(Deferrable(reg, role))
		r.byRole[role] = c
	}
	return c
}
