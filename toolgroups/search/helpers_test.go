package search

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"oneclaw/toolgroups"
)

// tool makes a tool that answers with its name and arguments.
func tool(name, description, properties string, required ...string) toolgroups.Tool {
	req, err := json.Marshal(required)
	if err != nil {
		panic(err) // Strings always encode.
	}
	schema := fmt.Sprintf(`{"type":"object","properties":{%s}}`, properties)
	if len(required) > 0 {
		schema = fmt.Sprintf(`{"type":"object","properties":{%s},"required":%s}`, properties, req)
	}
	return toolgroups.Tool{
		Name: name, Description: description, Parameters: json.RawMessage(schema),
		Run: func(_ context.Context, call toolgroups.Call) (toolgroups.Result, error) {
			return toolgroups.TextResult("%s ran with %s", call.Name, call.Arguments)
		},
	}
}

// hub is a small server of issues and repositories.
func hub() []entry {
	tools := []toolgroups.Tool{
		tool("github_create_issue", "Create a new issue in a GitHub repository.",
			`"repo":{"type":"string"},"title":{"type":"string"},"body":{"type":"string"}`, "repo", "title"),
		tool("github_list_issues", "List the issues of a repository.",
			`"repo":{"type":"string"},"state":{"type":"string","enum":["open","closed"]}`, "repo"),
		tool("github_merge_pull_request", "Merge a pull request.", `"repo":{"type":"string"},"number":{"type":"integer"}`, "repo", "number"),
		tool("github_star", "Star a repository.", `"repo":{"type":"string"}`),
	}
	return entries("github", "mcp:github", tools...)
}

// desk is a second source.
func desk() []entry {
	return entries("calendar", "builtin",
		tool("calendar_create_event", "Add an event to a calendar.", `"title":{"type":"string"},"start":{"type":"string"}`, "title", "start"),
		tool("calendar_list_events", "List events between two days.", `"from":{"type":"string"},"to":{"type":"string"}`),
	)
}

func entries(group, source string, tools ...toolgroups.Tool) []entry {
	out := make([]entry, len(tools))
	for i, t := range tools {
		out[i] = entry{tool: t, group: group, source: source}
	}
	return out
}

// core is a pair of tools that stand in the array.
func core() []toolgroups.Tool {
	return []toolgroups.Tool{
		tool("exec", "Run a command.", `"command":{"type":"string"}`, "command"),
		tool("read_file", "Read a file.", `"path":{"type":"string"}`, "path"),
	}
}

// many makes n tools of one server.
func many(server string, n int) []entry {
	tools := make([]toolgroups.Tool, n)
	for i := range tools {
		tools[i] = tool(fmt.Sprintf("%s_action_%02d", server, i), fmt.Sprintf("Does thing number %d for %s.", i, server), `"q":{"type":"string"}`)
	}
	return entries(server, "mcp:"+server, tools...)
}

func catalogueOf(lists ...[]entry) *catalogue {
	var all []entry
	for _, l := range lists {
		all = append(all, l...)
	}
	return newCatalogue(all)
}

// testBridge makes a bridge over the two sources, with the core beside it.
func testBridge(t testing.TB, change ...func(*bridgeConfig)) *bridge {
	t.Helper()
	cfg := bridgeConfig{catalogue: catalogueOf(hub(), desk()), directTools: names(core())}
	for _, f := range change {
		f(&cfg)
	}
	if cfg.config.isUnset() {
		cfg.config = DefaultConfig()
	}
	return newBridge(cfg)
}

// use runs a bridge tool as a dispatcher would.
func use(t testing.TB, b *bridge, name, args string) (string, *toolgroups.Error) {
	t.Helper()
	to, input, fault := b.resolve(name, json.RawMessage(args))
	if fault != nil {
		return "", fault
	}
	for _, bt := range append(b.tools(), toolsOf(b.cfg.catalogue.entries)...) {
		if bt.Name == to {
			res, fault := toolgroups.Run(context.Background(), nil, bt, toolgroups.Call{ID: "1", Name: to, Arguments: input})
			return res.Text, fault
		}
	}
	t.Fatalf("no bridge tool %s", name)
	return "", nil
}

// found is the result of a search for one query.
type found struct {
	Query   string `json:"query"`
	Matches []struct {
		Name, Use string
		Direct    bool `json:"call_directly"`
	} `json:"matches"`
	Others    map[string][]string `json:"others"`
	Hint      string              `json:"hint"`
	Available []origin            `json:"available_sources"`
	Offline   []UnavailableSource `json:"unavailable_sources"`
}

func (f found) names() []string {
	var out []string
	for _, m := range f.Matches {
		out = append(out, m.Name)
	}
	return out
}

// find runs tool_search and reads its result.
func find(t testing.TB, b *bridge, args string) found {
	t.Helper()
	text, fault := use(t, b, toolgroups.ToolSearch, args)
	if fault != nil {
		t.Fatalf("search %s: %v", args, fault)
	}
	return decode[found](t, text)
}

func decode[T any](t testing.TB, text string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("decode %s: %v", text, err)
	}
	return v
}

func names(tools []toolgroups.Tool) []string {
	out := make([]string, len(tools))
	for i, t := range tools {
		out[i] = t.Name
	}
	return out
}

func wantCode(t testing.TB, fault *toolgroups.Error, code string) {
	t.Helper()
	if fault == nil || fault.Code != code {
		t.Fatalf("got %+v, want code %s", fault, code)
	}
}
