package search

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sort"
	"strings"
	"sync"
	"unicode/utf8"

	"oneclaw/toolgroups"
)

// Routing determines how the model reaches grouped tools: the setting tools.routing.
type Routing string

// The routings.
const (
	// RoutingGroups appends the tools of loaded groups to the core.
	RoutingGroups Routing = "groups"
	// RoutingBridge never changes the tools array: loading a group returns the signatures of its
	// tools, [ToolDescribe] returns their schemas, and [ToolCall] runs them.
	RoutingBridge Routing = "bridge"
	// RoutingSearch appends the bridge tools to the core, and then the loaded groups.
	RoutingSearch Routing = "search"
	// RoutingAll offers all tools.
	RoutingAll Routing = "all"
	// RoutingNative defers all grouped tools for the tool search of the model's provider; loading a
	// group shows all its tools. If the provider has no tool search, or the loaded tools do not fit
	// into the model's context, [RoutingSearch] is used, or [RoutingGroups] with [DeferOff].
	RoutingNative Routing = "native"
	// RoutingAuto chooses the routing at the first request of a session: see [Router].
	RoutingAuto Routing = "auto"
	// RoutingThreshold follows the block tools.tool_search: [RoutingSearch] if the schemas take
	// threshold_pct percent of the model's context, else [RoutingAll].
	RoutingThreshold Routing = "threshold"
)

// Routings returns all routings, the default first.
func Routings() []Routing {
	return []Routing{RoutingGroups, RoutingBridge, RoutingSearch, RoutingAll, RoutingNative, RoutingAuto, RoutingThreshold}
}

