package toolgroups

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"
)

const (
	emptyParameters = `{"type":"object","properties":{}}`
	// maxSchemaDepth bounds the nesting of a schema.
	maxSchemaDepth = 32
	// maxAlternatives bounds the alternatives that are made of a tuple.
	maxAlternatives = 50
)

// NormalizeParameters returns a schema as it is sent: compact, with its keys in the author's
// order, so that the same input gives the same bytes. It drops "default" and an empty "required",
// and adds what providers require: "properties" at the top, and an object as the "items" of an array:
// the types of a tuple as alternatives, otherwise {}. A tuple of older drafts becomes "prefixItems". An
// empty schema means no parameters. A schema whose type is not object, with a key twice or nested deeper
// than 32 levels is an error.
func NormalizeParameters(raw json.RawMessage) (json.RawMessage, error) {
	raw = bytes.ToValidUTF8(bytes.TrimSpace(raw), []byte("\uFFFD"))
	if len(raw) == 0 {
		return json.RawMessage(emptyParameters), nil
	}
	if !json.Valid(raw) {
		return nil, errors.New("parameters are not JSON")
	}
	var top map[string]json.RawMessage
	if raw[0] != '{' || json.Unmarshal(raw, &top) != nil || string(top["type"]) != `"object"` {
		return nil, errors.New(`parameters must be a schema of "type": "object"`)
	}
	properties, given := top["properties"]
	if given && properties[0] != '{' {
		return nil, errors.New(`"properties" must be an object`)
	}
	if !given {
		// Providers require "properties" even if there are none.
		raw = append(bytes.Clone(raw[:len(raw)-1]), `,"properties":{}}`...)
	}
	return normalize(raw, 0)
}

// Member is one member of a JSON object whose order matters.
type Member struct {
	Key   string
	Value json.RawMessage
}

// ParseObject returns the members of an object in their order. Duplicate keys are an error. The
// values alias raw.
func ParseObject(raw json.RawMessage) ([]Member, error) {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || raw[0] != '{' || !json.Valid(raw) {
		return nil, errors.New("not an object")
	}
	return splitMembers(raw)
}

// splitMembers splits a valid JSON object into its members.
func splitMembers(raw json.RawMessage) ([]Member, error) {
	var out []Member
	seen := map[string]bool{}
	for rest := skipSpace(raw[1:]); rest[0] != '}'; {
		end := valueEnd(rest)
		key, err := decodeString(rest[:end])
		if err != nil {
			return nil, err
		}
		if seen[key] {
			return nil, fmt.Errorf("key %q occurs twice", key)
		}
		seen[key] = true
		rest = skipSpace(skipSpace(rest[end:])[1:]) // after the colon
		end = valueEnd(rest)
		out = append(out, Member{Key: key, Value: rest[:end:end]})
		if rest = skipSpace(rest[end:]); rest[0] == ',' {
			rest = skipSpace(rest[1:])
		}
	}
	return out, nil
}

// decodeString decodes a JSON string.
func decodeString(raw json.RawMessage) (string, error) {
	if inner := raw[1 : len(raw)-1]; utf8.Valid(inner) && bytes.IndexByte(inner, '\\') < 0 {
		return string(inner), nil
	}
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err
}

func skipSpace(raw json.RawMessage) json.RawMessage { return bytes.TrimLeft(raw, " \t\r\n") }

// valueEnd returns the length of the value at the beginning of valid JSON.
func valueEnd(raw json.RawMessage) int {
	depth := 0
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			for i++; raw[i] != '"'; i++ {
				if raw[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
			continue
		case '}', ']':
			if depth == 0 {
				return i // the end of a number or a word
			}
			depth--
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
			continue
		default:
			continue // within a number or a word
		}
		if depth == 0 {
			return i + 1
		}
	}
	return len(raw)
}

