package toolgroups

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sync"
)

// SourceBuiltin is the [Group].Source of tools that come with the program.
const SourceBuiltin = "builtin"

// Group is a set of tools that are loaded together.
type Group struct {
	// Name is the name that load_tool_group takes. It is unique in a registry.
	Name string
	// DisplayName is shown to users. If empty, it is made from Name.
	DisplayName string
	// Description is one line for the listing in the prompt. If empty, it is made from the names of
	// the group and its tools.
	Description string
	// Example is something that a user could ask for, in their words, of a group that comes with the program. It is shown
	// to users alone.
	Example string
	// Tools are in the order in which the model sees them; may be empty.
	Tools []Tool
	// Notes tell the model more about the tools, in the result of a load.
	Notes string
	// LeftOut are further tools that the group's source has but that cannot be offered.
	LeftOut []LeftOut
	// Source is "builtin" (or empty), "mcp:github" or "user".
	Source string
	// Role is the lowest role that may load the group and use its tools. The zero value requires
	// no role.
	Role Role
	// NotInTasks is true if only the turns that answer a user's message have the group.
	NotInTasks bool
}

// LeftOut is a tool that cannot be offered, by the name that it would have.
type LeftOut struct{ Name, Reason string }

// RegistryConfig is the input of [NewRegistry].
type RegistryConfig struct {
	// Core are the tools that are always offered; the registry adds load_tool_group. They are sorted
	// by [CoreOrder]; tools that it does not name follow in the given order.
	Core []Tool
	// Groups are in the order of the listing. A second group of the same name and source replaces
	// the first.
	Groups []Group
	// DisabledTools and DisabledGroups are switched off. Unknown names are kept in case their tools or
	// groups are added again. load_tool_group cannot be switched off.
	DisabledTools  []string
	DisabledGroups []string
}

// CoreOrder returns the names of the built-in core tools in their order in every request. Providers
// cache request prefixes, so a tool that changes its place invalidates the cache of each chat.
func CoreOrder() []string {
	return []string{
		"load_skill", LoadToolGroup, "save_memory", "search_history", "exec", "js_eval", "webfetch",
		"browser", "create_agent", "read_file", "write_file", "get_current_time", "http_request",
	}
}

// Registry holds all tools and groups of the bot. It is immutable and may be used concurrently;
// a change of tools or switches builds a new one.
type Registry struct {
	core           []Tool
	groups         []Group
	byGroup        map[string]int
	byTool         map[string]toolPosition
	leftOut        map[string]string // reasons by name
	disabledTools  map[string]bool
	disabledGroups map[string]bool
	listing        string
	tokens         int              // estimated cost of all tools
	forTasks       func() *Registry // makes the result of ForTasks once
}

// toolPosition locates a tool; group is -1 for a core tool.
type toolPosition struct{ group, index int }

// wireNamePattern matches the function names that providers accept.
var wireNamePattern = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// NewRegistry checks and orders its input. The error names every mistake: two sources with one
// group name, two tools with one name, an invalid or reserved name, a tool without a function, or
// parameters that [NormalizeParameters] refuses.
func NewRegistry(cfg RegistryConfig) (*Registry, error) {
	r := &Registry{
		byGroup:        map[string]int{},
		byTool:         map[string]toolPosition{},
		leftOut:        map[string]string{},
		disabledTools:  toSet(cfg.DisabledTools),
		disabledGroups: toSet(cfg.DisabledGroups),
	}
	delete(r.disabledTools, LoadToolGroup)
	errs := r.addCore(cfg.Core)
	groups, clashes := mergeGroups(cfg.Groups)
	errs = append(errs, clashes...)
	for _, g := range groups {
		errs = append(errs, r.addGroup(g)...)
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("toolgroups: registry: %w", errors.Join(errs...))
	}
	r.listing = listing(r.groups)
	all := r.Core()
	for _, g := range r.groups {
		all = append(all, g.Tools...)
	}
	r.tokens = EstimateTokens(all)
	r.forTasks = sync.OnceValue(r.withoutUserGroups)
	return r, nil
}

// ForTasks returns the registry for turns that answer no user's message: without the groups that are
// NotInTasks.
func (r *Registry) ForTasks() *Registry { return r.forTasks() }

