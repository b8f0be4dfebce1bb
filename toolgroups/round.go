package toolgroups

import (
	"encoding/json"
	"slices"
)

// Round holds the tools that one model request offers and its reply may call. Loading groups does
// not change a round, but disabling or removing a tool takes effect at once.
type Round struct {
	set      *Set
	registry *Registry
	route    Route
	scope    Scope
	loading  []string // groups that the reply loads
}

// Tools returns the tools of the request: without a [Router], the enabled core tools in their
// fixed order, then those of the groups in first-load order.
func (r *Round) Tools() []Tool { return slices.Clone(r.route.Tools) }

// Tokens estimates the token cost of the tools in the request.
func (r *Round) Tokens() int { return EstimateTokens(r.route.Tools) }

// HasOthers reports whether the request has a tool that does not come with the program.
func (r *Round) HasOthers() bool {
	return slices.ContainsFunc(r.route.Tools, func(t Tool) bool {
		group, ok := r.registry.Group(t.Group)
		return ok && group.Source != SourceBuiltin
	})
}

// IsOfOthers reports whether a tool does not come with the program.
func (r *Round) IsOfOthers(name string) bool {
	now := r.set.current()
	of, grouped := now.GroupOf(name)
	group, known := now.Group(of)
	return grouped && known && group.Source != SourceBuiltin
}

// Registry returns the registry that this round was made from.
func (r *Round) Registry() *Registry { return r.registry }

// Listing returns the section of the system prompt about groups: [Registry.Listing], or that nothing
// needs to be loaded.
func (r *Round) Listing() string {
	if r.route.AllListed && r.registry.Listing() != "" {
		return allListed
	}
	return r.registry.Listing()
}

// NoteLoads notes the groups that calls of load_tool_group in the reply name, before any call of the reply is
// looked up. A refused call of their tools is then told that its group is loaded now.
func (r *Round) NoteLoads(groups []string, scope Scope) {
	r.loading = slices.DeleteFunc(slices.Clone(groups), func(name string) bool {
		_, _, fault := r.set.current().loadable(name, scope)
		return fault != nil
	})
}

// afterLoads replaces the advice to load a group that the same reply loads.
func (r *Round) afterLoads(name string, fault *Error) *Error {
	if group, ok := r.set.current().GroupOf(name); ok && fault != nil && fault.Code == CodeNotAvailable && slices.Contains(r.loading, group) {
		return OwnErrorf(CodeNotAvailable, unavailableFormat+". Its group is loaded now; call it again.", name)
	}
	return fault
}

// Mode returns [Route].Mode.
func (r *Round) Mode() string { return r.route.Mode }

// Unwrap returns the tool that a call actually runs, and its input. If that tool is not the named
// one, look it up with [Round.LookupUnwrapped]. The error is the answer to a call that cannot be
// unwrapped; tool is then the intended tool, or empty.
func (r *Round) Unwrap(name string, arguments json.RawMessage) (tool string, input json.RawMessage, fault *Error) {
	if r.route.Unwrap == nil {
		return name, arguments, nil
	}
	tool, input, fault = r.route.Unwrap(name, arguments)
	return tool, input, r.afterLoads(tool, fault)
}

// Lookup finds the tool of a call. Look up all calls of a reply, in order, before any of them
// runs: that fixes the order of groups that load in parallel. An error is returned if there is no
// such tool, if it was not offered in this round (the error says how to run it), if it has been
// switched off, or if the sender's role does not allow it; in this order.
func (r *Round) Lookup(name string, scope Scope) (Tool, *Error) {
	now := r.set.current()
	i := slices.IndexFunc(r.route.Tools, func(t Tool) bool { return t.Name == name })
	_, registered := now.Tool(name)
	switch {
	case !registered && (i < 0 || !Reserved(name)):
		return Tool{}, now.unknownError(name)
	case i < 0 && r.isCallableByName(now, name):
		return r.LookupUnwrapped(name, scope)
	case i < 0:
		advice := ""
		if r.route.Advice != nil {
			advice = r.route.Advice(name)
		}
		return Tool{}, r.afterLoads(name, notAvailableError(now, name, advice, scope))
	}
	return r.prepareTool(now, r.route.Tools[i], scope)
}

// isCallableByName reports whether a tool outside the array may be called by its own name.
func (r *Round) isCallableByName(now *Registry, name string) bool {
	group, ok := now.GroupOf(name)
	return ok && slices.Contains(r.route.Groups, group)
}

