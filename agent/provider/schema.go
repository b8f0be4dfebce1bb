package provider

import (
	"bytes"
	"encoding/json"

	"oneclaw/toolgroups"
)

// ClaudeSchema removes anyOf, oneOf and allOf from the top level of a schema, where Claude refuses them.
// An invalid schema is returned unchanged.
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
