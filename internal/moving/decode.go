package moving

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxNodes bounds the values of a YAML file.
const maxNodes = 50_000

// quoteJSON returns a text as a JSON string.
func quoteJSON(text string) string {
	data, _ := json.Marshal(text) // a string can be encoded
	return string(data)
}

// parseYAML parses YAML into areas. faults are the areas that are left, with the reason.
func parseYAML(data []byte) (parsed areas, faults map[string]error, err error) {
	var node yaml.Node
	if err := yaml.Unmarshal(data, &node); err != nil {
		return nil, nil, err
	}
	if countNodes(&node, maxNodes) > maxNodes {
		return nil, nil, fmt.Errorf("it has more than %d values", maxNodes)
	}
	makeKeysStrings(&node)
	var nodes map[string]yaml.Node
	if err := node.Decode(&nodes); err != nil {
		return nil, nil, err
	}
	parsed, faults = areas{}, map[string]error{}
	for name, area := range nodes {
		var value any
		err := area.Decode(&value)
		if err == nil {
			parsed[name], err = json.Marshal(value)
		}
		if err != nil {
			delete(parsed, name)
			faults[name] = err
		}
	}
	return parsed, faults, nil
}

// countNodes counts the values of a YAML document, with those that aliases repeat. It stops above most.
func countNodes(n *yaml.Node, most int) int {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	total := 1
	for i := 0; i < len(n.Content) && total <= most; i++ {
		total += countNodes(n.Content[i], most-total)
	}
	return total
}

// makeKeysStrings makes each key that is a number, a truth value or null a string, as JSON needs it.
func makeKeysStrings(n *yaml.Node) {
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && c.Kind == yaml.ScalarNode && c.ShortTag() != "!!merge" {
			c.Tag = "!!str"
		}
		makeKeysStrings(c)
	}
}

// areas are the parts of a file by their names, decoded one by one, so that a mistake in one of them
// affects no other.
type areas map[string]json.RawMessage

// decode decodes the area at a path of names into v. A missing area leaves v as it is.
func (a areas) decode(v any, path ...string) error {
	raw, ok := a[path[0]]
	if !ok || bytes.Equal(raw, []byte("null")) {
		return nil
	}
	if len(path) == 1 {
		return json.Unmarshal(raw, v)
	}
	var inner areas
	if err := json.Unmarshal(raw, &inner); err != nil {
		return err
	}
	return inner.decode(v, path[1:]...)
}

// word is a string, or a number or truth value that stands for one.
type word string

// UnmarshalJSON implements json.Unmarshaler.
func (w *word) UnmarshalJSON(data []byte) error {
	if data[0] == '{' || data[0] == '[' {
		return errors.New("want a text")
	}
	var s string
	if json.Unmarshal(data, &s) != nil {
		s = string(data)
	}
	if s == "null" {
		s = ""
	}
	*w = word(strings.TrimSpace(s))
	return nil
}
