package search

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tiktoken-go/tokenizer"

	"oneclaw/toolgroups"
)

func TestBridgeReplacesDeferredTools(t *testing.T) {
	got := names(testBridge(t).assemble(core(), nil))
	if diff := cmp.Diff([]string{"exec", "read_file", "tool_search", "tool_describe", "tool_call"}, got); diff != "" {
		t.Error(diff)
	}
}

// Core tools are always direct, in tasks too.
func TestCoreIsAlwaysDirect(t *testing.T) {
	b := testBridge(t)
	if got := names(b.assemble(core(), nil))[:2]; !slices.Equal(got, names(core())) {
		t.Errorf("the array begins with %v", got)
	}
}

// Tools that come or go are followed by the next catalogue; the mode of `auto` follows when the cache is missed anyway.
func TestCatalogueFollowsTheRegistry(t *testing.T) {
	before := testBridge(t)
	after := testBridge(t, func(c *bridgeConfig) { c.catalogue = catalogueOf(desk()) })
	if f := find(t, before, `{"query":"pull request"}`); len(f.Matches) == 0 {
		t.Error("not found before the removal")
	}
	if f := find(t, after, `{"query":"pull request"}`); len(f.Matches) != 0 {
		t.Errorf("found after the removal: %v", f.names())
	}
	if before.tools()[0].Description == after.tools()[0].Description {
		t.Error("the description does not count the deferred tools")
	}
}

// Five hits unless asked for more, at most twenty.
func TestSearchLimits(t *testing.T) {
	b := testBridge(t, func(c *bridgeConfig) { c.catalogue = catalogueOf(many("big", 60)) })
	for args, want := range map[string]int{
		`{"query":"thing number"}`:              5,
		`{"query":"thing number","limit":9}`:    9,
		`{"query":"thing number","limit":"9"}`:  9,
		`{"query":"thing number","limit":1000}`: 20,
		`{"query":"thing number","limit":0}`:    5,
		`{"query":"thing number","limit":-4}`:   5,
		`{"query":"thing number","limit":"x"}`:  5,
	} {
		if f := find(t, b, args); len(f.Matches) != want {
			t.Errorf("%s: %d hits, want %d", args, len(f.Matches), want)
		}
	}
}

// Hits are ranked by BM25 over names, descriptions and parameters.
func TestRanksByNameDescriptionAndParameters(t *testing.T) {
	b := testBridge(t, func(c *bridgeConfig) {
		c.catalogue = catalogueOf(entries("x", "mcp:x",
			tool("alpha", "Turns the lantern.", ""), tool("beta_lantern", "Turns.", ""), tool("gamma", "Turns.", `"lantern":{"type":"string"}`),
			tool("delta", "Turns.", "")))
	})
	got := find(t, b, `{"query":"lantern"}`).names()
	if len(got) != 3 || got[0] != "beta_lantern" || slices.Contains(got, "delta") {
		t.Errorf("got %v", got)
	}
}

// Where nothing scores, parts of names are found.
func TestTermInEveryName(t *testing.T) {
	b := testBridge(t, func(c *bridgeConfig) { c.catalogue = catalogueOf(many("git_hub", 4)) })
	if f := find(t, b, `{"query":"hub"}`); len(f.Matches) != 4 {
		t.Errorf("got %v", f.names())
	}
}

// No match is an empty list, no error.
func TestNoMatchIsNoError(t *testing.T) {
	b := testBridge(t, func(c *bridgeConfig) {
		c.unavailable = []UnavailableSource{{Name: "jira", Reason: "connection refused"}}
	})
	f := find(t, b, `{"query":"zzzz"}`)
	want := []origin{{Name: "calendar", ToolCount: 2}, {Name: "github", ToolCount: 4}}
	if diff := cmp.Diff(want, f.Available); diff != "" {
		t.Error(diff)
	}
	if len(f.Offline) != 1 || f.Offline[0].Name != "jira" || !strings.Contains(f.Hint, "other English words") {
		t.Errorf("got %+v", f)
	}
}

// `tool_describe` gives the whole schema, or a clear error.
func TestDescribeGivesTheWholeSchema(t *testing.T) {
	text, fault := use(t, testBridge(t), toolgroups.ToolDescribe, `{"name":"github_create_issue"}`)
	if fault != nil {
		t.Fatal(fault)
	}
	got := decode[struct {
		Name       string
		Parameters json.RawMessage
	}](t, text)
	if got.Name != "github_create_issue" || string(got.Parameters) != string(hub()[0].tool.Parameters) {
		t.Errorf("got %s", text)
	}
	_, fault = use(t, testBridge(t), toolgroups.ToolDescribe, `{"name":"nowhere_at_all"}`)
	wantCode(t, fault, toolgroups.CodeNotFound)
	_, fault = use(t, testBridge(t), toolgroups.ToolDescribe, `{"name":"exec"}`)
	wantCode(t, fault, toolgroups.CodeBridge)
}

