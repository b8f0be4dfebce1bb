package toolgroups_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oneclaw/toolgroups"
)

// handlers are the functions the manifests of the tests may name.
func handlers() map[string]toolgroups.Handler {
	run := func(context.Context, toolgroups.Call) (toolgroups.Result, error) { return toolgroups.TextResult("ok") }
	m := map[string]toolgroups.Handler{"gmailSearch": run, "$f_1": run}
	for _, name := range []string{"a", "b", "c", "read_file"} {
		m[name] = run
	}
	return m
}

// parse returns the manifest and its errors, one a line.
func parse(base, data string) (toolgroups.Manifest, string) {
	m, errs := toolgroups.ParseManifest(base, []byte(data), handlers(), "user")
	lines := make([]string, len(errs))
	for i, err := range errs {
		lines[i] = err.Error()
	}
	return m, strings.Join(lines, "\n")
}

func group(t *testing.T, base, data string) toolgroups.Group {
	t.Helper()
	m, errs := parse(base, data)
	if m.Group == nil || m.Tool != nil || errs != "" {
		t.Fatalf("got %+v, %s", m, errs)
	}
	return *m.Group
}

// A manifest's `_meta` gives a group its name and description, and is no tool.
func TestMetaNamesTheGroup(t *testing.T) {
	g := group(t, "google_gmail", `[
		{"_meta": true, "display_name": "Google Gmail", "description": "Email tools", "role": "admin"},
		{"name": "gmail_search", "description": "Search", "function": "gmailSearch"}]`)
	if g.Name != "google_gmail" || g.DisplayName != "Google Gmail" || g.Description != "Email tools" ||
		g.Role != toolgroups.RoleAdmin || g.Source != "user" {
		t.Errorf("got %+v", g)
	}
	if diff := cmp.Diff([]string{"gmail_search"}, names(g.Tools)); diff != "" {
		t.Error(diff)
	}
}

func TestManifestWithoutMetaGetsANameAndDescription(t *testing.T) {
	const tools = `{"name":"a","description":"A"},{"name":"b","description":"B"}]`
	for _, tc := range []struct{ meta, display, description string }{
		{``, "My Tools", "Tools of the group my_tools: a, b"},
		{`{"_meta":true},`, "My tools", "Tools of the group my_tools: a, b"},
		{`{"_meta":true,"display_name":"Mine"},`, "Mine", "Tools of the group my_tools: a, b"},
		{`{"_meta":true,"description":"Two"},`, "My tools", "Two"},
		{`{"_meta":true,"display_name":7,"description":" "},`, "My tools", "Tools of the group my_tools: a, b"},
	} {
		reg, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Groups: []toolgroups.Group{group(t, "my_tools", `[`+tc.meta+tools)}})
		if err != nil {
			t.Fatal(err)
		}
		g, _ := reg.Group("my_tools")
		if g.DisplayName != tc.display || g.Description != tc.description || len(g.Tools) != 2 {
			t.Errorf("%s: %+v", tc.meta, g)
		}
	}
}

// A manifest with nothing but `_meta` makes an empty group and stops nothing.
func TestManifestOfMetaAloneIsAnEmptyGroup(t *testing.T) {
	g := group(t, "later", `[{"_meta":true,"description":"To come"}]`)
	if len(g.Tools) != 0 {
		t.Errorf("got %v", names(g.Tools))
	}
	set := toolgroups.NewSet(fixed(registry(t, toolgroups.RegistryConfig{Groups: []toolgroups.Group{g}})), nil)
	_, fault := call(t, set.Round(), "load_tool_group", `{"group_name":"later"}`, admin())
	wantFault(t, fault, "empty_group", "Tool group 'later' has no available tools.")
}

// Manifests of one object are core tools, arrays are groups.
func TestObjectIsACoreTool(t *testing.T) {
	m, errs := parse("read_file", `{"name":"read_file","description":"Read","timeoutSeconds":10,"effect":"read_only"}`)
	if errs != "" || m.Group != nil || m.Tool == nil {
		t.Fatalf("got %+v, %s", m, errs)
	}
	if m.Tool.Name != "read_file" || m.Tool.Timeout != 10*time.Second || m.Tool.Effect != toolgroups.ReadOnly {
		t.Errorf("got %+v", m.Tool)
	}
	if _, errs := parse("b", `{"name":"a","description":"A"}`); errs != `b.json: the tool must be named "b" like the file, not "a"` {
		t.Error(errs)
	}
}

