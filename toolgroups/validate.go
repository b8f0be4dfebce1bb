package toolgroups

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"oneclaw/internal/wording"
)

const (
	// maxEchoedSchema bounds the schema that an error repeats to the model, in characters.
	maxEchoedSchema = 4000
	// maxChecks bounds the work on one call, beside two checks for each byte of its arguments: schemas can
	// refer to themselves in many ways. What exceeds it is left to the tool.
	maxChecks, maxMoreChecks = 50_000, 1_000_000
	// maxCheckDepth bounds how deep schemas are followed.
	maxCheckDepth = 100
)

// ValidateArguments repairs arguments and checks them against the tool's own schema ([Tool].Accepts, or
// else Parameters): required parameters (except those with a default), types and enums, also inside
// objects, arrays and tuples, and through local references. It converts unambiguous values (an integer as
// "42" or 5.0, a boolean as "true", an object as a JSON string) and drops null for optional parameters.
// Numbers keep their digits. A value whose name differs from a parameter's only in case is that of the parameter, unless
// that is given. Other unknown parameters are dropped ([undeclared]), but not of [Tool.External] ones, whose servers may know
// them. Limits of numbers and what fits no alternative are left to the tool, and nothing is checked against an unreadable
// schema. The result has sorted keys, and each once.
func ValidateArguments(tool Tool, raw json.RawMessage) (json.RawMessage, *Error) {
	fixed, err := RepairArguments(raw)
	if err != nil {
		return nil, invalidError(tool, err.Error())
	}
	value, err := DecodeJSON(fixed)
	if err != nil {
		return nil, invalidError(tool, errMalformed.Error())
	}
	root := tool.schema()
	encode := func() (json.RawMessage, *Error) {
		if !tool.External {
			if _, ok := undeclared(root, value, checksFor(fixed), true); !ok {
				return nil, invalidError(tool, "they hold too many different objects to be checked")
			}
		}
		out, err := EncodeJSON(value)
		if err != nil {
			return nil, invalidError(tool, errMalformed.Error())
		}
		return out, nil
	}
	if root == nil {
		return encode()
	}
	c := &checker{root: root, left: checksFor(fixed)}
	value, err = c.conform("", root, value, 0)
	if err != nil {
		return nil, invalidError(tool, err.Error())
	}
	out, fault := encode()
	if fault != nil {
		return nil, fault
	}
	// A schema that contradicts itself converts its own results: the tool is to judge the arguments.
	again := &checker{root: root, left: checksFor(out)}
	value, err = again.conform("", root, value, 0)
	stable, encoded := EncodeJSON(value)
	if c.exhausted() || again.exhausted() || err != nil || encoded != nil || !bytes.Equal(out, stable) {
		if value, err = DecodeJSON(fixed); err != nil {
			return nil, invalidError(tool, errMalformed.Error())
		}
		if out, fault = encode(); fault == nil && !bytes.Equal(out, fixed) {
			return ValidateArguments(tool, out) // what is left may be little enough to be checked
		}
		return out, fault
	}
	return out, nil
}

// GivenTo returns the arguments of a call as its tool gets them, or as they are if they are refused.
func GivenTo(tool Tool, arguments json.RawMessage) json.RawMessage {
	if !tool.ChecksArguments {
		if valid, fault := ValidateArguments(tool, arguments); fault == nil {
			return valid
		}
	}
	return arguments
}

// ownSchema returns the schema that the tool's arguments are checked against.
func (t *Tool) ownSchema() json.RawMessage {
	if len(t.Accepts) > 0 {
		return t.Accepts
	}
	return t.Parameters
}

// schema returns that schema decoded, or nil if it is unreadable. It must not be changed.
func (t *Tool) schema() map[string]any {
	own := t.ownSchema()
	if sharesMemory(own, t.decodedFrom) {
		return t.decoded()
	}
	return decodeSchema(own)
}

func decodeSchema(own json.RawMessage) map[string]any {
	schema, err := DecodeJSON(own)
	root, _ := schema.(map[string]any)
	if err != nil {
		return nil
	}
	return root
}

