package provider

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"oneclaw/toolgroups"
)

// Family is a family of models whose servers accept the same schemas.
type Family int

const (
	// FamilyOther accepts any valid JSON Schema that has items in each array (OpenAI, and most others).
	FamilyOther Family = iota
	// FamilyClaude accepts JSON Schema 2020-12 with simple names of properties, without a choice at the top.
	FamilyClaude
	// FamilyGemini accepts only the fields of Google's Schema type (ai.google.dev/api/caching#Schema).
	FamilyGemini
	// FamilyKimi needs exactly one type in each schema, and a choice without siblings (kimi-code #2661,
	// kimi-cli PR 2030).
	FamilyKimi
)

// FamilyOf returns the family that a model's name implies, with any vendor's prefix.
func FamilyOf(model string) Family {
	model = strings.ToLower(model)
	switch {
	case strings.Contains(model, "claude"):
		return FamilyClaude
	case strings.Contains(model, "gemini"):
		return FamilyGemini
	case strings.Contains(model, "kimi"), strings.Contains(model, "moonshot"):
		return FamilyKimi
	}
	return FamilyOther
}

// Bounds of an adapted schema. References may refer to schemas that contain them, and a few of them that refer
// to each other twice describe more than any memory holds.
const (
	maxSchemaDepth = 32
	maxSchemaNodes = 5000
	// maxRecursion bounds how often a schema is shown within itself, maxInlined the depth to which
	// references to other places than definitions are resolved.
	maxRecursion = 2
	maxInlined   = 8
)

// Parameters are the parameters of a tool as a family of models accepts them.
type Parameters struct {
	// Schema is the adapted schema, or the given one if Changed is false.
	Schema  json.RawMessage
	Changed bool
	// sent maps the names of renamed properties to the names that are sent, own maps these back. Both are
	// nil if none was renamed.
	sent, own map[string]string
}

// ownNames returns arguments by the model with the tool's own names of properties.
func (p Parameters) ownNames(arguments string) string { return renameKeys(arguments, p.own) }

// SentNames returns arguments of the tool with the names of properties that the model knows.
func (p Parameters) SentNames(arguments string) string { return renameKeys(arguments, p.sent) }

// renameKeys renames the keys of all objects in a JSON text, and changes nothing else in it. Invalid JSON is
// returned unchanged.
func renameKeys(text string, names map[string]string) string {
	if len(names) == 0 || !json.Valid([]byte(text)) {
		return text
	}
	var out strings.Builder
	done := 0
	for i := 0; i < len(text); i++ {
		if text[i] != '"' {
			continue
		}
		begin := i
		for i++; text[i] != '"'; i++ {
			if text[i] == '\\' {
				i++
			}
		}
		if !strings.HasPrefix(strings.TrimLeft(text[i+1:], " \t\r\n"), ":") {
			continue // a value
		}
		var key string
		if json.Unmarshal([]byte(text[begin:i+1]), &key) != nil {
			continue
		}
		if name, ok := names[key]; ok {
			out.WriteString(text[done:begin])
			out.Write(AppendString(nil, name))
			done = i + 1
		}
	}
	if done == 0 {
		return text
	}
	return out.String() + text[done:]
}

// adaptParameters changes the schema of a tool's parameters into one that a family of models accepts: servers
// refuse whole requests for one schema. What it cannot express is left out: the tool checks its arguments
// itself. An undecodable schema is returned unchanged.
func adaptParameters(family Family, schema json.RawMessage) Parameters {
	decode := json.NewDecoder(bytes.NewReader(schema))
	decode.UseNumber() // numbers keep their digits
	var root map[string]any
	if decode.Decode(&root) != nil || root == nil {
		return Parameters{Schema: schema}
	}
	a := adapter{family: family, root: root, nodes: maxSchemaNodes}
	a.renameProperties()
	adapted := a.repair(root, 0)
	if family == FamilyGemini || family == FamilyKimi {
		a.root, a.nodes = adapted, maxSchemaNodes
		top, refs, _ := a.inline(adapted, nil, 0)
		adapted = a.write(top, "object", refs, 0)
		if adapted["properties"] == nil {
			adapted["properties"] = map[string]any{}
		}
	}
	for _, keyword := range []string{"anyOf", "oneOf", "allOf", "enum", "not"} { // OpenAI and Claude refuse them there
		delete(adapted, keyword)
	}
	if reflect.DeepEqual(adapted, root) {
		return Parameters{Schema: schema}
	}
	encoded, err := toolgroups.EncodeJSON(adapted)
	if err != nil {
		return Parameters{Schema: schema}
	}
	p := Parameters{Schema: encoded, Changed: true}
	if len(a.sent) > 0 {
		p.sent, p.own = a.sent, make(map[string]string, len(a.sent))
		for own, sent := range a.sent {
			p.own[sent] = own
		}
	}
	return p
}

