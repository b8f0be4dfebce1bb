package config

import (
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"oneclaw/toolgroups/search"
)

// The sources of a setting.
const (
	fromDefault = "default"
	fromFile    = "settings file"
)

// Effective is a setting in effect.
type Effective struct {
	// Key is the key in the file, Value the value in effect, with secrets masked, and From its
	// source.
	Key, Value, From string
	// Set says that it differs from the default.
	Set bool
}

// origins maps the settings that are set to their sources.
type origins map[string]string

// note records which settings the file and the environment set.
func (c *Config) note(file []byte, environment map[string]string) {
	c.from = origins{}
	var written map[string]any
	_ = yaml.Unmarshal(file, &written) // it was decoded before
	for _, s := range c.Settings() {
		if environment[s.variable] != "" {
			c.from[s.Key] = s.variable
			if environment[s.variable+"_FILE"] != "" {
				c.from[s.Key] += "_FILE"
			}
		} else if has(written, strings.Split(s.Key, ".")) {
			c.from[s.Key] = fromFile
		}
	}
}

// SearchSaid says what the block tools.tool_search does beside tools.routing if both are set;
// otherwise it is empty.
func (c *Config) SearchSaid() string {
	if c.from["tools.routing"] == "" || c.from["tools.tool_search"] == "" {
		return ""
	}
	switch search.Routing(c.Tools.Routing) {
	case search.RoutingAuto, search.RoutingThreshold:
		return "tools.tool_search.enabled says when this mode defers tools"
	case search.RoutingSearch, search.RoutingNative:
		return "tools.routing rules: of tools.tool_search only the limits and embeddings count"
	}
	return "tools.routing rules: tools.tool_search does nothing in this mode"
}

// has reports whether a path exists in a tree.
func has(tree any, path []string) bool {
	for _, name := range path {
		branch, ok := tree.(map[string]any)
		if !ok {
			return false
		}
		if tree, ok = branch[name]; !ok {
			return false
		}
	}
	return true
}

// Effective returns all settings as of the start of the program.
func (c *Config) Effective() ([]Effective, error) {
	var all []Effective
	for _, s := range c.Settings() {
		value := mapTexts(s.value, shown)
		data, err := yaml.Marshal(value.Interface())
		if err != nil {
			return nil, fmt.Errorf("setting %s: %w", s.Key, err)
		}
		e := Effective{Key: s.Key, Value: strings.TrimSpace(string(data)), From: fromDefault}
		if list, ok := reflect.TypeAssert[[]string](value); ok {
			e.Value = strings.Join(list, ", ")
		}
		if from := c.from[s.Key]; from != "" {
			e.From, e.Set = from, true
		}
		if e.Value == `""` || e.Value == "[]" || e.Value == "{}" || e.Value == "null" {
			e.Value = ""
		}
		all = append(all, e)
	}
	return all, nil
}