// What the request has no room for is shown whole on request.
func TestDescribeShowsTheManual(t *testing.T) {
	long := hub()
	long[0].tool.Manual = "Create a new issue in a GitHub repository. All about it."
	b := testBridge(t, func(c *bridgeConfig) { c.catalogue = catalogueOf(long, desk()) })
	for _, args := range []string{`{"name":"github_create_issue"}`, `{"names":["github_create_issue","github_star"]}`} {
		if text, fault := use(t, b, toolgroups.ToolDescribe, args); fault != nil || !strings.Contains(text, "All about it.") {
			t.Errorf("%s: %s, %v", args, text, fault)
		}
	}
}

func TestDescribeSeveral(t *testing.T) {
	text, fault := use(t, testBridge(t), toolgroups.ToolDescribe, `{"names":["github_star","github_star","nowhere_at_all","exec"]}`)
	if fault != nil {
		t.Fatal(fault)
	}
	got := decode[struct {
		Tools    map[string]any
		NotFound []string `json:"not_found"`
		Errors   map[string]string
		Hint     string
	}](t, text)
	if len(got.Tools) != 1 || !slices.Equal(got.NotFound, []string{"nowhere_at_all"}) || got.Errors["exec"] == "" || got.Hint == "" {
		t.Errorf("got %s", text)
	}
	var eleven []string
	for i := range 11 {
		eleven = append(eleven, fmt.Sprintf(`"t%d"`, i))
	}
	_, fault = use(t, testBridge(t), toolgroups.ToolDescribe, `{"names":[`+strings.Join(eleven, ",")+`]}`)
	wantCode(t, fault, toolgroups.CodeInvalid)
}

// However short the list has to be, it names all tools, whole, and says what it leaves out: first
// the sentences go, then the types, then the parameters of the last tools.
func TestLinesNameAllTools(t *testing.T) {
	tools := toolsOf(desk())
	for limit, want := range map[int][]string{
		100_000: {"- calendar_create_event(start, title) — Add an event to a calendar.", "- calendar_list_events("},
		95:      {"- calendar_create_event(start, title)\n", "- calendar_list_events("},
		85:      {"- calendar_create_event(start, title)\n", "- calendar_list_events("},
		0:       {"- calendar_create_event\n", "- calendar_list_events\n[The parameters of the last 2 would be too long here: tool_describe shows them.]\n"},
	} {
		text := formatTools(tools, limit, true) + "\n"
		for _, want := range want {
			if !strings.Contains(text, want) {
				t.Errorf("%d characters: no %q in\n%s", limit, want, text)
			}
		}
	}
}

// `tool_call` runs the tool and returns its plain result.
func TestCallRunsTheHandler(t *testing.T) {
	text, fault := use(t, testBridge(t), toolgroups.ToolCall, `{"name":"github_star","arguments":{"repo":"a/b"}}`)
	if fault != nil || text != `github_star ran with {"repo":"a/b"}` {
		t.Errorf("got %q, %v", text, fault)
	}
}

// Hooks, approvals and logs see the tool itself.
func TestTheToolSeesItsOwnName(t *testing.T) {
	var seen toolgroups.Call
	spy := tool("spy", "Looks.", `"a":{"type":"integer"}`)
	spy.Run = func(_ context.Context, call toolgroups.Call) (toolgroups.Result, error) {
		seen = call
		return toolgroups.TextResult("ok")
	}
	b := testBridge(t, func(c *bridgeConfig) { c.catalogue = catalogueOf(entries("s", "mcp:s", spy)) })
	if _, fault := use(t, b, toolgroups.ToolCall, `{"name":"spy","arguments":{"a":"3"}}`); fault != nil {
		t.Fatal(fault)
	}
	if seen.Name != "spy" || string(seen.Arguments) != `{"a":3}` {
		t.Errorf("the tool saw %s %s", seen.Name, seen.Arguments)
	}
}

func TestCallChecksTheRole(t *testing.T) {
	risky := tool("risky", "Needs an administrator.", "")
	risky.Role = toolgroups.RoleAdmin
	b := testBridge(t, func(c *bridgeConfig) { c.catalogue = catalogueOf(entries("r", "builtin", risky)) })
	_, fault := use(t, b, toolgroups.ToolCall, `{"name":"risky","arguments":{}}`)
	wantCode(t, fault, toolgroups.CodeDenied)
}

