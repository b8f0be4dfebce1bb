package provider

import (
	"encoding/json"
	"maps"
	"math/big"
	"slices"
	"strings"

	"oneclaw/toolgroups"
)

// simplify returns a repaired schema without references, each part with one type or a choice of such parts, in
// the keywords that the family accepts. refs are the references that led to the schema.
func (a *adapter) simplify(in map[string]any, refs []string, depth int) map[string]any {
	if a.nodes--; a.nodes < 0 || depth > maxSchemaDepth {
		return map[string]any{"type": "object"}
	}
	in, refs, ok := a.inline(merge(in, nil), refs, 0)
	if !ok {
		return a.describe(map[string]any{"type": "object"}, in)
	}
	variants := asList(in["anyOf"])
	if len(variants) == 0 {
		variants = asList(in["oneOf"])
	}
	if len(variants) > 0 {
		rest := maps.Clone(in)
		delete(rest, "anyOf")
		delete(rest, "oneOf")
		delete(rest, "description")
		var all []map[string]any
		for _, v := range variants {
			if sub := asSchema(v); sub != nil {
				all = append(all, merge(rest, sub))
			} else if v == true {
				all = append(all, rest)
			}
		}
		return a.choose(in, all, refs, depth)
	}
	types := typesOf(in)
	if len(types) != 1 {
		all := make([]map[string]any, len(types))
		for i, kind := range types {
			all[i] = maps.Clone(in)
			delete(all[i], "description")
			delete(all[i], "nullable") // null is one of the types
			all[i]["type"] = kind
		}
		return a.choose(in, all, refs, depth)
	}
	return a.write(in, types[0], refs, depth)
}

// inline replaces references and allOf by what they stand for. ok is false if the schema contains itself too
// often.
func (a *adapter) inline(in map[string]any, refs []string, steps int) (_ map[string]any, _ []string, ok bool) {
	if a.nodes--; a.nodes < 0 || steps > maxSchemaDepth {
		return in, refs, false
	}
	if ref, is := in["$ref"].(string); is {
		again := 0
		for _, earlier := range refs {
			if earlier == ref {
				again++
			}
		}
		if again > maxRecursion {
			return in, refs, false
		}
		own := maps.Clone(in)
		delete(own, "$ref")
		return a.inline(merge(a.resolve(ref), own), append(slices.Clip(refs), ref), steps+1)
	}
	if parts := asList(in["allOf"]); len(parts) > 0 {
		whole := maps.Clone(in)
		delete(whole, "allOf")
		for _, part := range parts {
			sub, more, ok := a.inline(asSchema(part), refs, steps+1)
			if !ok {
				return in, refs, false
			}
			whole, refs = merge(sub, whole), more
		}
		return a.inline(whole, refs, steps+1)
	}
	return in, refs, true
}

// merge returns the keywords of two schemas that both hold. Where they contradict, those of the second count.
func merge(one, two map[string]any) map[string]any {
	out := maps.Clone(one)
	if out == nil {
		out = map[string]any{}
	}
	for _, keyword := range slices.Sorted(maps.Keys(two)) { // a schema is encoded the same each time, for caches
		v := two[keyword]
		switch {
		case keyword == "properties" && isMap(out[keyword]) && isMap(v):
			all := maps.Clone(asSchema(out[keyword]))
			for name, sub := range asSchema(v) {
				if before := asSchema(all[name]); before != nil && isMap(sub) {
					all[name] = map[string]any{"allOf": []any{before, sub}}
				} else {
					all[name] = sub
				}
			}
			out[keyword] = all
		case keyword == "required":
			all := slices.Clone(asList(out[keyword]))
			for _, name := range asList(v) {
				if !slices.Contains(all, name) {
					all = append(all, name)
				}
			}
			out[keyword] = all
		case (keyword == "anyOf" || keyword == "oneOf") && (out["anyOf"] != nil || out["oneOf"] != nil):
			// One of two choices has to do; the tool checks the other.
			delete(out, "anyOf")
			delete(out, "oneOf")
			out[keyword] = v
		default:
			out[keyword] = v
		}
	}
	return out
}

// choose returns a choice of schemas, without those that occur twice.
func (a *adapter) choose(in map[string]any, all []map[string]any, refs []string, depth int) map[string]any {
	var variants []any
	var seen []string
	null := false
	for _, one := range all {
		variant := a.simplify(one, refs, depth+1)
		nested := []any{variant}
		if inner := asList(variant["anyOf"]); inner != nil {
			nested = inner
		}
		for _, v := range nested {
			sub := asSchema(v)
			if a.family == FamilyGemini && sub["type"] == "null" {
				null = true
				continue
			}
			key, err := toolgroups.EncodeJSON(sub)
			if err == nil && !slices.Contains(seen, string(key)) {
				seen, variants = append(seen, string(key)), append(variants, sub)
			}
		}
	}
	switch len(variants) {
	case 0:
		variants = []any{map[string]any{"type": "string"}}
		fallthrough
	case 1:
		sole := maps.Clone(asSchema(variants[0]))
		if null {
			sole["nullable"] = true
		}
		return a.describe(sole, in)
	}
	if first := maps.Clone(asSchema(variants[0])); a.family == FamilyGemini {
		// A choice must be the only field (googleapis/python-genai; Vertex AI says so).
		if null {
			first["nullable"] = true
		}
		variants[0] = a.describe(first, in)
		return map[string]any{"anyOf": variants}
	}
	return a.describe(map[string]any{"anyOf": variants}, in)
}

