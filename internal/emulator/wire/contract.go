package wire

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Contract is a JSON schema of the values that a service accepts and sends, generated from the types
// of the service's own library. It has a property for each kind of value.
type Contract struct {
	schema   *jsonschema.Schema
	resolved *jsonschema.Resolved
}

// MustContract parses an embedded contract. It panics if the contract is invalid.
func MustContract(source []byte) *Contract {
	var schema jsonschema.Schema
	if err := json.Unmarshal(source, &schema); err != nil {
		panic(fmt.Errorf("read contract: %w", err))
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		panic(fmt.Errorf("resolve contract: %w", err))
	}
	return &Contract{&schema, resolved}
}

// Fields returns the schemas of a kind's fields, or nil for an unknown kind. further selects a field.
func (c *Contract) Fields(kind string, further ...string) map[string]*jsonschema.Schema {
	s := c.schema.Properties[kind]
	for _, field := range append(further, "") {
		for s != nil && s.Ref != "" {
			s = c.schema.Definitions[strings.TrimPrefix(s.Ref, "#/definitions/")]
		}
		if s == nil {
			return nil
		}
		if field != "" {
			s = s.Properties[field]
		}
	}
	return s.Properties
}

// maxChecked bounds the values that are checked, in bytes. Long conversations add nothing new, and
// checking takes time.
const maxChecked = 256 << 10

// Check returns an error if a value, which may be bytes of JSON, does not match its kind. Further names
// select nested fields. Values over 256 KiB are not checked.
func (c *Contract) Check(value any, kind string, further ...string) error {
	body, encoded := value.([]byte)
	if !encoded {
		var err error
		if body, err = json.Marshal(value); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	if len(body) > maxChecked {
		return nil
	}
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}
	for _, key := range slices.Backward(further) {
		v = map[string]any{key: v}
	}
	if err := c.resolved.Validate(map[string]any{kind: v}); err != nil {
		return fmt.Errorf("%s %q: %w: %.2000s", kind, further, err, body)
	}
	return nil
}