// adapter adapts one schema.
type adapter struct {
	family Family
	root   map[string]any
	// sent maps the names of properties to be renamed to the names that are sent.
	sent  map[string]string
	nodes int // how many schemas may still be written
}

// keywords says what the value of a keyword has to be. Values of other keywords are not checked.
var keywords = map[string]func(v any) bool{
	"properties": isMap, "patternProperties": isMap, "$defs": isMap, "definitions": isMap, "dependentSchemas": isMap, "dependentRequired": isMap,
	"items": isSchema, "additionalProperties": isSchema, "not": isSchema, "if": isSchema, "then": isSchema, "else": isSchema, "contains": isSchema,
	"propertyNames": isSchema, "unevaluatedProperties": isSchema, "unevaluatedItems": isSchema,
	"anyOf": isSchemas, "oneOf": isSchemas, "allOf": isSchemas, "prefixItems": isSchemas,
	"enum": isList, "examples": isList, "required": isList,
	"title": isText, "description": isText, "pattern": isText, "format": isText, "$comment": isText, "$ref": isText,
	"minimum": isNumber, "maximum": isNumber, "exclusiveMinimum": isNumber, "exclusiveMaximum": isNumber, "multipleOf": isPositive,
	"minLength": isCount, "maxLength": isCount, "minItems": isCount, "maxItems": isCount, "minProperties": isCount, "maxProperties": isCount,
	"minContains": isCount, "maxContains": isCount,
	"uniqueItems": isBool, "deprecated": isBool, "readOnly": isBool, "writeOnly": isBool,
}

// Keywords with schemas in a map, in a list, and alone.
var (
	schemaMaps  = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
	schemaLists = []string{"anyOf", "oneOf", "allOf", "prefixItems", "items"}
	soleSchemas = []string{"items", "additionalProperties", "additionalItems", "not", "if", "then", "else", "contains", "propertyNames", "unevaluatedProperties", "unevaluatedItems"}
)

func isMap(v any) bool    { _, ok := v.(map[string]any); return ok }
func isBool(v any) bool   { _, ok := v.(bool); return ok }
func isText(v any) bool   { _, ok := v.(string); return ok }
func isList(v any) bool   { list, ok := v.([]any); return ok && len(list) > 0 }
func isNumber(v any) bool { _, ok := v.(json.Number); return ok }
func isSchema(v any) bool { return isMap(v) || isBool(v) }

func isSchemas(v any) bool {
	return isList(v) && !slices.ContainsFunc(asList(v), func(one any) bool { return !isSchema(one) })
}

func isPositive(v any) bool {
	n, ok := v.(json.Number)
	return ok && n != "0" && !strings.HasPrefix(string(n), "-")
}

func isCount(v any) bool {
	n, ok := v.(json.Number)
	f, err := n.Float64()
	return ok && err == nil && f >= 0 && f == float64(int64(f))
}

// asSchema returns a value as a schema; nil if the value is not an object, such as true or false.
func asSchema(v any) map[string]any {
	object, _ := v.(map[string]any)
	return object
}

func asList(v any) []any {
	list, _ := v.([]any)
	return list
}

// subschemas calls yield with each schema directly in a schema.
func subschemas(schema map[string]any, yield func(sub map[string]any)) {
	visit := func(v any) {
		if sub := asSchema(v); sub != nil {
			yield(sub)
		}
	}
	for _, keyword := range schemaMaps {
		for _, v := range asSchema(schema[keyword]) {
			visit(v)
		}
	}
	for _, keyword := range schemaLists {
		for _, v := range asList(schema[keyword]) {
			visit(v)
		}
	}
	for _, keyword := range soleSchemas {
		visit(schema[keyword])
	}
}

