package search

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"oneclaw/toolgroups"
)

// resolve unwraps a call of [toolgroups.ToolCall] once: it returns the tool that actually runs and its
// input. Other calls are returned unchanged. It accepts the arguments as an object, as a JSON
// string, blank, null, or flattened beside the name, and a list "calls" with one entry. Unless the
// tool checks its arguments itself, resolve checks them against its schema. If it returns an error,
// nothing was run, and tool is the intended tool, if known.
//
// resolve does not authorize the call: the caller looks the tool up, asks for approval and logs as
// for a direct call.
func (b *bridge) resolve(name string, arguments json.RawMessage) (tool string, input json.RawMessage, fault *toolgroups.Error) {
	if name != toolgroups.ToolCall {
		return name, arguments, nil
	}
	outer, fault := parseArguments(toolgroups.ToolCall, arguments)
	if fault != nil {
		return "", nil, fault
	}
	if outer, fault = unwrapCalls(outer); fault != nil {
		return "", nil, fault
	}
	target, fault := b.takeToolName(outer)
	if fault != nil {
		return "", nil, fault
	}
	entry, ok := b.cfg.catalogue.lookup(target)
	if !ok {
		fault := b.unknownError(target)
		if fault.Code == toolgroups.CodeNotFound {
			target = "" // unknown names are mistakes of this tool
		}
		return target, outer["arguments"], fault
	}
	inner, fault := innerArguments(outer, entry.tool)
	if fault != nil {
		return target, outer["arguments"], fault
	}
	if !entry.tool.ChecksArguments {
		checked, fault := toolgroups.ValidateArguments(entry.tool, inner)
		if fault != nil {
			return target, inner, &toolgroups.Error{Code: fault.Code, Message: "Not run: " + fault.Message, Own: fault.Own}
		}
		inner = checked
	}
	return target, inner, nil
}

// fields are the undecoded members of an object.
type fields map[string]json.RawMessage

// parseArguments parses the arguments of a bridge tool in any of the accepted forms.
func parseArguments(tool string, raw json.RawMessage) (fields, *toolgroups.Error) {
	fixed, err := toolgroups.RepairArguments(raw)
	var f fields
	if err == nil {
		err = json.Unmarshal(fixed, &f)
	}
	if err != nil {
		example := map[string]string{
			toolgroups.ToolSearch: `{"query": "..."}`, toolgroups.ToolDescribe: `{"name": "..."}`, toolgroups.ToolCall: `{"name": "...", "arguments": {...}}`,
		}[tool]
		return nil, toolgroups.OwnErrorf(toolgroups.CodeInvalid, "Not run: invalid JSON in the arguments of %s: %s. Send %s.",
			tool, errorText(raw, err), example)
	}
	return f, nil
}

// errorText returns the text of err, with the decoder's syntax error if raw is not valid JSON.
func errorText(raw json.RawMessage, err error) string {
	var v any
	if syntax, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(raw, &v)); ok {
		return err.Error() + " (" + syntax.Error() + ")"
	}
	return err.Error()
}

// unwrapCalls replaces arguments with a list "calls" by its only entry.
func unwrapCalls(outer fields) (fields, *toolgroups.Error) {
	raw, ok := outer["calls"]
	if _, has := outer["name"]; !ok || has {
		return outer, nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		raw = json.RawMessage(text)
	}
	var calls []json.RawMessage
	if json.Unmarshal(raw, &calls) != nil {
		calls = []json.RawMessage{raw}
	}
	if len(calls) == 1 {
		return parseArguments(toolgroups.ToolCall, calls[0])
	}
	const echo = 1000
	first := ""
	if len(calls) > 0 {
		first = " Start with: " + clipLine(string(calls[0]), echo)
	}
	return nil, toolgroups.OwnErrorf(toolgroups.CodeInvalid,
		"Not run: %s runs one tool per call, not %d. Make several calls of it side by side.%s", toolgroups.ToolCall, len(calls), first)
}

// takeToolName returns the name of the tool, and removes it from outer unless its key is "name".
func (b *bridge) takeToolName(outer fields) (string, *toolgroups.Error) {
	for _, key := range []string{"name", "tool_name", "tool"} {
		var name string
		if json.Unmarshal(outer[key], &name) == nil && strings.TrimSpace(name) != "" {
			if key != "name" {
				delete(outer, key)
			}
			return strings.TrimSpace(name), nil
		}
	}
	return "", toolgroups.OwnErrorf(toolgroups.CodeMissingParameter,
		"Not run: %s needs the name of a tool: {\"name\": \"...\", \"arguments\": {...}}. Find names with %s.", toolgroups.ToolCall, b.finderName())
}

// innerArguments returns the arguments of the tool, whether nested or beside its name.
func innerArguments(outer fields, tool toolgroups.Tool) (json.RawMessage, *toolgroups.Error) {
	known := func(name string) bool { return slices.Contains(parameterNames(tool), name) }
	raw, key := json.RawMessage(nil), "arguments"
	for _, k := range []string{"arguments", "args", "input", "parameters"} {
		if v, ok := outer[k]; ok && (k == "arguments" || !known(k)) {
			raw, key = v, k
			break
		}
	}
	fixed, err := toolgroups.RepairArguments(unquote(raw))
	if err != nil {
		return nil, toolgroups.OwnErrorf(toolgroups.CodeInvalid, "Not run: invalid JSON in '%s' for '%s': %s. Its parameters: %s",
			key, tool.Name, errorText(unquote(raw), err), tool.Parameters)
	}
	args := fields{}
	if err := json.Unmarshal(fixed, &args); err != nil {
		return nil, toolgroups.OwnErrorf(toolgroups.CodeInvalid, "Not run: '%s' for '%s' must be one JSON object", key, tool.Name)
	}
	empty := len(args) == 0
	for k, v := range outer {
		_, there := args[k]
		// Move the values beside the name into the arguments, unless these have them.
		if k != "name" && k != key && !there && (empty || known(k)) {
			args[k] = v
		}
	}
	out, err := toolgroups.EncodeJSON(args)
	if err != nil {
		return nil, toolgroups.OwnErrorf(toolgroups.CodeInvalid, "Not run: '%s' for '%s' is not valid JSON", key, tool.Name)
	}
	return out, nil
}

// unquote decodes a JSON string, so that a blank one means no arguments.
func unquote(raw json.RawMessage) json.RawMessage {
	var text string
	if bytes.HasPrefix(raw, []byte(`"`)) && json.Unmarshal(raw, &text) == nil {
		return json.RawMessage(strings.TrimSpace(text))
	}
	return raw
}

// parseTexts parses strings given as a list, as one string, or as a list in a string. It drops
// blanks and duplicates.
func parseTexts(raws ...json.RawMessage) []string {
	var out []string
	add := func(s string) {
		if s = strings.TrimSpace(s); s != "" && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	for _, raw := range raws {
		var one string
		var many []any
		switch {
		case json.Unmarshal(raw, &one) == nil && !strings.HasPrefix(strings.TrimSpace(one), "["):
			add(one)
		case json.Unmarshal(raw, &many) == nil, json.Unmarshal([]byte(one), &many) == nil:
			for _, v := range many {
				if s, ok := v.(string); ok {
					add(s)
				}
			}
		default:
			add(one)
		}
	}
	return out
}
