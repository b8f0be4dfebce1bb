package toolgroups

import (
	"encoding/json"
	"fmt"
	"strings"
)

// AuditArguments returns the identifying arguments of a call ([Tool.AuditedArguments]) for the audit,
// as "name=exec enabled=false". It leaves out values that are neither strings nor booleans. mask masks
// the secrets in a string.
func AuditArguments(tool Tool, arguments json.RawMessage, mask func(string) string) string {
	var given map[string]any
	_ = json.Unmarshal(GivenTo(tool, arguments), &given) // unreadable arguments identify nothing
	var all []string
	for _, name := range tool.AuditedArguments {
		switch value := given[name].(type) {
		case string:
			all = append(all, name+"="+oneLine(mask(value), maxActivity))
		case bool:
			all = append(all, fmt.Sprintf("%s=%t", name, value))
		}
	}
	return strings.Join(all, " ")
}

// parseEach parses the name of the parameter that lists what a call changes.
func parseEach(raw, parameters json.RawMessage) (string, error) {
	var schema struct {
		Properties map[string]struct {
			Type any
		}
	}
	name := trimmedString(raw)
	if raw != nil && (json.Unmarshal(parameters, &schema) != nil || schema.Properties[name].Type != "array") {
		return "", fmt.Errorf("each must be a parameter of type array")
	}
	return name, nil
}

// parseAuditedArguments parses a tool's list of identifying arguments.
func parseAuditedArguments(raw, parameters json.RawMessage) (names []string, err error) {
	var schema struct{ Properties map[string]json.RawMessage }
	if raw == nil {
		return nil, nil
	}
	if json.Unmarshal(raw, &names) != nil || json.Unmarshal(parameters, &schema) != nil {
		return nil, fmt.Errorf("names must be a list of parameters")
	}
	for _, name := range names {
		if _, ok := schema.Properties[name]; !ok {
			return nil, fmt.Errorf("names lists %q, which is not a parameter", oneLine(name, maxEcho))
		}
	}
	return names, nil
}
