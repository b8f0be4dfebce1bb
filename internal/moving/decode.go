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

// words are a list of words, or one.
type words []string

// UnmarshalJSON implements json.Unmarshaler.
func (w *words) UnmarshalJSON(data []byte) error {
	var many []word
	if data[0] != '[' {
		many = make([]word, 1)
		data = append(append([]byte{'['}, data...), ']')
	}
	if err := json.Unmarshal(data, &many); err != nil {
		return err
	}
	*w = nil
	for _, one := range many {
		if one != "" {
			*w = append(*w, string(one))
		}
	}
	return nil
}

// secret is a key as it is, the name of the variable that has it, or a reference to another place.
type secret struct {
	value, variable, elsewhere string
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *secret) UnmarshalJSON(data []byte) error {
	var ref struct{ Source, ID string }
	var text word
	switch {
	case json.Unmarshal(data, &text) == nil:
		*s = parseSecret(string(text))
	case json.Unmarshal(data, &ref) == nil && ref.Source == "env":
		*s = secret{variable: ref.ID}
	default:
		*s = secret{elsewhere: ref.Source}
	}
	return nil
}

// parseSecret parses a key, or ${NAME} or ${env:NAME}.
func parseSecret(text string) secret {
	if name, ok := strings.CutPrefix(text, "${"); ok && strings.HasSuffix(name, "}") {
		return secret{variable: strings.TrimPrefix(strings.TrimSuffix(name, "}"), "env:")}
	}
	return secret{value: text}
}

// resolve returns the key, with variables from the environment of the other bot.
func (s secret) resolve(env map[string]string) string {
	if s.variable != "" {
		return env[s.variable]
	}
	return s.value
}

// parseEnv parses a file of lines NAME=VALUE.
func parseEnv(data []byte) map[string]string {
	env := map[string]string{}
	for line := range strings.Lines(string(data)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		name = strings.TrimSpace(strings.TrimPrefix(name, "export "))
		if !ok || name == "" || strings.HasPrefix(name, "#") {
			continue
		}
		value = strings.TrimSpace(value)
		if quote := value[:min(1, len(value))]; quote == `"` || quote == "'" {
			value, _, _ = strings.Cut(value[1:], quote)
		} else if before, _, ok := strings.Cut(value, " #"); ok {
			value = strings.TrimSpace(before)
		}
		env[name] = value
	}
	return env
}