// The bridge says how many tools it hides, in about 300 tokens.
func TestDescriptionsCountAndAreShort(t *testing.T) {
	enc, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		t.Fatal(err)
	}
	tools := testBridge(t, func(c *bridgeConfig) { c.catalogue = catalogueOf(many("big", 144)) }).tools()
	if search := tools[0].Description; !strings.Contains(search, "144") {
		t.Errorf("the search does not say how many tools are deferred: %s", search)
	}
	n, err := enc.Count(string(toolgroups.EncodeTools(tools)))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the three bridge tools cost %d tokens", n)
	if n < 150 || n > 330 {
		t.Errorf("the bridge costs %d tokens, not about 300", n)
	}
}

// Twenty more tools are found, described and called from end to end.
func TestEndToEnd(t *testing.T) {
	b := testBridge(t, func(c *bridgeConfig) { c.catalogue = catalogueOf(many("extra", 20)) })
	if got := b.assemble(core(), nil); len(got) != 5 {
		t.Fatalf("the array is %v", names(got))
	}
	f := find(t, b, `{"query":"thing for extra","limit":3}`)
	if len(f.Matches) != 3 || len(f.Others["extra"]) != 17 {
		t.Fatalf("got %v, %v", f.names(), f.Others)
	}
	name := f.Matches[0].Name
	text, fault := use(t, b, toolgroups.ToolDescribe, `{"name":"`+name+`"}`)
	if fault != nil || !strings.Contains(text, `"properties":{"q":{"type":"string"}}`) {
		t.Errorf("described as %s, %v", text, fault)
	}
	text, fault = use(t, b, toolgroups.ToolCall, `{"name":"`+name+`","arguments":{"q":"x"}}`)
	if fault != nil || text != name+` ran with {"q":"x"}` {
		t.Errorf("called: %s, %v", text, fault)
	}
}

// A tool is direct or deferred, never both and never lost.
func TestLoadedToolsAreDirectOrDeferredOnce(t *testing.T) {
	b := testBridge(t)
	loaded := toolsOf(desk())
	before, after := b.assemble(core(), nil), b.assemble(core(), loaded)
	if diff := cmp.Diff(append(names(before), names(loaded)...), names(after)); diff != "" {
		t.Error(diff)
	}
	one, two := string(toolgroups.EncodeTools(before)), string(toolgroups.EncodeTools(after))
	if !strings.HasPrefix(two, strings.TrimSuffix(one, "]")) {
		t.Error("a load changes what stands in front of it")
	}
}

// A deferred tool is called without loading; a disabled one is refused.
func TestDisabledToolsAreNotFound(t *testing.T) {
	reg := house(t, func(c *toolgroups.RegistryConfig) {
		c.DisabledTools, c.DisabledGroups = []string{"github_star"}, []string{"calendar"}
	})
	b := testBridge(t, func(c *bridgeConfig) {
		c.catalogue = newCatalogue(deferrableEntries(reg, toolgroups.RoleOwner))
	})
	for _, name := range []string{"github_star", "calendar_list_events"} {
		_, _, fault := b.resolve(toolgroups.ToolCall, []byte(`{"name":"`+name+`","arguments":{"repo":"r"}}`))
		wantCode(t, fault, toolgroups.CodeNotFound)
	}
	if _, _, fault := b.resolve(toolgroups.ToolCall, []byte(`{"name":"github_list_issues","arguments":{"repo":"r"}}`)); fault != nil {
		t.Errorf("a tool of a group that is not loaded: %v", fault)
	}
}

func TestSearchSeveral(t *testing.T) {
	text, fault := use(t, testBridge(t), toolgroups.ToolSearch, `{"queries":["merge pull request","", "calendar event","zzzz"],"limit":2}`)
	if fault != nil {
		t.Fatal(fault)
	}
	got := decode[struct{ Results []found }](t, text).Results
	if len(got) != 3 || got[0].Query != "merge pull request" || got[0].names()[0] != "github_merge_pull_request" || len(got[1].Matches) != 2 {
		t.Fatalf("got %s", text)
	}
	if len(got[2].Matches) != 0 || len(got[2].Available) != 2 || got[0].Available != nil {
		t.Errorf("got %s", text)
	}
	if n := strings.Count(text, `"github_star"`); n != 1 {
		t.Errorf("github_star is named %d times in %s", n, text)
	}
	_, fault = use(t, testBridge(t), toolgroups.ToolSearch, `{"queries":["1","2","3","4","5","6","7","8"]}`)
	wantCode(t, fault, toolgroups.CodeInvalid)
	if text, fault := use(t, testBridge(t), toolgroups.ToolSearch, `{"queries":"merge"}`); fault != nil || !strings.Contains(text, "github_merge") {
		t.Errorf("a bare string in place of the list: %s, %v", text, fault)
	}
}