// withoutUserGroups returns r without the groups that are NotInTasks; r itself if there are none.
func (r *Registry) withoutUserGroups() *Registry {
	isLoad := func(t Tool) bool { return t.Name == LoadToolGroup }
	cfg := RegistryConfig{
		Core: slices.DeleteFunc(r.Core(), isLoad), Groups: slices.DeleteFunc(r.Groups(), func(g Group) bool { return g.NotInTasks }),
	}
	if len(cfg.Groups) == len(r.groups) {
		return r
	}
	cfg.DisabledTools, cfg.DisabledGroups = r.DisabledNames()
	fewer, _ := NewRegistry(cfg) // never fails: a part of a valid registry is valid
	return fewer
}

func toSet(names []string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

// mergeGroups keeps the last group of each name. Groups of one name from two sources are an error.
func mergeGroups(groups []Group) ([]Group, []error) {
	var out []Group
	var errs []error
	at := map[string]int{}
	for _, g := range groups {
		g.Source = cmp.Or(g.Source, SourceBuiltin)
		i, taken := at[g.Name]
		switch {
		case !taken:
			at[g.Name] = len(out)
			out = append(out, g)
		case out[i].Source == g.Source:
			out[i] = g
		default:
			errs = append(errs, fmt.Errorf("group %q comes from both %s and %s", g.Name, out[i].Source, g.Source))
		}
	}
	return out, errs
}

func (r *Registry) addCore(core []Tool) []error {
	var errs []error
	all := []Tool{newLoadTool()}
	for _, t := range core {
		if t.Name == LoadToolGroup {
			errs = append(errs, fmt.Errorf("tool %q is added by the registry and cannot be configured", LoadToolGroup))
			continue
		}
		all = append(all, t)
	}
	order := CoreOrder()
	rank := func(t Tool) int {
		if i := slices.Index(order, t.Name); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortStableFunc(all, func(a, b Tool) int { return cmp.Compare(rank(a), rank(b)) })
	for _, t := range all {
		t, err := r.register(t, toolPosition{group: -1, index: len(r.core)})
		if err != nil {
			errs = append(errs, err)
			continue
		}
		r.core = append(r.core, t)
	}
	return errs
}

func (r *Registry) addGroup(g Group) []error {
	if !wireNamePattern.MatchString(g.Name) {
		return []error{fmt.Errorf("group %q from %s: the name must match %s", g.Name, g.Source, wireNamePattern)}
	}
	var errs []error
	given := g.Tools
	g.Tools = make([]Tool, 0, len(given))
	r.byGroup[g.Name] = len(r.groups)
	r.groups = append(r.groups, g)
	own := &r.groups[len(r.groups)-1]
	for _, t := range g.LeftOut {
		r.leftOut[t.Name] = t.Reason
	}
	for _, t := range given {
		t.Role, t.Group = max(t.Role, g.Role), g.Name
		t, err := r.register(t, toolPosition{group: len(r.groups) - 1, index: len(own.Tools)})
		if err != nil {
			errs = append(errs, err)
			continue
		}
		own.Tools = append(own.Tools, t)
	}
	own.DisplayName = cmp.Or(oneLine(g.DisplayName, MaxDescription), displayName(g.Name))
	own.Description = cmp.Or(oneLine(g.Description, MaxDescription),
		oneLine(defaultDescription(g.Name, own.Tools), MaxDescription))
	return errs
}

// register checks and encodes a tool and records its position.
func (r *Registry) register(t Tool, p toolPosition) (Tool, error) {
	where := r.positionName(p)
	if !wireNamePattern.MatchString(t.Name) {
		return t, fmt.Errorf("tool %q in %s: the name must match %s", t.Name, where, wireNamePattern)
	}
	if Reserved(t.Name) {
		return t, fmt.Errorf("tool %q in %s: the name is reserved for the program", t.Name, where)
	}
	if old, taken := r.byTool[t.Name]; taken {
		return t, fmt.Errorf("tool %q is in both %s and %s", t.Name, r.positionName(old), where)
	}
	if t.Run == nil && t.Name != LoadToolGroup {
		return t, fmt.Errorf("tool %q in %s has no function", t.Name, where)
	}
	if !sharesMemory(t.Parameters, t.normalized) {
		params, err := NormalizeParameters(t.Parameters)
		if err != nil {
			return t, fmt.Errorf("tool %q in %s: %w", t.Name, where, err)
		}
		if len(t.Accepts) == 0 {
			t.Accepts = t.Parameters
		}
		t.Parameters, t.normalized = params, params
	}
	if own := t.ownSchema(); !sharesMemory(own, t.decodedFrom) {
		t.decodedFrom, t.decoded = own, sync.OnceValue(func() map[string]any { return decodeSchema(own) })
	}
	if now := (wireInput{t.Name, t.Description, &t.Parameters[0]}); t.wireInput != now {
		t.wire, t.wireInput = nil, now
		t.wire = t.encode()
		t.size = wireSize(t)
	}
	r.byTool[t.Name] = p
	return t, nil
}

// sharesMemory reports whether two schemas share their memory.
func sharesMemory(a, b json.RawMessage) bool { return len(a) > 0 && len(a) == len(b) && &a[0] == &b[0] }

func (r *Registry) positionName(p toolPosition) string {
	if p.group < 0 {
		return "the core"
	}
	g := r.groups[p.group]
	return fmt.Sprintf("group %q (%s)", g.Name, g.Source)
}

// Core returns the core tools in their fixed order, including load_tool_group.
func (r *Registry) Core() []Tool { return slices.Clone(r.core) }

// Groups returns all groups in registration order.
func (r *Registry) Groups() []Group {
	out := slices.Clone(r.groups)
	for i := range out {
		out[i].Tools = slices.Clone(out[i].Tools)
	}
	return out
}

// GroupNames returns the names of all groups in registration order.
func (r *Registry) GroupNames() []string {
	names := make([]string, len(r.groups))
	for i, g := range r.groups {
		names[i] = g.Name
	}
	return names
}

// Group returns a group with all its tools, enabled or not. For an unknown name it returns a
// group without tools and false.
func (r *Registry) Group(name string) (Group, bool) {
	i, ok := r.byGroup[name]
	if !ok {
		return Group{}, false
	}
	g := r.groups[i]
	g.Tools = slices.Clone(g.Tools)
	return g, true
}

// Tool returns a registered tool, enabled or not.
func (r *Registry) Tool(name string) (Tool, bool) {
	p, ok := r.byTool[name]
	switch {
	case !ok:
		return Tool{}, false
	case p.group < 0:
		return r.core[p.index], true
	default:
		return r.groups[p.group].Tools[p.index], true
	}
}

// GroupOf returns the name of a tool's group; false for core tools and unknown tools.
func (r *Registry) GroupOf(tool string) (string, bool) {
	p, ok := r.byTool[tool]
	if !ok || p.group < 0 {
		return "", false
	}
	return r.groups[p.group].Name, true
}

// Disabled reports whether a tool is switched off, by itself or with its group.
func (r *Registry) Disabled(tool string) bool {
	group, grouped := r.GroupOf(tool)
	if !grouped {
		one, _ := r.Tool(tool)
		group = one.RuleGroup
	}
	return r.disabledTools[tool] || r.disabledGroups[group]
}

// GroupDisabled reports whether a whole group is switched off.
func (r *Registry) GroupDisabled(group string) bool { return r.disabledGroups[group] }

// DisabledNames returns the sorted names of the disabled tools and groups, including unknown names,
// for building the next registry.
func (r *Registry) DisabledNames() (tools, groups []string) {
	return slices.Sorted(maps.Keys(r.disabledTools)), slices.Sorted(maps.Keys(r.disabledGroups))
}

// Listing returns the section of the system prompt that names all groups, or "". It does not
// depend on what is loaded.
func (r *Registry) Listing() string { return r.listing }

// AllTokens returns the estimated token cost of all tools, enabled or not.
func (r *Registry) AllTokens() int { return r.tokens }

// appendEnabled appends the enabled tools to the list to.
func (r *Registry) appendEnabled(to, tools []Tool) []Tool {
	for _, t := range tools {
		if !r.Disabled(t.Name) {
			to = append(to, t)
		}
	}
	return to
}

// groupTools returns the enabled tools of a group.
func (r *Registry) groupTools(name string) []Tool {
	i, ok := r.byGroup[name]
	if !ok {
		return nil
	}
	return r.appendEnabled(nil, r.groups[i].Tools)
}
