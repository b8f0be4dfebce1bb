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

// toolPattern matches the name of a tool with parameters in the result of a load or a search.
var toolPattern = regexp.MustCompile(`(?m)"name":"([a-zA-Z0-9_-]+)"|^- ([a-zA-Z0-9_-]+)\(`)

// addBridgeTools adds the tools that can be called through the bridge, and unwraps calls through it.
func (t *turn) addBridgeTools(messages []Message) {
	t.listedTools = maps.Clone(t.tools)
	if !t.listedTools[callTool] {
		return
	}
	for _, m := range messages {
		if m.Role != "tool" {
			continue
		}
		for _, found := range toolPattern.FindAllStringSubmatch(m.Content, -1) {
			t.tools[found[1]+found[2]] = true
		}
	}
	for i := range t.results {
		if inner, ok := unwrapCall(t.results[i].call); ok {
			t.results[i].call = inner
		}
	}
}

// unwrapCall returns the call inside a call through the bridge.
func unwrapCall(c ToolCall) (ToolCall, bool) {
	var inner struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if c.Name != callTool || json.Unmarshal([]byte(c.Arguments), &inner) != nil || inner.Name == "" {
		return c, false
	}
	return ToolCall{ID: c.ID, Name: inner.Name, Arguments: string(inner.Arguments)}, true
}

// wrapCalls makes calls of tools outside the tools array go through the bridge.
func (t *turn) wrapCalls(calls []ToolCall) []ToolCall {
	for i, c := range calls {
		if !t.listedTools[c.Name] && t.listedTools[callTool] {
			calls[i] = ToolCall{ID: c.ID, Name: callTool, Arguments: encodeArguments(map[string]any{
				"name": c.Name, "arguments": json.RawMessage(c.Arguments),
			})}
		}
	}
	return calls
}

// searchForTool searches for a tool, if that is possible and this turn has not searched yet.
func (t *turn) searchForTool(tool string) (Reply, bool) {
	sought := slices.ContainsFunc(t.results, func(d result) bool { return d.call.Name == searchTool })
	if !t.listedTools[searchTool] || sought {
		return Reply{}, false
	}
	return Reply{Calls: []ToolCall{{Name: searchTool, Arguments: encodeArguments(map[string]any{
		"query": strings.ReplaceAll(tool, "_", " "),
	})}}}, true
}