// A query that is a group's name describes no more than the most hits.
func TestSearchForAWholeSource(t *testing.T) {
	b := testBridge(t, func(c *bridgeConfig) { c.catalogue = catalogueOf(many("big", 34), hub()) })
	for _, query := range []string{"big", "BIG", "mcp:big"} {
		if f := find(t, b, `{"query":"`+query+`"}`); len(f.Matches) != defaultMaxLimit || len(f.Matches)+len(f.Others["big"]) != 34 {
			t.Errorf("%s: %d hits and %d names, %s", query, len(f.Matches), len(f.Others["big"]), f.Hint)
		}
	}
	if f := find(t, b, `{"query":"the big one"}`); len(f.Matches) > 5 {
		t.Errorf("a query that only mentions the source gives %d hits", len(f.Matches))
	}
	if f := find(t, b, `{"query":"github"}`); len(f.Others) != 0 || !strings.Contains(f.Hint, "All ") {
		t.Errorf("a small source: %d names, %s", len(f.Others), f.Hint)
	}
}

// A hit is one short line: how it is called, of which nothing that is required is cut, and the first
// sentence. The other tools of the sources of hits are named, those that fit next first, at most 24.
func TestSearchNamesTheSiblingsOfItsHits(t *testing.T) {
	text, fault := use(t, testBridge(t), toolgroups.ToolSearch, `{"query":"list the issues of a repository","limit":1}`)
	want := `{"matches":[{"name":"github_list_issues","use":"(repo, state?: open|closed) — List the issues of a repository."}],` +
		`"others":{"github":["github_create_issue","github_merge_pull_request","github_star"]}}`
	if fault != nil || text != want {
		t.Errorf("got %s, %v, want %s", text, fault, want)
	}
	b := testBridge(t, func(c *bridgeConfig) { c.catalogue = catalogueOf(many("big", 90), hub()) })
	if f := find(t, b, `{"query":"thing number 7"}`); len(f.Others) != 1 || len(f.Others["big"]) != 24 {
		t.Errorf("beside %v: %v", f.names(), f.Others)
	}
	var properties, required []string
	for i := range 60 {
		properties = append(properties, fmt.Sprintf(`"field_%02d":{"type":"integer"}`, i))
		required = append(required, fmt.Sprintf("field_%02d", i))
	}
	wide := entries("x", "mcp:x", tool("wide", "Takes much.", strings.Join(properties, ","), required[:50]...))
	f := find(t, testBridge(t, func(c *bridgeConfig) { c.catalogue = catalogueOf(wide) }), `{"query":"wide"}`)
	if use := f.Matches[0].Use; !strings.Contains(use, "field_49: integer, … 10 more)") {
		t.Errorf("a required parameter is cut: %s", use)
	}
}

// What the model sees already is not given again: hits keep their names, siblings go, and a
// description is one sentence.
func TestWhatIsShownIsNotGivenAgain(t *testing.T) {
	var shown []string
	b := testBridge(t, func(c *bridgeConfig) { c.shownTexts = func() []string { return shown } })
	ask := func(tool, args string) string {
		text, fault := use(t, b, tool, args)
		if fault != nil {
			t.Fatal(fault)
		}
		return text
	}
	const query, names = `{"query":"create an issue","limit":2}`, `{"names":["github_star"]}`
	first, described := ask(toolgroups.ToolSearch, query), ask(toolgroups.ToolDescribe, names)
	shown = []string{first, described}
	want := `{"matches":[{"name":"github_create_issue"},{"name":"github_list_issues"}],"hint":"How they are called is shown above."}`
	if got := ask(toolgroups.ToolSearch, query); got != want {
		t.Errorf("searched again: %s, want %s", got, want)
	}
	if got := ask(toolgroups.ToolDescribe, names); got != "As shown above." {
		t.Errorf("described again: %s", got)
	}
	shown = nil
	if got := ask(toolgroups.ToolSearch, query); got != first {
		t.Errorf("what is out of sight is not given again: %s", got)
	}
}

// A query in another language is answered with the advice to search in English, whatever it finds.
func TestSearchSaysThatToolsAreDescribedInEnglish(t *testing.T) {
	for query, told := range map[string]bool{
		"create an issue": false, "list events in Los Angeles": false, "erstelle ein Issue im Repository": true, "lista los issues": true, "создай issue": true, "创建 issue": true, "zzq": true,
	} {
		if f := find(t, testBridge(t), `{"query":"`+query+`"}`); strings.Contains(f.Hint, "English") != told {
			t.Errorf("%s: %v, %s", query, f.names(), f.Hint)
		}
	}
}