// EncodeObject encodes members as a JSON object.
func EncodeObject(ms []Member) json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range ms {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(quoteJSON(m.Key))
		b.WriteByte(':')
		b.Write(m.Value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// normalize normalizes one schema; a schema that is not an object (true, false) is unchanged.
func normalize(raw json.RawMessage, depth int) (json.RawMessage, error) {
	if depth > maxSchemaDepth {
		return nil, fmt.Errorf("schema is nested deeper than %d", maxSchemaDepth)
	}
	if raw[0] != '{' {
		return compact(raw)
	}
	ms, err := splitMembers(raw)
	if err != nil {
		return nil, err
	}
	if ms, err = normalizeItems(ms); err != nil {
		return nil, err
	}
	var out []Member
	for _, m := range ms {
		if m.Key == "default" || m.Key == "required" && isEmptyList(m.Value) {
			continue
		}
		if m.Value, err = normalizeKeyword(m, depth+1); err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return EncodeObject(out), nil
}

// normalizeItems makes the "items" of an array's schema an object. It turns the tuples of older drafts,
// a list in "items", into "prefixItems".
func normalizeItems(ms []Member) ([]Member, error) {
	find := func(key string) int { return slices.IndexFunc(ms, func(m Member) bool { return m.Key == key }) }
	kind, items, prefix := find("type"), find("items"), find("prefixItems")
	array := kind >= 0 && hasTypeName(ms[kind].Value, "array")
	if items < 0 && !array || items >= 0 && ms[items].Value[0] == '{' {
		return ms, nil
	}
	var tuple []json.RawMessage
	switch {
	case items >= 0 && ms[items].Value[0] == '[':
		if err := json.Unmarshal(ms[items].Value, &tuple); err != nil {
			return nil, err
		}
		if rest := find("additionalItems"); rest >= 0 {
			ms = slices.Delete(slices.Clone(ms), rest, rest+1)
			items, prefix = find("items"), find("prefixItems")
		}
		if prefix < 0 && len(tuple) > 0 {
			ms = slices.Insert(slices.Clone(ms), items, Member{"prefixItems", ms[items].Value})
			items++
		}
	case prefix >= 0 && ms[prefix].Value[0] == '[':
		if err := json.Unmarshal(ms[prefix].Value, &tuple); err != nil {
			return nil, err
		}
	}
	any, err := anyOf(tuple)
	if err != nil {
		return nil, err
	}
	if items < 0 {
		return append(slices.Clip(ms), Member{"items", any}), nil
	}
	ms = slices.Clone(ms)
	ms[items].Value = any
	return ms, nil
}

// anyOf returns a schema that accepts what one of the given ones accepts; {} if there is none.
func anyOf(schemas []json.RawMessage) (json.RawMessage, error) {
	var distinct []json.RawMessage
	for _, one := range schemas {
		one, err := EncodeJSON(one)
		if err != nil {
			return nil, err
		}
		if one[0] != '{' {
			one = []byte(`{}`)
		}
		if !slices.ContainsFunc(distinct, func(other json.RawMessage) bool { return bytes.Equal(one, other) }) {
			distinct = append(distinct, one)
		}
	}
	switch {
	case len(distinct) == 0 || len(distinct) > maxAlternatives:
		return json.RawMessage(`{}`), nil
	case len(distinct) == 1:
		return distinct[0], nil
	}
	list, err := EncodeJSON(distinct)
	return slices.Concat([]byte(`{"anyOf":`), list, []byte(`}`)), err
}

// normalizeKeyword normalizes the value of a keyword and the schemas in it.
func normalizeKeyword(m Member, depth int) (json.RawMessage, error) {
	switch m.Key {
	case "items", "additionalProperties", "not":
		return normalize(m.Value, depth)
	case "properties", "patternProperties", "$defs", "definitions":
		if m.Value[0] != '{' {
			return compact(m.Value)
		}
		ms, err := splitMembers(m.Value)
		if err != nil {
			return nil, err
		}
		for i := range ms {
			if ms[i].Value, err = normalize(ms[i].Value, depth); err != nil {
				return nil, fmt.Errorf("%s: %w", ms[i].Key, err)
			}
		}
		return EncodeObject(ms), nil
	case "anyOf", "oneOf", "allOf", "prefixItems":
		return normalizeList(m.Value, depth)
	}
	return compact(m.Value)
}

// compact removes white space between values of valid JSON.
func compact(raw json.RawMessage) (json.RawMessage, error) {
	if raw[0] != '{' && raw[0] != '[' {
		return raw, nil
	}
	return EncodeJSON(raw)
}

func normalizeList(raw json.RawMessage, depth int) (json.RawMessage, error) {
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return EncodeJSON(raw)
	}
	for i := range list {
		s, err := normalize(list[i], depth)
		if err != nil {
			return nil, err
		}
		list[i] = s
	}
	return EncodeJSON(list)
}

// isEmptyList reports whether a value is an empty list or null.
func isEmptyList(raw json.RawMessage) bool {
	var list []any
	return json.Unmarshal(raw, &list) == nil && len(list) == 0
}

// hasTypeName reports whether the value of "type" is, or its list contains, a name.
func hasTypeName(raw json.RawMessage, name string) bool {
	var one string
	var many []string
	if json.Unmarshal(raw, &one) == nil {
		return one == name
	}
	return json.Unmarshal(raw, &many) == nil && slices.Contains(many, name)
}
