package openai

import (
	"encoding/json"
	"maps"
	"regexp"
)

// Tools that find and run tools outside the tools array.
const (
	searchTool = "tool_search"
	callTool   = "tool_call"
)

// toolPattern matches the name of a tool with parameters in the result of a load or a search.
var toolPattern = regexp.MustCompile(`(?m)"name":"([a-zA-Z0-9_-]+)"|^- ([a-zA-Z0-9_-]+)\(`)

// addBridgeTools adds the tools that can be called through the bridge.
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
}

// unwrapCall returns the call inside a call through the bridge, and any other as it is.
func unwrapCall(c ToolCall) ToolCall {
	var inner struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if c.Name != callTool || json.Unmarshal([]byte(c.Arguments), &inner) != nil || inner.Name == "" {
		return c
	}
	return ToolCall{ID: c.ID, Name: inner.Name, Arguments: string(inner.Arguments)}
}

// wrapCalls makes calls of tools outside the tools array go through the bridge.
func (t *turn) wrapCalls(calls []ToolCall) []ToolCall {
	for i, c := range calls {
		if !t.listedTools[c.Name] && t.listedTools[callTool] {
			calls[i] = call(callTool, map[string]any{"name": c.Name, "arguments": json.RawMessage(c.Arguments)})
		}
	}
	return calls
}
