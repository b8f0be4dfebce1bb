package toolgroups_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneclaw/toolgroups"
)

func TestCoreToolsKeepTheirOrder(t *testing.T) {
	if diff := cmp.Diff(toolgroups.CoreOrder(), names(house(t).Core())); diff != "" {
		t.Error(diff)
	}
}

// `load_tool_group` belongs to no group and cannot be put into one.
func TestLoadToolGroupIsAlwaysCore(t *testing.T) {
	for name, cfg := range map[string]toolgroups.RegistryConfig{
		"given as core": {Core: []toolgroups.Tool{fake("load_tool_group")}},
		"grouped":       {Groups: []toolgroups.Group{{Name: "g", Tools: []toolgroups.Tool{fake("load_tool_group")}}}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := toolgroups.NewRegistry(cfg); err == nil || !strings.Contains(err.Error(), "load_tool_group") {
				t.Errorf("got %v", err)
			}
		})
	}
	reg := house(t, func(cfg *toolgroups.RegistryConfig) { cfg.DisabledTools = []string{"load_tool_group"} })
	if _, grouped := reg.GroupOf("load_tool_group"); grouped || reg.Disabled("load_tool_group") {
		t.Error("load_tool_group is grouped or switched off")
	}
}

func TestGroupedToolsAreNotCore(t *testing.T) {
	reg := registry(t, toolgroups.RegistryConfig{
		Core: []toolgroups.Tool{fake("core_tool")},
		Groups: []toolgroups.Group{
			{Name: "config", Tools: []toolgroups.Tool{fake("a")}},
			{Name: "mail", Source: "user", Tools: []toolgroups.Tool{fake("b")}},
		},
	})
	if diff := cmp.Diff([]string{"load_tool_group", "core_tool"}, names(reg.Core())); diff != "" {
		t.Error(diff)
	}
	for tool, want := range map[string]string{"a": "config", "b": "mail"} {
		if got, ok := reg.GroupOf(tool); got != want || !ok {
			t.Errorf("group of %s: %q", tool, got)
		}
	}
	if _, ok := reg.GroupOf("core_tool"); ok {
		t.Error("core_tool has a group")
	}
}

// A group's definitions are its own; an unknown group has none.
func TestToolsOfAGroup(t *testing.T) {
	reg := registry(t, toolgroups.RegistryConfig{Groups: []toolgroups.Group{
		{Name: "config", Tools: fakes("c", 2)}, {Name: "pdf", Tools: fakes("p", 1)},
	}})
	for name, want := range map[string]int{"config": 2, "pdf": 1, "nonexistent": 0} {
		g, ok := reg.Group(name)
		if len(g.Tools) != want || ok != (want > 0) {
			t.Errorf("%s: %d tools, %v", name, len(g.Tools), ok)
		}
	}
}

// Groups are listed in the order of registration, a second registration replaces the first.
func TestSameSourceReplaces(t *testing.T) {
	reg := registry(t, toolgroups.RegistryConfig{Groups: []toolgroups.Group{
		{Name: "a", DisplayName: "Old", Description: "old", Tools: fakes("x", 2)},
		{Name: "b", DisplayName: "B", Description: "b"},
		{Name: "a", DisplayName: "New", Description: "new", Tools: fakes("y", 1)},
	}})
	if diff := cmp.Diff([]string{"a", "b"}, reg.GroupNames()); diff != "" {
		t.Error(diff)
	}
	a := reg.Groups()[0]
	if a.DisplayName != "New" || a.Description != "new" || len(a.Tools) != 1 {
		t.Errorf("got %+v", a)
	}
	for tool, want := range map[string]bool{"x_00": false, "x_01": false, "y_00": true} {
		if _, ok := reg.Tool(tool); ok != want {
			t.Errorf("%s is there: %t, want %t", tool, ok, want)
		}
	}
	if b := reg.Groups()[1]; b.Name != "b" || b.DisplayName != "B" || b.Description != "b" {
		t.Errorf("the other group is %+v", b)
	}
	if got := strings.Count(reg.Listing(), "\n- "); got != 2 || strings.Contains(reg.Listing(), "old") {
		t.Errorf("the listing has %d groups: %s", got, reg.Listing())
	}
}

