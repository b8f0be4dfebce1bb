package mcp

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"oneclaw/internal/redact"
	"oneclaw/internal/wording"
)

// minRedacted is the length in bytes from which a value is redacted: redacting "true" or "8080" would
// make every message unreadable.
const minRedacted = 6

// maxReason bounds the reason of a failure in an error, in characters.
const maxReason = 300

var variablePattern = regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_]*\}`)

// expandAll replaces ${NAME} in values with variables of the environment.
func expandAll(field string, values map[string]redact.Secret, lookup func(string) (string, bool)) (map[string]string, error) {
	out := make(map[string]string, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		text, missing := expandVariables(values[name], lookup)
		if out[name] = text; missing != "" {
			return nil, fmt.Errorf("%s: %s names %s, which is not set", field, name, missing)
		}
		if strings.ContainsAny(out[name], "\r\n\x00") && field == "headers" {
			return nil, fmt.Errorf("headers: the value of %s must be one line", name)
		}
	}
	return out, nil
}

// environment returns the environment of a server's process.
func environment(s Server, lookup func(string) (string, bool)) ([]string, error) {
	explicit, err := expandAll("env", s.Env, lookup)
	if err != nil {
		return nil, err
	}
	vars := map[string]string{}
	for _, name := range append([]string{"PATH", "HOME"}, s.PassEnv...) {
		if value, ok := lookup(name); ok {
			vars[name] = value
		}
	}
	maps.Copy(vars, explicit)
	env := make([]string, 0, len(vars))
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		env = append(env, name+"="+vars[name])
	}
	return env, nil
}

// redactor removes secrets from messages.
type redactor struct{ replacer *strings.Replacer }

// newRedactor redacts the values of the environment (except PATH and HOME), headers and query.
func newRedactor(env []string, headers map[string]string, address string) redactor {
	var values []string
	for _, pair := range env {
		if name, value, _ := strings.Cut(pair, "="); name != "PATH" && name != "HOME" {
			values = append(values, value)
		}
	}
	for _, value := range headers {
		values = append(values, value)
		values = append(values, strings.Fields(value)...)
	}
	if u, err := url.Parse(address); err == nil {
		values = append(values, u.RawQuery)
		for _, list := range u.Query() {
			values = append(values, list...)
		}
	}
	values = slices.DeleteFunc(values, func(v string) bool { return len(v) < minRedacted })
	// The longest first: a value may be part of another.
	slices.SortFunc(values, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	var pairs []string
	for _, v := range slices.Compact(values) {
		pairs = append(pairs, v, redact.Mask)
	}
	return redactor{strings.NewReplacer(pairs...)}
}

// line returns a text as one shortened line without secrets.
func (r redactor) line(text string) string {
	return clean(strings.Join(strings.Fields(r.replacer.Replace(text)), " "), maxReason)
}

// output returns the output of a program as one shortened line without secrets, also unknown ones that are
// shaped like a token.
func (r redactor) output(text string) string { return r.line(redact.New().Text(text)) }

// clean prepares a server's text for a prompt: valid UTF-8 of at most limit characters, without
// invisible characters and control characters.
func clean(text string, limit int) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case r == utf8.RuneError, unicode.IsControl(r), unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, text)
	return wording.Clip(strings.TrimSpace(text), limit)
}
