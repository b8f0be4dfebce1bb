package toolgroups

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

const (
	emptyParameters = `{"type":"object","properties":{}}`
	stringItems     = `{"type":"string"}`
	// maxSchemaDepth bounds how deep a schema may be nested.
	maxSchemaDepth = 32
)

// NormalizeParameters returns a schema as it goes over the wire: compact, its keys
// in the order of the author, so that the same input gives the same bytes. It
// leaves out "default" and an empty "required", and gives an array without items
// the items of a string, because providers refuse it otherwise. Nothing given
// means no parameters. A schema whose type is not object is an error.
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
		// Providers want the properties of an object even where there are none.
		raw = append(bytes.Clone(raw[:len(raw)-1]), `,"properties":{}}`...)
	}
	return normalize(raw, 0)
}

// member is one entry of an object, whose order matters.
type member struct {
	key   string
	value json.RawMessage
}

func members(raw json.RawMessage) ([]member, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	var out []member
	seen := map[string]bool{}
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return nil, err
		}
		m := member{key: fmt.Sprint(tok)}
		if err := dec.Decode(&m.value); err != nil {
			return nil, err
		}
		if seen[m.key] {
			return nil, fmt.Errorf("key %q stands twice", m.key)
		}
		seen[m.key] = true
		out = append(out, m)
	}
	return out, nil
}

// object writes members back.
func object(ms []member) json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range ms {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(quote(m.key))
		b.WriteByte(':')
		b.Write(m.value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// normalize treats one schema; what is no object (true, false) stays.
func normalize(raw json.RawMessage, depth int) (json.RawMessage, error) {
	if depth > maxSchemaDepth {
		return nil, fmt.Errorf("schema is nested deeper than %d", maxSchemaDepth)
	}
	if raw[0] != '{' {
		return EncodeJSON(raw)
	}
	ms, err := members(raw)
	if err != nil {
		return nil, err
	}
	var out []member
	array, items := false, false
	for _, m := range ms {
		switch {
		case m.key == "default", m.key == "required" && empty(m.value):
			continue
		case m.key == "type":
			array = names(m.value, "array")
		case m.key == "items":
			if m.value[0] != '{' {
				continue
			}
			items = true
		}
		if m.value, err = normalizeKeyword(m, depth+1); err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	if array && !items {
		out = append(out, member{"items", json.RawMessage(stringItems)})
	}
	return object(out), nil
}

// normalizeKeyword treats the value of a keyword, with the schemas in it.
func normalizeKeyword(m member, depth int) (json.RawMessage, error) {
	switch m.key {
	case "items", "additionalProperties", "not":
		return normalize(m.value, depth)
	case "properties", "patternProperties", "$defs", "definitions":
		if m.value[0] != '{' {
			return EncodeJSON(m.value)
		}
		ms, err := members(m.value)
		if err != nil {
			return nil, err
		}
		for i := range ms {
			if ms[i].value, err = normalize(ms[i].value, depth); err != nil {
				return nil, fmt.Errorf("%s: %w", ms[i].key, err)
			}
		}
		return object(ms), nil
	case "anyOf", "oneOf", "allOf", "prefixItems":
		return normalizeList(m.value, depth)
	}
	return EncodeJSON(m.value)
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

// empty reports whether a list has no entries.
func empty(raw json.RawMessage) bool {
	var list []any
	return json.Unmarshal(raw, &list) == nil && len(list) == 0
}

// names reports whether the value of "type" is or contains a name.
func names(raw json.RawMessage, name string) bool {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return one == name
	}
	var many []string
	if json.Unmarshal(raw, &many) != nil {
		return false
	}
	return slices.Contains(many, name)
}
