package openai

import (
	"encoding/json"
	"fmt"
	"slices"

	"oneclaw/agent/provider"
	"oneclaw/toolgroups"
)

// encodeTools encodes a tools array for the API and the dialect. The bytes depend only on the tools,
// and a longer list begins with the bytes of a shorter one.
func (c *Client) encodeTools(tools []toolgroups.Tool, q quirks) json.RawMessage {
	if c.cfg.Dialect != DialectOpenAI {
		adapted := make([]toolgroups.Tool, len(tools))
		for i, t := range tools {
			adapted[i] = toolgroups.Tool{Name: t.Name, Description: t.Description, Parameters: adaptSchema(c.cfg.Dialect, t.Parameters)}
		}
		tools = adapted
	}
	if q.useResponses {
		// Without strict set to false, OpenAI would apply its strict mode to schemas.
		return toolgroups.EncodeToolsAs(tools, `{"type":"function",`, `,"strict":false}`)
	}
	return toolgroups.EncodeTools(tools)
}

// adaptSchema removes the keywords that a dialect refuses. An invalid schema is returned unchanged.
func adaptSchema(d Dialect, schema json.RawMessage) json.RawMessage {
	if d == DialectAnthropic {
		return provider.ClaudeSchema(schema)
	}
	var object map[string]any
	if json.Unmarshal(schema, &object) != nil || object == nil {
		return schema
	}
	adapted, err := toolgroups.EncodeJSON(geminiSchema(object, 0))
	if err != nil {
		return schema
	}
	return adapted
}

// maxSchemaDepth bounds the depth of a schema.
const maxSchemaDepth = 32

// geminiSchema keeps only the fields of Google's Schema type (ai.google.dev/api/caching#Schema), because
// its server refuses requests with any other field.
func geminiSchema(in map[string]any, depth int) map[string]any {
	out := map[string]any{}
	if depth > maxSchemaDepth {
		return map[string]any{"type": "string"}
	}
	for key, v := range in {
		switch key {
		case "title", "description", "nullable", "required", "minItems", "maxItems", "minimum", "maximum", "minLength", "maxLength", "pattern":
			out[key] = v
		case "items":
			out[key] = geminiSchema(asObject(v), depth+1)
		case "properties":
			properties := map[string]any{}
			for name, p := range asObject(v) {
				properties[name] = geminiSchema(asObject(p), depth+1)
			}
			out[key] = properties
		case "anyOf", "oneOf":
			list, _ := v.([]any)
			var variants []any
			for _, variant := range list {
				variants = append(variants, geminiSchema(asObject(variant), depth+1))
			}
			if len(variants) > 0 {
				out["anyOf"] = variants
			}
		}
	}
	filterRequired(out)
	setGeminiType(in, out)
	return out
}

// filterRequired keeps only required names that are properties, because Gemini refuses others.
func filterRequired(schema map[string]any) {
	list, ok := schema["required"].([]any)
	if !ok {
		delete(schema, "required")
		return
	}
	properties := asObject(schema["properties"])
	list = slices.DeleteFunc(slices.Clone(list), func(name any) bool {
		text, _ := name.(string)
		_, has := properties[text]
		return !has
	})
	if schema["required"] = list; len(list) == 0 {
		delete(schema, "required")
	}
}

// setGeminiType sets the schema's type, of which Gemini allows only one, and its enum, which Gemini
// accepts only for strings.
func setGeminiType(in, out map[string]any) {
	kind, _ := in["type"].(string)
	if list, ok := in["type"].([]any); ok {
		for _, t := range list {
			if t == "null" {
				out["nullable"] = true
			} else if kind == "" {
				kind = fmt.Sprint(t)
			}
		}
	}
	if kind == "" && out["anyOf"] == nil {
		kind = impliedType(in)
	}
	if kind != "" {
		out["type"] = kind
	}
	if values := allowedValues(in); kind == "string" && len(values) > 0 {
		out["enum"] = values
	}
	if kind == "array" && out["items"] == nil {
		out["items"] = map[string]any{"type": "string"}
	}
}

// impliedType returns the type for a schema without a type.
func impliedType(schema map[string]any) string {
	if schema["properties"] != nil || schema["required"] != nil {
		return "object"
	}
	return "string"
}

// allowedValues returns the values that a schema's enum or const allows; nil means all.
func allowedValues(schema map[string]any) []any {
	if values, ok := schema["enum"].([]any); ok {
		return values
	}
	if value, ok := schema["const"]; ok {
		return []any{value}
	}
	return nil
}

// asObject returns a value as a schema; nil if the value is not an object, such as true or false.
func asObject(v any) map[string]any {
	object, _ := v.(map[string]any)
	return object
}