func invalidError(tool Tool, why string) *Error {
	schema := wording.Clip(string(tool.Parameters), maxEchoedSchema)
	return OwnErrorf(CodeInvalid, "Invalid arguments for '%s': %s. Its parameters: %s", tool.Name, why, schema)
}

// DecodeJSON decodes JSON and keeps numbers as they are written: of one that no float64 holds, encoding/json makes an
// error, although a struct without that field is filled.
func DecodeJSON(raw []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	err := dec.Decode(&v)
	return v, err
}

// checker checks the arguments of one call.
type checker struct {
	root   map[string]any
	left   int  // checks until the bound
	strict bool // check only, convert nothing
}

// checksFor returns the bound for some arguments.
func checksFor(arguments json.RawMessage) int {
	return maxChecks + min(2*len(arguments), maxMoreChecks)
}

func (c *checker) exhausted() bool { return c.left < 0 }

// conform checks a value against the schema and converts it, also in place.
func (c *checker) conform(path string, schema, v any, depth int) (any, error) {
	s, ok := schema.(map[string]any)
	if c.left--; !ok || c.exhausted() || depth > maxCheckDepth {
		return v, nil
	}
	v, err := c.coerce(path, allowedTypes(s), v)
	if err != nil {
		return nil, err
	}
	if ref, ok := s["$ref"].(string); ok {
		target, _ := LookupReference(c.root, ref)
		if v, err = c.conform(path, target, v, depth+1); err != nil {
			return nil, err
		}
	}
	all, _ := s["allOf"].([]any)
	for _, one := range all {
		if v, err = c.conform(path, one, v, depth+1); err != nil {
			return nil, err
		}
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if list, ok := s[key].([]any); ok {
			if v, err = c.conformToAny(path, list, v, depth+1); err != nil {
				return nil, err
			}
		}
	}
	switch x := v.(type) {
	case map[string]any:
		return c.conformObject(path, s, x, depth)
	case []any:
		return c.conformArray(path, s, x, depth)
	}
	return v, checkEnum(path, s, v)
}

// conformToAny conforms a value to the first alternative that it fits as it is, or else to the first that
// it can be converted to. A value that fits none is unchanged: the tool knows better which was meant.
func (c *checker) conformToAny(path string, list []any, v any, depth int) (any, error) {
	checked := &checker{root: c.root, left: c.left, strict: true}
	fits := slices.ContainsFunc(list, func(one any) bool {
		_, err := checked.conform(path, one, v, depth)
		return err == nil
	})
	c.left = checked.left
	switch {
	case fits:
		return v, nil
	case c.strict && len(list) > 0:
		return nil, fmt.Errorf("'%s' fits none of the alternatives", path)
	case c.strict:
		return v, nil
	}
	for _, one := range list {
		if changed, err := c.conform(path, one, c.clone(v), depth); err == nil {
			return changed, nil
		}
	}
	return v, nil
}

// clone copies a value, because conform changes values in place.
func (c *checker) clone(v any) any {
	c.left--
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, one := range v {
			out[key] = c.clone(one)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, one := range v {
			out[i] = c.clone(one)
		}
		return out
	}
	return v
}

