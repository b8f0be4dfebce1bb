package search

import (
	"encoding/json"
	"strings"
	"testing"

	"oneclaw/toolgroups"
)

// resolve unwraps a bridge call.
func resolve(t testing.TB, args string) (string, json.RawMessage, *toolgroups.Error) {
	t.Helper()
	return testBridge(t).resolve(toolgroups.ToolCall, json.RawMessage(args))
}

func TestArgumentsMayBeAnObject(t *testing.T) {
	tool, input, fault := resolve(t, `{"name":"github_star","arguments":{"repo":"a/b"}}`)
	if fault != nil || tool != "github_star" || string(input) != `{"repo":"a/b"}` {
		t.Errorf("got %s %s, %v", tool, input, fault)
	}
	_, _, fault = resolve(t, `{"name":"nowhere_at_all","arguments":{"repo":"a/b"}}`)
	wantCode(t, fault, toolgroups.CodeNotFound)
}

func TestJSONStringArguments(t *testing.T) {
	_, input, fault := resolve(t, `{"name":"github_star","arguments":"{\"repo\":\"a/b\"}"}`)
	if fault != nil || string(input) != `{"repo":"a/b"}` {
		t.Errorf("got %s, %v", input, fault)
	}
	_, _, fault = resolve(t, `{"name":"nowhere_at_all","arguments":"{\"repo\":1}"}`)
	wantCode(t, fault, toolgroups.CodeNotFound)
}

func TestBadJSON(t *testing.T) {
	for _, args := range []string{
		`{"name":"github_star","arguments":"{\"repo\": oops"}`,
		`{"name":"github_star","arguments":{"repo":`,
		`{"name":"github_star","arguments":"{\"repo\":\"cut off"}`,
	} {
		_, _, fault := resolve(t, args)
		wantCode(t, fault, toolgroups.CodeInvalid)
		if !strings.Contains(fault.Message, "invalid JSON") || !strings.Contains(fault.Message, "Not run") {
			t.Errorf("%s: %s", args, fault.Message)
		}
	}
}

func TestToolCallDoesNotCallItself(t *testing.T) {
	for _, name := range []string{toolgroups.ToolCall, toolgroups.ToolSearch, toolgroups.ToolDescribe} {
		_, _, fault := resolve(t, `{"name":"`+name+`","arguments":{"name":"github_star"}}`)
		wantCode(t, fault, toolgroups.CodeBridge)
		if !strings.Contains(fault.Message, "itself a bridge tool") {
			t.Error(fault.Message)
		}
	}
}

// The bridge calls nothing of itself.
func TestTheBridgeCallsNothingOfItself(t *testing.T) { TestToolCallDoesNotCallItself(t) }

func TestCoreThroughTheBridge(t *testing.T) {
	_, _, fault := resolve(t, `{"name":"exec","arguments":{"command":"ls"}}`)
	wantCode(t, fault, toolgroups.CodeBridge)
	if !strings.Contains(fault.Message, "not a deferred tool") || !strings.Contains(fault.Message, "Call it directly") {
		t.Error(fault.Message)
	}
}

// A core tool through the bridge is refused with advice.
func TestCoreIsCalledDirectly(t *testing.T) { TestCoreThroughTheBridge(t) }

