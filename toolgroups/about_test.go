package toolgroups_test

import (
	"encoding/json"
	"strings"
	"testing"

	"oneclaw/toolgroups"
)

func TestAboutHasNamesAlone(t *testing.T) {
	const switching = `{"name":"set_tool_enabled","names":["name","enabled"],"description":"d","parameters":{"type":"object","properties":{"name":{"type":"string"},"enabled":{"type":"boolean"},"why":{"type":"string"}}}}`
	m, errs := toolgroups.ParseManifest("set_tool_enabled", []byte(switching), nil, "")
	if len(errs) > 0 || m.Tool == nil {
		t.Fatal(errs)
	}
	mask := func(text string) string { return strings.ReplaceAll(text, "hunter2", "•••") }
	for arguments, want := range map[string]string{
		`{"name":"exec","enabled":false,"why":"a text"}`: "name=exec enabled=false",
		`{"name":"hunter2\nexec"}`:                       "name=••• exec",
		`{"name":{"x":"a text"},"enabled":"yes"}`:        "enabled=yes",
		`{"name":"` + strings.Repeat("x", 500) + `"}`:    "name=" + strings.Repeat("x", 59) + "…",
		`no arguments`: "",
	} {
		if got := toolgroups.AuditArguments(*m.Tool, json.RawMessage(arguments), mask); got != want {
			t.Errorf("%s is about %q, want %q", arguments, got, want)
		}
	}
	for _, names := range []string{`"name"`, `["what"]`, `[1]`} {
		if _, errs := toolgroups.ParseManifest("set_tool_enabled", []byte(strings.Replace(switching, `["name","enabled"]`, names, 1)), nil, ""); len(errs) != 1 || !strings.Contains(errs[0].Error(), "names") {
			t.Errorf("%s: %v", names, errs)
		}
	}
}
