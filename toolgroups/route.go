package toolgroups

import (
	"encoding/json"
	"slices"
)

// These tools let a model find, inspect and run tools that are not in the tools array. A [Router]
// adds them; a registry rejects other tools with these names.
const (
	ToolSearch   = "tool_search"
	ToolDescribe = "tool_describe"
	ToolCall     = "tool_call"
)

// ReservedNames returns the names that no tool of a registry can have.
func ReservedNames() []string { return []string{ToolSearch, ToolDescribe, ToolCall} }

// Reserved reports whether a name is one of [ReservedNames].
func Reserved(name string) bool { return slices.Contains(ReservedNames(), name) }

// Router decides which tools are in the tools array of a request, and how the model reaches the
// others. Without a router the array has the core and the loaded groups.
type Router interface {
	// Route returns the route of the next request. Equal inputs give equal routes, and loading more
	// groups only appends tools. It may be called concurrently.
	Route(f RouteInput) Route
}

// RouteInput is the input of a [Router].
type RouteInput struct {
	// Registry is the current registry, and Loaded are the groups that the conversation has loaded,
	// in first-load order. [Set.Route] sets both.
	Registry *Registry
	Loaded   []string
	// Scope says on whose behalf tools run.
	Scope Scope
	// ContextTokens is the size of the model's context, MaxTools the longest tools array that its provider
	// accepts; zero means unknown.
	ContextTokens int
	MaxTools      int
	// FirstRequest is true for the first request of a conversation.
	FirstRequest bool
	// PastCalls are the calls in the current turn that have a result, oldest first.
	PastCalls []PastCall
	// VisibleResults, if not nil, returns the results of [LoadToolGroup], [ToolSearch] and
	// [ToolDescribe] that the model still sees. It may be called concurrently.
	VisibleResults func() []string
}

// PastCall is a call as the model wrote it, with its result.
type PastCall struct {
	Tool      string
	Arguments string
	// Result is the text given to the model. OK is false for an error.
	Result string
	OK     bool
}

// Route is the decision of a [Router]. Its functions may be called concurrently.
type Route struct {
	// Mode names the kind of route. It is stored with each reply: the model is told if it changes.
	Mode string
	// Tools is the tools array. It may have tools that the registry lacks.
	Tools []Tool
	// Unwrap returns the tool that a call actually runs, and its input; other calls are returned
	// unchanged. The error says what is wrong with the call and that nothing was run; tool is then
	// the intended tool, or empty if unknown. A nil Unwrap unwraps nothing.
	Unwrap func(name string, arguments json.RawMessage) (tool string, input json.RawMessage, fault *Error)
	// AllListed is true if Tools has every tool that the sender may use, so that nothing needs to be loaded.
	AllListed bool
	// Advice returns a sentence that tells the model how to run a tool outside the array. If it is
	// empty or Advice is nil, the model is told to load the tool's group.
	Advice func(name string) string
	// Groups are the groups whose tools may be called by name even if they are not in the array.
	Groups []string
	// LoadText returns the answer to loading a group with these tools; loaded are all groups loaded
	// by then. Nil means the function [LoadText].
	LoadText func(loaded []string, group Group, tools []Tool) string
}

// Route returns the tools for the next model request, as the router decides. A nil router offers
// the core and the loaded groups, up to f.MaxTools tools. Later loads do not change the result.
func (s *Set) Route(router Router, f RouteInput) *Round {
	f.Registry, f.Loaded = s.current(), s.Loaded()
	var route Route
	if router != nil {
		route = router.Route(f)
	} else {
		route.Tools, route.Groups = f.Registry.EnabledTools(f.Loaded), f.Loaded
		if f.MaxTools > 0 && len(route.Tools) > f.MaxTools {
			route.Tools = route.Tools[:f.MaxTools]
		}
	}
	return &Round{set: s, registry: f.Registry, route: route, scope: f.Scope}
}

// Round is [Set.Route] without a router.
func (s *Set) Round() *Round { return s.Route(nil, RouteInput{}) }

// EnabledTools returns the enabled tools: the core in its fixed order, then those of the groups in
// the given order. Unknown groups have none.
func (r *Registry) EnabledTools(groups []string) []Tool {
	tools := r.appendEnabled(make([]Tool, 0, len(r.core)), r.core)
	for _, name := range groups {
		tools = append(tools, r.groupTools(name)...)
	}
	return tools
}

// Refusal returns the error for a call of a registered tool that is not offered, which says what to
// do instead. It returns nil for an unknown name.
func (r *Registry) Refusal(name string, scope Scope) *Error {
	if _, ok := r.Tool(name); !ok {
		return nil
	}
	return notAvailableError(r, name, "", scope)
}
