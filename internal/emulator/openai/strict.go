package openai

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

var toolNamePattern = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// maxToolName bounds the name of a tool, in bytes.
const maxToolName = 64

// readTools checks the tools array.
func (r *Request) readTools(limit int) *Error {
	if len(r.ToolsJSON) == 0 || string(r.ToolsJSON) == "null" {
		r.ToolsJSON = nil
		return nil
	}
	var tools []struct {
		Type     string `json:"type"`
		Function struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
		} `json:"function"`
	}
	if err := json.Unmarshal(r.ToolsJSON, &tools); err != nil {
		return invalid("tools", "invalid_type", "Invalid type for 'tools': expected an array of objects.")
	}
	if len(tools) == 0 {
		return invalid("tools", "empty_array", "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead.")
	}
	if len(tools) > limit {
		return invalid("tools", "array_above_max_length", "Invalid 'tools': array too long. Expected an array with maximum length %d, but got an array with length %d instead.", limit, len(tools))
	}
	seen := make(map[string]bool, len(tools))
	for i, t := range tools {
		f := t.Function
		path := fmt.Sprintf("tools[%d].function.name", i)
		switch {
		case t.Type != "function":
			return invalid(fmt.Sprintf("tools[%d].type", i), "invalid_value", "Invalid value: '%s'. Supported values are: 'function' and 'custom'.", t.Type)
		case f.Name == "":
			return invalid(path, "missing_required_parameter", "Missing required parameter: '%s'.", path)
		case len(f.Name) > maxToolName:
			return invalid(path, "string_above_max_length", "Invalid '%s': string too long. Expected a string with maximum length %d, but got a string with length %d instead.", path, maxToolName, len(f.Name))
		case !toolNamePattern.MatchString(f.Name):
			return invalid(path, "invalid_value", "Invalid '%s': string does not match pattern. Expected a string that matches the pattern '%s'.", path, toolNamePattern)
		case seen[f.Name]:
			return invalid(path, "invalid_value", "Invalid '%s': the name '%s' occurs twice.", path, f.Name)
		}
		seen[f.Name] = true
		if err := checkSchema(f.Name, f.Parameters); err != nil {
			err.Param = fmt.Sprintf("tools[%d].function.parameters", i)
			return err
		}
		r.Tools = append(r.Tools, Tool{Name: f.Name, Description: f.Description, Parameters: f.Parameters})
	}
	return nil
}

// checkSchema requires an object at the top level and items in every array. A missing schema means a
// tool without parameters.
func checkSchema(name string, raw json.RawMessage) *Error {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var schema map[string]any
	if err := json.Unmarshal(raw, &schema); err != nil {
		return schemaError(name, "schema must be a JSON Schema of 'type: \"object\"'")
	}
	if kind := schema["type"]; kind != "object" {
		return schemaError(name, fmt.Sprintf("schema must be a JSON Schema of 'type: \"object\"', got 'type: %q'", fmt.Sprint(kind)))
	}
	for _, keyword := range []string{"oneOf", "anyOf", "allOf", "enum", "not"} {
		if schema[keyword] != nil { // google-calendar-mcp #39
			return schemaError(name, "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level")
		}
	}
	if problem := checkArrays(schema, nil); problem != "" {
		return schemaError(name, problem)
	}
	return nil
}

func schemaError(name, problem string) *Error {
	return invalid("", "invalid_function_parameters", "Invalid schema for function '%s': %s.", name, problem)
}

// checkArrays returns the first error in a schema's properties, such as an array without items, or "".
func checkArrays(schema map[string]any, path []string) string {
	if schema["type"] == "array" {
		items, ok := schema["items"].(map[string]any)
		if !ok {
			return fmt.Sprintf("In context=(%s), array schema missing items", strings.Join(path, ", "))
		}
		if problem := checkArrays(items, append(path, "'items'")); problem != "" {
			return problem
		}
	}
	props, ok := schema["properties"].(map[string]any)
	if !ok && schema["properties"] != nil {
		return fmt.Sprintf("In context=(%s), properties is not an object", strings.Join(path, ", "))
	}
	for _, key := range slices.Sorted(maps.Keys(props)) {
		sub, ok := props[key].(map[string]any)
		here := append(slices.Clone(path), "'properties'", "'"+key+"'")
		if !ok {
			return fmt.Sprintf("In context=(%s), %v is not of type 'object'", strings.Join(here, ", "), props[key])
		}
		if problem := checkArrays(sub, here); problem != "" {
			return problem
		}
	}
	return ""
}

