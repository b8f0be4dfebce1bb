package skills

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"oneclaw/internal/wording"
)

// Limits of a skill.
const (
	// MaxFile bounds a SKILL.md in bytes.
	MaxFile = 100 << 10
	// maxDescription bounds a description in characters. It is part of every request.
	maxDescription = 1024
	// maxName is the limit of the Agent Skills format (agentskills.io/specification), in characters.
	maxName        = 64
	maxDisplayName = 100
	maxListed      = 50
	// maxFront bounds the front matter in bytes. maxNodes bounds its YAML nodes, because parsing YAML
	// can take quadratic time.
	maxFront = 16 << 10
	maxNodes = 500
	maxError = 300
)

var namePattern = regexp.MustCompile(fmt.Sprintf(`^[a-z0-9][a-z0-9-]{0,%d}[a-z0-9]$`, maxName-2))

// Skill is one set of instructions.
type Skill struct {
	// Name is the name that load_skill takes.
	Name string
	// DisplayName is the name that is shown to people; by default, Name.
	DisplayName string
	// Description describes the purpose of the skill in a line.
	Description string
	// RequiredTools are the names of tools that the instructions need.
	RequiredTools []string
	// Parameters are the values that the instructions need.
	Parameters []Parameter
	// Body is the Markdown of the instructions.
	Body string
}

// Parameter is a value for {{name}} in the body.
type Parameter struct {
	Name        string `yaml:"name"`
	Type        string `yaml:"type"`
	Required    bool   `yaml:"required"`
	Description string `yaml:"description"`
}

// frontMatter is the front matter of a SKILL.md. Unknown keys are ignored.
type frontMatter struct {
	Name          string      `yaml:"name"`
	DisplayName   string      `yaml:"display_name"`
	Description   string      `yaml:"description"`
	RequiredTools []string    `yaml:"tools_required"`
	Parameters    []Parameter `yaml:"parameters"`
}

// Parse parses a SKILL.md.
func Parse(data []byte) (Skill, error) {
	if len(data) > MaxFile {
		return Skill{}, fmt.Errorf("the file has more than %d bytes", MaxFile)
	}
	if !utf8.Valid(data) {
		return Skill{}, errors.New("the file is not UTF-8 text")
	}
	front, body, err := splitFrontMatter(data)
	if err != nil {
		return Skill{}, err
	}
	m, err := decodeFrontMatter(front)
	if err != nil {
		return Skill{}, fmt.Errorf("front matter: %w", err)
	}
	s := Skill{
		Name: strings.TrimSpace(m.Name), DisplayName: cmp.Or(singleLine(m.DisplayName), singleLine(m.Name)), Description: singleLine(m.Description),
		RequiredTools: m.RequiredTools, Parameters: m.Parameters, Body: body,
	}
	return s, s.validate()
}

// splitFrontMatter splits the front matter, between lines of three dashes, from the body.
func splitFrontMatter(data []byte) (front []byte, body string, err error) {
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	first, rest, found := bytes.Cut(data, []byte("\n"))
	if !found || string(bytes.TrimRight(first, " \t")) != "---" {
		return nil, "", errors.New("line 1 must be ---")
	}
	for at := 0; at < len(rest); {
		text, _, _ := bytes.Cut(rest[at:], []byte("\n"))
		if string(bytes.TrimRight(text, " \t")) == "---" {
			body = strings.TrimSpace(string(rest[min(at+len(text)+1, len(rest)):]))
			if body == "" {
				return nil, "", errors.New("there are no instructions below the front matter")
			}
			return rest[:at], body, nil
		}
		at += len(text) + 1
	}
	return nil, "", errors.New("the front matter has no closing ---")
}

// decodeFrontMatter checks the size of the front matter and decodes it.
func decodeFrontMatter(front []byte) (frontMatter, error) {
	if len(front) > maxFront {
		return frontMatter{}, fmt.Errorf("it has more than %d bytes", maxFront)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(front, &doc); err != nil {
		return frontMatter{}, shortenError(err)
	}
	if countNodes(&doc) > maxNodes {
		return frontMatter{}, fmt.Errorf("it has more than %d values", maxNodes)
	}
	var m frontMatter
	err := doc.Decode(&m)
	return m, shortenError(err)
}

func countNodes(n *yaml.Node) int {
	total := 1
	for _, c := range n.Content {
		total += countNodes(c)
	}
	return total
}

// shortenError shortens the text of an error to maxError bytes.
func shortenError(err error) error {
	if err == nil || len(err.Error()) <= maxError {
		return err
	}
	return errors.New(strings.ToValidUTF8(err.Error()[:maxError], "") + "…")
}

func (s *Skill) validate() error {
	switch {
	case !namePattern.MatchString(s.Name):
		return fmt.Errorf("name must be 2 to %d lower-case letters, digits and dashes, with no dash at either end", maxName)
	case utf8.RuneCountInString(s.DisplayName) > maxDisplayName:
		return fmt.Errorf("display_name is longer than %d characters", maxDisplayName)
	case s.Description == "":
		return errors.New("description is missing")
	case utf8.RuneCountInString(s.Description) > maxDescription:
		return fmt.Errorf("description is longer than %d characters", maxDescription)
	case len(s.RequiredTools) > maxListed || len(s.Parameters) > maxListed:
		return fmt.Errorf("there are more than %d tools_required or parameters", maxListed)
	}
	for i, tool := range s.RequiredTools {
		if s.RequiredTools[i] = singleLine(tool); s.RequiredTools[i] == "" {
			return fmt.Errorf("entry %d of tools_required is empty", i+1)
		}
	}
	return s.checkParameters()
}

func (s *Skill) checkParameters() error {
	for i := range s.Parameters {
		p := &s.Parameters[i]
		p.Name, p.Description = singleLine(p.Name), singleLine(p.Description)
		p.Type = cmp.Or(singleLine(p.Type), "string")
		if p.Name == "" {
			return fmt.Errorf("parameter %d has no name", i+1)
		}
		if p.Type != "string" {
			return fmt.Errorf("parameter %s: type must be string", p.Name)
		}
		if slices.ContainsFunc(s.Parameters[:i], func(q Parameter) bool { return q.Name == p.Name }) {
			return fmt.Errorf("parameter %s is listed twice", p.Name)
		}
	}
	return nil
}

// Text returns the result of load_skill: a header and, below a rule, the instructions. It keeps
// placeholders, because the model knows their values.
func (s *Skill) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n%s\n", s.DisplayName, s.Description)
	if len(s.RequiredTools) > 0 {
		fmt.Fprintf(&b, "\nRequired tools: %s\n", strings.Join(s.RequiredTools, ", "))
	}
	if len(s.Parameters) > 0 {
		b.WriteString("\nParameters:\n")
	}
	for _, p := range s.Parameters {
		need := "optional"
		if p.Required {
			need = "required"
		}
		fmt.Fprintf(&b, "- %s (%s, %s)", p.Name, p.Type, need)
		if p.Description != "" {
			b.WriteString(": " + p.Description)
		}
		b.WriteByte('\n')
	}
	b.WriteString("\n---\n\n" + s.Body)
	return b.String()
}

// singleLine joins the lines of a text and leaves out what nobody sees.
func singleLine(text string) string { return wording.OneLine(text, len(text)) }