// DefaultRouting returns the routing that is used if tools.routing is not set: it follows the block
// tools.tool_search or, without the block, is [RoutingGroups].
func (c Config) DefaultRouting() Routing {
	switch {
	case c.isUnset():
		return RoutingGroups
	case c.Enabled == DeferOn:
		return RoutingSearch
	case c.Enabled == DeferOff:
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
	// Prices returns the cache prices of a model, for [RoutingAuto]. Write and Read are 1 for a model
	// without a cache. Nil means that no model has a cache.
	Prices func(model string) Prices
	// Unavailable, if not nil, returns the sources that cannot be reached now.
	Unavailable func() []UnavailableSource
	// Ranker ranks the tools. Nil means [WordRanker].
	Ranker Ranker
	// Logger receives the routing of each session. Nil discards it.
	Logger *slog.Logger
}

// Router assembles the tools array of each request. If the array exceeds the provider's limit or
// half of the model's context, [ToolDescribe] and [ToolCall] come last and run the tools that do
// not fit.
//
// With [RoutingAuto] the first request of a session chooses the routing with which a session of
// usual length costs least at the model's cache prices, given the sizes of the schemas. All tools
// are offered at once only if there are few enough to choose from. If the block
// tools.tool_search defers tools, [RoutingSearch] is chosen; if the block is set and does not, no
// tool is behind a bridge. The choice is recorded with the conversation and survives a restart.
// If the tools have changed since, the router chooses again as soon as the next request misses the
// model's cache anyway.
//
// A router has no state but cached catalogues. It may be used concurrently.
type Router struct {
	cfg RouterConfig
	// configured is true if the block tools.tool_search is given.
	configured bool

	mu sync.Mutex
	// catalogues are those of at most two registries: the current one, and its part for tasks.
	catalogues map[catalogueKey]*Catalogue
}

type catalogueKey struct {
	registry *toolgroups.Registry
	role     toolgroups.Role
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
	return &Router{cfg: cfg, configured: configured, catalogues: make(map[catalogueKey]*Catalogue)}, nil
}

// Route implements [toolgroups.Router].
func (r *Router) Route(f toolgroups.RouteInput) toolgroups.Route {
	before, known := parseRecord(f.Recorded)
	now := routingRecord{mode: r.cfg.Routing}
	if r.decidesPerSession() {
		now = before
		print := r.deferrableCatalogue(f.Registry, toolgroups.RoleOwner).fingerprint()
		if !before.decided || known && before.fingerprint != print && r.missesCache(before.mode, f) {
			now = routingRecord{mode: r.decide(f), decided: true, fingerprint: print}
		}
	} else if f.FirstRequest {
		d := r.deferrableCatalogue(f.Registry, f.Scope.Role)
		r.cfg.Logger.Info("tools routed", "session", f.Scope.Session, "routing", string(now.mode),
			"deferrable", d.Len(), "tokens", d.estimateTokens(), "max_tools", f.MaxTools)
	}
	route := r.buildRoute(now.mode, f)
	route.Record = now.String()
	route.ModeChanged = known && before.mode != now.mode
	route.ColdCache = r.hasNoCacheEntry(f)
	return route
}

// decidesPerSession reports whether the router chooses the routing of each session.
func (r *Router) decidesPerSession() bool {
	return r.cfg.Routing == RoutingAuto || r.cfg.Routing == RoutingThreshold
}

// missesCache reports whether the next request misses the model's cache in any case: the cache has no
// entry for the conversation, or the array changes with the available tools.
func (r *Router) missesCache(mode Routing, f toolgroups.RouteInput) bool {
	return r.hasNoCacheEntry(f) || mode == RoutingSearch || mode == RoutingNative || mode == RoutingAll
}

// hasNoCacheEntry reports whether the model's cache has no entry for the conversation: the model has
// no cache, or the entry has expired.
func (r *Router) hasNoCacheEntry(f toolgroups.RouteInput) bool {
	p := r.cfg.Prices(f.Model)
	kept := cmp.Or(f.CacheTTL, p.MaxAge)
	return p.Read >= 1 || kept > 0 && f.Idle > kept
}

// routingRecord is stored with a conversation: the mode, whether a router chose it (decided), and the
// fingerprint of the tools for which it did.
type routingRecord struct {
	mode        Routing
	decided     bool
	fingerprint string
}

// String formats the record: "groups", or "auto/bridge/1a2b3c4d" if chosen.
func (r routingRecord) String() string {
	if !r.decided {
		return string(r.mode)
	}
	return string(RoutingAuto) + "/" + string(r.mode) + "/" + r.fingerprint
}

// parseRecord parses a record. It returns false if the record is empty or invalid.
func parseRecord(text string) (routingRecord, bool) {
	r := routingRecord{mode: Routing(text)}
	if rest, ok := strings.CutPrefix(text, string(RoutingAuto)+"/"); ok {
		mode, print, _ := strings.Cut(rest, "/")
		r = routingRecord{mode: Routing(mode), decided: true, fingerprint: print}
	}
	if !slices.Contains(Routings(), r.mode) || r.mode == RoutingAuto || r.mode == RoutingThreshold {
		return routingRecord{}, false
	}
	return r, true
}

// RecordedRouting returns the routing in a [toolgroups.Round.Record], "" if there is none.
func RecordedRouting(text string) Routing {
	r, _ := parseRecord(text)
	return r.mode
}

func (r *Router) buildRoute(mode Routing, f toolgroups.RouteInput) toolgroups.Route {
	var b *Bridge
	var tools []toolgroups.Tool
	groups := f.Loaded
	if mode == RoutingNative && (!f.NativeSearch || !fitsDeferred(f)) {
		mode = RoutingSearch
		if r.cfg.Config.Enabled == DeferOff {
			mode = RoutingGroups
		}
	}
	switch mode {
	case RoutingNative:
		tools = r.nativeTools(f)
	case RoutingBridge:
		b, tools = r.routeBridge(f)
	case RoutingSearch:
		b, tools = r.routeSearch(f)
	case RoutingAll:
		groups = f.Registry.GroupNames()
		b, tools = r.routeDirect(f, groups)
	default:
		b, tools = r.routeDirect(f, f.Loaded)
	}
	route := toolgroups.Route{
		Mode: string(mode), Tools: tools, Groups: groups, LoadText: r.loadTextFunc(mode, f),
		AllListed: mode == RoutingAll && b == nil,
	}
	if b != nil {
		route.Unwrap, route.Advice = b.Resolve, b.advice
	}
	return route
}

// routeDirect offers the core and the groups, and a bridge only for tools that do not fit.
func (r *Router) routeDirect(f toolgroups.RouteInput, groups []string) (*Bridge, []toolgroups.Tool) {
	first := r.baseTools(f)
	tools := r.offeredTools(f, first, groups)
	affordable := tools[:fittingTools(f, tools, len(first))]
	if len(affordable) == len(tools) && (f.MaxTools == 0 || len(tools)+callOnlyTools <= f.MaxTools) {
		return nil, tools
	}
	return r.routeCallOnly(f, affordable, groups)
}

// arrayPct bounds the tools array, in percent of the model's context. The rest is left for the
// conversation and the reply.
const arrayPct = 50

// assumedContext is the size of the context of a model that does not say its own, in tokens: most models
// have at least that much. A server with many tools would otherwise fill any context.
const assumedContext = 128_000

// fittingTools returns how many of the tools fit into the model's context. The first least tools
// (those of [Router.baseTools]) always count. It ignores the tools after those that fit, so that
// more tools do not change the beginning of the array.
func fittingTools(f toolgroups.RouteInput, tools []toolgroups.Tool, least int) int {
	most := cmp.Or(f.ContextTokens, assumedContext) * arrayPct / 100
	return least + sort.Search(len(tools)-least, func(more int) bool {
		return toolgroups.EstimateTokens(tools[:least+more+1]) > most
	})
}

// baseTools returns the core. With [RoutingAuto], from the second request on, it adds enough grouped
// tools for the prompt to be cached: an uncached prompt is paid in full each time, which costs
// more than cached tools. The first request stays short, because it cannot be read from the cache
// anyway.
func (r *Router) baseTools(f toolgroups.RouteInput) []toolgroups.Tool {
	tools := f.Registry.EnabledTools(nil)
	p := r.cfg.Prices(f.Model)
	size := toolgroups.EstimateTokens(tools) + len(f.Registry.Listing())/4 + promptTokens
	want := p.MinTokens * cacheFillPct / 100
	if r.cfg.Routing != RoutingAuto || f.FirstRequest || want <= size || float64(want)*p.Read >= float64(size) {
		return tools
	}
	// Add only tools that every user may use, so that all requests in a shared chat begin alike.
	for _, e := range DeferrableEntries(f.Registry, toolgroups.RoleUser) {
		if size >= want || f.MaxTools > 0 && len(tools)+len(toolgroups.ReservedNames()) >= f.MaxTools {
			break
		}
		tools = append(tools, e.Tool)
		size += toolgroups.EstimateTokens([]toolgroups.Tool{e.Tool})
	}
	return tools
}

// promptTokens is the assumed size of an agent's prompt.
const promptTokens = 300

// cacheFillPct is the size to which baseTools fills a prompt, in percent of the cache's minimum. Token
// counts are estimates, a little too low for schemas.
const cacheFillPct = 104

// offeredTools returns first, followed by those tools of the groups that the sender may see.
func (r *Router) offeredTools(f toolgroups.RouteInput, first []toolgroups.Tool, groups []string) []toolgroups.Tool {
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
func fitsDeferred(f toolgroups.RouteInput) bool {
	loaded := Tools(enabledEntries(f.Registry, f.Loaded, f.Scope.Role))
	return toolgroups.EstimateTokens(loaded) <= cmp.Or(f.ContextTokens, assumedContext)*arrayPct/100
}

// maxDeferred bounds the deferred tools (Anthropic's documentation of its tool search, 2026-11).
const maxDeferred = 10_000

// nativeTools returns the core, followed by all grouped tools that the sender may use, as deferred.
func (r *Router) nativeTools(f toolgroups.RouteInput) []toolgroups.Tool {
	tools := r.baseTools(f)
	all := difference(Tools(DeferrableEntries(f.Registry, f.Scope.Role)), tools)
	for _, t := range all[:min(len(all), maxDeferred)] {
		t.Deferred = true
		tools = append(tools, t)
	}
	return tools
}

// routeBridge offers the core, [ToolDescribe] and [ToolCall], regardless of the loaded groups.
func (r *Router) routeBridge(f toolgroups.RouteInput) (*Bridge, []toolgroups.Tool) {
	core := r.baseTools(f)
	if len(f.Registry.GroupNames()) == 0 && (f.MaxTools == 0 || len(core) <= f.MaxTools) {
		return nil, core
	}
	return r.routeCallOnly(f, core, f.Loaded)
}

// callOnlyTools is the number of bridge tools with [BridgeConfig].CallOnly.
const callOnlyTools = 2

// routeCallOnly offers as many of the tools as fit, and then [ToolDescribe] and [ToolCall] for the
// groups and the remaining tools.
func (r *Router) routeCallOnly(f toolgroups.RouteInput, tools []toolgroups.Tool, groups []string) (*Bridge, []toolgroups.Tool) {
	kept, _, cut := cutToLimit(tools, nil, callOnlyTools, f.MaxTools)
	b := newBridge(BridgeConfig{
		Config: r.cfg.Config, Catalogue: NewCatalogue(append(enabledEntries(f.Registry, groups, toolgroups.RoleOwner), ungroupedEntries(cut)...)),
		DirectTools: toolgroups.Names(kept), CallOnly: true, Refusal: refusalFunc(f), ShownTexts: f.VisibleResults, TextLimit: min(loadTextLimit(f.ContextTokens), toolgroups.MaxText),
	})
	tools = append(kept, b.Tools()...)
	if f.MaxTools > 0 && len(tools) > f.MaxTools {
		tools = tools[len(tools)-f.MaxTools:] // not even the bridge fits
	}
	return b, tools
}

// routeSearch offers the core, the bridge and the loaded groups.
func (r *Router) routeSearch(f toolgroups.RouteInput) (*Bridge, []toolgroups.Tool) {
	catalogue := r.deferrableCatalogue(f.Registry, f.Scope.Role)
	if catalogue.Len() == 0 {
		return r.routeDirect(f, f.Loaded)
	}
	core := r.baseTools(f)
	all := slices.Clip(r.offeredTools(f, core, f.Loaded))
	all = all[:fittingTools(f, all, len(core))]
	core, loaded, cut := cutToLimit(core, all[len(core):], len(toolgroups.ReservedNames()), f.MaxTools)
	if len(cut) > 0 {
		catalogue = NewCatalogue(append(slices.Clone(catalogue.entries), ungroupedEntries(cut)...))
	}
	cfg := BridgeConfig{
		Config: r.cfg.Config, Catalogue: catalogue, DirectTools: toolgroups.Names(slices.Concat(core, loaded)),
		Refusal: refusalFunc(f), Ranker: r.cfg.Ranker, Logger: r.cfg.Logger, ShownTexts: f.VisibleResults, TextLimit: min(loadTextLimit(f.ContextTokens), toolgroups.MaxText),
		PastCalls: slices.DeleteFunc(slices.Clone(f.PastCalls), func(p toolgroups.PastCall) bool { return !toolgroups.Reserved(p.Tool) }),
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

// refusalFunc returns a function for [BridgeConfig].Refusal.
func refusalFunc(f toolgroups.RouteInput) func(string) *toolgroups.Error {
	return func(name string) *toolgroups.Error { return f.Registry.Refusal(name, f.Scope) }
}

// cutToLimit drops tools until the core, the loaded tools and the bridge tools (bridge is their number)
// fit into limit: first loaded tools, then those of the core, which cut returns. 0 means no limit.
func cutToLimit(core, loaded []toolgroups.Tool, bridge, limit int) (keptCore, keptLoaded, cut []toolgroups.Tool) {
	if limit == 0 {
		return core, loaded, nil
	}
	n := min(len(core), max(0, limit-bridge))
	m := min(len(loaded), max(0, limit-bridge-n))
	return core[:n:n], loaded[:m:m], core[n:]
}

// ungroupedEntries makes catalogue entries of tools that did not fit into the array. Grouped tools are
// in the catalogue already, where the first entry counts.
func ungroupedEntries(tools []toolgroups.Tool) []Entry {
	entries := make([]Entry, len(tools))
	for i, t := range tools {
		entries[i] = Entry{Tool: t, Source: toolgroups.SourceBuiltin}
	}
	return entries
}

// loadTextFunc returns the function that formats the result of loading groups. It describes tools in
// the array with [toolgroups.LoadText], or only names them with [RoutingBridge] and [RoutingSearch].
// Others get one line each. With [RoutingGroups], LoadText describes all tools if that and the
// parameters fit. [FormatTools] shortens a long text.
func (r *Router) loadTextFunc(mode Routing, f toolgroups.RouteInput) func([]string, toolgroups.Group, []toolgroups.Tool) string {
	return func(loaded []string, group toolgroups.Group, tools []toolgroups.Tool) string {
		after := f
		after.Loaded, after.FirstRequest = loaded, false
		listed := toolgroups.Names(r.buildRoute(mode, after).Tools)
		var within, outside []toolgroups.Tool
		for _, t := range tools {
			if slices.Contains(listed, t.Name) {
				within = append(within, t)
			} else {
				outside = append(outside, t)
			}
		}
		display, limit := group.DisplayName, loadTextLimit(f.ContextTokens)
		notes := group.LoadNotes(limit)
		limit -= utf8.RuneCountInString(notes)
		if mode == RoutingBridge || mode == RoutingSearch {
			text := fmt.Sprintf("Loaded %d tools from group '%s'", len(tools), display)
			full := text + "."
			if len(within) > 0 {
				full += " Listed as tools of their own now: " + strings.Join(toolgroups.Names(within), ", ") + "."
			}
			if len(outside) > 0 {
				full += " " + loadedOutsideText
				full += FormatTools(outside, limit-utf8.RuneCountInString(full), true)
			}
			full += notes
			if f.VisibleResults != nil && slices.Contains(f.VisibleResults(), full) {
				return text + ", as shown above."
			}
			return full
		}
		if len(outside) == 0 {
			return toolgroups.LoadText(display, tools, limit) + notes
		}
		note := "\n\n" + loadedOutsideText
		size := utf8.RuneCountInString
		s1 := toolgroups.LoadText(display, tools, limit/2)
		if mode == RoutingGroups && size(s1+FormatTools(outside, limit, false)) <= limit {
			return s1 + note + FormatTools(outside, limit-size(s1+note), false) + notes
		}
		// The definitions of the tools in within are in the array, so their descriptions get only
		// the room that the signatures of the others leave.
		rest := note + FormatTools(outside, limit-size(toolgroups.LoadText(display, within, 0)+note), true)
		_, lines, _ := strings.Cut(toolgroups.LoadText(display, within, limit-size(rest)), "\n")
		return strings.TrimSuffix(fmt.Sprintf("Loaded %d tools from group '%s':\n%s", len(tools), display, lines), "\n") + rest + notes
	}
}

// loadedOutsideText tells the model how to run tools that are not in the array.
const loadedOutsideText = "Not listed as tools of their own: run them with " + ToolCall + "(name, arguments). Parameters are strings " +
	"where no type is given; " + ToolDescribe + "(names) shows all about them.\n"

// Bounds of the result of a load, in characters.
const (
	minLoadText = 4_000
	maxLoadText = 60_000
)

// loadTextLimit bounds the result of a load: about a quarter of the model's context, in characters.
func loadTextLimit(contextTokens int) int {
	if contextTokens == 0 {
		return toolgroups.MaxText
	}
	return min(max(contextTokens, minLoadText), maxLoadText)
}

// deferrableCatalogue returns the catalogue of the deferrable tools, cached by registry and role.
func (r *Router) deferrableCatalogue(reg *toolgroups.Registry, role toolgroups.Role) *Catalogue {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := catalogueKey{reg, role}
	c, ok := r.catalogues[key]
	if !ok {
		// Drop the catalogues of earlier registries.
		maps.DeleteFunc(r.catalogues, func(k catalogueKey, _ *Catalogue) bool { return k.registry.ForTasks() != reg.ForTasks() })
		c = NewCatalogue(DeferrableEntries(reg, role))
		r.catalogues[key] = c
	}
	return c
}
