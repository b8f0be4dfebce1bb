package config

import (
	"fmt"

	"oneclaw/toolgroups/search"
)

// goneSettings are settings of earlier programs, with what to do instead. They are ignored, and
// [Config.Warnings] says so.
func goneSettings() []struct{ key, variable, instead string } {
	return []struct{ key, variable, instead string }{
		{"export_judged", "ONECLAW_EXPORT_JUDGED", "conversations are not exported any more; /export gives people their own"},
	}
}

// warnOfKey adds a warning if a key is of an earlier program, and reports whether it is.
func (c *Config) warnOfKey(key string) bool {
	for _, s := range goneSettings() {
		if s.key == key {
			c.Warnings = append(c.Warnings, "setting "+s.key+" is gone: "+s.instead+"; remove it")
			return true
		}
	}
	return false
}

// dropGoneVariables removes the variables of earlier programs, with a warning for each.
func (c *Config) dropGoneVariables(environment map[string]string) {
	for _, s := range goneSettings() {
		if _, set := environment[s.variable]; set {
			delete(environment, s.variable)
			c.Warnings = append(c.Warnings, "environment: "+s.variable+" is gone: "+s.instead+"; remove it")
		}
	}
}

// replaceRouting replaces a routing of an earlier program by the present one, with a warning.
func (c *Config) replaceRouting() {
	if now := search.InsteadOf(c.Tools.Routing); now != "" {
		c.Warnings = append(c.Warnings, fmt.Sprintf("setting tools.routing (ONECLAW_ROUTING): %s is gone: %s is used instead; write that", c.Tools.Routing, now))
		c.Tools.Routing = string(now)
	}
}
