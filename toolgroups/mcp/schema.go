package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"oneclaw/internal/wording"
	"oneclaw/toolgroups"
)

const (
	// maxSchema bounds a schema, in bytes; a longer one is trimmed.
	maxSchema = 32 << 10
	// maxReadSchema bounds a schema that is read at all, in bytes.
	maxReadSchema = 1 << 20
	// maxMerged bounds the alternatives that are merged, which can refer to each other.
	maxMerged = 500
	// maxMergeDepth bounds how deep they are nested.
	maxMergeDepth = 16
	// maxAnyOf bounds the schemas that are offered for one parameter.
	maxAnyOf = 50
)

// ownSchema returns a server's schema as it was sent, which the arguments of calls are checked against.
// A large one is trimmed, which loosens it.
func ownSchema(raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) > maxReadSchema {
		return nil, fmt.Errorf("its schema has more than %d bytes", maxReadSchema)
	}
	if s := string(bytes.TrimSpace(raw)); s == "" || s == "null" || s == "true" {
		return json.RawMessage("{}"), nil
	}
	own, err := toolgroups.EncodeJSON(raw)
	if err != nil || own[0] != '{' {
		return nil, errors.New("its schema is not an object")
	}
	if len(own) <= maxSchema {
		return own, nil
	}
	return trimSchema(own)
}

// offeredSchema turns a server's schema into one that every provider accepts. Servers leave out
// the type, write [] for no properties, or put a choice at the top level. A provider then refuses the
// whole request.
func offeredSchema(own json.RawMessage) (json.RawMessage, error) {
	top, err := decodeObject(own)
	if err != nil {
		return nil, err
	}
	for _, s := range []any{top, referred(top)} {
		if s, ok := s.(map[string]any); !ok {
			return nil, fmt.Errorf("its schema refers to %q, which it does not have", top["$ref"])
		} else if !isObject(s["type"]) {
			return nil, fmt.Errorf("its schema is of type %v, not object", s["type"])
		}
	}
	merged := (&merger{root: top}).merge(top, 0)
	top = maps.Clone(top)
	for _, keyword := range []string{
		"allOf", "anyOf", "oneOf", "not", "enum", "const", "if", "then", "else", "dependentSchemas", "$ref", "$schema", "$id", "nullable",
	} {
		delete(top, keyword)
	}
	top["type"], top["properties"] = "object", merged.properties
	if delete(top, "required"); len(merged.required) > 0 {
		top["required"] = merged.required
	}
	flat, err := toolgroups.EncodeJSON(top)
	if err != nil {
		return nil, err
	}
	offered, err := toolgroups.NormalizeParameters(flat)
	if err == nil && len(offered) <= maxSchema {
		return offered, nil
	}
	if flat, err = trimSchema(flat); err != nil {
		return nil, err
	}
	return toolgroups.NormalizeParameters(flat)
}

// decodeObject decodes a JSON object and keeps numbers as they are written.
func decodeObject(raw json.RawMessage) (map[string]any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var object map[string]any
	if err := dec.Decode(&object); err != nil || object == nil {
		return nil, errors.New("its schema is not an object")
	}
	return object, nil
}

// referred returns the schema that the top of a schema refers to; the schema itself without a reference.
func referred(top map[string]any) any {
	ref, ok := top["$ref"].(string)
	if !ok {
		return top
	}
	target, _ := toolgroups.LookupReference(top, ref)
	return target
}

// isObject reports whether a type is object, missing, or a list that contains object.
func isObject(t any) bool {
	several, _ := t.([]any)
	return t == nil || t == "object" || slices.Contains(several, any("object"))
}

// merger merges what applies to the same object. Its results accept what the merged schemas accept; the
// server checks which parameters belong together.
type merger struct {
	root   map[string]any
	merged int
}

// parameters are the parameters of an object.
type parameters struct {
	properties map[string]any
	required   []any
}