// describe puts the description of a schema in front of that of the written one.
func (a *adapter) describe(out, in map[string]any) map[string]any {
	text, _ := in["description"].(string)
	if own, _ := out["description"].(string); own != "" && own != text {
		text = strings.TrimSpace(text + " " + own)
	}
	if text != "" {
		out["description"] = text
	}
	return out
}

// allTypes are the types of a schema that allows anything.
var allTypes = []string{"string", "number", "boolean", "object"}

// typesOf returns the types that a schema without a choice allows: those that it names, or else those that its
// keywords are about.
func typesOf(in map[string]any) (types []string) {
	named := asList(in["type"])
	if one, ok := in["type"].(string); ok {
		named = []any{one}
	}
	for _, v := range named {
		if name, ok := v.(string); ok {
			types = append(types, name)
		}
	}
	if len(types) > 0 {
		if slices.Contains(types, "number") { // which includes integers
			types = slices.DeleteFunc(types, func(name string) bool { return name == "integer" })
		}
		if in["nullable"] == true && !slices.Contains(types, "null") {
			types = append(types, "null")
		}
		return types
	}
	if values := allowedValues(in); len(values) > 0 {
		for _, v := range values {
			if kind := typeOfValue(v); !slices.Contains(types, kind) {
				types = append(types, kind)
			}
		}
		return types
	}
	for _, hint := range []struct {
		kind     string
		keywords []string
	}{
		{"object", []string{"properties", "required", "additionalProperties", "patternProperties", "minProperties", "maxProperties"}},
		{"array", []string{"items", "prefixItems", "minItems", "maxItems", "uniqueItems"}},
		{"string", []string{"pattern", "format", "minLength", "maxLength"}},
		{"number", []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}},
	} {
		if slices.ContainsFunc(hint.keywords, func(keyword string) bool { return in[keyword] != nil }) {
			types = append(types, hint.kind)
		}
	}
	if len(types) == 0 {
		return slices.Clone(allTypes)
	}
	return types
}

// typeOfValue returns the type of a JSON value.
func typeOfValue(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return "string"
	case bool:
		return "boolean"
	case json.Number:
		if r, ok := new(big.Rat).SetString(clipNumber(string(v))); ok && r.IsInt() {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	}
	return "object"
}

// clipNumber returns a number, or one without an exponent that would take much memory.
func clipNumber(text string) string {
	if strings.ContainsAny(text, "eE") {
		return "0.5"
	}
	return text
}

// allowedValues returns the values that a schema's enum or const allows; nil means all.
func allowedValues(schema map[string]any) []any {
	if values := asList(schema["enum"]); len(values) > 0 {
		return values
	}
	if value, ok := schema["const"]; ok {
		return []any{value}
	}
	return nil
}

// plainKeywords are the keywords that both families accept beside those that write handles, by type.
var plainKeywords = map[string][]string{
	"string": {"minLength", "maxLength", "pattern"}, "number": {"minimum", "maximum"}, "integer": {"minimum", "maximum"}, "array": {"minItems", "maxItems"},
}

// write returns a schema of one type.
func (a *adapter) write(in map[string]any, kind string, refs []string, depth int) map[string]any {
	out := a.describe(map[string]any{"type": kind}, in)
	if title, ok := in["title"].(string); ok {
		out["title"] = title
	}
	for _, keyword := range plainKeywords[kind] {
		if v, ok := in[keyword]; ok {
			out[keyword] = v
		}
	}
	a.writeValues(in, out, kind)
	switch kind {
	case "array":
		out["items"] = a.simplify(itemsOf(in), refs, depth+1)
	case "object":
		a.writeObject(in, out, refs, depth)
	}
	return out
}

// itemsOf returns one schema for all items of an array.
func itemsOf(in map[string]any) map[string]any {
	items, tuple := asSchema(in["items"]), asList(in["prefixItems"])
	if len(tuple) == 0 {
		return items
	}
	all := slices.Clone(tuple)
	if len(items) > 0 {
		all = append(all, items)
	}
	return map[string]any{"anyOf": all}
}

func (a *adapter) writeObject(in, out map[string]any, refs []string, depth int) {
	if given := asSchema(in["properties"]); given != nil {
		properties := make(map[string]any, len(given))
		for _, name := range slices.Sorted(maps.Keys(given)) {
			properties[name] = a.simplify(asSchema(given[name]), refs, depth+1)
		}
		out["properties"] = properties
		required := slices.DeleteFunc(slices.Clone(asList(in["required"])), func(v any) bool {
			name, _ := v.(string)
			return properties[name] == nil
		})
		if len(required) > 0 {
			out["required"] = required
		}
	}
	if a.family != FamilyKimi {
		return
	}
	switch more := in["additionalProperties"].(type) {
	case bool:
		if in["patternProperties"] == nil { // which say what else may be there
			out["additionalProperties"] = more
		}
	case map[string]any:
		out["additionalProperties"] = a.simplify(more, refs, depth+1)
	}
}

// writeValues writes the values that are allowed. Gemini accepts them only for strings, and no empty one.
func (a *adapter) writeValues(in, out map[string]any, kind string) {
	var values []any
	for _, v := range allowedValues(in) {
		is := typeOfValue(v)
		if is == kind || kind == "number" && is == "integer" {
			values = append(values, v)
		}
	}
	if len(values) == 0 {
		return
	}
	if a.family == FamilyGemini {
		if kind != "string" {
			if list, err := toolgroups.EncodeJSON(values); err == nil && kind != "null" {
				text, _ := out["description"].(string)
				out["description"] = strings.TrimSpace(text + " One of " + strings.Trim(string(list), "[]") + ".")
			}
			return
		}
		values = slices.DeleteFunc(values, func(v any) bool { return v == "" })
	}
	if kind != "null" && len(values) > 0 {
		out["enum"] = values
	}
}
