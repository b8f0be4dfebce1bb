package jstools

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"oneclaw/toolgroups"
)

const (
	// defaultFunction is the default function of a tool that is alone in its file.
	defaultFunction = "execute"
	// googlePermission is the permission to use the user's Google account.
	googlePermission = "google"
	// envPrefix marks the name of a variable among the permissions of a tool.
	envPrefix = "env:"
	// maxEnv bounds the variables of a tool.
	maxEnv = 20
)

var (
	// toolName matches the names of tools made in a chat.
	toolName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,48}[a-z0-9]$`)
	envName  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,99}$`)
)

// scriptSpec describes how a user tool runs.
type scriptSpec struct {
	source     string
	function   string
	env        []string
	usesGoogle bool
	timeout    time.Duration
}

// parseManifest parses a manifest and combines it with its code.
func (t *Tools) parseManifest(base string, data []byte, source string) manifestFile {
	entries, list := parseEntries(data)
	f := manifestFile{baseName: base, isList: list}
	if !list && len(entries) == 1 {
		f.function = strings.TrimSpace(entries[0].Function)
	}
	m, errs := toolgroups.ParseManifest(base, data, nil, userSource)
	f.errs = errs
	switch {
	case m.Tool != nil:
		tools := t.bindFunctions(&f, []toolgroups.Tool{*m.Tool}, entries, list, source)
		if len(tools) == 1 {
			f.tool = &tools[0]
		}
	case m.Group != nil:
		m.Group.Tools = t.bindFunctions(&f, m.Group.Tools, entries, list, source)
		f.group = m.Group
		f.dropEmptyGroup()
	}
	return f
}

// bindFunctions sets the handlers of tools, and leaves out tools whose permissions are invalid.
func (t *Tools) bindFunctions(f *manifestFile, tools []toolgroups.Tool, entries []manifestEntry, list bool, source string) []toolgroups.Tool {
	var out []toolgroups.Tool
	for _, tool := range tools {
		i := slices.IndexFunc(entries, func(r manifestEntry) bool { return toolgroups.WireName(r.Name) == tool.Name })
		if i < 0 {
			f.addError(fmt.Errorf("%s: the entry cannot be read", tool.Name))
			continue
		}
		e, err := newScriptSpec(entries[i], list, source)
		if err != nil {
			f.addError(fmt.Errorf("%s: %w", tool.Name, err))
			continue
		}
		e.timeout = cmp.Or(tool.Timeout, toolgroups.DefaultTimeout)
		tool.Run, tool.Wait, tool.Personal = t.newHandler(e), t.cfg.MaxWait, e.usesGoogle
		tool.LastingApproval, tool.Version = tool.Effect != toolgroups.Consequential, e.version()
		out = append(out, tool)
	}
	return out
}

// parseEntries returns the valid entries of a manifest, and reports whether the manifest is a list.
func parseEntries(data []byte) ([]manifestEntry, bool) {
	data = bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\ufeff")))
	var parts []json.RawMessage
	list := len(data) > 0 && data[0] == '['
	if !list {
		parts = []json.RawMessage{data}
	} else if json.Unmarshal(data, &parts) != nil {
		return nil, true
	}
	var out []manifestEntry
	for _, part := range parts {
		var r manifestEntry
		if json.Unmarshal(part, &r) == nil {
			out = append(out, r)
		}
	}
	return out, list
}

// newScriptSpec reads how a tool runs. In a list, the default function has the name of the tool.
func newScriptSpec(r manifestEntry, list bool, source string) (scriptSpec, error) {
	e := scriptSpec{source: source, function: strings.TrimSpace(r.Function)}
	if e.function == "" {
		e.function = defaultFunction
		if list {
			e.function = strings.ReplaceAll(toolgroups.WireName(r.Name), "-", "_")
		}
	}
	var permissions []string
	if len(r.RequiredPermissions) > 0 && json.Unmarshal(r.RequiredPermissions, &permissions) != nil {
		return e, errors.New("requiredPermissions must be a list of names")
	}
	e.usesGoogle = slices.Contains(permissions, googlePermission)
	if len(r.Env) > 0 && json.Unmarshal(r.Env, &e.env) != nil {
		return e, errors.New("env must be a list of names of variables")
	}
	return e, checkEnv(e.env)
}

// version returns a hash of the code, function, variables and permission, for [toolgroups.Tool.Version].
func (e scriptSpec) version() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %t", e.source, e.function, e.env, e.usesGoogle))
	return hex.EncodeToString(sum[:8])
}

func checkEnv(names []string) error {
	if len(names) > maxEnv {
		return fmt.Errorf("env names more than %d variables", maxEnv)
	}
	for _, name := range names {
		if !envName.MatchString(name) {
			return fmt.Errorf("env: %.100q is no name of a variable", name)
		}
	}
	return nil
}

// parsePermissions parses required_permissions from a call of a management tool.
func parsePermissions(text string) (usesGoogle bool, env []string, err error) {
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if name, ok := strings.CutPrefix(part, envPrefix); ok {
			env = append(env, strings.TrimSpace(name))
		} else if part == googlePermission {
			usesGoogle = true
		} else if part != "" {
			return false, nil, fmt.Errorf("there is no permission %.100q: it is %s, or %sNAME of a variable", part, googlePermission, envPrefix)
		}
	}
	return usesGoogle, env, checkEnv(env)
}

// parseSchema parses parameters_schema from a call of a management tool. It keeps all keywords,
// including items and default.
func parseSchema(text string) (json.RawMessage, error) {
	data := json.RawMessage(strings.TrimSpace(text))
	var top struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	if err := json.Unmarshal(data, &top); err != nil {
		return nil, errors.New("it must be the JSON text of an object with \"properties\", and \"required\" as a list of names")
	}
	if top.Properties == nil {
		return nil, errors.New("the object \"properties\" is missing")
	}
	for _, name := range top.Required {
		if _, ok := top.Properties[name]; !ok {
			return nil, fmt.Errorf("%.100q is required but not among the properties", name)
		}
	}
	ms, err := toolgroups.ParseObject(data)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(ms, func(m toolgroups.Member) bool { return m.Key == "type" }) {
		data = toolgroups.EncodeObject(slices.Insert(ms, 0, toolgroups.Member{Key: "type", Value: json.RawMessage(`"object"`)}))
	}
	if _, err := toolgroups.NormalizeParameters(data); err != nil {
		return nil, err
	}
	return data, nil
}

// setMember replaces a member of an object, or appends it.
func setMember(ms []toolgroups.Member, key string, value json.RawMessage) []toolgroups.Member {
	for i := range ms {
		if ms[i].Key == key {
			ms[i].Value = value
			return ms
		}
	}
	return append(ms, toolgroups.Member{Key: key, Value: value})
}

// dropMembers removes members from an object.
func dropMembers(ms []toolgroups.Member, keys ...string) []toolgroups.Member {
	return slices.DeleteFunc(ms, func(m toolgroups.Member) bool { return slices.Contains(keys, m.Key) })
}

// encode encodes strings, numbers and lists of strings without HTML escapes.
func encode(v any) json.RawMessage {
	data, err := toolgroups.EncodeJSON(v)
	if err != nil {
		return json.RawMessage("null") // cannot happen for these types
	}
	return data
}