// merge returns the parameters that a schema and its alternatives declare.
func (m *merger) merge(s map[string]any, depth int) parameters {
	out := parameters{properties: map[string]any{}}
	if m.merged++; m.merged > maxMerged || depth > maxMergeDepth {
		return out
	}
	if own, ok := s["properties"].(map[string]any); ok {
		maps.Copy(out.properties, own)
	}
	required, _ := s["required"].([]any)
	out.required = slices.DeleteFunc(slices.Clone(required), func(name any) bool { _, ok := name.(string); return !ok })
	all, _ := s["allOf"].([]any)
	if ref, ok := s["$ref"].(string); ok {
		target, _ := toolgroups.LookupReference(m.root, ref)
		all = append(slices.Clip(all), target)
	}
	for _, one := range m.mergeEach(all, depth) {
		out = both(out, one)
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		list, _ := s[keyword].([]any)
		if branches := m.mergeEach(list, depth); len(branches) > 0 {
			out = both(out, either(branches))
		}
	}
	sometimes := []any{s["then"], s["else"]}
	dependent, _ := s["dependentSchemas"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(dependent)) {
		sometimes = append(sometimes, dependent[name])
	}
	if branches := m.mergeEach(sometimes, depth); len(branches) > 0 {
		out = both(out, either(append(branches, parameters{})))
	}
	return out
}

// mergeEach returns the parameters of the schemas that an object can have.
func (m *merger) mergeEach(schemas []any, depth int) (out []parameters) {
	for _, one := range schemas {
		switch s := one.(type) {
		case map[string]any:
			if isObject(s["type"]) {
				out = append(out, m.merge(s, depth+1))
			}
		case bool:
			if s {
				out = append(out, parameters{})
			}
		}
	}
	return out
}

// both returns the parameters of an object that has those of a and of b.
func both(a, b parameters) parameters {
	out := parameters{maps.Clone(a.properties), slices.Clone(a.required)}
	for name, more := range b.properties {
		own, isObject := out.properties[name].(map[string]any)
		other, ok := more.(map[string]any)
		if !isObject || !ok {
			if !isObject {
				out.properties[name] = more
			}
			continue
		}
		joined := maps.Clone(other)
		for key, value := range own {
			if _, conflict := other[key]; !conflict || key == "description" || key == "title" {
				joined[key] = value
			}
		}
		out.properties[name] = joined
	}
	for _, name := range b.required {
		if !slices.Contains(out.required, name) {
			out.required = append(out.required, name)
		}
	}
	return out
}

// either returns the parameters of an object that has those of one of the alternatives.
func either(alternatives []parameters) parameters {
	out := parameters{properties: map[string]any{}, required: slices.Clone(alternatives[0].required)}
	given := map[string][]any{}
	for _, one := range alternatives {
		for name, schema := range one.properties {
			given[name] = append(given[name], schema)
		}
		out.required = slices.DeleteFunc(out.required, func(name any) bool { return !slices.Contains(one.required, name) })
	}
	for name, schemas := range given {
		out.properties[name] = anyOf(schemas)
	}
	return out
}

// anyOf returns a schema of what one of several accepts.
func anyOf(schemas []any) any {
	var distinct, values []any
	kind, allValues := any(nil), true
	for _, s := range schemas {
		if slices.ContainsFunc(distinct, func(other any) bool { return reflect.DeepEqual(withoutNotes(s), withoutNotes(other)) }) {
			continue
		}
		distinct = append(distinct, s)
		more, of := fixedValues(s)
		allValues = allValues && len(more) > 0 && (kind == nil || kind == of)
		kind = of
		for _, v := range more {
			if !slices.ContainsFunc(values, func(other any) bool { return reflect.DeepEqual(v, other) }) {
				values = append(values, v)
			}
		}
	}
	switch {
	case len(distinct) == 1:
		return distinct[0]
	case allValues:
		return map[string]any{"type": kind, "enum": values}
	case len(distinct) > maxAnyOf:
		return map[string]any{}
	}
	return map[string]any{"anyOf": distinct}
}

// withoutNotes returns a schema without its title and description.
func withoutNotes(schema any) any {
	s, ok := schema.(map[string]any)
	if !ok {
		return schema
	}
	s = maps.Clone(s)
	delete(s, "title")
	delete(s, "description")
	return s
}

