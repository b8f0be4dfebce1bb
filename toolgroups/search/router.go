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
	// RoutingSearch appends the bridge tools to the core, and then the loaded groups.
	RoutingSearch Routing = "search"
	// RoutingAll offers all tools.
	RoutingAll Routing = "all"
	// RoutingAuto is [RoutingSearch] if the schemas of all groups take threshold_pct percent of the model's
	// context, else [RoutingAll]. The block tools.tool_search can switch it on or off; off is [RoutingGroups].
	RoutingAuto Routing = "auto"
)

// Routings returns all routings, the default first.
func Routings() []Routing {
	return []Routing{RoutingGroups, RoutingSearch, RoutingAll, RoutingAuto}
}

// InsteadOf returns the routing that replaces one of an earlier program; empty for any other name.
func InsteadOf(name string) Routing {
	return map[string]Routing{"bridge": RoutingSearch, "native": RoutingSearch, "threshold": RoutingAuto}[name]
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
	return RoutingAuto
}

// RouterConfig configures a [Router].
type RouterConfig struct {
	// Routing is the setting tools.routing. Empty means [RoutingGroups].
	Routing Routing
	// Current, if not nil, is asked for the routing of each request instead.
	Current func() Routing
	// Config is the block tools.tool_search. The zero value means [DefaultConfig].
	Config Config
	// Unavailable, if not nil, returns the sources that cannot be reached now.
	Unavailable func() []UnavailableSource
	// Embedder, if not nil, ranks the tools by meaning beside their words.
	Embedder Embedder
	// Logger receives the routing of each session. Nil discards it.
	Logger *slog.Logger
}

// Router assembles the tools array of each request. If the array exceeds the provider's limit or
// half of the model's context, [toolgroups.ToolDescribe] and [toolgroups.ToolCall] come last and run the tools that do
// not fit.
//
// A router has no state but cached catalogues. It may be used concurrently.
type Router struct {
	cfg    RouterConfig
	hybrid *hybrid // nil without an embedder

	mu sync.Mutex
	// catalogues are those of at most two registries: the current one, and its part for tasks.
	catalogues map[catalogueKey]*catalogue
}

type catalogueKey struct {
	registry *toolgroups.Registry
	role     toolgroups.Role
}

var _ toolgroups.Router = (*Router)(nil)

