package jstools

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

	"oneclaw/toolgroups"
)

const (
	// execute is the function of a tool that is alone in its file.
	execute = "execute"
	// permitGoogle is the permission for the user's account.
	permitGoogle = "google"
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

// entry says how a user tool runs.
type entry struct {
	source   string
	function string
	env      []string
	google   bool
	timeout  time.Duration
}

// parse makes tools from a manifest and its code.
func (t *Tools) parse(base string, data []byte, source string) file {
	entries, list := rawEntries(data)
	f := file{base: base, list: list}
	if !list && len(entries) == 1 {
		f.function = strings.TrimSpace(entries[0].Function)
	}
	m, errs := toolgroups.ParseManifest(base, data, nil, Source)
	f.errs = errs
	switch {
	case m.Tool != nil:
		tools := t.bind(&f, []toolgroups.Tool{*m.Tool}, entries, list, source)
		if len(tools) == 1 {
			f.tool = &tools[0]
		}
	case m.Group != nil:
		m.Group.Tools = t.bind(&f, m.Group.Tools, entries, list, source)
		f.group = m.Group
	}
	return f
}

// bind sets the functions of tools, and leaves out tools whose permissions are invalid.
func (t *Tools) bind(f *file, tools []toolgroups.Tool, entries []raw, list bool, source string) []toolgroups.Tool {
	var out []toolgroups.Tool
	for _, tool := range tools {
		i := slices.IndexFunc(entries, func(r raw) bool { return toolgroups.WireName(r.Name) == tool.Name })
		if i < 0 {
			f.fail(fmt.Errorf("%s: the entry cannot be read", tool.Name))
			continue
		}
		e, err := newEntry(entries[i], list, source)
		if err != nil {
			f.fail(fmt.Errorf("%s: %w", tool.Name, err))
			continue
		}
		e.timeout = cmp.Or(tool.Timeout, toolgroups.DefaultTimeout)
		tool.Run, tool.Wait = t.handler(e), t.cfg.MaxWait
		out = append(out, tool)
	}
	return out
}

// rawEntries reads the readable entries, and reports whether it is a list.
func rawEntries(data []byte) ([]raw, bool) {
	data = bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\ufeff")))
	var parts []json.RawMessage
	list := len(data) > 0 && data[0] == '['
	if !list {
		parts = []json.RawMessage{data}
	} else if json.Unmarshal(data, &parts) != nil {
		return nil, true
	}
	var out []raw
	for _, part := range parts {
		var r raw
		if json.Unmarshal(part, &r) == nil {
			out = append(out, r)
		}
	}
	return out, list
}

// newEntry reads how a tool runs. In a list its function is by default named like the tool.
func newEntry(r raw, list bool, source string) (entry, error) {
	e := entry{source: source, function: strings.TrimSpace(r.Function)}
	if e.function == "" {
		e.function = execute
		if list {
			e.function = strings.ReplaceAll(toolgroups.WireName(r.Name), "-", "_")
		}
	}
	var permissions []string
	if len(r.Permissions) > 0 && json.Unmarshal(r.Permissions, &permissions) != nil {
		return e, errors.New("requiredPermissions must be a list of names")
	}
	e.google = slices.Contains(permissions, permitGoogle)
	if len(r.Env) > 0 && json.Unmarshal(r.Env, &e.env) != nil {
		return e, errors.New("env must be a list of names of variables")
	}
	return e, checkEnv(e.env)
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

// permissions splits the permissions in the management tools' arguments.
func permissions(text string) (names, env []string, err error) {
	names, env = []string{}, []string{}
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if name, ok := strings.CutPrefix(part, envPrefix); ok {
			env = append(env, strings.TrimSpace(name))
		} else if part != "" {
			names = append(names, part)
		}
	}
	return names, env, checkEnv(env)
}

// schema makes parameters from the JSON text in the management tools' arguments. It keeps
// everything, including items and default.
func schema(text string) (json.RawMessage, error) {
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

// set replaces a member, or appends it.
func set(ms []toolgroups.Member, key string, value json.RawMessage) []toolgroups.Member {
	for i := range ms {
		if ms[i].Key == key {
			ms[i].Value = value
			return ms
		}
	}
	return append(ms, toolgroups.Member{Key: key, Value: value})
}

// drop removes members.
func drop(ms []toolgroups.Member, keys ...string) []toolgroups.Member {
	return slices.DeleteFunc(ms, func(m toolgroups.Member) bool { return slices.Contains(keys, m.Key) })
}

// encode encodes strings, numbers and lists of them without HTML escapes.
func encode(v any) json.RawMessage {
	data, err := toolgroups.EncodeJSON(v)
	if err != nil {
		return json.RawMessage("null") // these always encode
	}
	return data
}
