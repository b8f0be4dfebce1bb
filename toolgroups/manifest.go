package toolgroups

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	// MaxGroupTools bounds the tools of a group from a file.
	MaxGroupTools = 50
	// MaxManifest bounds a manifest in bytes.
	MaxManifest = 1 << 20
	// MaxTimeout is the longest timeout that a manifest may ask for.
	MaxTimeout = time.Hour
)

// functionNamePattern matches the name of a function in a manifest: a plain identifier, which is safe
// to put into a script.
var functionNamePattern = regexp.MustCompile(`^[a-zA-Z_$][a-zA-Z0-9_$]*$`)

// maxWireName bounds a name that providers accept, in characters.
const maxWireName = 64

// WireName turns a name into one that providers accept: "my tool.v2" becomes my_tool_v2. The
// result is empty if the name has no ASCII letter or digit.
func WireName(name string) string {
	mapped := strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, strings.TrimSpace(name))
	if strings.Trim(mapped, "_-") == "" {
		return ""
	}
	return mapped[:min(len(mapped), maxWireName)]
}

// Manifest is the content of a file: a core tool, a group, or neither if the file is invalid.
type Manifest struct {
	// Tool is set if the file holds an object.
	Tool *Tool
	// Group is set if the file holds a list.
	Group *Group
}

// ParseManifest parses data, the content of the file base.json. An object is a single tool named
// like the file. A list is a group named like the file, of at most [MaxGroupTools] tools. The first
// element of the list may be
//
//	{"_meta": true, "display_name": "…", "description": "…", "example": "…", "role": "admin"}
//
// and the others are tools. The members of a tool are name, description, parameters, function (its
// key in handlers, by default the name; any if handlers is nil), timeout_s or timeoutSeconds, effect
// (read_only, changes, consequential), paid ([Tool.Paid]), repeatable ([Tool.Repeatable]), outlives
// ([Tool.Outlives]), shares ([Tool.Shares]), each ([Tool.Each]), runs_last ([Tool.RunsLast]), role (user, admin, owner), doing ([Tool.Activity]),
// names ([Tool.AuditedArguments]) and, for tools of the program, like ([Tool.Like], if they only read),
// fetches ([Tool.Fetches]), private ([Tool.Private]) and origin ([Tool.Origin]).
//
// source becomes [Group].Source. Names pass through [WireName]. [NewRegistry] generates a missing
// description of a group. Each error is one line that names the file and the entry. Entries with
// errors are left out and the others are used.
func ParseManifest(base string, data []byte, handlers map[string]Handler, source string) (Manifest, []error) {
	p := parser{base: base, source: source, handlers: handlers}
	m, err := p.parseFile(data)
	if err != nil {
		p.fail("", err)
	}
	return m, p.errs
}

// parser parses one file and collects its errors.
type parser struct {
	base     string
	source   string
	handlers map[string]Handler
	errs     []error
}

func (p *parser) fail(entry string, err error) {
	if entry != "" {
		entry += ": "
	}
	p.errs = append(p.errs, fmt.Errorf("%s.json: %s%w", p.base, entry, err))
}

func (p *parser) parseFile(data []byte) (Manifest, error) {
	if len(data) > MaxManifest {
		return Manifest{}, fmt.Errorf("the file is larger than %d bytes", MaxManifest)
	}
	if WireName(p.base) == "" {
		return Manifest{}, errors.New("the name of the file has no letter or digit of the English alphabet")
	}
	data = bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\ufeff")))
	var raw json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return Manifest{}, addLine(data, err)
	}
	switch data[0] {
	case '{':
		return p.parseSingleTool(data)
	case '[':
		return p.parseGroup(data)
	}
	return Manifest{}, errors.New("the file must hold an object (one tool) or a list (a group)")
}

// addLine adds the line number to a syntax error.
func addLine(data []byte, err error) error {
	var at *json.SyntaxError
	if !errors.As(err, &at) {
		return err
	}
	line := 1 + bytes.Count(data[:min(int(at.Offset), len(data))], []byte("\n"))
	return fmt.Errorf("line %d: %w", line, err)
}

