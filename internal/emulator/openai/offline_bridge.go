package openai

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Tools that find and run tools outside the tools array.
const (
	searchTool = "tool_search"
	callTool   = "tool_call"
)

// hit matches a tool with its parameters in the result of a load or a search.
var hit = regexp.MustCompile(`(?m)"name":"([a-zA-Z0-9_-]+)"|^- ([a-zA-Z0-9_-]+)\(`)

// seeBridge adds tools that can be run through the bridge, and unwraps calls of it.
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

// unwrap returns the call inside a call of the bridge.
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

// wrap sends calls of tools outside the array through the bridge.
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

// seek searches for a tool if that is possible and was not done yet.
func (t *turn) seek(tool string) (Reply, bool) {
	sought := slices.ContainsFunc(t.done, func(d result) bool { return d.call.Name == searchTool })
	if !t.direct[searchTool] || sought {
		return Reply{}, false
	}
	return Reply{Calls: []ToolCall{{Name: searchTool, Arguments: arguments(map[string]any{
		"query": strings.ReplaceAll(tool, "_", " "),
	})}}}, true
}
