package toolgroups

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
)

// Surplus returns the ways to the values among the arguments of a call that its tool does not declare, such as
// "options.dry_run", sorted. Of tools that are not [Tool.External], no call has any after [ValidateArguments].
func Surplus(tool Tool, arguments json.RawMessage) []string {
	value, err := DecodeJSON(arguments)
	if err != nil {
		return nil
	}
	return surplus(tool.schema(), value, false)
}

// surplus returns the ways to the values that a schema does not declare, and drops them if told to. They are those of
// objects for which the schema has properties, and nothing that allows others: "additionalProperties", unless it is
// false, "patternProperties", or a reference that leads nowhere. Whoever reads a card takes what it shows for what
// counts.
func surplus(root map[string]any, value any, drop bool) []string {
	d := declarations{root: root, drop: drop}
	d.walk("", []any{root}, value)
	return d.paths
}

type declarations struct {
	root  map[string]any
	drop  bool
	paths []string
}

// walk looks for surplus values in one to which some schemas apply, or may.
func (d *declarations) walk(path string, schemas []any, value any) {
	switch v := value.(type) {
	case map[string]any:
		all, open := d.expand(schemas)
		closed := slices.ContainsFunc(all, func(s map[string]any) bool { _, ok := s["properties"].(map[string]any); return ok }) && !open
		for _, key := range slices.Sorted(maps.Keys(v)) {
			within, declared := schemasOf(all, key)
			switch way := joinPath(path, key); {
			case declared || !closed:
				d.walk(way, within, v[key])
			default:
				d.paths = append(d.paths, way)
				if d.drop {
					delete(v, key)
				}
			}
		}
	case []any:
		all, _ := d.expand(schemas)
		var within []any
		for _, s := range all {
			for _, key := range []string{"items", "prefixItems", "additionalItems"} {
				if list, ok := s[key].([]any); ok {
					within = append(within, list...)
				} else {
					within = append(within, s[key])
				}
			}
		}
		for _, one := range v {
			d.walk(path+"[]", within, one)
		}
	}
}

// expand returns the schemas with those that apply to the same value, or may, each once, and whether one allows
// properties that it does not declare.
func (d *declarations) expand(schemas []any) (all []map[string]any, open bool) {
	c := &checker{root: d.root}
	seen := map[uintptr]bool{}
	for queue := slices.Clone(schemas); len(queue) > 0; {
		s, _ := queue[0].(map[string]any)
		queue = queue[1:]
		at := reflect.ValueOf(s).Pointer()
		if s == nil || seen[at] {
			continue
		}
		seen[at] = true
		all = append(all, s)
		queue = append(queue, c.alternatives(s)...)
		given, _ := s["dependentSchemas"].(map[string]any)
		queue = slices.AppendSeq(queue, maps.Values(given))
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
	return all, open
}

// schemasOf returns the schemas of the value of a key, and whether one of the schemas of its object declares it.
func schemasOf(objects []map[string]any, key string) (within []any, declared bool) {
	for _, s := range objects {
		properties, _ := s["properties"].(map[string]any)
		required, _ := s["required"].([]any)
		one, ok := properties[key]
		declared = declared || ok || slices.Contains(required, any(key))
		if !ok {
			one = s["additionalProperties"]
		}
		within = append(within, one)
		patterns, _ := s["patternProperties"].(map[string]any)
		within = slices.AppendSeq(within, maps.Values(patterns))
	}
	return within, declared
}
