package provider

import (
	"bytes"
	"encoding/json"

	"oneclaw/toolgroups"
)

// ClaudeSchema removes from a schema what Claude refuses at its top level, and only there. An
// unreadable schema is unchanged.
func ClaudeSchema(schema json.RawMessage) json.RawMessage {
	var object map[string]any
	if !bytes.Contains(schema, []byte(`Of"`)) || json.Unmarshal(schema, &object) != nil || object == nil {
		return schema
	}
	all := len(object)
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		delete(object, key)
	}
	if len(object) == all {
		return schema
	}
	adapted, err := toolgroups.EncodeJSON(object)
	if err != nil {
		return schema
	}
	return adapted
}