// A `_meta` that is not `true`, or not first, is skipped and never a tool.
func TestMetaElsewhereIsNoTool(t *testing.T) {
	const why = `_meta counts only as "_meta": true in the first entry of a list`
	for name, tc := range map[string]struct{ in, want string }{
		"not true":  {`[{"_meta":"true","name":"a","description":"A"},{"name":"b","description":"B"}]`, "g.json: entry 1: " + why},
		"false":     {`[{"_meta":false,"name":"a","description":"A"},{"name":"b","description":"B"}]`, "g.json: entry 1: " + why},
		"not first": {`[{"name":"b","description":"B"},{"_meta":true,"display_name":"X"}]`, "g.json: entry 2: " + why},
	} {
		t.Run(name, func(t *testing.T) {
			m, errs := parse("g", tc.in)
			if errs != tc.want {
				t.Errorf("got %s", errs)
			}
			if diff := cmp.Diff([]string{"b"}, names(m.Group.Tools)); diff != "" || m.Group.DisplayName != "G" {
				t.Error(diff, m.Group.DisplayName)
			}
		})
	}
}

// One invalid entry of a manifest is skipped alone.
func TestOnlyTheBadEntryIsLeftOut(t *testing.T) {
	for bad, want := range map[string]string{
		`7`:                               "a tool must be an object",
		`null`:                            "a tool must be an object",
		`{"description":"A"}`:             "name is missing",
		`{"name":"天気","description":"A"}`: "name is missing",
		`{"name":"load_tool_group","description":"A"}`: "is taken",
		`{"name":"a"}`: "entry 2 (a): description is missing",
		`{"name":"a","description":"A","function":"x();y"}`:                           "function must match",
		`{"name":"a","description":"A","function":""}`:                                "function must match",
		`{"name":"a","description":"A","function":7}`:                                 "function must match",
		`{"name":"a","description":"A","function":"nowhere"}`:                         `there is no function "nowhere"`,
		`{"name":"without","description":"A"}`:                                        `there is no function "without"`,
		`{"name":"a","description":"A","parameters":{"type":"string"}}`:               `"type": "object"`,
		`{"name":"a","description":"A","parameters":null}`:                            `"type": "object"`,
		`{"name":"a","description":"A","timeout_s":0}`:                                "timeout_s must be",
		`{"name":"a","description":"A","timeout_s":"5"}`:                              "timeout_s must be",
		`{"name":"a","description":"A","timeoutSeconds":1e9}`:                         "timeoutSeconds must be",
		`{"name":"a","description":"A","effect":"harmless"}`:                          "effect must be",
		`{"name":"a","description":"A","role":"boss"}`:                                "role must be",
		`{"name":"b","description":"again"}`:                                          "entry 2 (b): an earlier entry has the same name",
		`{"name":"a","description":"A","parameters":{"type":"object"},"role":"king"}`: "role must be",
	} {
		m, errs := parse("g", `[{"name":"b","description":"B"},`+bad+`,{"name":"c","description":"C"}]`)
		if !strings.HasPrefix(errs, "g.json: entry 2") || !strings.Contains(errs, want) || strings.Contains(errs, "\n") {
			t.Errorf("%s: %s", bad, errs)
		}
		if diff := cmp.Diff([]string{"b", "c"}, names(m.Group.Tools)); diff != "" {
			t.Errorf("%s: %s", bad, diff)
		}
		if m.Group.Tools[0].Description != "B" {
			t.Errorf("%s: the first of two did not win", bad)
		}
	}
}

func TestManifestFilesThatHoldNothing(t *testing.T) {
	for _, tc := range []struct{ base, in, want string }{
		{"g", `[]`, "g.json: the list is empty, so there is no group"},
		{"g", `[{"_meta":true,"role":"boss"},{"name":"a","description":"A"}]`, "g.json: _meta: role must be user, admin or owner"},
		{"g", "[\n{\"name\":\"a\",}\n]", "g.json: line 2: invalid character '}' looking for beginning of object key string"},
		{"g", ``, "g.json: line 1: unexpected end of JSON input"},
		{"g", `7`, "g.json: the file must hold an object (one tool) or a list (a group)"},
		{"a", `{"name":"a"}`, "a.json: description is missing"},
		{"天気", `[]`, "天気.json: the name of the file has no letter or digit of the English alphabet"},
		{"g", `[` + strings.Repeat(" ", toolgroups.MaxManifest) + `]`, "g.json: the file is larger than 1048576 bytes"},
	} {
		if m, errs := parse(tc.base, tc.in); errs != tc.want || m.Group != nil || m.Tool != nil {
			t.Errorf("%.60s: %+v, %s", tc.in, m, errs)
		}
	}
}

