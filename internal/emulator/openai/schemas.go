package openai

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// The schemas of tools that services refuse, each with the whole request.

// claudeKeys matches the names of properties that Claude accepts (kintone/mcp-server #547, twilio-labs/mcp #56).
var claudeKeys = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

// ClaudeSchemaError returns why Claude refuses a tool's schema; "" if it does not. It has to be JSON Schema
// 2020-12, without a choice at the top.
func ClaudeSchemaError(raw json.RawMessage) string {
	var schema map[string]any
	if json.Unmarshal(raw, &schema) != nil || schema["type"] != "object" {
		return "input_schema.type: Field required"
	}
	for _, key := range []string{"oneOf", "allOf", "anyOf"} {
		if schema[key] != nil {
			return "input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level"
		}
	}
	return walkSchema(schema, func(at map[string]any) string {
		for _, name := range slices.Sorted(maps.Keys(asMap(at["properties"]))) {
			if !claudeKeys.MatchString(name) {
				return fmt.Sprintf("input_schema.properties: Property keys should match pattern '%s'", claudeKeys)
			}
		}
		if !validKeywords(at) {
			return "input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12 (https://json-schema.org/draft/2020-12). Learn more about tool use at https://docs.claude.com/en/docs/tool-use."
		}
		return ""
	})
}

// validKeywords reports whether the keywords of a schema have values that draft 2020-12 allows.
func validKeywords(at map[string]any) bool { //nolint:cyclop // A case for each kind of keyword.
	kinds := []any{"string", "number", "integer", "boolean", "object", "array", "null"}
	for keyword, v := range at {
		number, isNumber := v.(float64)
		list, isList := v.([]any)
		_, isText := v.(string)
		_, isBool := v.(bool)
		ok := true
		switch keyword {
		case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
			ok = isNumber
		case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties":
			ok = isNumber && number >= 0 && number == float64(int64(number))
		case "items", "additionalProperties", "not", "if", "then", "else":
			ok = isBool || asMap(v) != nil
		case "anyOf", "oneOf", "allOf", "prefixItems":
			ok = isList && len(list) > 0
		case "properties", "patternProperties", "$defs":
			ok = asMap(v) != nil
		case "required":
			ok = isList && !slices.ContainsFunc(list, func(one any) bool { _, text := one.(string); return !text })
			for i, one := range list {
				ok = ok && !slices.Contains(list[:i], one)
			}
		case "enum":
			ok = isList
		case "type":
			ok = isText && slices.Contains(kinds, v) || isList && !slices.ContainsFunc(list, func(one any) bool { return !slices.Contains(kinds, one) })
		case "pattern", "format", "description", "title", "$ref":
			ok = isText
		}
		if !ok {
			return false
		}
	}
	return true
}

// geminiFields are the fields of Google's Schema type (ai.google.dev/api/caching#Schema).
var geminiFields = []string{"type", "format", "title", "description", "nullable", "enum", "maxItems", "minItems", "properties", "required", "minProperties", "maxProperties", "minLength", "maxLength", "pattern", "example", "anyOf", "propertyOrdering", "default", "items", "minimum", "maximum"}

// geminiSchemaError returns why Google's server refuses a tool's schema, in the words of its API (gemini-cli
// #13326, voocel/litellm #9).
func geminiSchemaError(raw json.RawMessage) string {
	var schema map[string]any
	if json.Unmarshal(raw, &schema) != nil {
		return "parameters: invalid"
	}
	return walkSchema(schema, func(at map[string]any) string {
		for _, field := range slices.Sorted(maps.Keys(at)) {
			if !slices.Contains(geminiFields, field) {
				return fmt.Sprintf("parameters: Unknown name %q: Cannot find field.", field)
			}
		}
		_, single := at["type"].(string)
		switch {
		case at["anyOf"] != nil && len(at) > 1:
			return "parameters schema specified other fields alongside any_of. When using any_of, it must be the only field set."
		case at["anyOf"] == nil && !single:
			return "parameters.type: must be specified"
		case at["type"] == "array" && asMap(at["items"]) == nil:
			return "parameters.items: missing field."
		}
		for i, v := range asSlice(at["enum"]) {
			if text, ok := v.(string); at["type"] != "string" || !ok || text == "" {
				return fmt.Sprintf("parameters.enum[%d]: cannot be empty", i)
			}
		}
		return ""
	})
}

// kimiSchemaError returns why Kimi refuses a tool's schema (kimi-cli PR 2030, kimi-code #2661).
func kimiSchemaError(raw json.RawMessage) string {
	var schema map[string]any
	if json.Unmarshal(raw, &schema) != nil {
		return "At path 'root': invalid"
	}
	return walkSchema(schema, func(at map[string]any) string {
		_, single := at["type"].(string)
		for _, name := range asSlice(at["required"]) {
			if text, _ := name.(string); asMap(at["properties"])[text] == nil {
				return fmt.Sprintf("At path 'root': required property '%v' is not defined in properties", name)
			}
		}
		switch {
		case at["anyOf"] != nil && at["type"] != nil:
			return "At path 'root': when using anyOf, type should be defined in anyOf items instead of the parent schema"
		case at["anyOf"] == nil && at["$ref"] == nil && !single:
			names := slices.Sorted(maps.Keys(asMap(schema["properties"])))
			for _, name := range names {
				if sub := asMap(asMap(schema["properties"])[name]); sub["type"] == nil {
					return fmt.Sprintf("At path 'properties.%s': type is not defined", name)
				}
			}
			return "At path 'root': type is not defined"
		}
		return ""
	})
}

// walkSchema returns the first problem that check finds in a schema or in those within it.
func walkSchema(at map[string]any, check func(map[string]any) string) string {
	if problem := check(at); problem != "" {
		return problem
	}
	var below []any
	for _, keyword := range []string{"properties", "$defs", "definitions", "patternProperties"} {
		subs := asMap(at[keyword])
		for _, name := range slices.Sorted(maps.Keys(subs)) {
			below = append(below, subs[name])
		}
	}
	for _, keyword := range []string{"anyOf", "oneOf", "allOf", "prefixItems"} {
		below = append(below, asSlice(at[keyword])...)
	}
	for _, keyword := range []string{"items", "additionalProperties", "not"} {
		below = append(below, at[keyword])
	}
	for _, sub := range below {
		if m := asMap(sub); m != nil {
			if problem := walkSchema(m, check); problem != "" {
				return problem
			}
		}
	}
	return ""
}

func asMap(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

func asSlice(v any) []any {
	list, _ := v.([]any)
	return list
}

// checkSchemas refuses a tool whose schema the service does not accept.
func (p *Profile) checkSchemas(tools []Tool) *Error {
	if p.schemaError == nil {
		return nil
	}
	for i, t := range tools {
		if problem := p.schemaError(t.Parameters); len(t.Parameters) > 0 && problem != "" {
			return newError(p.badSchema, "{i}", fmt.Sprint(i), "{name}", t.Name, "{problem}", strings.TrimSpace(problem))
		}
	}
	return nil
}