// fixedValues returns the values that a schema is limited to by const or enum, and their type; none if
// they have several types.
func fixedValues(schema any) (values []any, kind any) {
	s, _ := schema.(map[string]any)
	if s["anyOf"] != nil || s["oneOf"] != nil || s["allOf"] != nil {
		return nil, nil
	}
	values, _ = s["enum"].([]any)
	if value, ok := s["const"]; ok {
		values = []any{value}
	}
	for i, v := range values {
		var of string
		switch v.(type) {
		case string:
			of = "string"
		case bool:
			of = "boolean"
		case json.Number:
			of = "number"
		}
		if of == "" || i > 0 && kind != of {
			return nil, nil
		}
		kind = of
	}
	if t, ok := s["type"].(string); ok && (t == kind || t == "integer" && kind == "number") {
		kind = t
	}
	return values, kind
}

// trim says what is left of a schema: the characters of descriptions, the values of lists, and the levels.
type trim struct{ text, list, depth int }

// trims are tried in this order.
var trims = []trim{{300, 500, 30}, {100, 200, 24}, {0, 50, 16}, {0, 20, 8}, {0, 20, 6}, {0, 0, 4}}

// trimSchema shortens a schema until it fits: descriptions first, then long lists of values, then deep
// levels. What remains accepts all that the schema accepts.
func trimSchema(raw json.RawMessage) (json.RawMessage, error) {
	schema, err := decodeObject(raw)
	if err != nil {
		return nil, err
	}
	for _, t := range trims {
		out, err := toolgroups.EncodeJSON(t.schema(schema, t.depth))
		if err != nil {
			return nil, err
		}
		if len(out) <= maxSchema {
			return out, nil
		}
	}
	return nil, fmt.Errorf("its schema has more than %d bytes, also without descriptions", maxSchema)
}

// schema trims one schema, or an object or list of schemas.
func (t trim) schema(v any, depth int) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i, one := range v {
			out[i] = t.schema(one, depth-1)
		}
		return out
	case map[string]any:
		out, opened := make(map[string]any, len(v)), false
		for key, one := range v {
			kept, ok := t.keyword(key, one, depth)
			if ok {
				out[key] = kept
			}
			opened = opened || declares(key) && (!ok || key == "properties" && sizeOf(kept) < sizeOf(one))
		}
		if opened {
			out["additionalProperties"] = true // what is trimmed off is declared all the same
		}
		return out
	}
	return v
}

// declares reports whether a keyword of a schema declares properties of an object, or allows others.
func declares(key string) bool {
	return slices.Contains([]string{
		"properties", "patternProperties", "additionalProperties", "unevaluatedProperties", "allOf", "anyOf", "oneOf", "if", "then", "else", "dependentSchemas", "dependencies",
	}, key)
}

func sizeOf(object any) int {
	members, _ := object.(map[string]any)
	return len(members)
}

// keyword trims the value of a keyword; ok is false if nothing is left.
func (t trim) keyword(key string, value any, depth int) (kept any, ok bool) { //nolint:cyclop // A case for each kind of keyword.
	list, isList := value.([]any)
	text, isText := value.(string)
	members, isSchema := value.(map[string]any)
	switch {
	case isText && (key == "description" || key == "title" || key == "$comment"):
		return wording.Clip(text, t.text), t.text > 0
	case key == "default" && (isList || isSchema):
		return map[string]any{}, true // a parameter with a default may be missing
	case isList && (key == "examples" || key == "enum" && len(list) > t.list):
		return nil, false
	case isList && (key == "enum" || key == "required" || key == "type"), key == "const" && !isSchema:
		return value, true
	case (isList || isSchema) && (depth <= 0 || key == "not"):
		return nil, false
	case isSchema && slices.Contains([]string{"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"}, key):
		return t.named(members, depth-1), true
	}
	return t.schema(value, depth-1), true
}

// named trims schemas by their names, which are no keywords.
func (t trim) named(schemas map[string]any, depth int) map[string]any {
	out := make(map[string]any, len(schemas))
	for name, one := range schemas {
		if _, isSchema := one.(map[string]any); !isSchema || depth > 0 {
			out[name] = t.schema(one, depth-1)
		}
	}
	return out
}
