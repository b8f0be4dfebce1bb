package config

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"oneclaw/toolgroups/search"
)

// fromFile is the source of a setting in the file.
const fromFile = "settings file"

// origins maps settings to their sources. Settings with their default value are not in the map.
type origins map[string]string

// recordOrigins records which settings are set in the file and the environment.
func (c *Config) recordOrigins(file []byte, environment map[string]string) {
	c.settingOrigins = origins{}
	var written map[string]any
	_ = yaml.Unmarshal(file, &written) // cannot fail: the file was decoded before
	for _, s := range c.Settings() {
		if environment[s.variable] != "" {
			c.settingOrigins[s.Key] = s.variable
			if environment[s.variable+"_FILE"] != "" {
				c.settingOrigins[s.Key] += "_FILE"
			}
		} else if hasPath(written, strings.Split(s.Key, ".")) {
			c.settingOrigins[s.Key] = fromFile
		}
	}
}

// ToolSearchNote describes the effect of the section tools.tool_search if tools.routing is set too. It
// returns "" if only one of them is set.
func (c *Config) ToolSearchNote() string {
	if c.settingOrigins["tools.routing"] == "" || c.settingOrigins["tools.tool_search"] == "" {
		return ""
	}
	switch search.Routing(c.Tools.Routing) {
	case search.RoutingAuto:
		return "tools.tool_search.enabled says when this mode defers tools"
	case search.RoutingSearch:
		return "tools.routing rules: of tools.tool_search only the limits and embeddings count"
	}
	return "tools.routing rules: tools.tool_search does nothing in this mode"
}

// hasPath reports whether a path of keys exists in a tree of maps.
func hasPath(tree any, path []string) bool {
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
