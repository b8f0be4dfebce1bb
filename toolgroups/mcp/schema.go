package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"oneclaw/toolgroups"
)

// maxSchema bounds an offered schema, in bytes.
const maxSchema = 32 << 10

// maxRefs bounds the references that are followed at the top of a schema.
const maxRefs = 8

// normalizeSchema turns a server's schema into one that every provider accepts. Servers leave out
// the type, write [] for no properties, or put a choice at the top level. A provider then refuses the
// whole request.
func normalizeSchema(raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) > maxSchema {
		return nil, fmt.Errorf("its schema has more than %d bytes", maxSchema)
	}
	if s := string(bytes.TrimSpace(raw)); s == "" || s == "null" || s == "true" {
		raw = json.RawMessage("{}")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var top map[string]any
	if err := dec.Decode(&top); err != nil || top == nil {
		return nil, errors.New("its schema is not an object")
	}
	top, err := dereference(top)
	if err != nil {
		return nil, err
	}
	flatten(top)
	if !isObject(top["type"]) {
		return nil, fmt.Errorf("its schema is of type %v, not object", top["type"])
	}
	top["type"] = "object"
	if _, ok := top["required"].([]any); !ok {
		delete(top, "required")
	}
	flat, err := toolgroups.EncodeJSON(top)
	if err != nil {
		return nil, err
	}
	return toolgroups.NormalizeParameters(flat)
}

// dereference replaces a reference at the top level with its definition.
func dereference(top map[string]any) (map[string]any, error) {
	for range maxRefs {
		ref, ok := top["$ref"].(string)
		if !ok {
			return top, nil
		}
		section, name, ok := strings.Cut(strings.TrimPrefix(ref, "#/"), "/")
		defs, isMap := top[section].(map[string]any)
		target, found := defs[name].(map[string]any)
		if !ok || !isMap || !found {
			return nil, fmt.Errorf("its schema refers to %q, which it does not have", ref)
		}
		next := maps.Clone(target)
		next[section] = defs
		top = next
	}
	return nil, fmt.Errorf("its schema refers to itself")
}

// flatten removes the keywords that must not be at the top level. It offers the properties of all
// alternatives; the server checks which belong together.
func flatten(top map[string]any) {
	properties := map[string]any{}
	if own, ok := top["properties"].(map[string]any); ok {
		maps.Copy(properties, own)
	}
	required, _ := top["required"].([]any)
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		branches, _ := top[keyword].([]any)
		for _, b := range branches {
			branch, _ := b.(map[string]any)
			more, _ := branch["properties"].(map[string]any)
			for _, name := range slices.Sorted(maps.Keys(more)) {
				if _, ok := properties[name]; !ok {
					properties[name] = more[name]
				}
			}
			if must, ok := branch["required"].([]any); ok && keyword == "allOf" {
				required = append(required, must...)
			}
		}
	}
	for _, keyword := range []string{"allOf", "anyOf", "oneOf", "not", "enum", "const", "if", "then", "else", "$schema", "$id"} {
		delete(top, keyword)
	}
	top["properties"] = properties
	if len(required) > 0 {
		top["required"] = required
	}
}

// isObject reports whether a type is object, missing, or a list that contains object.
func isObject(t any) bool {
	several, _ := t.([]any)
	return t == nil || t == "object" || slices.Contains(several, any("object"))
}
