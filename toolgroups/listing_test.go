package toolgroups_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/tiktoken-go/tokenizer"
	"pgregory.net/rapid"

	"oneclaw/toolgroups"
)

// The system prompt lists every registered group, one line each.
func TestListingOfTwoGroups(t *testing.T) {
	reg := registry(t, toolgroups.RegistryConfig{Groups: []toolgroups.Group{
		{Name: "pdf", Description: "PDF files"}, {Name: "mail", Description: "Email"},
	}})
	want := "## Available Tool Groups\n\nUse `load_tool_group` to load tools from a group before using them.\n\n" +
		"- pdf: PDF files\n- mail: Email"
	if diff := cmp.Diff(want, reg.Listing()); diff != "" {
		t.Error(diff)
	}
	if got := strings.Count(house(t).Listing(), "\n- "); got != 15 {
		t.Errorf("the whole house has %d lines", got)
	}
}

// Without groups the prompt has no such section and no stray separator.
func TestPromptWithoutGroupsHasNoSection(t *testing.T) {
	reg := registry(t, toolgroups.RegistryConfig{})
	if reg.Listing() != "" {
		t.Errorf("listing of nothing: %q", reg.Listing())
	}
	for _, tc := range []struct{ prompt, listing, want string }{
		{"You are.", "", "You are."},
		{"", "", ""},
		{"", "L", "L"},
		{" \n", "L", "L"},
		{"You are.", "L", "You are.\n\n---\n\nL"},
	} {
		if got := toolgroups.JoinPrompt(tc.prompt, tc.listing); got != tc.want {
			t.Errorf("%q + %q: %q", tc.prompt, tc.listing, got)
		}
	}
}

// Odd characters in a description keep the listing to one line a group.
func TestDescriptionsStayOneLine(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"a \"quoted\"\nline\r\n\twith `ticks` <b>", "a \"quoted\" line with `ticks` <b>"},
		{"Grüße – 日本語 🙂", "Grüße – 日本語 🙂"},
		{"a\x00b\u2028c\u202ed\u200be\xff", "a b cde"},
		{"  \n ", "Tools of the group g"},
	} {
		reg := registry(t, toolgroups.RegistryConfig{Groups: []toolgroups.Group{{Name: "g", Description: tc.in}}})
		_, line, _ := strings.Cut(reg.Listing(), "\n\n- ")
		if line != "g: "+tc.want {
			t.Errorf("%q: %q", tc.in, line)
		}
	}
}

// Odd characters in a description keep the listing to one line a group.
func TestOneLinePerGroup(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.String().Draw(rt, "description")
		reg := registry(t, toolgroups.RegistryConfig{Groups: []toolgroups.Group{
			{Name: "g", Description: text}, {Name: "h", DisplayName: text, Description: text},
		}})
		got := reg.Listing()
		if n := strings.Count(got, "\n"); n != 5 || !utf8.ValidString(got) || got != strings.TrimSpace(got) {
			rt.Errorf("%d line breaks in %q", n, got)
		}
	})
}

// A long description is shortened to a documented length.
func TestLongDescriptionsAreCut(t *testing.T) {
	for name, in := range map[string]string{
		"letters": strings.Repeat("ä", 500),
		"words":   strings.Repeat("word ", 100),
	} {
		reg := registry(t, toolgroups.RegistryConfig{Groups: []toolgroups.Group{{Name: "g", Description: in}}})
		got := reg.Groups()[0].Description
		if n := utf8.RuneCountInString(got); n > toolgroups.MaxDescription || n < toolgroups.MaxDescription-1 || !strings.HasSuffix(got, "…") {
			t.Errorf("%s: %d characters: %s", name, n, got)
		}
	}
	exact := strings.Repeat("ä", toolgroups.MaxDescription)
	reg := registry(t, toolgroups.RegistryConfig{Groups: []toolgroups.Group{{Name: "g", Description: exact}}})
	if reg.Groups()[0].Description != exact {
		t.Error("a description of exactly the limit is cut")
	}
}

// The listing is built in bounded work and costs few tokens.
func TestTheListingIsBuiltOnce(t *testing.T) {
	reg := house(t)
	if n := testing.AllocsPerRun(20, func() { _ = reg.Listing() }); n > 2 {
		t.Errorf("asking for the listing allocates %.0f times: it is built once", n)
	}
}

// Core alone saves at least 80 % of the schema tokens.
func TestCoreOnlySavesFourFifths(t *testing.T) {
	reg := house(t)
	core := toolgroups.NewSet(fixed(reg), nil).Round().Tools()
	all := toolgroups.NewSet(fixed(reg), reg.GroupNames()).Round().Tools()
	if c, a := toolgroups.EstimateTokens(core), toolgroups.EstimateTokens(all); c*5 > a {
		t.Errorf("core %d of %d tokens", c, a)
	}
}

func TestTokensOfLoadToolGroup(t *testing.T) {
	tool, _ := house(t).Tool(toolgroups.LoadToolGroup)
	got := tokens(t, string(toolgroups.EncodeTools([]toolgroups.Tool{tool})))
	t.Logf("load_tool_group: %d tokens", got)
	if got > 100 {
		t.Errorf("the schema of load_tool_group costs %d tokens", got)
	}
}

func tokens(t *testing.T, text string) int {
	t.Helper()
	enc, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		t.Fatal(err)
	}
	n, err := enc.Count(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A line says who alone may load the group; it is the same for everybody, so that prompts stay cached.
func TestTheListingNamesWhoMayLoad(t *testing.T) {
	reg := registry(t, toolgroups.RegistryConfig{Groups: []toolgroups.Group{
		{Name: "a", Description: "All"},
		{Name: "b", Description: "Some", Role: toolgroups.RoleAdmin},
		{Name: "c", Description: "One", Role: toolgroups.RoleOwner},
		{Name: "d", Description: "People", Role: toolgroups.RoleUser},
	}})
	if got := reg.Listing(); !strings.HasSuffix(got, "\n- a: All\n- b: Some (administrators)\n- c: One (owner)\n- d: People") {
		t.Error(got)
	}
}
