package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"oneclaw/internal/wording"
)

var (
	unknownKey = regexp.MustCompile(`^line (\d+): field (.+) not found in type `)
	wrongValue = regexp.MustCompile("(?s)^line (\\d+): cannot unmarshal (!!\\w+)(?: `(.*)`)? into (.+)$")
	// goPackage matches the package of a Go type in an error, which does not help an operator.
	goPackage = regexp.MustCompile(` in type \w+\.`)
)

// DecodeConfig decodes a settings file. An error names the line, the key, and the expected value.
func DecodeConfig(data []byte, cfg *Config) error {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	err := decoder.Decode(cfg)
	if errors.Is(err, io.EOF) {
		return nil
	}
	if wrong, ok := errors.AsType[*yaml.TypeError](err); ok {
		var lines []string
		for _, text := range wrong.Errors {
			if m := unknownKey.FindStringSubmatch(text); m == nil || !cfg.warnOfKey(keyAt(data, m[1], m[2])) {
				lines = append(lines, explain(text, data))
			}
		}
		if len(lines) > 0 {
			return oneLineError(strings.Join(lines, "; "))
		}
	} else if err != nil {
		return oneLineError(adviseOnSyntax(strings.TrimPrefix(err.Error(), "yaml: ")))
	}
	for {
		var more any
		err := decoder.Decode(&more)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil || more != nil {
			return errors.New("there are settings behind a line with ---, which would not count: remove that line")
		}
	}
}

// syntaxAdvice says what mostly is the matter if the YAML library says something.
var syntaxAdvice = []struct{ says, advice string }{
	{"mapping values are not allowed", "put a value with a colon between quotes, end the name of a section with a colon, and indent the lines of a section alike"},
	{"cannot start any token", "indent with spaces instead of tabs, and put a value that begins with %, @ or ` between quotes"},
	{"did not find expected key", "indent the lines of a section alike, with spaces"},
	{"could not find expected ':'", "write each setting as name: value, and each entry of a list as - value, with a space after the dash"},
	{"did not find expected ',' or", "close the bracket, and put commas between the values"},
	{"alphabetic or numeric character", "put a value that begins with * or & between quotes"},
	{"unexpected end of stream", "close the quotes"},
	{"already defined", "join the two sections, or remove one of the lines"},
}

// adviseOnSyntax adds what to do to an error of the YAML library, whose lines are about right.
func adviseOnSyntax(text string) string {
	for _, known := range syntaxAdvice {
		if strings.Contains(text, known.says) {
			return text + ": " + known.advice
		}
	}
	return text
}

// oneLineError returns an error with the text on one line.
func oneLineError(text string) error { return errors.New(strings.Join(strings.Fields(text), " ")) }

// explain rewords an error from the YAML library for an operator.
func explain(text string, data []byte) string {
	if m := unknownKey.FindStringSubmatch(text); m != nil {
		path := keyAt(data, m[1], m[2])
		section := path[:strings.LastIndexByte(path, '.')+1]
		if below := keyElsewhere(m[2]); below != "" && section == "" {
			return fmt.Sprintf("line %s: there is no setting %s; did you mean %s? Then indent it below its section", m[1], path, below)
		}
		if near := wording.NearestName(path, keysBelow(section)); near != "" {
			return fmt.Sprintf("line %s: there is no setting %s; did you mean %s?", m[1], path, near)
		}
		return fmt.Sprintf("line %s: there is no setting %s; docs/settings.md lists them", m[1], path)
	}
	if m := wrongValue.FindStringSubmatch(text); m != nil {
		path, have := keyAt(data, m[1], ""), strconv.Quote(m[3])
		if path == "" {
			return fmt.Sprintf("line %s: the file has no settings: write each as name: value, such as timezone: Europe/Lisbon", m[1])
		}
		if m[3] == "" {
			have = map[string]string{"!!seq": "a list", "!!map": "a section"}[m[2]]
		}
		return fmt.Sprintf("line %s: %s: want %s, not %s", m[1], path, describeType(m[4]), have)
	}
	return adviseOnSyntax(goPackage.ReplaceAllString(text, " in "))
}

// describeType describes the values of a Go type for an operator.
func describeType(goType string) string {
	switch {
	case goType == "bool":
		return "true or false"
	case strings.HasPrefix(goType, "int"), strings.HasPrefix(goType, "uint"):
		return "a whole number"
	case strings.HasPrefix(goType, "float"):
		return "a number"
	case goType == "time.Duration":
		return "a time such as 90s or 15m"
	case strings.HasPrefix(goType, "[]"):
		return "a list"
	case goType == "string", goType == "redact.Secret", goType == "database.Address":
		return "a text"
	}
	return "a section of settings"
}

// keyAt returns the path of the given key on a line or, if key is empty, of the key or value there.
func keyAt(data []byte, line, key string) string {
	var root yaml.Node
	number, err := strconv.Atoi(line)
	if err != nil || yaml.Unmarshal(data, &root) != nil {
		return key
	}
	found := key
	var walk func(n *yaml.Node, path string)
	walk = func(n *yaml.Node, path string) {
		if n.Kind != yaml.MappingNode {
			if n.Line == number && key == "" && path != "" && n.Kind != yaml.DocumentNode {
				found = path
			}
			for _, below := range n.Content {
				walk(below, path)
			}
			return
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			below := strings.TrimPrefix(path+"."+n.Content[i].Value, ".")
			if n.Content[i].Line == number && (n.Content[i].Value == key || key == "") {
				found = below
			}
			walk(n.Content[i+1], below)
		}
	}
	walk(&root, "")
	return found
}

// keyElsewhere returns the first setting that has a name in some section, "" if none has.
func keyElsewhere(name string) string {
	for _, s := range new(Config).Settings() {
		if strings.HasSuffix(s.Key, "."+name) {
			return s.Key
		}
	}
	return ""
}

// keysBelow returns the paths of the settings and sections directly below a section.
func keysBelow(section string) []string {
	var keys []string
	for _, s := range new(Config).Settings() {
		if rest, ok := strings.CutPrefix(s.Key, section); ok {
			name, _, _ := strings.Cut(rest, ".")
			keys = append(keys, section+name)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}
