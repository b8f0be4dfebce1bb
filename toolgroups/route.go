package toolgroups

import (
	"encoding/json"
	"slices"
	"time"
)

// The tools through which a model finds, reads and runs tools that are not in the
// tools array. A [Router] puts them into an array; a registry admits no tool of these
// names.
const (
	ToolSearch   = "tool_search"
	ToolDescribe = "tool_describe"
	ToolCall     = "tool_call"
)

// ReservedNames are the names that no tool of a registry can have.
func ReservedNames() []string { return []string{ToolSearch, ToolDescribe, ToolCall} }

// Reserved reports whether no tool of a registry can have the name.
func Reserved(name string) bool { return slices.Contains(ReservedNames(), name) }

// Router decides which tools stand in the tools array of a request, and how the model
// reaches the others. Without one they are the core and the groups that are loaded.
type Router interface {
	// Route is asked before each request. The same facts give the same route, and
	// more loaded groups one whose tools begin with those of fewer. It may be called
	// concurrently.
	Route(f Facts) Route
}

// Facts are what a [Router] decides by.
type Facts struct {
	// Registry is the one of this round, Loaded the groups that the conversation has
	// loaded, in first-load order. [Set.Route] fills them in.
	Registry *Registry
	Loaded   []string
	// Scope is on whose behalf tools run.
	Scope Scope
	// Model is the name of the model, ContextTokens the size of its context, MaxTools
	// the longest tools array that its provider takes; zero means unknown.
	Model         string
	ContextTokens int
	MaxTools      int
	// Native says that the provider has a search of its own for tools that are deferred.
	Native bool
	// Recorded is what [Round.Record] returned earlier in the conversation; empty where
	// nothing was, or where nothing of the conversation is left that says so.
	Recorded string
	// First is true for the first request of a conversation.
	First bool
	// Idle is how long ago the model replied last in the conversation; 0 where it did not.
	Idle time.Duration
	// Kept is for how long the provider was asked to keep the prompt then; 0 where it was not.
	Kept time.Duration
	// Past are the calls of the present turn that have a result, oldest first.
	Past []PastCall
	// Shown, if not nil, returns the results of [LoadToolGroup], [ToolSearch] and [ToolDescribe] that
	// the model still sees. It may be called concurrently.
	Shown func() []string
}

// PastCall is a call as the model wrote it, with its result.
type PastCall struct {
	Tool      string
	Arguments string
	// Result is the text that the model was given. OK is false for an error.
	Result string
	OK     bool
}

// Route is what a [Router] has decided. Its functions may be called concurrently.
type Route struct {
	// Mode names the way the tools go, for logs and measurements.
	Mode string
	// Record, if not empty, is kept with the conversation and given back as [Facts].Recorded.
	Record string
	// Switched says that Mode is another one than what was recorded.
	Switched bool
	// Cold says that the model's cache has nothing of the conversation, whatever the request says.
	Cold bool
	// Tools is the tools array. It may hold tools that the registry does not have.
	Tools []Tool
	// Unwrap returns the tool that a call of one of those runs in truth, and what that
	// tool is given; any other call is returned as it is. The error says what is wrong
	// with the call and that nothing was run; the tool is then the one that was meant, or
	// empty where that cannot be told. Nil stands for calls that are what they seem.
	Unwrap func(name string, arguments json.RawMessage) (tool string, input json.RawMessage, fault *Error)
	// Advice says how a tool that is not in the array can be run, as a sentence for the
	// model; empty means by loading its group. Nil always says so.
	Advice func(name string) string
	// Groups are those whose tools may be called by their own names although they are not in
	// the array.
	Groups []string
	// LoadText is the answer to loading a group of these tools, given all groups that are
	// loaded then. Nil stands for [LoadText].
	LoadText func(loaded []string, display string, tools []Tool) string
}

// Route returns what the next model request offers, as the router decides; nil means
// the core and the loaded groups, up to the longest array that the facts allow. Loads
// that follow do not change it.
func (s *Set) Route(router Router, f Facts) *Round {
	f.Registry, f.Loaded = s.current(), s.Loaded()
	var route Route
	if router != nil {
		route = router.Route(f)
	} else {
		route.Tools, route.Groups = f.Registry.Offer(f.Loaded), f.Loaded
		if f.MaxTools > 0 && len(route.Tools) > f.MaxTools {
			route.Tools = route.Tools[:f.MaxTools]
		}
	}
	return &Round{set: s, registry: f.Registry, route: route, scope: f.Scope, loaded: f.Loaded}
}

// Round is [Set.Route] without a router.
func (s *Set) Round() *Round { return s.Route(nil, Facts{}) }

// Offer returns the tools that are switched on: the core in its fixed order, then
// those of the groups in the order given. Groups that are unknown have none.
func (r *Registry) Offer(groups []string) []Tool {
	tools := r.enabled(make([]Tool, 0, len(r.core)), r.core)
	for _, name := range groups {
		tools = append(tools, r.groupTools(name)...)
	}
	return tools
}

// Refusal says why a registered tool that is not offered cannot be called, and what
// helps; nil for a name that no tool has.
func (r *Registry) Refusal(name string, scope Scope) *Error {
	tool, ok := r.Tool(name)
	if !ok {
		return nil
	}
	if !r.Disabled(name) {
		if err := permit(tool, scope); err != nil {
			return err
		}
	}
	return notAvailable(r, name, "")
}