// A file with more tools than a group takes gives the first of them, and says so.
func TestAGroupTakesTheFirstOfTooManyTools(t *testing.T) {
	entries := []string{`{"_meta":true}`}
	for i := range 60 {
		entries = append(entries, fmt.Sprintf(`{"name":"t%d","description":"A","function":"a"}`, i))
	}
	m, errs := parse("g", "["+strings.Join(entries, ",")+"]")
	if len(m.Group.Tools) != toolgroups.MaxGroupTools || m.Group.Tools[49].Name != "t49" || errs != "g.json: only the first 50 of 60 tools are taken" {
		t.Errorf("%d tools, %s", len(m.Group.Tools), errs)
	}
}

// Names that providers do not accept are mapped to ones that they do.
func TestNamesAreMadeToFitProviders(t *testing.T) {
	for name, want := range map[string]string{
		"getWeather": "getWeather", "my-tools": "my-tools", "my tool.v2": "my_tool_v2", " a ": "a", "Wetter für heute": "Wetter_f_r_heute",
		strings.Repeat("a", 65): strings.Repeat("a", 64), "天気": "", "": "", "--": "",
	} {
		if got := toolgroups.WireName(name); got != want {
			t.Errorf("%q became %q, want %q", name, got, want)
		}
	}
	m, errs := parse("my tool", `{"name":"my tool","description":"A","function":"a"}`)
	if errs != "" || m.Tool == nil || m.Tool.Name != "my_tool" {
		t.Errorf("%+v, %s", m, errs)
	}
}

func TestManifestFacts(t *testing.T) {
	fifty := make([]string, 50)
	fns := map[string]toolgroups.Handler{}
	for i := range fifty {
		name := fmt.Sprintf("t_%d", i)
		fifty[i] = fmt.Sprintf(`{"name":%q,"description":"D","requiredPermissions":[]}`, name)
		fns[name] = handlers()["a"]
	}
	m, errs := toolgroups.ParseManifest("g", []byte(`[{"_meta":true},`+strings.Join(fifty, ",")+`]`), fns, toolgroups.SourceBuiltin)
	if len(errs) > 0 || len(m.Group.Tools) != 50 || m.Group.Source != toolgroups.SourceBuiltin {
		t.Fatalf("got %+v, %v", m.Group, errs)
	}
	g := group(t, "g", `[
		{"name":"a","description":" A ","function":"$f_1","timeout_s":1.5,"effect":"consequential","role":"owner"},
		{"name":"b","description":"B","effect":"changes","role":"user","outlives":true,
		 "parameters":{"type":"object","properties":{"ids":{"type":"array","default":[]}},"required":["ids"]}},
		{"name":"c","description":"C"}]`)
	type facts struct {
		Description, Parameters string
		Timeout                 time.Duration
		Effect                  toolgroups.Effect
		Role                    toolgroups.Role
		Outlives                bool
	}
	var got []facts
	for _, tool := range g.Tools {
		got = append(got, facts{tool.Description, string(tool.Parameters), tool.Timeout, tool.Effect, tool.Role, tool.Outlives})
	}
	const none = `{"type":"object","properties":{}}`
	want := []facts{
		{"A", none, 1500 * time.Millisecond, toolgroups.Consequential, toolgroups.RoleOwner, false},
		{
			"B", `{"type":"object","properties":{"ids":{"type":"array","items":{}}},"required":["ids"]}`,
			0, toolgroups.Changes, toolgroups.RoleUser, true,
		},
		{"C", none, 0, toolgroups.Changes, toolgroups.RoleStranger, false},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzParseManifest(f *testing.F) {
	f.Add([]byte(`[{"_meta":true,"display_name":"G"},{"name":"a","description":"A","parameters":{"type":"object","properties":{"l":{"type":"array"}}}}]`))
	f.Add([]byte(`{"name":"g","description":"G","function":"a","timeout_s":1e-12}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, errs := toolgroups.ParseManifest("g", data, handlers(), toolgroups.SourceBuiltin)
		for _, err := range errs {
			if !strings.HasPrefix(err.Error(), "g.json: ") {
				t.Errorf("%v does not name the file", err)
			}
		}
		cfg := toolgroups.RegistryConfig{}
		switch {
		case m.Group != nil:
			cfg.Groups = []toolgroups.Group{*m.Group}
		case m.Tool != nil:
			cfg.Core = []toolgroups.Tool{*m.Tool}
		case len(errs) == 0:
			t.Error("nothing, and no reason")
		}
		reg, err := toolgroups.NewRegistry(cfg)
		if err != nil {
			t.Fatalf("what was parsed is refused: %v", err)
		}
		if !json.Valid(toolgroups.EncodeTools(toolgroups.NewSet(fixed(reg), []string{"g"}).Round().Tools())) {
			t.Error("the array is not JSON")
		}
	})
}
