package bill

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"oneclaw/toolgroups"
)

// NewStandInRegistry makes a registry in which stand turns each tool into a stand-in, except the
// one that loads groups.
func NewStandInRegistry(core []toolgroups.Tool, groups []toolgroups.Group, stand func(*toolgroups.Tool)) (*toolgroups.Registry, error) {
	cfg := toolgroups.RegistryConfig{}
	for _, g := range groups {
		g.Tools = slices.Clone(g.Tools)
		for i := range g.Tools {
			stand(&g.Tools[i])
		}
		cfg.Groups = append(cfg.Groups, g)
	}
	for _, t := range core {
		if t.Name != toolgroups.LoadToolGroup {
			stand(&t)
			cfg.Core = append(cfg.Core, t)
		}
	}
	return toolgroups.NewRegistry(cfg)
}

// CodeUnrecorded is the error code of a call without a recorded result.
const CodeUnrecorded = "unrecorded"

const unrecordedText = "This call is not on record. This conversation is replayed for a test, with the results that tools gave when it took place: " +
	"nothing was run, and nothing has changed. Go on with what you have, or say in your answer what you would have done."

// Results are the results of a conversation's calls, which stand-ins return. Run may be called
// concurrently.
type Results struct {
	mu         sync.Mutex
	calls      []Call
	used       []bool
	next       map[string][]int // indexes of equal calls by FormatCall, the next one first
	unrecorded int
}

// NewResults makes the results of calls.
func NewResults(calls ...Call) *Results {
	r := &Results{calls: calls, used: make([]bool, len(calls)), next: map[string][]int{}}
	for i, c := range calls {
		arguments, _ := toolgroups.EncodeJSON(c.arguments()) // decoded from JSON or YAML
		key := FormatCall(c.Tool, string(arguments))
		r.next[key] = append(r.next[key], i)
	}
	return r
}

// Run returns the recorded result of the same call. Equal calls get their results in turn.
func (r *Results) Run(_ context.Context, call toolgroups.Call) (toolgroups.Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := FormatCall(call.Name, string(call.Arguments))
	same := r.next[key]
	if len(same) == 0 {
		r.unrecorded++
		return toolgroups.Result{}, toolgroups.Errorf(CodeUnrecorded, unrecordedText)
	}
	i := same[0]
	r.next[key], r.used[i] = append(same[1:], i), true
	if c := r.calls[i]; c.Code != "" {
		return toolgroups.Result{}, toolgroups.Errorf(c.Code, "%s", c.Result)
	}
	return toolgroups.Result{Text: r.calls[i].Result}, nil
}

// Unrecorded returns the number of calls that had no result.
func (r *Results) Unrecorded() int { return r.unrecorded }

// unused returns the calls whose results were not returned.
func (r *Results) unused() (left []Call) {
	for i, c := range r.calls {
		if !r.used[i] {
			left = append(left, c)
		}
	}
	return left
}

// FormatCall formats a call, so that the texts of equal calls are equal.
func FormatCall(tool, arguments string) string {
	if arguments == "" {
		arguments = "{}"
	}
	var v any
	if json.Unmarshal([]byte(arguments), &v) == nil {
		if data, err := toolgroups.EncodeJSON(v); err == nil {
			arguments = string(data)
		}
	}
	return tool + " " + arguments
}