func (p *parser) parseSingleTool(data []byte) (Manifest, error) {
	tool, err := p.parseTool(data)
	if err != nil {
		return Manifest{}, err
	}
	if tool.Name != WireName(p.base) {
		return Manifest{}, fmt.Errorf("the tool must be named %q like the file, not %q", p.base, tool.Name)
	}
	return Manifest{Tool: &tool}, nil
}

func (p *parser) parseGroup(data []byte) (Manifest, error) {
	var entries []json.RawMessage
	if err := json.Unmarshal(data, &entries); err != nil {
		return Manifest{}, err
	}
	if len(entries) == 0 {
		return Manifest{}, errors.New("the list is empty, so there is no group")
	}
	group := Group{Name: WireName(p.base), Source: p.source}
	first := 0
	var head map[string]json.RawMessage
	if json.Unmarshal(entries[0], &head) == nil && string(head["_meta"]) == "true" {
		first = 1
		if err := parseMeta(head, &group); err != nil {
			return Manifest{}, fmt.Errorf("_meta: %w", err)
		}
	}
	if n := len(entries) - first; n > MaxGroupTools {
		p.fail("", fmt.Errorf("only the first %d of %d tools are taken", MaxGroupTools, n))
		entries = entries[:first+MaxGroupTools]
	}
	p.parseTools(entries, first, &group)
	if group.DisplayName == "" {
		group.DisplayName = displayName(group.Name)
		if first > 0 {
			// With _meta but no display_name, only the first letter is a capital.
			group.DisplayName = group.DisplayName[:1] + strings.ToLower(group.DisplayName[1:])
		}
	}
	return Manifest{Group: &group}, nil
}

// parseTools adds the valid entries to the group.
func (p *parser) parseTools(entries []json.RawMessage, first int, group *Group) {
	seen := map[string]bool{}
	for i, raw := range entries[first:] {
		tool, err := p.parseTool(raw)
		if err == nil && seen[tool.Name] {
			err = errors.New("an earlier entry has the same name")
		}
		if err != nil {
			p.fail(label(first+i, tool.Name), err)
			continue
		}
		seen[tool.Name] = true
		group.Tools = append(group.Tools, tool)
	}
}

// label returns the name of an entry in an error, with its position counted from 1.
func label(i int, name string) string {
	if name == "" {
		return fmt.Sprintf("entry %d", i+1)
	}
	return fmt.Sprintf("entry %d (%s)", i+1, oneLine(name, maxEcho))
}

// parseMeta parses the _meta entry. Missing values and values of a wrong type stay empty, but an
// invalid role is an error because it was meant to restrict access.
func parseMeta(e map[string]json.RawMessage, group *Group) (err error) {
	group.DisplayName = trimmedString(e["display_name"])
	group.Description = trimmedString(e["description"])
	group.Example = trimmedString(e["example"])
	group.Role, err = parseRole(e["role"])
	return err
}

// trimmedString returns the trimmed value of a JSON string; "" for anything else.
func trimmedString(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return strings.TrimSpace(s)
}

