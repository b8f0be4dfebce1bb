package google

import (
	"strings"
)

// fieldMask is a selection of fields. A nil mask selects all subfields.
type fieldMask map[string]fieldMask

// applyFields applies the fields parameter to a response.
func (c *call) applyFields(answer doc) (any, *rejection) {
	text := c.query.Get("fields")
	if text == "" || text == "*" {
		return answer, nil
	}
	m, rest, ok := parseMask(text)
	if !ok || rest != "" {
		return nil, invalidArgument("Invalid field selection %s", text)
	}
	if bad := c.api.unknownField(shape{Ref: c.method.Answer}, m); bad != "" {
		return nil, invalidArgument("Invalid field selection %s", bad)
	}
	return m.apply(answer), nil
}

// parseMask parses "a,b(c,d),e/f". Slashes and dots select subfields.
func parseMask(text string) (m fieldMask, rest string, ok bool) {
	m = fieldMask{}
	for {
		at := strings.IndexAny(text, ",()/.")
		name := text
		if at >= 0 {
			name = text[:at]
		}
		name = strings.TrimSpace(name)
		if name == "" {
			return nil, "", false
		}
		var below fieldMask
		text = text[len(text)-len(strings.TrimLeft(text, " ")):]
		if at < 0 {
			text = ""
		} else {
			text = strings.TrimLeft(text, " ")[len(name):]
		}
		switch {
		case strings.HasPrefix(text, "("):
			if below, text, ok = parseMask(text[1:]); !ok || !strings.HasPrefix(text, ")") {
				return nil, "", false
			}
			text = text[1:]
		case strings.HasPrefix(text, "/"), strings.HasPrefix(text, "."):
			if below, text, ok = parseStep(text[1:]); !ok {
				return nil, "", false
			}
		}
		m.add(name, below)
		if !strings.HasPrefix(text, ",") {
			return m, text, true
		}
		text = text[1:]
	}
}

// parseStep parses the text after a slash: one field with its subfields.
func parseStep(text string) (m fieldMask, rest string, ok bool) {
	depth, end := 0, len(text)
	for i, r := range text {
		if r == '(' {
			depth++
		}
		if r == ')' {
			depth--
		}
		if depth < 0 || depth == 0 && r == ',' {
			end = i
			break
		}
	}
	m, left, ok := parseMask(text[:end])
	return m, text[end:], ok && left == ""
}

// add merges a field into the mask.
func (m fieldMask) add(name string, below fieldMask) {
	old, there := m[name]
	switch {
	case !there:
		m[name] = below
	case old == nil || below == nil:
		m[name] = nil
	default:
		for k, v := range below {
			old.add(k, v)
		}
	}
}

// unknownField returns a field of a mask that the shape lacks, or "".
func (s *api) unknownField(sh shape, m fieldMask) string {
	if sh.Ref != "" {
		sh = s.Schemas[sh.Ref]
	}
	if sh.Type == "array" {
		return s.unknownField(*sh.Items, m)
	}
	for name, below := range m {
		prop, ok := sh.Props[name]
		if !ok && sh.AdditionalProps != nil {
			prop, ok = *sh.AdditionalProps, true
		}
		if name == "*" {
			continue
		}
		if !ok {
			return name
		}
		if bad := s.unknownField(prop, below); bad != "" {
			return bad
		}
	}
	return ""
}

// apply returns the fields of a document that the mask selects.
func (m fieldMask) apply(d doc) doc {
	if _, all := m["*"]; all {
		return d
	}
	out := doc{}
	for name, below := range m {
		v, ok := d[name]
		if !ok {
			continue
		}
		out[name] = below.applyValue(v)
	}
	return out
}

func (m fieldMask) applyValue(v any) any {
	if m == nil {
		return v
	}
	switch v := v.(type) {
	case doc:
		return m.apply(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = m.applyValue(v[i])
		}
		return out
	}
	return v
}