func TestResolveShapes(t *testing.T) {
	const list = "calendar_list_events"
	for name, tt := range map[string]struct{ args, tool, want string }{
		"blank arguments":        {`{"name":"calendar_list_events","arguments":""}`, list, `{}`},
		"white space":            {`{"name":"calendar_list_events","arguments":"  \n"}`, list, `{}`},
		"null":                   {`{"name":"calendar_list_events","arguments":null}`, list, `{}`},
		"null as a string":       {`{"name":"calendar_list_events","arguments":"null"}`, list, `{}`},
		"none":                   {`{"name":"calendar_list_events"}`, list, `{}`},
		"flattened":              {`{"name":"calendar_list_events","from":"mon","to":"tue"}`, list, `{"from":"mon","to":"tue"}`},
		"flattened beside empty": {`{"name":"calendar_list_events","arguments":{},"from":"mon"}`, list, `{"from":"mon"}`},
		"one forgotten outside":  {`{"name":"calendar_list_events","arguments":{"from":"mon"},"to":"tue"}`, list, `{"from":"mon","to":"tue"}`},
		"noise outside":          {`{"name":"calendar_list_events","arguments":{"from":"mon"},"thought":"x"}`, list, `{"from":"mon"}`},
		"inside wins":            {`{"name":"calendar_list_events","arguments":{"from":"mon"},"from":"tue"}`, list, `{"from":"mon"}`},
		"other words":            {`{"tool_name":"calendar_list_events","args":{"from":"mon"}}`, list, `{"from":"mon"}`},
		"space around the name":  {`{"name":" calendar_list_events ","arguments":{}}`, list, `{}`},
		"whole as a string":      {`"{\"name\":\"calendar_list_events\",\"arguments\":{}}"`, list, `{}`},
		"a list of one":          {`{"calls":[{"name":"calendar_list_events","arguments":{"to":"tue"}}]}`, list, `{"to":"tue"}`},
		"a list as a string":     {`{"calls":"[{\"name\":\"calendar_list_events\"}]"}`, list, `{}`},
		"coerced number":         {`{"name":"github_merge_pull_request","arguments":{"repo":"r","number":"42"}}`, "github_merge_pull_request", `{"number":42,"repo":"r"}`},
		"large number kept":      {`{"name":"github_merge_pull_request","arguments":{"repo":"r","number":9007199254740993}}`, "github_merge_pull_request", `{"number":9007199254740993,"repo":"r"}`},
		"HTML kept":              {`{"name":"calendar_list_events","arguments":{"from":"<b>&"}}`, list, `{"from":"<b>&"}`},
	} {
		t.Run(name, func(t *testing.T) {
			tool, input, fault := resolve(t, tt.args)
			if fault != nil || tool != tt.tool || string(input) != tt.want {
				t.Errorf("got %s %s, %v; want %s %s", tool, input, fault, tt.tool, tt.want)
			}
		})
	}
}

func TestResolveRefuses(t *testing.T) {
	for name, tt := range map[string]struct{ args, code, says string }{
		"no name":     {`{"arguments":{"x":1}}`, toolgroups.CodeMissingParameter, "needs the name"},
		"blank name":  {`{"name":" "}`, toolgroups.CodeMissingParameter, "needs the name"},
		"number":      {`{"name":7}`, toolgroups.CodeMissingParameter, "needs the name"},
		"a list":      {`[1]`, toolgroups.CodeInvalid, "object"},
		"arguments 5": {`{"name":"github_star","arguments":5}`, toolgroups.CodeInvalid, "object"},
		"several":     {`{"calls":[{"name":"github_star"},{"name":"exec"}]}`, toolgroups.CodeInvalid, `Start with: {"name":"github_star"}`},
		"no call":     {`{"calls":[]}`, toolgroups.CodeInvalid, "one tool per call"},
		"other case":  {`{"name":"GitHub_Star"}`, toolgroups.CodeNotFound, "'github_star'"},
		"short name":  {`{"name":"create_issue"}`, toolgroups.CodeNotFound, "'github_create_issue'"},
		"long prefix": {`{"name":"mcp__github__star"}`, toolgroups.CodeNotFound, "'github_star'"},
		"a wish":      {`{"name":"merge the request"}`, toolgroups.CodeNotFound, "'github_merge_pull_request'"},
		"no idea":     {`{"name":"qqq"}`, toolgroups.CodeNotFound, "tool_search"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, fault := resolve(t, tt.args)
			wantCode(t, fault, tt.code)
			if !strings.Contains(fault.Message, tt.says) {
				t.Errorf("%q is not in %q", tt.says, fault.Message)
			}
		})
	}
}

