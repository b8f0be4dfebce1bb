package search

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"oneclaw/internal/wording"
	"oneclaw/toolgroups"
)

// entry is a tool of a [catalogue] with its origin.
type entry struct {
	tool toolgroups.Tool
	// group is the tool's group, and source the group's source.
	group  string
	source string
}

// deferrableEntries returns the tools that a role may use and that can be left out of the tools
// array: those of all enabled groups, in registration order.
func deferrableEntries(reg *toolgroups.Registry, role toolgroups.Role) []entry {
	return enabledEntries(reg, reg.GroupNames(), role)
}

// enabledEntries returns the enabled tools from groups that a role may use.
func enabledEntries(reg *toolgroups.Registry, groups []string, role toolgroups.Role) []entry {
	var entries []entry
	for _, name := range groups {
		g, _ := reg.Group(name)
		for _, t := range g.Tools {
			if role >= max(t.Role, g.Role) && !reg.Disabled(t.Name) {
				entries = append(entries, entry{tool: t, group: g.Name, source: g.Source})
			}
		}
	}
	return entries
}

// toolsOf returns the tools of entries.
func toolsOf(entries []entry) []toolgroups.Tool {
	tools := make([]toolgroups.Tool, len(entries))
	for i, e := range entries {
		tools[i] = e.tool
	}
	return tools
}

// catalogue holds the tools that can be found and called through a [bridge]. It is immutable and
// may be used concurrently. The first search builds its index.
type catalogue struct {
	entries []entry
	byName  map[string]entry
	index   func() *wordIndex
	// tokens estimates the tokens that the schemas of all tools take.
	tokens func() int
}

// newCatalogue makes a catalogue. If entries have the same name, the first is kept. Entries named
// like a bridge tool are left out.
func newCatalogue(entries []entry) *catalogue {
	c := &catalogue{byName: make(map[string]entry, len(entries))}
	for _, e := range entries {
		if _, taken := c.byName[e.tool.Name]; !taken && !toolgroups.Reserved(e.tool.Name) {
			c.byName[e.tool.Name] = e
			c.entries = append(c.entries, e)
		}
	}
	c.tokens = sync.OnceValue(func() int { return toolgroups.EstimateTokens(toolsOf(c.entries)) })
	c.index = sync.OnceValue(func() *wordIndex {
		docs := make([]document, len(c.entries))
		for i, e := range c.entries {
			docs[i] = e.document()
		}
		return newIndex(docs)
	})
	return c
}

// lookup returns the entry with the given name.
func (c *catalogue) lookup(name string) (entry, bool) {
	e, ok := c.byName[name]
	return e, ok
}

// findResult is the result of a query.
type findResult struct {
	entries []entry
	// weak and isForeignQuery are as in [ranking].
	weak, isForeignQuery bool
	// origin is the group or source that the query names. If set, entries are all of its tools,
	// regardless of the limit.
	origin string
}

// resultOf returns the tools of a ranking.
func (c *catalogue) resultOf(r ranking) findResult {
	f := findResult{weak: r.weak, isForeignQuery: r.isForeignQuery}
	for _, h := range r.hits {
		f.entries = append(f.entries, c.entries[h.Doc])
	}
	return f
}

// lookupOrigin looks the query up as the name of a group or source, and returns all its tools.
func (c *catalogue) lookupOrigin(query string) (findResult, bool) {
	query = strings.TrimSpace(query)
	var f findResult
	if _, isTool := c.byName[query]; isTool || query == "" {
		return f, false
	}
	for _, e := range c.entries {
		kind, name := e.origin()
		if strings.EqualFold(query, e.group) || kind != toolgroups.SourceBuiltin && (strings.EqualFold(query, name) || strings.EqualFold(query, e.source)) {
			f.origin = cmp.Or(f.origin, e.label())
			f.entries = append(f.entries, e)
		}
	}
	return f, len(f.entries) > 0
}

// origin is a group or source and the number of its tools.
type origin struct {
	Name      string `json:"name"`
	ToolCount int    `json:"tool_count"`
}

