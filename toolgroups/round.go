package toolgroups

import (
	"context"
	"slices"
)

// Round is what one model request offers and its reply may call. It does not
// change while groups are loaded; only switches and removals act at once.
type Round struct {
	set      *Set
	registry *Registry
	tools    []Tool
	index    map[string]int
}

// Tools returns the tools of the request: the core in its fixed order, then the
// groups in first-load order, without those that are switched off.
func (r *Round) Tools() []Tool { return slices.Clone(r.tools) }

// Registry returns the registry this round was made from.
func (r *Round) Registry() *Registry { return r.registry }

// Lookup finds the tool of a call. Look up all calls of a reply in their order
// before any of them runs: that order is the one in which groups that load side
// by side take their places. The error says, in this order, that there is no such
// tool, that it was not offered in this round (and which group to load), that it
// is switched off by now, or that the role of the sender does not allow it.
func (r *Round) Lookup(name string, scope Scope) (Tool, *Error) {
	now := r.set.current()
	_, registered := now.Tool(name)
	if !registered {
		return Tool{}, Errorf(CodeNotFound, "Tool '%s' not found", oneLine(name, maxEcho))
	}
	i, offered := r.index[name]
	if !offered {
		return Tool{}, notAvailable(now, name)
	}
	if now.Disabled(name) {
		return Tool{}, Errorf(CodeDisabled, "Tool '%s' is switched off by an administrator. Go on without it.", name)
	}
	tool := r.tools[i]
	if err := permit(tool, scope); err != nil {
		return Tool{}, err
	}
	if name == LoadToolGroup {
		ticket := r.set.ticket()
		tool.Run = func(_ context.Context, call Call) (Result, error) { return r.set.load(call, ticket) }
	}
	return tool, nil
}

// notAvailable begins with S8 and says what helps.
func notAvailable(reg *Registry, name string) *Error {
	const text = "Tool '%s' is not available for this agent"
	if reg.Disabled(name) {
		return Errorf(CodeNotAvailable, text+". It is switched off by an administrator.", name)
	}
	if group, ok := reg.GroupOf(name); ok {
		return Errorf(CodeNotAvailable, text+". Load its group first: %s(group_name=%q).", name, LoadToolGroup, group)
	}
	return Errorf(CodeNotAvailable, text, name)
}

// permit refuses a call whose sender has too low a role.
func permit(tool Tool, scope Scope) *Error {
	if scope.Role >= tool.Role {
		return nil
	}
	return denied("use the tool '"+tool.Name+"'", tool.Role)
}

func denied(what string, role Role) *Error {
	who := "people who are allowed to talk to this bot"
	switch role {
	case RoleAdmin:
		who = "administrators of this bot"
	case RoleOwner:
		who = "the owner of this bot"
	}
	return Errorf(CodeDenied, "Sorry, only %s may %s. Tell the user so; trying again does not help.", who, what)
}
