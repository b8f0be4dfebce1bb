package search

import (
	"context"
	"encoding/json"
	"strings"

	"oneclaw/toolgroups"
)

// Schemas writes the complete parameters of tools, one a line: what stands behind
// the list of a loaded group's tools where these are run through [ToolCall].
func Schemas(tools []toolgroups.Tool) string {
	lines := make([]string, len(tools))
	for i, t := range tools {
		lines[i] = "- " + t.Name + ": " + string(wire(t))
	}
	return strings.Join(lines, "\n")
}

// described is a tool in the result of a description.
type described struct {
	Name        string          `json:"name,omitempty"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

// manyDescribed describes several tools.
type manyDescribed struct {
	Tools    map[string]described `json:"tools"`
	NotFound []string             `json:"not_found,omitempty"`
	Errors   map[string]string    `json:"errors,omitempty"`
	Hint     string               `json:"hint,omitempty"`
}

// describe is what tool_describe does.
func (b *Bridge) describe(_ context.Context, call toolgroups.Call) (toolgroups.Result, error) {
	args, fault := object(ToolDescribe, call.Arguments)
	if fault != nil {
		return toolgroups.Result{}, fault
	}
	names := texts(args["name"], args["names"])
	_, batch := args["names"]
	switch {
	case len(names) == 0:
		return toolgroups.Result{}, toolgroups.Errorf(toolgroups.CodeMissingParameter,
			"Required parameter 'name' is missing. Find names with %s.", ToolSearch)
	case len(names) > MaxNames:
		return toolgroups.Result{}, toolgroups.Errorf(toolgroups.CodeInvalid, "Too many names: %d, at most %d in one call.", len(names), MaxNames)
	case !batch:
		entry, ok := b.cfg.Catalogue.Lookup(names[0])
		if !ok {
			return toolgroups.Result{}, b.unknown(names[0])
		}
		return reply(described{names[0], entry.Tool.Description, wire(entry.Tool)})
	}
	return b.describeAll(names)
}

func (b *Bridge) describeAll(names []string) (toolgroups.Result, error) {
	r := manyDescribed{Tools: map[string]described{}, Errors: map[string]string{}}
	size := 0
	for _, name := range names {
		entry, ok := b.cfg.Catalogue.Lookup(name)
		if !ok {
			if fault := b.unknown(name); fault.Code == toolgroups.CodeNotFound {
				r.NotFound = append(r.NotFound, clip(name, maxEcho))
			} else {
				r.Errors[clip(name, maxEcho)] = fault.Message
			}
			continue
		}
		size += len(entry.Tool.Parameters)
		if size > maxSchemas && len(r.Tools) > 0 {
			r.Errors[name] = "Left out because the answer would be too long. Describe it alone."
			continue
		}
		r.Tools[name] = described{Description: entry.Tool.Description, Parameters: wire(entry.Tool)}
	}
	if len(r.NotFound) > 0 {
		r.Hint = "Check the spelling of what was not found with " + ToolSearch + "."
	}
	return reply(r)
}

// wire returns parameters that can be encoded, whatever the tool holds.
func wire(t toolgroups.Tool) json.RawMessage {
	if !json.Valid(t.Parameters) {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return t.Parameters
}