// Two sources of one group name are an error that names both.
func TestClashesAreErrorsThatNameBoth(t *testing.T) {
	group := func(name, source string, tools ...toolgroups.Tool) toolgroups.Group {
		return toolgroups.Group{Name: name, Source: source, Tools: tools}
	}
	broken := fake("x")
	broken.Run = nil
	odd := fake("x")
	odd.Parameters = json.RawMessage(`{"type":"string"}`)
	for name, tc := range map[string]struct {
		cfg  toolgroups.RegistryConfig
		want []string
	}{
		"two sources": {toolgroups.RegistryConfig{Groups: []toolgroups.Group{
			group("pdf", "builtin"), group("pdf", "mcp:files"),
		}}, []string{`"pdf"`, "builtin", "mcp:files"}},
		"core and group": {toolgroups.RegistryConfig{
			Core: []toolgroups.Tool{fake("x")}, Groups: []toolgroups.Group{group("g", "user", fake("x"))},
		}, []string{`"x"`, "the core", `"g" (user)`}},
		"two groups": {toolgroups.RegistryConfig{Groups: []toolgroups.Group{
			group("g", "", fake("x")), group("h", "mcp:h", fake("x")),
		}}, []string{`"x"`, `"g" (builtin)`, `"h" (mcp:h)`}},
		"one group":       {toolgroups.RegistryConfig{Groups: []toolgroups.Group{group("g", "", fake("x"), fake("x"))}}, []string{`"x"`}},
		"no function":     {toolgroups.RegistryConfig{Core: []toolgroups.Tool{broken}}, []string{`"x"`, "no function"}},
		"no object":       {toolgroups.RegistryConfig{Core: []toolgroups.Tool{odd}}, []string{`"x"`, "object"}},
		"name of a tool":  {toolgroups.RegistryConfig{Core: []toolgroups.Tool{fake("a b")}}, []string{`"a b"`}},
		"name of a group": {toolgroups.RegistryConfig{Groups: []toolgroups.Group{group("", "")}}, []string{`group ""`}},
	} {
		t.Run(name, func(t *testing.T) {
			reg, err := toolgroups.NewRegistry(tc.cfg)
			if err == nil || reg != nil {
				t.Fatalf("got %v, %v", reg, err)
			}
			for _, part := range tc.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%v does not name %s", err, part)
				}
			}
		})
	}
}

func TestRegistryDoesNotChange(t *testing.T) {
	reg := house(t)
	reg.Core()[0].Name = "changed"
	reg.Groups()[0].Tools[0].Name = "changed"
	g, _ := reg.Group("pdf")
	g.Tools[0].Name = "changed"
	if diff := cmp.Diff(names(house(t).Core()), names(reg.Core())); diff != "" {
		t.Error(diff)
	}
	for _, g := range reg.Groups() {
		if g.Tools[0].Name == "changed" {
			t.Errorf("%s was changed from outside", g.Name)
		}
	}
}

func TestSwitchesAreHandedOn(t *testing.T) {
	reg := house(t, func(cfg *toolgroups.RegistryConfig) {
		cfg.DisabledTools, cfg.DisabledGroups = []string{"gone", "exec"}, []string{"pdf"}
	})
	tools, groups := reg.DisabledNames()
	if diff := cmp.Diff([][]string{{"exec", "gone"}, {"pdf"}}, [][]string{tools, groups}); diff != "" {
		t.Error(diff)
	}
	if !reg.Disabled("exec") || !reg.Disabled("pdf_00") || reg.Disabled("browser") || !reg.GroupDisabled("pdf") {
		t.Error("switches are not what was given")
	}
}

// Grouping changes no tool's name, schema or behaviour.
func TestSchemasStayAsTheyAre(t *testing.T) {
	in := fake("x")
	in.Parameters = json.RawMessage(`{"type":"object","properties":{"b":{"type":"integer","description":"<b> & ü","minimum":1},` +
		`"a":{"type":"array","items":{"type":"number"},"minItems":2}},"required":["b"]}`)
	reg := registry(t, toolgroups.RegistryConfig{Groups: []toolgroups.Group{{Name: "g", Tools: []toolgroups.Tool{in}}}})
	got, _ := reg.Tool("x")
	if string(got.Parameters) != string(in.Parameters) || got.Description != in.Description {
		t.Errorf("got %s", got.Parameters)
	}
}

// A tool that stands in the core is off with the group whose rules hold for it.
func TestAToolIsOffWithTheGroupOfItsRules(t *testing.T) {
	reg, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{
		Core: []toolgroups.Tool{{
			Name: "mine", Description: "Mine.", RuleGroup: "user_tools", Parameters: json.RawMessage(`{"type":"object"}`),
			Run: func(context.Context, toolgroups.Call) (toolgroups.Result, error) { return toolgroups.Result{}, nil },
		}},
		DisabledGroups: []string{"user_tools"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if !reg.Disabled("mine") {
		t.Error("the tool is on")
	}
}