var (
	// simpleNames matches the names of properties that Claude accepts (kintone/mcp-server #547), and with
	// it every family but one; googleNames matches Google's (its FunctionDeclaration).
	simpleNames  = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)
	googleNames  = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]{0,63}$`)
	invalidChars = regexp.MustCompile(`[^a-zA-Z0-9_]+`)
)

// maxName bounds the name of a property.
const maxName = 64

// renameProperties chooses the names to be sent. They are unique among all names in the schema, so that
// arguments can be renamed without it.
func (a *adapter) renameProperties() {
	valid, names := simpleNames, map[string]bool{}
	if a.family == FamilyGemini {
		valid = googleNames
	}
	var collect func(schema map[string]any, depth int)
	collect = func(schema map[string]any, depth int) {
		if depth > maxSchemaDepth {
			return
		}
		for name := range asSchema(schema["properties"]) {
			names[name] = true
		}
		subschemas(schema, func(sub map[string]any) { collect(sub, depth+1) })
	}
	collect(a.root, 0)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if valid.MatchString(name) {
			continue
		}
		simple := invalidChars.ReplaceAllLiteralString(name, "_")
		if !googleNames.MatchString(simple[:min(len(simple), maxName)]) {
			simple = "_" + simple
		}
		simple = simple[:min(len(simple), maxName)]
		for sent, n := simple, 2; ; n++ {
			if !names[sent] {
				simple = sent
				break
			}
			end := "_" + strconv.Itoa(n)
			sent = simple[:min(len(simple), maxName-len(end))] + end
		}
		if a.sent == nil {
			a.sent = map[string]string{}
		}
		a.sent[name], names[simple] = simple, true
	}
}

// repair returns a copy of a schema that is valid JSON Schema 2020-12: keywords of older drafts are
// translated, and values that a keyword does not allow are left out.
func (a *adapter) repair(in map[string]any, depth int) map[string]any {
	if a.nodes--; a.nodes < 0 || depth > maxSchemaDepth {
		return map[string]any{}
	}
	in = a.repairReference(in, depth)
	out := make(map[string]any, len(in))
	for keyword, v := range in {
		if allowed := keywords[keyword]; allowed != nil && !allowed(v) {
			continue
		}
		out[keyword] = v
	}
	repairItems(in, out)
	repairBounds(in, out)
	repairType(in, out)
	if a.family == FamilyClaude {
		for _, keyword := range []string{"$schema", "$id", "id", "$vocabulary", "dependencies"} {
			delete(out, keyword)
		}
	}
	for _, keyword := range schemaMaps {
		if subs := asSchema(out[keyword]); subs != nil {
			out[keyword] = a.repairMap(keyword, subs, depth)
		}
	}
	for _, keyword := range schemaLists {
		if list := asList(out[keyword]); list != nil {
			repaired := make([]any, len(list))
			for i := range list {
				repaired[i] = a.repairOne(list[i], depth)
			}
			out[keyword] = repaired
		}
	}
	for _, keyword := range soleSchemas {
		if sub := asSchema(out[keyword]); sub != nil {
			out[keyword] = a.repair(sub, depth+1)
		}
	}
	a.repairRequired(in, out)
	return out
}

// repairOne repairs a value that is a schema or a boolean.
func (a *adapter) repairOne(v any, depth int) any {
	if sub := asSchema(v); sub != nil {
		return a.repair(sub, depth+1)
	}
	return v
}

// repairMap repairs the schemas in the map of a keyword, and renames properties. A property that may be
// anything becomes an empty schema, because OpenAI accepts no boolean there.
func (a *adapter) repairMap(keyword string, subs map[string]any, depth int) map[string]any {
	out := make(map[string]any, len(subs))
	for name, v := range subs {
		if !isSchema(v) || keyword == "properties" && isBool(v) {
			v = map[string]any{}
		}
		v = a.repairOne(v, depth)
		if sent, renamed := a.sent[name]; renamed && keyword == "properties" {
			if sub := asSchema(v); sub != nil {
				text, _ := sub["description"].(string)
				sub["description"] = strings.TrimSpace(fmt.Sprintf("(%s) %s", name, text))
			}
			name = sent
		}
		out[name] = v
	}
	return out
}

// repairItems adds the items of arrays, and translates tuples of older drafts.
func repairItems(in, out map[string]any) {
	if list, ok := in["items"].([]any); ok {
		delete(out, "additionalItems")
		if delete(out, "items"); isSchemas(list) {
			out["prefixItems"] = list
		}
	}
	if isBool(out["items"]) {
		delete(out, "items")
	}
	if hasType(in["type"], "array") && out["items"] == nil {
		out["items"] = map[string]any{}
	}
}

// hasType reports whether the value of type is, or its list contains, a name.
func hasType(v any, name string) bool { return v == name || slices.Contains(asList(v), any(name)) }

// repairBounds translates the exclusive bounds of draft 4, which were booleans.
func repairBounds(in, out map[string]any) {
	for exclusive, bound := range map[string]string{"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"} {
		if in[exclusive] == true && isNumber(out[bound]) {
			out[exclusive] = out[bound]
			delete(out, bound)
		}
	}
}

// typeNames are the names of types, with those that servers write instead.
var typeNames = map[string]string{
	"string": "string", "number": "number", "integer": "integer", "boolean": "boolean", "object": "object", "array": "array", "null": "null",
	"str": "string", "text": "string", "int": "integer", "long": "integer", "float": "number", "double": "number", "decimal": "number",
	"bool": "boolean", "dict": "object", "map": "object", "list": "array", "none": "null", "nil": "null",
}

// repairType leaves out types that do not exist.
func repairType(in, out map[string]any) {
	v, ok := in["type"]
	if !ok {
		return
	}
	one, single := v.(string)
	if typeNames[one] == one && single {
		return
	}
	list := asList(v)
	if single {
		list = []any{one}
	}
	var names []any
	for _, item := range list {
		text, _ := item.(string)
		if name := typeNames[strings.ToLower(text)]; name != "" && !slices.Contains(names, any(name)) {
			names = append(names, name)
		}
	}
	switch {
	case len(names) == 0:
		delete(out, "type")
	case single || len(names) == 1 && len(list) > 1:
		out["type"] = names[0]
	default:
		out["type"] = names
	}
}

// repairRequired keeps the names that are required, each once. In older drafts a property said it itself.
func (a *adapter) repairRequired(in, out map[string]any) {
	properties := asSchema(in["properties"])
	names := asList(in["required"])
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if asSchema(properties[name])["required"] == true {
			names = append(names, name)
		}
	}
	var kept []any
	for _, v := range names {
		name, ok := v.(string)
		if sent, renamed := a.sent[name]; renamed {
			name = sent
		}
		if ok && !slices.Contains(kept, any(name)) {
			kept = append(kept, name)
		}
	}
	if delete(out, "required"); len(kept) > 0 {
		out["required"] = kept
	}
	if dependent := asSchema(out["dependentRequired"]); dependent != nil && len(a.sent) > 0 {
		delete(out, "dependentRequired") // which has names as well
	}
}

// repairReference keeps a reference to a definition, resolves one to another place in the schema, and leaves
// out one that leads nowhere.
func (a *adapter) repairReference(in map[string]any, depth int) map[string]any {
	ref, ok := in["$ref"].(string)
	if !ok {
		return in
	}
	target := a.resolve(ref)
	place := strings.TrimPrefix(strings.TrimPrefix(ref, "#/$defs/"), "#/definitions/")
	if target != nil && (ref == "#" || place != ref && !strings.Contains(place, "/")) {
		return in
	}
	out := maps.Clone(in)
	delete(out, "$ref")
	if target == nil || target["$ref"] != nil || depth > maxInlined {
		return out
	}
	return merge(target, out)
}

// resolve returns the schema that a local reference points at; nil if there is none.
func (a *adapter) resolve(ref string) map[string]any {
	target, _ := toolgroups.LookupReference(a.root, ref)
	return asSchema(target)
}