func (c *checker) conformArray(path string, s map[string]any, list []any, depth int) (any, error) {
	tuple, ok := s["prefixItems"].([]any)
	rest := s["items"]
	if older, list := rest.([]any); list {
		rest = s["additionalItems"]
		if !ok {
			tuple = older
		}
	}
	var err error
	for i := range list {
		schema := rest
		if i < len(tuple) {
			schema = tuple[i]
		}
		if list[i], err = c.conform(fmt.Sprintf("%s[%d]", path, i), schema, list[i], depth+1); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (c *checker) conformObject(path string, s, obj map[string]any, depth int) (any, error) {
	properties, _ := s["properties"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(obj)) {
		prop, known := properties[key]
		switch {
		case c.strict:
		case known && obj[key] == nil && !c.acceptsNull(prop, depth):
			delete(obj, key)
		case !known && !c.declares(s, key, depth):
			// encoding/json would match it, ignoring case, with the checked parameter.
			for _, name := range caseVariants(properties, key) {
				if _, given := obj[name]; !given && obj[key] != nil && len(caseVariants(properties, key)) == 1 {
					obj[name] = obj[key]
				}
				delete(obj, key)
			}
		}
	}
	required, _ := s["required"].([]any)
	for _, entry := range required {
		key, ok := entry.(string)
		if _, given := obj[key]; ok && !given && !c.hasDefault(properties[key]) {
			return nil, fmt.Errorf("required parameter '%s' is missing", joinPath(path, key))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(obj)) {
		prop, known := properties[key]
		if !known {
			continue
		}
		v, err := c.conform(joinPath(path, key), prop, obj[key], depth+1)
		if err != nil {
			return nil, err
		}
		obj[key] = v
	}
	return obj, nil
}

// alternatives returns the schemas that apply to the same value as s, or may.
func (c *checker) alternatives(s map[string]any) []any {
	var all []any
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := s[key].([]any)
		all = append(all, list...)
	}
	all = append(all, s["if"], s["then"], s["else"])
	if ref, ok := s["$ref"].(string); ok {
		if target, ok := LookupReference(c.root, ref); ok {
			all = append(all, target)
		}
	}
	return all
}

// acceptsNull reports whether a schema may accept null.
func (c *checker) acceptsNull(schema any, depth int) bool {
	s, ok := schema.(map[string]any)
	if c.left--; !ok || c.exhausted() || depth > maxCheckDepth {
		return true
	}
	if types := allowedTypes(s); len(types) > 0 {
		return slices.Contains(types, "null")
	}
	if values, ok := allowedValues(s); ok {
		return slices.Contains(values, nil)
	}
	some := func(list []any) bool {
		return len(list) == 0 || slices.ContainsFunc(list, func(one any) bool { return c.acceptsNull(one, depth+1) })
	}
	anyOf, _ := s["anyOf"].([]any)
	oneOf, _ := s["oneOf"].([]any)
	all, _ := s["allOf"].([]any)
	if ref, ok := s["$ref"].(string); ok {
		target, _ := LookupReference(c.root, ref)
		all = append(slices.Clip(all), target)
	}
	return some(anyOf) && some(oneOf) && !slices.ContainsFunc(all, func(one any) bool { return !c.acceptsNull(one, depth+1) })
}

// declares reports whether a parameter is declared anywhere in a schema of an object.
func (c *checker) declares(schema any, key string, depth int) bool {
	s, ok := schema.(map[string]any)
	if c.left--; !ok || c.exhausted() || depth > maxCheckDepth {
		return false
	}
	properties, _ := s["properties"].(map[string]any)
	_, declared := properties[key]
	_, patterns := s["patternProperties"]
	return declared || patterns || slices.ContainsFunc(c.alternatives(s), func(one any) bool { return c.declares(one, key, depth+1) })
}

// hasDefault reports whether a parameter has a default, so that it may be missing.
func (c *checker) hasDefault(schema any) bool {
	s, _ := schema.(map[string]any)
	if ref, ok := s["$ref"].(string); ok && s["default"] == nil {
		target, _ := LookupReference(c.root, ref)
		s, _ = target.(map[string]any)
	}
	return s["default"] != nil
}

func joinPath(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// caseVariants returns the parameters whose names differ from a key only in case.
func caseVariants(properties map[string]any, key string) (names []string) {
	for name := range properties {
		if strings.EqualFold(name, key) {
			names = append(names, name)
		}
	}
	return names
}

// maxReferences bounds the references that refer to one another.
const maxReferences = 16

// LookupReference returns the schema that a local reference such as "#/$defs/Issue" names, after following
// references in its place. It returns false for other references, and for those that lead nowhere or in a
// circle.
func LookupReference(root map[string]any, ref string) (any, bool) {
	for range maxReferences {
		pointer, ok := strings.CutPrefix(ref, "#")
		if !ok {
			return nil, false
		}
		var at any = root
		for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
			if pointer == "" {
				break
			}
			if plain, err := url.PathUnescape(part); err == nil {
				part = plain
			}
			part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
			switch node := at.(type) {
			case map[string]any:
				at, ok = node[part]
			case []any:
				i, err := strconv.Atoi(part)
				if ok = err == nil && i >= 0 && i < len(node); ok {
					at = node[i]
				}
			default:
				ok = false
			}
			if !ok {
				return nil, false
			}
		}
		s, _ := at.(map[string]any)
		next, again := s["$ref"].(string)
		if !again || len(s) > 1 {
			return at, true
		}
		ref = next
	}
	return nil, false
}

// jsonTypes are the names of types that a schema can allow.
var jsonTypes = []string{"string", "integer", "number", "boolean", "object", "array", "null"}

// allowedTypes returns the types that a schema allows; none means any. A schema with a name that is no
// type of JSON, such as "date", allows any.
func allowedTypes(s map[string]any) []string {
	var types []string
	switch t := s["type"].(type) {
	case string:
		types = []string{t}
	case []any:
		for _, one := range t {
			name, _ := one.(string)
			types = append(types, name)
		}
	}
	if slices.ContainsFunc(types, func(t string) bool { return !slices.Contains(jsonTypes, t) }) {
		return nil
	}
	if s["nullable"] == true && len(types) > 0 && !slices.Contains(types, "null") {
		types = append(types, "null")
	}
	return types
}

// allowedValues returns the values that a schema allows, and whether it names any.
func allowedValues(s map[string]any) ([]any, bool) {
	if value, ok := s["const"]; ok {
		return []any{value}, true
	}
	values, ok := s["enum"].([]any)
	return values, ok && len(values) > 0
}

// checkEnum checks a value that is neither an object nor an array.
func checkEnum(path string, s map[string]any, v any) error {
	values, ok := allowedValues(s)
	if !ok || v == nil && s["nullable"] == true || slices.ContainsFunc(values, func(e any) bool { return equalValue(e, v) }) {
		return nil
	}
	list, err := EncodeJSON(values)
	if err != nil {
		return err
	}
	return fmt.Errorf("'%s' must be one of %s", path, list)
}

// coerce converts a value to the first of the wanted types that fits.
func (c *checker) coerce(path string, want []string, v any) (any, error) {
	if len(want) == 0 {
		return v, nil
	}
	for _, t := range want {
		if hasType(t, v) {
			return v, nil
		}
	}
	for _, t := range want {
		if out, ok := convertUnmistakable(t, v); ok && !c.strict {
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
		inner, err := DecodeJSON([]byte(text))
		return inner, err == nil && typeOf(inner) == t
	}
	return nil, false
}

// wholePattern matches a whole number in JSON, and digitsPattern one with zeros after the point.
var (
	wholePattern  = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)
	digitsPattern = regexp.MustCompile(`^\+?(-?)0*([0-9]+)(\.0+)?$`)
)

// parseInteger parses a whole number. One with an exponent must be one that a float64 represents
// exactly.
func parseInteger(n json.Number) (any, bool) {
	if wholePattern.MatchString(string(n)) {
		return n, true
	}
	if m := digitsPattern.FindStringSubmatch(string(n)); m != nil {
		return json.Number(m[1] + m[2]), true
	}
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 || !json.Valid([]byte(n)) {
		return nil, false
	}
	return json.Number(strconv.FormatInt(int64(f), 10)), true
}

// maxExact is the largest number up to which a float64 represents each whole number.
const maxExact = 1 << 53

// equalValue reports whether an entry of an enum equals a value.
func equalValue(e, v any) bool {
	a, isNumber := e.(json.Number)
	b, ok := v.(json.Number)
	if !ok || !isNumber {
		return reflect.DeepEqual(e, v)
	}
	x, errX := a.Float64()
	y, errY := b.Float64()
	return a == b || errX == nil && errY == nil && x == y && math.Abs(x) <= maxExact
}