// readMessages checks the conversation. Every tool message must answer a call of the preceding
// assistant message, and every call must be answered once before the next message.
func (r *Request) readMessages() *Error {
	var list []wireMessage
	if len(r.MessagesJSON) == 0 {
		return invalid("messages", "missing_required_parameter", "Missing required parameter: 'messages'.")
	}
	if err := json.Unmarshal(r.MessagesJSON, &list); err != nil {
		return invalid("messages", "invalid_type", "Invalid type for 'messages': expected an array of objects.")
	}
	if len(list) == 0 {
		return invalid("messages", "empty_array", "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.")
	}
	var open []string // ids of calls without a result
	for i, in := range list {
		m, err := checkMessage(i, in)
		if err != nil {
			return err
		}
		if m.Role == "tool" {
			at := slices.Index(open, m.ToolCallID)
			if at < 0 {
				//nolint:misspell // the service's own wording
				return invalid(fmt.Sprintf("messages.[%d].role", i), "", "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.")
			}
			open = slices.Delete(open, at, at+1)
		} else if len(open) > 0 {
			return unansweredCalls(i, open)
		}
		for _, c := range m.ToolCalls {
			open = append(open, c.ID)
		}
		r.Messages = append(r.Messages, m)
	}
	if len(open) > 0 {
		return unansweredCalls(len(list), open)
	}
	return nil
}

func unansweredCalls(i int, open []string) *Error {
	return invalid(fmt.Sprintf("messages.[%d].role", i), "", "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: %s", strings.Join(open, ", "))
}

// checkMessage checks a message by itself.
func checkMessage(i int, in wireMessage) (Message, *Error) {
	m := Message{Role: in.Role, ToolCallID: in.ToolCallID}
	null, err := m.readContent(in.Content)
	if err != nil {
		return m, invalid(fmt.Sprintf("messages[%d].content", i), "invalid_type", "Invalid type for 'messages[%d].content': expected one of a string or array of objects.", i)
	}
	switch in.Role {
	case "system", "developer", "user", "tool", "function":
		if null {
			return m, invalid(fmt.Sprintf("messages.[%d].content", i), "", "Invalid value for 'content': expected a string, got null.")
		}
	case "assistant":
		if null && len(in.ToolCalls) == 0 && in.Refusal == nil {
			return m, invalid(fmt.Sprintf("messages.[%d].content", i), "", "Invalid value for 'content': expected a string, got null.")
		}
	default:
		return m, invalid(fmt.Sprintf("messages[%d].role", i), "invalid_value", "Invalid value: '%s'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.", in.Role)
	}
	if in.Role == "tool" && in.ToolCallID == "" {
		return m, invalid(fmt.Sprintf("messages.[%d].tool_call_id", i), "", "Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'.")
	}
	return m, checkCalls(&m, i, in)
}

// checkCalls checks the calls of an assistant message.
func checkCalls(m *Message, i int, in wireMessage) *Error {
	if in.ToolCalls == nil {
		return nil
	}
	if in.Role != "assistant" {
		return invalid(fmt.Sprintf("messages[%d].tool_calls", i), "unknown_parameter", "Unknown parameter: 'messages[%d].tool_calls'.", i)
	}
	if n := len(in.ToolCalls); n == 0 || n > 128 {
		return invalid(fmt.Sprintf("messages[%d].tool_calls", i), "", "Invalid 'messages[%d].tool_calls': expected an array of 1 to 128 calls, but got %d.", i, n)
	}
	for j, c := range in.ToolCalls {
		path := fmt.Sprintf("messages[%d].tool_calls[%d]", i, j)
		switch {
		case c.ID == "":
			return invalid(path+".id", "missing_required_parameter", "Missing required parameter: '%s.id'.", path)
		case c.Type != "function":
			return invalid(path+".type", "invalid_value", "Invalid value: '%s'. Supported values are: 'function' and 'custom'.", c.Type)
		case !toolNamePattern.MatchString(c.Function.Name) || len(c.Function.Name) > maxToolName:
			return invalid(path+".function.name", "invalid_value", "Invalid '%s.function.name': string does not match pattern. Expected a string that matches the pattern '%s'.", path, toolNamePattern)
		case slices.ContainsFunc(m.ToolCalls, func(o ToolCall) bool { return o.ID == c.ID }):
			return invalid(path+".id", "", "Duplicate value for 'tool_call_id' of '%s' in message[%d].", c.ID, i)
		}
		m.ToolCalls = append(m.ToolCalls, ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
	}
	return nil
}