// NewRouter makes a router.
func NewRouter(cfg RouterConfig) (*Router, error) {
	cfg.Routing = cmp.Or(cfg.Routing, RoutingGroups)
	if !slices.Contains(Routings(), cfg.Routing) {
		return nil, fmt.Errorf("search: routing %q is none of %v", cfg.Routing, Routings())
	}
	if cfg.Current == nil {
		cfg.Current = func() Routing { return cfg.Routing }
	}
	if cfg.Config.isUnset() {
		cfg.Config = DefaultConfig()
	}
	if c := cfg.Config; c.SearchDefaultLimit < 1 || c.SearchDefaultLimit > c.MaxSearchLimit || c.MaxSearchLimit > highestMaxLimit {
		return nil, errors.New("search: the limits of tool_search are out of range")
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	r := &Router{cfg: cfg, catalogues: make(map[catalogueKey]*catalogue)}
	if cfg.Embedder != nil {
		r.hybrid = newHybrid(cfg.Embedder, maxVectors, cfg.Logger)
	}
	return r, nil
}

// Route implements [toolgroups.Router].
func (r *Router) Route(f toolgroups.RouteInput) toolgroups.Route {
	mode := r.cfg.Current()
	if mode == RoutingAuto || f.FirstRequest {
		// All tools count, whoever asks, so that the senders of a shared chat do not change the mode.
		d := r.deferrableCatalogue(f.Registry, toolgroups.RoleOwner)
		decision := r.cfg.Config.decide(len(d.entries), d.tokens(), f.ContextTokens)
		if mode == RoutingAuto {
			mode = decision.routing()
		}
		if f.FirstRequest {
			r.cfg.Logger.Info("tools routed", "session", f.Scope.Session, "routing", string(mode), "auto", decision, "max_tools", f.MaxTools)
		}
	}
	return r.buildRoute(mode, f)
}

func (r *Router) buildRoute(mode Routing, f toolgroups.RouteInput) toolgroups.Route {
	var b *bridge
	var tools []toolgroups.Tool
	groups := f.Loaded
	if mode == RoutingAll {
		groups = f.Registry.GroupNames()
	}
	if mode == RoutingSearch {
		b, tools = r.routeSearch(f)
	} else {
		b, tools = r.routeDirect(f, groups)
	}
	route := toolgroups.Route{
		Mode: string(mode), Tools: tools, Groups: groups, LoadText: r.loadTextFunc(mode, f),
		AllListed: mode == RoutingAll && b == nil,
	}
	if b != nil {
		route.Unwrap, route.Advice = b.resolve, b.advice
	}
	return route
}

// routeDirect offers the core and the groups, and a bridge only for tools that do not fit.
func (r *Router) routeDirect(f toolgroups.RouteInput, groups []string) (*bridge, []toolgroups.Tool) {
	tools := offeredTools(f, groups)
	affordable := tools[:fittingTools(f, tools)]
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

// fittingTools returns how many of the tools fit into the model's context; the core always counts. It
// ignores the tools after those that fit, so that more tools do not change the beginning of the array.
func fittingTools(f toolgroups.RouteInput, tools []toolgroups.Tool) int {
	most := cmp.Or(f.ContextTokens, assumedContext) * arrayPct / 100
	core := coreSize(tools)
	return core + sort.Search(len(tools)-core, func(more int) bool {
		return toolgroups.EstimateTokens(tools[:core+more+1]) > most
	})
}

// coreSize returns the number of tools before the first of a group.
func coreSize(tools []toolgroups.Tool) int {
	if i := slices.IndexFunc(tools, func(t toolgroups.Tool) bool { return t.Group != "" }); i >= 0 {
		return i
	}
	return len(tools)
}

// offeredTools returns the core and those tools of the groups that the sender may see.
func offeredTools(f toolgroups.RouteInput, groups []string) []toolgroups.Tool {
	return slices.DeleteFunc(f.Registry.EnabledTools(groups), func(t toolgroups.Tool) bool {
		return t.Group != "" && f.Scope.Hides(t)
	})
}

// callOnlyTools is the number of bridge tools with [bridgeConfig].CallOnly.
const callOnlyTools = 2

// routeCallOnly offers as many of the tools as fit, and then [toolgroups.ToolDescribe] and [toolgroups.ToolCall] for the
// groups and the remaining tools.
func (r *Router) routeCallOnly(f toolgroups.RouteInput, tools []toolgroups.Tool, groups []string) (*bridge, []toolgroups.Tool) {
	kept, _, cut := cutToLimit(tools, nil, callOnlyTools, f.MaxTools)
	b := newBridge(bridgeConfig{
		config: r.cfg.Config, catalogue: newCatalogue(append(enabledEntries(f.Registry, groups, toolgroups.RoleOwner), ungroupedEntries(cut)...)),
		directTools: toolgroups.Names(kept), callOnly: true, refusal: refusalFunc(f), shownTexts: f.VisibleResults, textLimit: min(loadTextLimit(f.ContextTokens), toolgroups.MaxText),
	})
	tools = append(kept, b.tools()...)
	if f.MaxTools > 0 && len(tools) > f.MaxTools {
		tools = tools[len(tools)-f.MaxTools:] // not even the bridge fits
	}
	return b, tools
}

// routeSearch offers the core, the bridge and the loaded groups.
func (r *Router) routeSearch(f toolgroups.RouteInput) (*bridge, []toolgroups.Tool) {
	catalogue := r.deferrableCatalogue(f.Registry, f.Scope.Role)
	if len(catalogue.entries) == 0 {
		return r.routeDirect(f, f.Loaded)
	}
	all := offeredTools(f, f.Loaded)
	all = all[:fittingTools(f, all)]
	size := coreSize(all)
	core, loaded, cut := cutToLimit(all[:size:size], all[size:], len(toolgroups.ReservedNames()), f.MaxTools)
	if len(cut) > 0 {
		catalogue = newCatalogue(append(slices.Clone(catalogue.entries), ungroupedEntries(cut)...))
	}
	cfg := bridgeConfig{
		config: r.cfg.Config, catalogue: catalogue, directTools: toolgroups.Names(slices.Concat(core, loaded)),
		refusal: refusalFunc(f), hybrid: r.hybrid, shownTexts: f.VisibleResults, textLimit: min(loadTextLimit(f.ContextTokens), toolgroups.MaxText),
		pastCalls: slices.DeleteFunc(slices.Clone(f.PastCalls), func(p toolgroups.PastCall) bool { return !toolgroups.Reserved(p.Tool) }),
	}
	if r.cfg.Unavailable != nil {
		cfg.unavailable = r.cfg.Unavailable()
	}
	b := newBridge(cfg)
	tools := b.assemble(core, loaded)
	if f.MaxTools > 0 && len(tools) > f.MaxTools {
		tools = tools[len(tools)-f.MaxTools:] // not even the bridge fits
	}
	return b, tools
}

// refusalFunc returns a function for [bridgeConfig].Refusal.
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
func ungroupedEntries(tools []toolgroups.Tool) []entry {
	entries := make([]entry, len(tools))
	for i, t := range tools {
		entries[i] = entry{tool: t, source: toolgroups.SourceBuiltin}
	}
	return entries
}

// loadTextFunc returns the function that formats the result of loading groups. It describes tools in
// the array with [toolgroups.LoadText], or only names them with [RoutingSearch].
// Others get one line each. With [RoutingGroups], LoadText describes all tools if that and the
// parameters fit. [formatTools] shortens a long text.
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
		if mode == RoutingSearch {
			text := fmt.Sprintf("Loaded %d tools from group '%s'", len(tools), display)
			full := text + "."
			if len(within) > 0 {
				full += " Listed as tools of their own now: " + strings.Join(toolgroups.Names(within), ", ") + "."
			}
			if len(outside) > 0 {
				full += " " + loadedOutsideText
				full += formatTools(outside, limit-utf8.RuneCountInString(full), true)
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
		if mode == RoutingGroups && size(s1+formatTools(outside, limit, false)) <= limit {
			return s1 + note + formatTools(outside, limit-size(s1+note), false) + notes
		}
		// The definitions of the tools in within are in the array, so their descriptions get only
		// the room that the signatures of the others leave.
		rest := note + formatTools(outside, limit-size(toolgroups.LoadText(display, within, 0)+note), true)
		_, lines, _ := strings.Cut(toolgroups.LoadText(display, within, limit-size(rest)), "\n")
		return strings.TrimSuffix(fmt.Sprintf("Loaded %d tools from group '%s':\n%s", len(tools), display, lines), "\n") + rest + notes
	}
}

// loadedOutsideText tells the model how to run tools that are not in the array.
const loadedOutsideText = "Not listed as tools of their own: run them with " + toolgroups.ToolCall + "(name, arguments). Parameters are strings " +
	"where no type is given; " + toolgroups.ToolDescribe + "(names) shows all about them.\n"

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
func (r *Router) deferrableCatalogue(reg *toolgroups.Registry, role toolgroups.Role) *catalogue {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := catalogueKey{reg, role}
	c, ok := r.catalogues[key]
	if !ok {
		// Drop the catalogues of earlier registries.
		maps.DeleteFunc(r.catalogues, func(k catalogueKey, _ *catalogue) bool { return k.registry.ForTasks() != reg.ForTasks() })
		c = newCatalogue(deferrableEntries(reg, role))
		r.catalogues[key] = c
	}
	return c
}