// parseTool parses one entry. On an error the result still has the name, if the entry has one.
func (p *parser) parseTool(raw json.RawMessage) (Tool, error) {
	var e map[string]json.RawMessage
	if err := json.Unmarshal(raw, &e); err != nil || e == nil {
		return Tool{}, errors.New("a tool must be an object")
	}
	if _, ok := e["_meta"]; ok {
		return Tool{}, errors.New(`_meta counts only as "_meta": true in the first entry of a list`)
	}
	t := Tool{Name: WireName(trimmedString(e["name"])), Description: trimmedString(e["description"]), Activity: trimmedString(e["doing"])}
	if err := checkName(t); err != nil {
		return t, err
	}
	function := cmp.Or(trimmedString(e["function"]), t.Name)
	if f, ok := e["function"]; ok && !functionNamePattern.MatchString(trimmedString(f)) {
		return t, fmt.Errorf("function must match %s", functionNamePattern)
	}
	t.Function = function
	if t.Run = p.handlers[function]; t.Run == nil && p.handlers != nil {
		return t, fmt.Errorf("there is no function %q", function)
	}
	var err error
	if t.Parameters, err = NormalizeParameters(e["parameters"]); err != nil {
		return t, err
	}
	t.normalized = t.Parameters
	if t.Timeout, err = parseTimeout(e); err != nil {
		return t, err
	}
	if t.AuditedArguments, err = parseAuditedArguments(e["names"], t.Parameters); err != nil {
		return t, err
	}
	if t.Each, err = parseEach(e["each"], t.Parameters); err != nil {
		return t, err
	}
	if t.Effect, err = parseEffect(e["effect"]); err != nil {
		return t, err
	}
	t.Paid, t.Repeatable, t.RunsLast = string(e["paid"]) == "true", string(e["repeatable"]) == "true", string(e["runs_last"]) == "true"
	t.Outlives, t.Shares = string(e["outlives"]) == "true", string(e["shares"]) == "true"
	if t.Role, err = parseRole(e["role"]); err != nil {
		return t, err
	}
	if t.Like, err = parseLike(e["like"], t, p.source); err != nil {
		return t, err
	}
	t.Fetches, t.Private = string(e["fetches"]) == "true", string(e["private"]) == "true"
	t.Origin, err = parseOrigin(e["origin"], p.source)
	return t, err
}

// parseOrigin parses the value of origin for a tool from the given source.
func parseOrigin(raw json.RawMessage, source string) (Origin, error) {
	switch origin := Origin(trimmedString(raw)); {
	case raw == nil:
		return originOthers, nil
	case source != SourceBuiltin:
		return originOthers, errors.New("origin is only for tools of the program")
	case origin != OriginOwn && origin != OriginMail && origin != OriginComputed:
		return originOthers, errors.New("origin must be own, mail or computed")
	default:
		return origin, nil
	}
}

func checkName(t Tool) error {
	switch {
	case t.Name == "":
		return errors.New("name is missing, or has no letter or digit of the English alphabet")
	case t.Name == LoadToolGroup:
		return fmt.Errorf("the name %q is taken", LoadToolGroup)
	case t.Description == "":
		return errors.New("description is missing")
	}
	return nil
}

func parseTimeout(e map[string]json.RawMessage) (time.Duration, error) {
	for _, key := range []string{"timeout_s", "timeoutSeconds"} {
		raw, ok := e[key]
		if !ok {
			continue
		}
		var seconds float64
		if err := json.Unmarshal(raw, &seconds); err != nil || seconds <= 0 || seconds > MaxTimeout.Seconds() {
			return 0, fmt.Errorf("%s must be a number of seconds above 0 and at most %d", key, int(MaxTimeout.Seconds()))
		}
		return max(time.Duration(seconds*float64(time.Second)), time.Nanosecond), nil
	}
	return 0, nil
}

func parseEffect(raw json.RawMessage) (Effect, error) {
	effects := map[string]Effect{"read_only": ReadOnly, "changes": Changes, "consequential": Consequential}
	effect, ok := effects[trimmedString(raw)]
	if raw != nil && !ok {
		return Changes, errors.New("effect must be read_only, changes or consequential")
	}
	return effect, nil
}

func parseRole(raw json.RawMessage) (Role, error) {
	if raw == nil {
		return RoleStranger, nil
	}
	role, ok := ParseRole(trimmedString(raw))
	if !ok {
		return RoleOwner, errors.New("role must be user, admin or owner")
	}
	return role, nil
}

// ParseRole returns the role named user, admin or owner; false for any other name.
func ParseRole(name string) (Role, bool) {
	i := slices.Index([]string{"user", "admin", "owner"}, name)
	return RoleUser + Role(i), i >= 0
}
