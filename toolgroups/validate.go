package toolgroups

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"oneclaw/internal/wording"
)

// maxEchoedSchema bounds the schema that an error repeats to the model, in characters.
const maxEchoedSchema = 4000

// ValidateArguments repairs arguments and checks them against the schema of a tool: required
// parameters (except those with a default), types and enums, also inside objects and arrays. It
// converts unambiguous values (an integer as "42" or 5.0, a boolean as "true", an object as a
// JSON string) and drops null for optional parameters. Unknown parameters pass, except those
// that differ from a known one only in case. Limits of numbers are left to the tool, and nothing
// is checked against an unreadable schema. The result has sorted keys.
func ValidateArguments(tool Tool, raw json.RawMessage) (json.RawMessage, *Error) {
	fixed, err := RepairArguments(raw)
	if err != nil {
		return nil, invalidError(tool, err.Error())
	}
	var schema jsonschema.Schema
	if len(tool.Parameters) == 0 || json.Unmarshal(tool.Parameters, &schema) != nil {
		return fixed, nil
	}
	value, err := decode(fixed)
	if err != nil {
		return nil, invalidError(tool, errMalformed.Error())
	}
	value, err = conform("", &schema, value)
	if err != nil {
		return nil, invalidError(tool, err.Error())
	}
	out, err := EncodeJSON(value)
	if err != nil {
		return nil, invalidError(tool, errMalformed.Error())
	}
	return out, nil
}

func invalidError(tool Tool, why string) *Error {
	schema := wording.Clip(string(tool.Parameters), maxEchoedSchema)
	return Errorf(CodeInvalid, "Invalid arguments for '%s': %s. Its parameters: %s", tool.Name, why, schema)
}

// decode decodes JSON and keeps numbers as they are written.
func decode(raw []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	err := dec.Decode(&v)
	return v, err
}

// conform checks a value against the schema and converts it.
func conform(path string, s *jsonschema.Schema, v any) (any, error) {
	if s == nil {
		return v, nil
	}
	v, err := coerce(path, allowedTypes(s), v)
	if err != nil {
		return nil, err
	}
	switch x := v.(type) {
	case map[string]any:
		return conformObject(path, s, x)
	case []any:
		for i := range x {
			if x[i], err = conform(fmt.Sprintf("%s[%d]", path, i), s.Items, x[i]); err != nil {
				return nil, err
			}
		}
		return x, nil
	}
	if len(s.Enum) > 0 && !slices.ContainsFunc(s.Enum, func(e any) bool { return equalEnumValue(e, v) }) {
		list, err := EncodeJSON(s.Enum)
		if err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("'%s' must be one of %s", path, list)
	}
	return v, nil
}

func conformObject(path string, s *jsonschema.Schema, obj map[string]any) (any, error) {
	for key, v := range obj {
		prop, known := s.Properties[key]
		switch {
		case known && v == nil && prop != nil && len(allowedTypes(prop)) > 0 && !slices.Contains(allowedTypes(prop), "null"):
			delete(obj, key)
		case !known && hasCaseVariant(s, key):
			// encoding/json would match it, ignoring case, with the checked parameter.
			delete(obj, key)
		}
	}
	for _, key := range s.Required {
		prop := s.Properties[key]
		if _, ok := obj[key]; !ok && (prop == nil || prop.Default == nil) {
			return nil, fmt.Errorf("required parameter '%s' is missing", joinPath(path, key))
		}
	}
	for key, prop := range s.Properties {
		v, ok := obj[key]
		if !ok {
			continue
		}
		v, err := conform(joinPath(path, key), prop, v)
		if err != nil {
			return nil, err
		}
		obj[key] = v
	}
	return obj, nil
}

func joinPath(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func hasCaseVariant(s *jsonschema.Schema, key string) bool {
	for name := range s.Properties {
		if strings.EqualFold(name, key) {
			return true
		}
	}
	return false
}

// allowedTypes returns the types that a schema allows; none means any.
func allowedTypes(s *jsonschema.Schema) []string {
	if s.Type != "" {
		return []string{s.Type}
	}
	return s.Types
}

// coerce converts a value to the first of the wanted types that fits.
func coerce(path string, want []string, v any) (any, error) {
	if len(want) == 0 {
		return v, nil
	}
	for _, t := range want {
		if hasType(t, v) {
			return v, nil
		}
	}
	for _, t := range want {
		if out, ok := convertUnmistakable(t, v); ok {
			return out, nil
		}
	}
	name := path
	if name == "" {
		name = "arguments"
	}
	return nil, fmt.Errorf("'%s' must be of type %s, not %s", name, strings.Join(want, " or "), typeOf(v))
}

// hasType reports whether a value has a type without conversion.
func hasType(t string, v any) bool {
	got := typeOf(v)
	if t == "integer" && got == "number" {
		return !strings.ContainsAny(string(v.(json.Number)), ".eE")
	}
	return t == got
}

func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case json.Number:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	default:
		return "object"
	}
}

// convertUnmistakable converts a value to a type if there is only one way to do so.
func convertUnmistakable(t string, v any) (any, bool) {
	if n, ok := v.(json.Number); ok && t == "integer" {
		return parseInteger(n)
	}
	text, ok := v.(string)
	if !ok {
		return nil, false
	}
	text = strings.TrimSpace(text)
	switch t {
	case "integer":
		return parseInteger(json.Number(text))
	case "boolean":
		yes := strings.EqualFold(text, "true")
		return yes, yes || strings.EqualFold(text, "false")
	case "number", "object", "array":
		if !json.Valid([]byte(text)) {
			return nil, false
		}
		inner, err := decode([]byte(text))
		return inner, err == nil && typeOf(inner) == t
	}
	return nil, false
}

// parseInteger parses a whole number in any form that a float64 represents exactly.
func parseInteger(n json.Number) (any, bool) {
	if i, err := strconv.ParseInt(string(n), 10, 64); err == nil {
		return json.Number(strconv.FormatInt(i, 10)), true
	}
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 || !json.Valid([]byte(n)) {
		return nil, false
	}
	return json.Number(strconv.FormatInt(int64(f), 10)), true
}

// equalEnumValue reports whether an entry of an enum equals a value.
func equalEnumValue(e, v any) bool {
	n, ok := v.(json.Number)
	if !ok {
		return e == v
	}
	f, err := n.Float64()
	return err == nil && e == f
}
