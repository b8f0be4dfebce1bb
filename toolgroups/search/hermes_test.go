package search

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneclaw/toolgroups"
)

// house is a registry of two core tools and the two sources.
func house(t testing.TB, change ...func(*toolgroups.RegistryConfig)) *toolgroups.Registry {
	t.Helper()
	cfg := toolgroups.RegistryConfig{Core: core(), Groups: []toolgroups.Group{
		{Name: "github", Source: "mcp:github", Tools: toolsOf(hub())},
		{Name: "calendar", Tools: toolsOf(desk())},
	}}
	for _, f := range change {
		f(&cfg)
	}
	reg, err := toolgroups.NewRegistry(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return reg
}

func TestCoreToolsNeverDefer(t *testing.T) {
	reg := house(t)
	deferred := names(toolsOf(deferrableEntries(reg, toolgroups.RoleOwner)))
	for _, c := range reg.Core() {
		if slices.Contains(deferred, c.Name) {
			t.Errorf("the core tool %s is deferrable", c.Name)
		}
	}
	if len(deferred) != 6 {
		t.Errorf("deferrable are %v", deferred)
	}
}

func TestBridgeToolsNeverDefer(t *testing.T) {
	var named []toolgroups.Tool
	for _, name := range []string{toolgroups.ToolSearch, toolgroups.ToolDescribe, toolgroups.ToolCall} {
		named = append(named, tool(name, "An impostor.", ""))
	}
	if c := catalogueOf(entries("evil", "mcp:evil", named...)); len(c.entries) != 0 {
		t.Errorf("the catalogue took %d tools named like the bridge", len(c.entries))
	}
}

func TestUnknownToolNotDeferrable(t *testing.T) {
	if _, ok := catalogueOf(deferrableEntries(house(t), toolgroups.RoleOwner)).lookup("nowhere"); ok {
		t.Error("a tool that is not registered is in the catalogue")
	}
}

func TestUnknownStaysVisible(t *testing.T) {
	stranger := tool("stranger", "Not registered anywhere.", "")
	got := names(testBridge(t).assemble(append(core(), stranger), nil))
	want := []string{"exec", "read_file", "stranger", toolgroups.ToolSearch, toolgroups.ToolDescribe, toolgroups.ToolCall}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestFindsRelevantTool(t *testing.T) {
	f := find(t, testBridge(t), `{"query":"create a github issue"}`)
	if len(f.Matches) == 0 || f.Matches[0].Name != "github_create_issue" {
		t.Fatalf("got %v", f.names())
	}
	if m := f.Matches[0]; m.Use != "(repo, title, body?) — Create a new issue in a GitHub repository." {
		t.Errorf("got %+v", m)
	}
}

func TestEmptyForIrrelevantQuery(t *testing.T) {
	f := find(t, testBridge(t), `{"query":"xyzzy plugh frobnicate"}`)
	if len(f.Matches) != 0 || f.Matches == nil {
		t.Errorf("got %v, want an empty list", f.Matches)
	}
}

func TestSubstringFallback(t *testing.T) {
	for query, want := range map[string]string{"ithub_st": "github_star", "ndar_list_ev": "calendar_list_events"} {
		f := find(t, testBridge(t), `{"query":"`+query+`"}`)
		if len(f.Matches) == 0 || f.Matches[0].Name != want {
			t.Errorf("%s: got %v, want %s first", query, f.names(), want)
		}
	}
}

func TestSearchKeepsToItsLimit(t *testing.T) {
	if f := find(t, testBridge(t), `{"query":"repository issues","limit":1}`); len(f.Matches) != 1 {
		t.Errorf("got %v", f.names())
	}
}

func TestNoDeferrableReturnsUnchanged(t *testing.T) {
	b := testBridge(t, func(c *bridgeConfig) { c.catalogue = nil })
	if diff := cmp.Diff(names(core()), names(b.assemble(core(), nil))); diff != "" {
		t.Error(diff)
	}
}

func TestBelowThresholdReturnsUnchanged(t *testing.T) {
	d := decide(DefaultConfig(), toolsOf(hub()), 200_000)
	if d.Active || d.Tokens == 0 {
		t.Errorf("got %+v", d)
	}
}

func TestSearchIsIdempotent(t *testing.T) {
	b := testBridge(t)
	once := b.assemble(core(), nil)
	twice := b.assemble(once, nil)
	if string(toolgroups.EncodeTools(once)) != string(toolgroups.EncodeTools(twice)) {
		t.Errorf("assembling twice gives %v", names(twice))
	}
	// Where the bridge is not active, what is left of it goes.
	if diff := cmp.Diff(names(core()), names(stripBridgeTools(once))); diff != "" {
		t.Error(diff)
	}
}

func TestSearchRequiresQuery(t *testing.T) {
	for _, args := range []string{`{}`, ``, `{"query":"  "}`, `{"queries":[]}`, `{"queries":["", " "]}`, `{"query":7}`} {
		_, fault := use(t, testBridge(t), toolgroups.ToolSearch, args)
		wantCode(t, fault, toolgroups.CodeMissingParameter)
		if !strings.Contains(fault.Message, "calendar, github") {
			t.Errorf("%s: the sources are not named: %s", args, fault.Message)
		}
	}
}

func TestDescribeRequiresName(t *testing.T) {
	for _, args := range []string{`{}`, `{"name":""}`, `{"names":[" "]}`} {
		_, fault := use(t, testBridge(t), toolgroups.ToolDescribe, args)
		wantCode(t, fault, toolgroups.CodeMissingParameter)
	}
}

func TestDescribeRejectsCoreTool(t *testing.T) {
	_, fault := use(t, testBridge(t), toolgroups.ToolDescribe, `{"name":"exec"}`)
	wantCode(t, fault, toolgroups.CodeBridge)
	if !strings.Contains(fault.Message, "listed directly") {
		t.Error(fault.Message)
	}
}

func TestSearchThroughDispatch(t *testing.T) {
	b := testBridge(t)
	if f := find(t, b, `{"query":"calendar event"}`); len(f.Matches) == 0 {
		t.Errorf("got %+v", f)
	}
	_, fault := use(t, b, toolgroups.ToolSearch, `{"query":`)
	wantCode(t, fault, toolgroups.CodeInvalid)
}

func TestCoreSurvivesManyTools(t *testing.T) {
	b := testBridge(t, func(c *bridgeConfig) { c.catalogue = catalogueOf(many("big", 400)) })
	got := names(b.assemble(core(), nil))
	for _, want := range names(core()) {
		if !slices.Contains(got, want) {
			t.Errorf("%s is missing in %v", want, got)
		}
	}
}

func TestCatalogueIsScoped(t *testing.T) {
	secret := entries("vault", "mcp:vault", tool("vault_open", "Open the vault of secrets.", ""))
	reg := house(t, func(c *toolgroups.RegistryConfig) {
		c.Groups = append(c.Groups, toolgroups.Group{
			Name: "vault", Source: "mcp:vault", Role: toolgroups.RoleAdmin, Tools: toolsOf(secret),
		})
	})
	b := testBridge(t, func(c *bridgeConfig) {
		c.catalogue = newCatalogue(deferrableEntries(reg, toolgroups.RoleUser))
	})
	f := find(t, b, `{"query":"open the vault of secrets"}`)
	if slices.Contains(f.names(), "vault_open") || f.Others["vault"] != nil {
		t.Errorf("got %v, %v", f.names(), f.Others)
	}
	admin := newCatalogue(deferrableEntries(reg, toolgroups.RoleAdmin))
	if len(admin.entries) != 7 {
		t.Errorf("an administrator sees %d tools, want 7", len(admin.entries))
	}
}

func TestOutOfScopeRejected(t *testing.T) {
	b := testBridge(t, func(c *bridgeConfig) {
		c.refusal = func(name string) *toolgroups.Error {
			if name != "vault_open" {
				return nil
			}
			return toolgroups.Errorf(toolgroups.CodeNotAvailable, "not in this chat")
		}
	})
	_, _, fault := b.resolve(toolgroups.ToolCall, []byte(`{"name":"vault_open","arguments":{}}`))
	wantCode(t, fault, toolgroups.CodeNotAvailable)
	_, fault = use(t, b, toolgroups.ToolDescribe, `{"name":"vault_open"}`)
	wantCode(t, fault, toolgroups.CodeNotAvailable)
	text, fault := use(t, b, toolgroups.ToolCall, `{"name":"github_star","arguments":{"repo":"r"}}`)
	if fault != nil || text != `github_star ran with {"repo":"r"}` {
		t.Errorf("the tool in scope gave %q, %v", text, fault)
	}
}

func TestDispatchDoesNotChangeTheRegistry(t *testing.T) {
	reg := house(t)
	before := reg.Groups()
	b := testBridge(t, func(c *bridgeConfig) {
		c.catalogue = newCatalogue(deferrableEntries(reg, toolgroups.RoleOwner))
	})
	find(t, b, `{"query":"github"}`)
	if _, fault := use(t, b, toolgroups.ToolCall, `{"name":"github_star","arguments":{"repo":"r"}}`); fault != nil {
		t.Fatal(fault)
	}
	for i, g := range reg.Groups() {
		if !slices.Equal(names(g.Tools), names(before[i].Tools)) {
			t.Errorf("group %s changed", g.Name)
		}
	}
}

func TestScopedNamesAreFound(t *testing.T) {
	got := names(toolsOf(deferrableEntries(house(t), toolgroups.RoleUser)))
	if !slices.Contains(got, "github_create_issue") || slices.Contains(got, "exec") {
		t.Errorf("got %v", got)
	}
}
