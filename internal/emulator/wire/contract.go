package wire

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
)

// Contract is a JSON schema of the values that a service accepts and sends, generated from the types
// of the service's own library. It has a property for each kind of value.
type Contract struct {
	schema   *jsonschema.Schema
	resolved *jsonschema.Resolved
	seed     maphash.Seed

	mu    sync.Mutex
	known map[uint64]bool // hashes of array elements that are as they should be
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
	return &Contract{schema: &schema, resolved: resolved, seed: maphash.MakeSeed(), known: make(map[uint64]bool)}
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

const (
	maxChecked = 256 << 10 // bytes of a value
	maxKnown   = 100_000   // elements
)

// Check returns an error if a value, which may be bytes of JSON, does not match its kind. Further names
// select nested fields. Values over 256 KiB are not checked, and an element that an array of the same kind
// had before is not checked again: each request to a model repeats the conversation, and checking takes
// time.
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
	rest, fresh := c.withoutKnown(body, kind+"\x00"+strings.Join(further, "\x00"))
	var v any
	if err := json.Unmarshal(rest, &v); err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}
	for _, key := range slices.Backward(further) {
		v = map[string]any{key: v}
	}
	if err := c.resolved.Validate(map[string]any{kind: v}); err != nil {
		return fmt.Errorf("%s %q: %w: %.2000s", kind, further, err, body)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known)+len(fresh) > maxKnown {
		clear(c.known)
	}
	for _, sum := range fresh {
		c.known[sum] = true
	}
	return nil
}

// withoutKnown returns an object without the known elements of its arrays, each of which keeps its
// first one, and the hashes of the elements that are left.
func (c *Contract) withoutKnown(value []byte, kind string) (rest []byte, fresh []uint64) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(value, &fields) != nil {
		return value, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, field := range fields {
		var all []json.RawMessage
		if json.Unmarshal(field, &all) != nil || len(all) < 2 {
			continue
		}
		left := all[:1]
		for _, element := range all[1:] {
			if sum := maphash.String(c.seed, kind+"\x00"+name+"\x00"+string(element)); !c.known[sum] {
				left, fresh = append(left, element), append(fresh, sum)
			}
		}
		if fields[name], _ = json.Marshal(left); fields[name] == nil {
			return value, nil
		}
	}
	rest, err := json.Marshal(fields)
	if err != nil {
		return value, nil
	}
	return rest, fresh
}