// origins returns the groups and sources of the tools, sorted by name.
func (c *catalogue) origins() []origin {
	var out []origin
	for _, e := range c.entries {
		i := slices.IndexFunc(out, func(o origin) bool { return o.Name == e.label() })
		if i < 0 {
			i = len(out)
			out = append(out, origin{Name: e.label()})
		}
		out[i].ToolCount++
	}
	slices.SortFunc(out, func(a, b origin) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// similar returns at most three tools that an unknown name may mean: those whose name differs
// only by case, separators or a prefix, or else the results of a search.
func (c *catalogue) similar(name string) []entry {
	const most = 3
	var out []entry
	want := lettersAndDigits(name)
	for _, e := range c.entries {
		have := lettersAndDigits(e.tool.Name)
		if want != "" && len(out) < most &&
			(have == want || len(want) > 3 && strings.HasSuffix(have, want) || len(have) > 3 && strings.HasSuffix(want, have)) {
			out = append(out, e)
		}
	}
	if len(out) > 0 {
		return out
	}
	return c.resultOf(c.index().search(name, most)).entries
}

// origin splits the source: mcp:github has the kind mcp and the name github. A source without a
// name gets the name of the group.
func (e entry) origin() (kind, name string) {
	kind, name, found := strings.Cut(e.source, ":")
	switch {
	case kind == "":
		return "other", e.group
	case !found || name == "":
		return kind, e.group
	}
	return kind, name
}

// label returns the name under which the model can ask for all tools of the origin.
func (e entry) label() string {
	if e.group != "" {
		return e.group
	}
	_, name := e.origin()
	return name
}

func (e entry) document() document {
	kind, name := e.origin()
	source := e.group
	if kind != toolgroups.SourceBuiltin && name != e.group {
		source += " " + name
	}
	return document{
		name: e.tool.Name, description: e.tool.Description,
		parameters: parameterNames(e.tool), source: source,
	}
}

// parameterNames returns the sorted names of a tool's top-level parameters.
func parameterNames(t toolgroups.Tool) []string {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(t.Parameters, &schema) != nil {
		return nil // The schema is invalid; the tool can still be found by its name.
	}
	return slices.Sorted(maps.Keys(schema.Properties))
}

// Bounds of a signature.
const (
	maxSignature = 400 // bytes, about
	maxParamName = 64  // characters of a name, or of the values of an enum
	maxEnum      = 6   // values of an enum that are listed
)

// toolSchema has the schema of a tool and the names of its parameters, the required ones first, to
// format its signature. For an invalid schema it is empty.
type toolSchema struct {
	schema jsonschema.Schema
	names  []string
}

func parseToolSchema(t toolgroups.Tool) (o toolSchema) {
	if json.Unmarshal(t.Parameters, &o.schema) != nil {
		return toolSchema{}
	}
	names := slices.Sorted(maps.Keys(o.schema.Properties))
	o.names = append(slices.DeleteFunc(slices.Clone(names), o.isOptional), slices.DeleteFunc(names, o.isRequired)...)
	return o
}

func (o toolSchema) isRequired(name string) bool { return slices.Contains(o.schema.Required, name) }
func (o toolSchema) isOptional(name string) bool { return !o.isRequired(name) }

// signature formats the parameters: "(owner, repo, draft?: boolean)". A parameter listed without a
// type is a string. Optional parameters beyond about limit bytes are left out; 0 means no limit.
// Required parameters are always listed.
func (o toolSchema) signature(limit int) string {
	var b strings.Builder
	for i, name := range o.names {
		part := clipLine(name, maxParamName)
		if o.isOptional(name) {
			part += "?"
		}
		if k := formatType(o.schema.Properties[name]); k != "string" {
			part += ": " + k
		}
		if limit > 0 && b.Len()+len(part) > limit && o.isOptional(name) {
			fmt.Fprintf(&b, ", … %d more", len(o.names)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(part)
	}
	return "(" + b.String() + ")"
}

// shortSignature returns a signature without types: "owner, repo, draft?".
func (o toolSchema) shortSignature() string {
	names := make([]string, len(o.names))
	for i, name := range o.names {
		names[i] = clipLine(name, maxParamName)
		if o.isOptional(name) {
			names[i] += "?"
		}
	}
	return strings.Join(names, ", ")
}

// plainWord matches a value that needs no quotes.
var plainWord = regexp.MustCompile(`^[A-Za-z][\w.-]*$`)

// formatType formats the type of a parameter, or the values of a short enum as "open|closed".
func formatType(s *jsonschema.Schema) string {
	switch {
	case s == nil:
		return "any"
	case len(s.Enum) > 0 && len(s.Enum) <= maxEnum:
		values := make([]string, len(s.Enum))
		for i, v := range s.Enum {
			text, err := toolgroups.EncodeJSON(v)
			if err != nil {
				return s.Type
			}
			values[i] = string(text)
			if word, ok := v.(string); ok && plainWord.MatchString(word) {
				values[i] = word
			}
		}
		return clipLine(strings.Join(values, "|"), maxParamName)
	case s.Type == "array":
		return formatType(s.Items) + "[]"
	case s.Type != "":
		return s.Type
	case len(s.Types) > 0:
		return strings.Join(s.Types, "|")
	}
	return "any"
}

// clipLine joins the lines of a text and shortens it to at most n characters.
func clipLine(s string, n int) string {
	return wording.Clip(strings.Join(strings.Fields(strings.ToValidUTF8(s, "\uFFFD")), " "), n)
}
