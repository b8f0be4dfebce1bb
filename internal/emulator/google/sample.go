package google

import (
	"encoding/base64"
	"maps"
	"slices"
	"strings"
)

// maxSampleDepth bounds the depth of samples, because shapes may be recursive.
const maxSampleDepth = 4

// sampleAnswer returns a response with a method's shape, with the values in the path and the body.
func (c *call) sampleAnswer() any {
	if c.method.Answer == "" {
		return nil
	}
	out, ok := c.api.sampleValue(shape{Ref: c.method.Answer}, "", 0).(doc)
	if !ok {
		return doc{}
	}
	props := c.api.Schemas[c.method.Answer].Props
	for name := range props {
		if v, given := c.vars[name]; given {
			out[name] = v
		}
		if v, given := c.body[name]; given && c.method.Body == c.method.Answer {
			out[name] = v
		}
	}
	delete(out, "nextPageToken")
	return out
}

func (s *api) sampleValue(sh shape, name string, depth int) any {
	if sh.Ref != "" {
		sh = s.Schemas[sh.Ref]
	}
	switch sh.Type {
	case "object":
		out := doc{}
		if depth >= maxSampleDepth {
			return out
		}
		for _, key := range slices.Sorted(maps.Keys(sh.Props)) {
			out[key] = s.sampleValue(sh.Props[key], key, depth+1)
		}
		if sh.AdditionalProps != nil {
			out["key"] = s.sampleValue(*sh.AdditionalProps, "key", depth+1)
		}
		return out
	case "array":
		if depth >= maxSampleDepth {
			return []any{}
		}
		return []any{s.sampleValue(*sh.Items, name, depth+1)}
	case "integer", "number":
		return 1
	case "boolean":
		return true
	case "any":
		return "sample"
	}
	return sampleText(sh, name)
}

func sampleText(sh shape, name string) string {
	if len(sh.Enum) > 0 {
		return sh.Enum[len(sh.Enum)-1]
	}
	switch sh.Format {
	case "int64", "uint64":
		return "1"
	case "date-time", "google-datetime":
		return "2026-03-31T09:00:00Z"
	case "date":
		return "2026-03-31"
	case "google-duration":
		return "1s"
	case "google-fieldmask":
		return "name"
	case "byte":
		return base64.URLEncoding.EncodeToString([]byte("sample"))
	}
	if strings.Contains(strings.ToLower(name), "email") {
		return "bob@example.com"
	}
	return "sample " + name
}

// decodeBytes decodes base64 in any of its forms, as Google does.
func decodeBytes(v string) ([]byte, error) {
	v = strings.TrimRight(strings.NewReplacer("+", "-", "/", "_").Replace(v), "=")
	return base64.RawURLEncoding.DecodeString(v)
}