// LoadedGroups returns the loaded groups that have tools, in first-load order, and the names of
// their tools that are missing from the array of this round. Tools hidden by [Scope.Hides] are left out.
func (r *Round) LoadedGroups() (groups, outside []string) {
	for _, name := range r.set.Loaded() {
		tools := slices.DeleteFunc(r.registry.groupTools(name), r.scope.Hides)
		if len(tools) > 0 {
			groups = append(groups, name)
		}
		for _, t := range tools {
			if !slices.ContainsFunc(r.route.Tools, func(o Tool) bool { return o.Name == t.Name }) {
				outside = append(outside, t.Name)
			}
		}
	}
	return groups, outside
}

// LookupUnwrapped finds the tool of a call that [Round.Unwrap] has unwrapped. The tool need not be
// offered, but must exist, be enabled, and be allowed.
func (r *Round) LookupUnwrapped(name string, scope Scope) (Tool, *Error) {
	now := r.set.current()
	tool, registered := now.Tool(name)
	if !registered {
		return Tool{}, now.unknownError(name)
	}
	return r.prepareTool(now, tool, scope)
}

// unknownError returns the error for a tool that is not registered.
func (r *Registry) unknownError(name string) *Error {
	if reason, ok := r.leftOut[name]; ok {
		return Errorf(CodeNotFound, "Tool '%s' cannot be used here: %s. Go on without it.", name, reason)
	}
	return OwnErrorf(CodeNotFound, "Tool '%s' not found", oneLine(name, maxEcho))
}

// prepareTool runs the checks common to all tools, and returns the tool as its call runs it.
func (r *Round) prepareTool(now *Registry, tool Tool, scope Scope) (Tool, *Error) {
	if now.Disabled(tool.Name) {
		return Tool{}, OwnErrorf(CodeDisabled, "Tool '%s' is switched off by an administrator. Go on without it.", tool.Name)
	}
	if err := now.checkRole(tool, scope); err != nil {
		return Tool{}, err
	}
	if tool.Name == LoadToolGroup {
		tool = r.set.load(tool, r.route.LoadText)
	}
	return tool, nil
}

// unavailableFormat is the format of the error for a tool that is not loaded. The specification fixes
// its text.
const unavailableFormat = "Tool '%s' is not available for this agent"

// notAvailableError returns the error for a tool that is not offered. It says that the tool is switched
// off, that the sender may not use it or, with advice if there is any, how to run it.
func notAvailableError(reg *Registry, name, advice string, scope Scope) *Error {
	if reg.Disabled(name) {
		return OwnErrorf(CodeNotAvailable, unavailableFormat+". It is switched off by an administrator.", name)
	}
	if tool, ok := reg.Tool(name); ok {
		if err := reg.checkRole(tool, scope); err != nil {
			return err
		}
	}
	if advice != "" {
		return OwnErrorf(CodeNotAvailable, unavailableFormat+". %s", name, advice)
	}
	if group, ok := reg.GroupOf(name); ok {
		return OwnErrorf(CodeNotAvailable, unavailableFormat+". Load its group first: %s(group_name=%q).", name, LoadToolGroup, group)
	}
	return OwnErrorf(CodeNotAvailable, unavailableFormat, name)
}

// checkRole refuses a call if the sender's role is too low.
func checkRole(tool Tool, role Role) *Error {
	if role >= tool.Role {
		return nil
	}
	return deniedError("use the tool '"+tool.Name+"'", tool.Role)
}

// checkRole is the function checkRole; but if the role is too low for the whole group, the error is that of
// loading it.
func (r *Registry) checkRole(tool Tool, scope Scope) *Error {
	if i, ok := r.byGroup[tool.Group]; ok && scope.reach() < r.groups[i].Role {
		return loadDenied(r.groups[i])
	}
	return checkRole(tool, scope.reach())
}

func loadDenied(g Group) *Error { return deniedError("load the tool group '"+g.Name+"'", g.Role) }

func deniedError(what string, role Role) *Error {
	who := "people who are allowed to talk to this bot"
	switch role {
	case RoleAdmin:
		who = "administrators of this bot"
	case RoleOwner:
		who = "the owner of this bot"
	}
	return OwnErrorf(CodeDenied, "Sorry, only %s may %s. Tell the user so; trying again does not help.", who, what)
}
