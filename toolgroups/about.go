package toolgroups

import (
	"encoding/json"
	"fmt"
	"strings"
)

// About says what a call is about, for those who may have to know later: the arguments that are
// names ([Tool.Names]), as "name=exec enabled=false". Mask takes secrets out of a value.
func About(tool Tool, arguments json.RawMessage, mask func(string) string) string {
	var given map[string]any
	_ = json.Unmarshal(arguments, &given) // what cannot be read names nothing
	var all []string
	for _, name := range tool.Names {
		switch value := given[name].(type) {
		case string:
			all = append(all, name+"="+oneLine(mask(value), maxDoing))
		case bool:
			all = append(all, fmt.Sprintf("%s=%t", name, value))
		}
	}
	return strings.Join(all, " ")
}

// parseNames reads the arguments that are names.
func parseNames(raw, parameters json.RawMessage) (names []string, err error) {
	var schema struct{ Properties map[string]json.RawMessage }
	if raw == nil {
		return nil, nil
	}
	if json.Unmarshal(raw, &names) != nil || json.Unmarshal(parameters, &schema) != nil {
		return nil, fmt.Errorf("names must be a list of parameters")
	}
	for _, name := range names {
		if _, ok := schema.Properties[name]; !ok {
			return nil, fmt.Errorf("names has %q, which is no parameter", oneLine(name, maxEcho))
		}
	}
	return names, nil
}
