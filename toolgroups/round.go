package toolgroups

import (
	"context"
	"encoding/json"
	"slices"
)

// Round is what one model request offers and its reply may call. Loading groups does not change
// it; switches and removals act at once.
type Round struct {
	set      *Set
	registry *Registry
	route    Route
	scope    Scope
	loaded   []string
}

// Tools returns the tools of the request: without a [Router], the enabled core tools in their
// fixed order, then those of the groups in first-load order.
func (r *Round) Tools() []Tool { return slices.Clone(r.route.Tools) }

// Tokens estimates what the tools of the request cost, including the deferred ones that loads
// show.
func (r *Round) Tokens() int {
	shown := slices.Clone(r.route.Tools)
	for i := range shown {
		shown[i].Deferred = shown[i].Deferred && !slices.Contains(r.loaded, shown[i].Group)
	}
	return EstimateTokens(shown)
}

// Registry returns the registry that this round was made from.
func (r *Round) Registry() *Registry { return r.registry }

// Mode returns [Route].Mode.
func (r *Round) Mode() string { return r.route.Mode }

// Record returns [Route].Record.
func (r *Round) Record() string { return r.route.Record }

// Switched returns [Route].Switched.
func (r *Round) Switched() bool { return r.route.Switched }

// Cold returns [Route].Cold.
func (r *Round) Cold() bool { return r.route.Cold }

// Unwrap returns the tool that a call actually runs, and its input. If that is not the named
// tool, look it up with [Round.LookupUnwrapped]. The error is the answer to a call that cannot be
// unwrapped; tool is then the intended one, or empty.
func (r *Round) Unwrap(name string, arguments json.RawMessage) (tool string, input json.RawMessage, fault *Error) {
	if r.route.Unwrap == nil {
		return name, arguments, nil
	}
	return r.route.Unwrap(name, arguments)
}

// Lookup finds the tool of a call. Look up all calls of a reply, in order, before any of them
// runs: that fixes the order of groups that load in parallel. The error says that there is no
// such tool, that it was not offered in this round (and how to run it), that it has been
// switched off, or that the sender's role does not allow it; in this order.
func (r *Round) Lookup(name string, scope Scope) (Tool, *Error) {
	now := r.set.current()
	i := slices.IndexFunc(r.route.Tools, func(t Tool) bool { return t.Name == name })
	_, registered := now.Tool(name)
	switch {
	case !registered && (i < 0 || !Reserved(name)):
		return Tool{}, Errorf(CodeNotFound, "Tool '%s' not found", oneLine(name, maxEcho))
	case i < 0 && r.reaches(now, name):
		return r.LookupUnwrapped(name, scope)
	case i < 0:
		advice := ""
		if r.route.Advice != nil {
			advice = r.route.Advice(name)
		}
		return Tool{}, notAvailable(now, name, advice)
	}
	return r.admit(now, r.route.Tools[i], scope)
}

// reaches reports whether a tool outside the array may be called by its own name.
func (r *Round) reaches(now *Registry, name string) bool {
	group, ok := now.GroupOf(name)
	return ok && slices.Contains(r.route.Groups, group)
}

// Reach returns the loaded groups that have tools, in first-load order, and the names of their
// tools that are missing in the array of this round or deferred in it, without what
// [Scope.Hides].
func (r *Round) Reach() (groups, outside, deferred []string) {
	for _, name := range r.set.Loaded() {
		tools := slices.DeleteFunc(r.registry.groupTools(name), r.scope.Hides)
		if len(tools) > 0 {
			groups = append(groups, name)
		}
		for _, t := range tools {
			switch i := slices.IndexFunc(r.route.Tools, func(o Tool) bool { return o.Name == t.Name }); {
			case i < 0:
				outside = append(outside, t.Name)
			case r.route.Tools[i].Deferred:
				deferred = append(deferred, t.Name)
			}
		}
	}
	return groups, outside, deferred
}

// LookupUnwrapped finds the tool of a call that [Round.Unwrap] has unwrapped: it need not be offered,
// but must exist, be enabled, and be allowed.
func (r *Round) LookupUnwrapped(name string, scope Scope) (Tool, *Error) {
	now := r.set.current()
	tool, registered := now.Tool(name)
	if !registered {
		return Tool{}, Errorf(CodeNotFound, "Tool '%s' not found", oneLine(name, maxEcho))
	}
	return r.admit(now, tool, scope)
}

// admit runs the checks common to all tools, and gives a load its place in the order.
func (r *Round) admit(now *Registry, tool Tool, scope Scope) (Tool, *Error) {
	if now.Disabled(tool.Name) {
		return Tool{}, Errorf(CodeDisabled, "Tool '%s' is switched off by an administrator. Go on without it.", tool.Name)
	}
	if err := permit(tool, scope); err != nil {
		return Tool{}, err
	}
	if tool.Name == LoadToolGroup {
		ticket := r.set.ticket()
		tool.Run = func(_ context.Context, call Call) (Result, error) {
			return r.set.load(call, ticket, r.route.LoadText)
		}
	}
	return tool, nil
}

// unavailable is the error (S8) for a tool that is not loaded.
const unavailable = "Tool '%s' is not available for this agent"

// notAvailable returns S8 with advice.
func notAvailable(reg *Registry, name, advice string) *Error {
	if reg.Disabled(name) {
		return Errorf(CodeNotAvailable, unavailable+". It is switched off by an administrator.", name)
	}
	if advice != "" {
		return Errorf(CodeNotAvailable, unavailable+". %s", name, advice)
	}
	if group, ok := reg.GroupOf(name); ok {
		return Errorf(CodeNotAvailable, unavailable+". Load its group first: %s(group_name=%q).", name, LoadToolGroup, group)
	}
	return Errorf(CodeNotAvailable, unavailable, name)
}

// permit refuses a call if the sender's role is too low.
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
