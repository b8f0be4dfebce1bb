package skills

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"oneclaw/internal/wording"
)

var notInName = regexp.MustCompile(`[^a-z0-9]+`)

// Convert converts the SKILL.md of another program into one of this program. It returns the skill's name,
// which is also the name of its folder, and the content of the file. It keeps only the name, the
// description and the instructions.
func Convert(data []byte) (name string, content []byte, err error) {
	if len(data) > MaxFile || !utf8.Valid(data) {
		return "", nil, fmt.Errorf("the file has more than %d bytes, or is not UTF-8 text", MaxFile)
	}
	front, body, err := splitFrontMatter(data)
	if err != nil {
		return "", nil, err
	}
	if len(front) > maxFront {
		return "", nil, fmt.Errorf("front matter: it has more than %d bytes", maxFront)
	}
	var from struct {
		Name        string `yaml:"name"`
		Description string `yaml:"description"`
	}
	if err := yaml.Unmarshal(front, &from); err != nil {
		return "", nil, fmt.Errorf("front matter: %w", shortenError(err))
	}
	title := singleLine(from.Name)
	name = strings.Trim(notInName.ReplaceAllString(strings.ToLower(title), "-"), "-")
	name = strings.Trim(name[:min(len(name), maxName)], "-")
	if title == "" || name == "" {
		return "", nil, errors.New("name is missing")
	}
	var out bytes.Buffer
	out.WriteString("---\n")
	encoder := yaml.NewEncoder(&out)
	err = encoder.Encode(struct {
		Name        string `yaml:"name"`
		DisplayName string `yaml:"display_name"`
		Description string `yaml:"description"`
	}{name, wording.Clip(title, maxDisplayName), wording.Clip(singleLine(from.Description), maxDescription)})
	if err = errors.Join(err, encoder.Close()); err != nil {
		return "", nil, fmt.Errorf("front matter: %w", err)
	}
	out.WriteString("---\n\n" + body + "\n")
	_, err = Parse(out.Bytes())
	return name, out.Bytes(), err
}
