package toolgroups

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
)

// Undeclared returns the ways to the values among the arguments of a call that its tool does not declare, such as
// "options.dry_run", sorted. Of tools that are not [Tool.External], no call has any after [ValidateArguments]. It returns
// none if the schema has too many alternatives to be followed.
func Undeclared(tool Tool, arguments json.RawMessage) []string {
	value, err := DecodeJSON(arguments)
	if err != nil {
		return nil
	}
	paths, _ := undeclared(tool.schema(), value, checksFor(arguments), false)
	return paths
}

// undeclared returns the ways to the values that a schema does not declare, and drops them if told to. They are those of
// objects for which the schema has properties, and nothing that allows others: "additionalProperties", unless it is
// false, "patternProperties", or a reference that leads nowhere. Whoever reads a card takes what it shows for what
// counts. ok is false if that takes more steps than are left.
func undeclared(root map[string]any, value any, left int, drop bool) (paths []string, ok bool) {
	d := declarations{root: root, drop: drop, left: left}
	d.walk("", d.expand([]any{root}), value)
	if d.left < 0 {
		return nil, false
	}
	return d.paths, true
}

type declarations struct {
	root  map[string]any
	drop  bool
	left  int // schemas that may still be followed
	paths []string
}

// shape is what some schemas that apply to the same value, or may, say of it together.
type shape struct {
	all []map[string]any
	// closed says that an object has only those properties that all declare.
	closed bool
	// items is the shape of the elements of a list, and fields are those of properties, as far as they were needed.
	items  *shape
	fields map[string]field
}

type field struct {
	*shape
	declared bool
}

// walk looks for undeclared values in one with a shape.
func (d *declarations) walk(path string, s *shape, value any) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			within := d.fieldOf(s, key)
			switch way := joinPath(path, key); {
			case within.declared || !s.closed:
				d.walk(way, within.shape, v[key])
			default:
				d.paths = append(d.paths, way)
				if d.drop {
					delete(v, key)
				}
			}
		}
	case []any:
		items := d.itemsOf(s)
		for _, one := range v {
			d.walk(path+"[]", items, one)
		}
	}
}

// itemsOf returns the shape of the elements of a list.
func (d *declarations) itemsOf(s *shape) *shape {
	if s.items != nil {
		return s.items
	}
	var within []any
	for _, one := range s.all {
		for _, key := range []string{"items", "prefixItems", "additionalItems"} {
			if list, ok := one[key].([]any); ok {
				within = append(within, list...)
			} else {
				within = append(within, one[key])
			}
		}
	}
	s.items = d.expand(within)
	return s.items
}

// fieldOf returns the shape of the value of a key, and whether one of the schemas of its object declares it.
func (d *declarations) fieldOf(s *shape, key string) field {
	if known, ok := s.fields[key]; ok {
		return known
	}
	var within []any
	var found field
	for _, one := range s.all {
		if d.left--; d.left < 0 {
			break
		}
		properties, _ := one["properties"].(map[string]any)
		required, _ := one["required"].([]any)
		schema, ok := properties[key]
		found.declared = found.declared || ok || slices.Contains(required, any(key))
		if !ok {
			schema = one["additionalProperties"]
		}
		within = append(within, schema)
		patterns, _ := one["patternProperties"].(map[string]any)
		within = slices.AppendSeq(within, maps.Values(patterns))
	}
	found.shape = d.expand(within)
	if s.fields == nil {
		s.fields = map[string]field{}
	}
	s.fields[key] = found
	return found
}

// expand returns the shape of the schemas with those that apply to the same value, or may, each once.
func (d *declarations) expand(schemas []any) *shape {
	c := &checker{root: d.root}
	seen := map[uintptr]bool{}
	out, properties, open := new(shape), false, false
	for queue := slices.Clone(schemas); len(queue) > 0 && d.left >= 0; {
		s, _ := queue[0].(map[string]any)
		queue = queue[1:]
		if s == nil {
			continue
		}
		d.left--
		at := reflect.ValueOf(s).Pointer()
		if seen[at] {
			continue
		}
		seen[at] = true
		out.all = append(out.all, s)
		queue = append(queue, c.alternatives(s)...)
		for _, key := range []string{"dependentSchemas", "dependencies"} { // the latter in older schemas
			given, _ := s[key].(map[string]any)
			queue = slices.AppendSeq(queue, maps.Values(given))
		}
		_, has := s["properties"].(map[string]any)
		properties = properties || has
		for _, key := range []string{"additionalProperties", "unevaluatedProperties", "patternProperties", "$dynamicRef", "$recursiveRef"} {
			if allows, given := s[key]; given && allows != false {
				open = true
			}
		}
		if ref, ok := s["$ref"].(string); ok {
			_, found := LookupReference(d.root, ref)
			open = open || !found
		}
	}
	out.closed = properties && !open
	return out
}
