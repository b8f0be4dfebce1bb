package openai

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Tools through which others are found and run that are not listed themselves.
const (
	searchTool = "tool_search"
	callTool   = "tool_call"
)

// hit is where the result of a load or a search shows a tool with its parameters.
var hit = regexp.MustCompile(`(?m)"name":"([a-zA-Z0-9_-]+)"|^- ([a-zA-Z0-9_-]+)\(`)

// seeBridge makes tools known that can be run through another, and shows calls of that
// kind as what they run.
func (t *turn) seeBridge(messages []Message) {
	t.direct = maps.Clone(t.tools)
	if !t.direct[callTool] {
		return
	}
	for _, m := range messages {
		if m.Role != "tool" {
			continue
		}
		for _, found := range hit.FindAllStringSubmatch(m.Content, -1) {
			t.tools[found[1]+found[2]] = true
		}
	}
	for i := range t.done {
		if inner, ok := unwrap(t.done[i].call); ok {
			t.done[i].call = inner
		}
	}
}

// unwrap is the call that a call of another kind runs.
func unwrap(c ToolCall) (ToolCall, bool) {
	var inner struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if c.Name != callTool || json.Unmarshal([]byte(c.Arguments), &inner) != nil || inner.Name == "" {
		return c, false
	}
	return ToolCall{ID: c.ID, Name: inner.Name, Arguments: string(inner.Arguments)}, true
}

// wrap has calls of tools that are not listed themselves go through the bridge.
func (t *turn) wrap(calls []ToolCall) []ToolCall {
	for i, c := range calls {
		if !t.direct[c.Name] && t.direct[callTool] {
			calls[i] = ToolCall{ID: c.ID, Name: callTool, Arguments: arguments(map[string]any{
				"name": c.Name, "arguments": json.RawMessage(c.Arguments),
			})}
		}
	}
	return calls
}

// seek searches for a tool where that can be done and was not done yet.
func (t *turn) seek(tool string) (Reply, bool) {
	sought := slices.ContainsFunc(t.done, func(d result) bool { return d.call.Name == searchTool })
	if !t.direct[searchTool] || sought {
		return Reply{}, false
	}
	return Reply{Calls: []ToolCall{{Name: searchTool, Arguments: arguments(map[string]any{
		"query": strings.ReplaceAll(tool, "_", " "),
	})}}}, true
}