// Wrong arguments get the tool's own validation error.
func TestInvalidArgumentsEchoTheSchema(t *testing.T) {
	for args, says := range map[string]string{
		`{"name":"github_create_issue","arguments":{"repo":"r"}}`:                  "'title' is missing",
		`{"name":"github_create_issue"}`:                                           "is missing",
		`{"name":"github_list_issues","arguments":{"repo":"r","state":"ajar"}}`:    "'state' must be one of",
		`{"name":"github_merge_pull_request","arguments":{"repo":1,"number":"x"}}`: "must be of type",
	} {
		_, _, fault := resolve(t, args)
		wantCode(t, fault, toolgroups.CodeInvalid)
		for _, want := range []string{says, "Not run", `"properties"`} {
			if !strings.Contains(fault.Message, want) {
				t.Errorf("%s: %q is not in %q", args, want, fault.Message)
			}
		}
	}
}

func TestResolveFailsOpenOnABadSchema(t *testing.T) {
	odd := toolgroups.Tool{Name: "odd", Parameters: json.RawMessage(`{"type":`), Run: hub()[0].tool.Run}
	b := testBridge(t, func(c *bridgeConfig) { c.catalogue = catalogueOf(entries("odd", "mcp:odd", odd)) })
	_, input, fault := b.resolve(toolgroups.ToolCall, []byte(`{"name":"odd","arguments":{"a":1}}`))
	if fault != nil || string(input) != `{"a":1}` {
		t.Errorf("got %s, %v", input, fault)
	}
	if _, fault := use(t, b, toolgroups.ToolDescribe, `{"name":"odd"}`); fault != nil {
		t.Error(fault)
	}
}

func TestResolveLeavesOtherCallsAlone(t *testing.T) {
	tool, input, fault := testBridge(t).resolve("exec", []byte(`not json`))
	if fault != nil || tool != "exec" || string(input) != "not json" {
		t.Errorf("got %s %s, %v", tool, input, fault)
	}
}

func TestResolveALoadedToolEitherWay(t *testing.T) {
	b := testBridge(t, func(c *bridgeConfig) { c.directTools = append(c.directTools, "github_star") })
	if _, _, fault := b.resolve(toolgroups.ToolCall, []byte(`{"name":"github_star","arguments":{"repo":"r"}}`)); fault != nil {
		t.Error(fault)
	}
	f := find(t, b, `{"query":"github_star"}`)
	if len(f.Matches) == 0 || !f.Matches[0].Direct {
		t.Errorf("a loaded tool is not marked: %+v", f.Matches)
	}
}

func FuzzResolve(f *testing.F) {
	for _, seed := range []string{
		`{"name":"github_star","arguments":{"repo":"a"}}`, `{"name":"github_star","arguments":"{\"repo\":\"a\"}"}`,
		`{"calls":"[{}]"}`, `{"name":"tool_call","arguments":{}}`, `{"name":"calendar_list_events","from":1}`, `null`, `""`, `[`,
		`{"calls":[{"calls":[]}]}`, `{"args":[],"tool":"github_star"}`,
	} {
		f.Add([]byte(seed))
	}
	b := testBridge(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		tool, input, fault := b.resolve(toolgroups.ToolCall, raw)
		if fault != nil {
			if fault.Code == "" || fault.Message == "" {
				t.Errorf("an error without words: %+v", fault)
			}
			return
		}
		if toolgroups.Reserved(tool) || tool == "exec" {
			t.Errorf("%q resolved to %s", raw, tool)
		}
		var object map[string]json.RawMessage
		if err := json.Unmarshal(input, &object); err != nil || object == nil {
			t.Errorf("%q resolved to arguments %q", raw, input)
		}
		wrapped, err := json.Marshal(map[string]any{"name": tool, "arguments": input})
		if err != nil {
			t.Fatal(err)
		}
		_, again, fault := b.resolve(toolgroups.ToolCall, wrapped)
		if fault != nil || string(again) != string(input) {
			t.Errorf("%q: resolved %s, then %s, %v", raw, input, again, fault)
		}
	})
}
