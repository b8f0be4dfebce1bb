package jstools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneclaw/toolgroups"
	"oneclaw/toolgroups/jstools"
)

// greet is a good call of create_js_tool.
func greet(change ...func(args)) args {
	a := args{
		"name": "greet", "description": "Greets a person",
		"parameters_schema": `{"properties":{"who":{"type":"string","default":"you"},"tags":{"type":"array","items":{"type":"integer"}}},"required":["who"]}`,
		"js_code":           `function execute(p) { return "Hello " + p.who }`,
	}
	for _, f := range change {
		f(a)
	}
	return a
}

func with(key string, value any) func(args) { return func(a args) { a[key] = value } }

func without(key string) func(args) { return func(a args) { delete(a, key) } }

func TestCodeThatRunsOnOutsideOfItsFunctionIsRefused(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	_, fault := h.call(t, "create_js_tool", greet(with("js_code", `await new Promise(() => setInterval(() => {}, 1000)); function execute() {}`)))
	wantFault(t, fault, jstools.CodeCreate, "runs on outside of its function")
}

func TestCreateUseUpdateDelete(t *testing.T) {
	h := newHouse(t)
	if got := h.must(t, "list_user_tools", args{}); got != "There are no user tools." {
		t.Error(got)
	}
	if got := h.must(t, "create_js_tool", greet()); got != "Created the tool 'greet'. It can be used from the next step on." {
		t.Error(got)
	}
	if got := h.must(t, "greet", args{"who": "Ada"}); got != "Hello Ada" {
		t.Error(got)
	}
	_, fault := h.call(t, "greet", args{})
	wantFault(t, fault, toolgroups.CodeInvalid, "'who' is missing")
	if got, want := h.must(t, "list_user_tools", args{}), "User tools: 1\n- greet: Greets a person ("+filepath.Join(h.dir, "greet.json")+")"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	first, _ := h.registry(t).Tool("greet")
	h.must(t, "update_js_tool", args{"name": "greet", "js_code": `const execute = async (p) => "Bye " + p.who`})
	if now, _ := h.registry(t).Tool("greet"); !now.LastingApproval || first.Version == "" || now.Version == first.Version {
		t.Errorf("a tool with another script is of the version %q, and was of %q", now.Version, first.Version)
	}
	if got := h.must(t, "greet", args{"who": "Ada"}); got != "Bye Ada" {
		t.Error(got)
	}
	h.must(t, "update_js_tool", args{"name": "greet", "description": "Parts", "timeout_seconds": 7})
	tool, _ := h.registry(t).Tool("greet")
	if tool.Description != "Parts" || tool.Timeout.Seconds() != 7 || tool.Effect != toolgroups.Changes {
		t.Errorf("%+v", tool)
	}
	if got := h.changes.Load(); got != 3 {
		t.Errorf("told of %d changes", got)
	}
	h.must(t, "delete_js_tool", args{"name": "greet"})
	if h.groups() != "" || files(t, h.dir) != "" || h.changes.Load() != 4 {
		t.Errorf("%s, files %s, %d changes", h.groups(), files(t, h.dir), h.changes.Load())
	}
}

func TestToolsSurviveARestart(t *testing.T) {
	h := newHouse(t)
	h.must(t, "create_js_tool", greet())
	again := newHouse(t, func(c *jstools.Config) { c.Dir = h.dir })
	if got := again.must(t, "greet", args{"who": "Ada"}); got != "Hello Ada" {
		t.Error(got)
	}
}

func TestCreateErrors(t *testing.T) {
	h := newHouse(t)
	h.put(t, map[string]string{"house.json": `[{"name":"in_group","description":"d"}]`, "house.js": "", "broken.json": "{", "list.json": "[]"})
	h.must(t, "create_js_tool", greet(with("name", "there")))
	before := files(t, h.dir)
	changes := h.changes.Load()
	for _, tc := range []struct {
		args       args
		code, text string
	}{
		{greet(without("name")), "validation_error", "'name' is missing"},
		{greet(without("description")), "validation_error", "'description' is missing"},
		{greet(without("parameters_schema")), "validation_error", "'parameters_schema' is missing"},
		{greet(without("js_code")), "validation_error", "'js_code' is missing"},
		{greet(with("name", " ")), "validation_error", "'name' is blank"},
		{greet(with("description", " ")), "validation_error", "'description' is blank"},
		{greet(with("parameters_schema", "")), "validation_error", "'parameters_schema' is blank"},
		{greet(with("parameters_schema", "{")), "validation_error", "JSON text"},
		{greet(with("parameters_schema", `[]`)), "validation_error", "JSON text"},
		{greet(with("parameters_schema", `null`)), "validation_error", "properties"},
		{greet(with("parameters_schema", `{"type":"object"}`)), "validation_error", `"properties" is missing`},
		{greet(with("parameters_schema", `{"type":"array","properties":{}}`)), "validation_error", "object"},
		{greet(with("parameters_schema", `{"properties":{},"required":["x"]}`)), "validation_error", `"x" is required`},
		{greet(with("parameters_schema", `{"properties":{},"required":"x"}`)), "validation_error", "list of names"},
		{greet(with("parameters_schema", `{"properties":{"a":{"properties":{"b":{},"b":{}}}}}`)), "validation_error", "twice"},
		{greet(with("timeout_seconds", 0)), "validation_error", "1 to 3600"},
		{greet(with("timeout_seconds", 3601)), "validation_error", "1 to 3600"},
		{greet(with("required_permissions", "env:NOT GOOD")), "validation_error", "no name of a variable"},
		{greet(with("required_permissions", "read_only, google")), "validation_error", "no permission \"read_only\""},
		{greet(with("name", "Greet")), "create_failed", "does not fit"},
		{greet(with("name", "g")), "create_failed", "does not fit"},
		{greet(with("name", "_a")), "create_failed", "does not fit"},
		{greet(with("name", "a_")), "create_failed", "does not fit"},
		{greet(with("name", "../evil")), "create_failed", "does not fit"},
		{greet(with("name", "a"+strings.Repeat("b", 50))), "create_failed", "does not fit"},
		{greet(with("name", "exec")), "create_failed", "taken by the program"},
		{greet(with("name", "js_eval")), "create_failed", "taken by the program"},
		{greet(with("name", "create_js_tool")), "create_failed", "taken by the program"},
		{greet(with("name", "load_tool_group")), "create_failed", "taken by the program"},
		{greet(with("name", "user_tools")), "create_failed", "taken by the program"},
		{greet(with("name", "there")), "create_failed", "already"},
		{greet(with("name", "in_group")), "create_failed", "house.json"},
		{greet(with("name", "house")), "create_failed", "house.json already"},
		{greet(with("name", "broken")), "create_failed", "broken.json already"},
		{greet(with("js_code", " \n")), "create_failed", "'js_code' is blank"},
		{greet(with("js_code", "function execute( {")), "create_failed", "SyntaxError"},
		{greet(with("js_code", "function main() {}")), "create_failed", "no function execute"},
		{greet(with("js_code", "throw new Error('at once')")), "create_failed", "at once"},
		{greet(with("js_code", "fs.writeFile('x', 'y'); function execute() {}")), "create_failed", "only execute(params) may"},
		{greet(with("js_code", strings.Repeat("/", 1<<20+1))), "create_failed", "longer than the limit"},
	} {
		_, fault := h.call(t, "create_js_tool", tc.args)
		wantFault(t, fault, tc.code, tc.text)
	}
	if files(t, h.dir) != before || h.changes.Load() != changes || files(t, h.workspace) != "" {
		t.Errorf("files %q, before %q; workspace %q", files(t, h.dir), before, files(t, h.workspace))
	}
}

func TestCreateLeavesNoHalves(t *testing.T) {
	h := newHouse(t)
	if err := os.MkdirAll(filepath.Join(h.dir, "greet.js", "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, fault := h.call(t, "create_js_tool", greet())
	wantFault(t, fault, "create_failed", "Nothing has changed")
	if got := files(t, h.dir); got != "greet.js" {
		t.Error(got)
	}
}

func TestUserToolsAreFullAtFifty(t *testing.T) {
	h := newHouse(t)
	all := map[string]string{}
	for i := range 51 {
		name := fmt.Sprintf("tool_%02d", i)
		all[name+".json"], all[name+".js"] = `{"name":"`+name+`","description":"d"}`, ""
	}
	h.put(t, all)
	if n := strings.Count(h.groups(), "tool_"); n != 50 || !strings.Contains(h.mistakes(), "tool_50.json: there are 50 tools of single files already") {
		t.Errorf("%d tools, %s", n, h.mistakes())
	}
	_, fault := h.call(t, "create_js_tool", greet())
	wantFault(t, fault, "create_failed", "There are 50 tools already")
}

func TestUpdateAndDeleteErrors(t *testing.T) {
	h := newHouse(t)
	h.must(t, "create_js_tool", greet())
	h.put(t, map[string]string{"house.json": `[{"name":"in_group","description":"d"}]`, "house.js": "", "group.json": "[]"})
	for _, tc := range []struct {
		args       args
		code, text string
	}{
		{args{"description": "x"}, "validation_error", "'name' is missing"},
		{args{"name": " ", "description": "x"}, "validation_error", "'name' is blank"},
		{args{"name": "greet"}, "validation_error", "nothing to change"},
		{args{"name": "greet", "parameters_schema": "nonsense"}, "validation_error", "'parameters_schema'"},
		{args{"name": "greet", "timeout_seconds": -1}, "validation_error", "1 to 3600"},
		{args{"name": "greet", "required_permissions": "env:"}, "validation_error", "no name of a variable"},
		{args{"name": "greet", "js_code": "let ="}, "update_failed", "SyntaxError"},
		{args{"name": "other", "description": "x"}, "update_failed", "no user tool 'other'"},
		{args{"name": "exec", "description": "x"}, "update_failed", "protected"},
		{args{"name": "update_js_tool", "description": "x"}, "update_failed", "protected"},
		{args{"name": "in_group", "description": "x"}, "update_failed", "part of the group 'house'"},
		{args{"name": "house", "description": "x"}, "update_failed", "is a group"},
		{args{"name": "group", "description": "x"}, "update_failed", "is a group"},
		{args{"name": "../greet", "description": "x"}, "update_failed", "no user tool"},
	} {
		_, fault := h.call(t, "update_js_tool", tc.args)
		wantFault(t, fault, tc.code, tc.text)
		if tc.code == "update_failed" && tc.args["js_code"] == nil {
			_, fault = h.call(t, "delete_js_tool", args{"name": tc.args["name"]})
			wantFault(t, fault, "delete_failed", tc.text)
		}
	}
	_, fault := h.call(t, "delete_js_tool", args{})
	wantFault(t, fault, "validation_error", "'name' is missing")
	_, fault = h.call(t, "delete_js_tool", args{"name": ""})
	wantFault(t, fault, "validation_error", "'name' is blank")
	if got := h.must(t, "greet", args{"who": "Ada"}); got != "Hello Ada" {
		t.Error(got)
	}
}

func TestAFailedUpdateChangesNothing(t *testing.T) {
	h := newHouse(t)
	h.must(t, "create_js_tool", greet())
	manifest := filepath.Join(h.dir, "greet.json")
	before, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	// A manifest that no longer fits after the change: its name is another's.
	h.put(t, map[string]string{"greet.json": strings.Replace(string(before), `"greet"`, `"other"`, 1)})
	_, fault := h.call(t, "update_js_tool", args{"name": "greet", "js_code": "function execute() { return 'new' }"})
	wantFault(t, fault, "update_failed", "cannot be used like that")
	code, err := os.ReadFile(filepath.Join(h.dir, "greet.js"))
	if err != nil || string(code) != greet()["js_code"] {
		t.Errorf("%s, %v", code, err)
	}
	h.must(t, "delete_js_tool", args{"name": "greet"})
	if got := files(t, h.dir); got != "" {
		t.Error(got)
	}
}

// Editing a tool keeps the items and defaults of its schema.
func TestUpdateKeepsItemsDefaultsAndWhatItDoesNotKnow(t *testing.T) {
	h := newHouse(t)
	const manifest = `{
  "x-author": {"name": "Ada", "since": 12345678901234567890},
  "name": "sum",
  "description": "Adds <numbers> & more",
  "parameters": {
    "type": "object",
    "properties": {
      "list": {
        "type": "array",
        "items": {
          "type": "number"
        },
        "default": [1, 2]
      }
    }
  },
  "requiredPermissions": [
    "google"
  ],
  "env": [
    "KEY"
  ],
  "timeout_s": 12,
  "role": "admin",
  "effect": "read_only"
}
`
	h.put(t, map[string]string{"sum.json": manifest, "sum.js": "function execute({list = [1]}) { return list.length }"})
	h.must(t, "update_js_tool", args{"name": "sum", "description": "Adds"})
	got, err := os.ReadFile(filepath.Join(h.dir, "sum.json"))
	if err != nil {
		t.Fatal(err)
	}
	var before, after map[string]any
	if err := errors.Join(json.Unmarshal([]byte(manifest), &before), json.Unmarshal(got, &after)); err != nil {
		t.Fatal(err)
	}
	before["description"] = "Adds"
	if diff := cmp.Diff(before, after); diff != "" || !strings.Contains(string(got), "12345678901234567890") {
		t.Errorf("%s\n%s", diff, got)
	}
	if strings.Index(string(got), "x-author") > strings.Index(string(got), "description") {
		t.Error("the order has changed")
	}
	h.must(t, "update_js_tool", args{"name": "sum", "parameters_schema": `{"properties":{"l":{"type":"array","items":{"type":"integer"},"default":[]}}}`})
	if got, err = os.ReadFile(filepath.Join(h.dir, "sum.json")); err != nil || !strings.Contains(string(got), `"default": []`) || !strings.Contains(string(got), `"type": "integer"`) {
		t.Errorf("%s, %v", got, err)
	}
	tool, _ := h.registry(t).Tool("sum")
	if want := `{"type":"object","properties":{"l":{"type":"array","items":{"type":"integer"}}}}`; string(tool.Parameters) != want || tool.Effect != toolgroups.ReadOnly {
		t.Errorf("%s", tool.Parameters)
	}
}

func TestArraysWithoutItemsGetSome(t *testing.T) {
	h := newHouse(t)
	h.must(t, "create_js_tool", greet(with("parameters_schema", `{"properties":{"l":{"type":"array"}}}`)))
	tool, _ := h.registry(t).Tool("greet")
	if !strings.Contains(string(tool.Parameters), `"items":{}`) {
		t.Errorf("%s", tool.Parameters)
	}
}

func TestOnlyNamedVariablesAndAccounts(t *testing.T) {
	t.Setenv("KEY", "of the process")
	env := map[string]string{"KEY": "k", "OTHER": "o"}
	h := newHouse(t, func(c *jstools.Config) {
		c.Google = account{}
		c.Env = func(_ context.Context, scope toolgroups.Scope, name string) (string, bool, error) {
			value, ok := env[name]
			return value + " of " + scope.Owner, ok, nil
		}
	})
	const code = `async function execute(p) {
		return JSON.stringify(p._env) + (typeof google === "undefined" ? "" : await google.getAccessToken() + "|" + await google.getAccountEmail())
	}`
	h.must(t, "create_js_tool", greet(with("name", "plain"), with("js_code", code), with("parameters_schema", `{"properties":{}}`)))
	h.must(t, "create_js_tool", greet(with("name", "more"), with("js_code", code), with("parameters_schema", `{"properties":{}}`),
		with("required_permissions", "google, env:KEY,env:MISSING ")))
	if got := h.must(t, "plain", args{"_env": args{"KEY": "from the model"}}); got != `{}` {
		t.Error(got)
	}
	if got := h.must(t, "more", args{}); got != `{"KEY":"k of telegram:1"}token of telegram:1|` {
		t.Error(got)
	}
	for name, want := range map[string]bool{"plain": false, "more": true} {
		if tool, ok := h.registry(t).Tool(name); !ok || tool.Personal != want {
			t.Errorf("%s acts in the account of a person: %t", name, tool.Personal)
		}
	}
	h.must(t, "update_js_tool", args{"name": "more", "required_permissions": ""})
	if got := h.must(t, "more", args{}); got != `{}` {
		t.Error(got)
	}
	failing := newHouse(t, func(c *jstools.Config) {
		c.Dir, c.Google = h.dir, account{errors.New("connect an account with /connect")}
	})
	failing.must(t, "update_js_tool", args{"name": "more", "required_permissions": "google"})
	_, fault := failing.call(t, "more", args{})
	wantFault(t, fault, toolgroups.CodeExecution, "connect an account with /connect")
}

func TestManagementIsForAdministrators(t *testing.T) {
	h := newHouse(t)
	group, err := h.ManagementGroup()
	if err != nil {
		t.Fatal(err)
	}
	effects := map[string]toolgroups.Effect{}
	for _, tool := range group.Tools {
		effects[tool.Name] = tool.Effect
		_, fault := h.callAs(t, toolgroups.Scope{Role: toolgroups.RoleUser, Workspace: h.workspace}, tool.Name, greet())
		wantFault(t, fault, toolgroups.CodeDenied, "administrators")
	}
	want := map[string]toolgroups.Effect{
		"create_js_tool": toolgroups.Consequential, "list_user_tools": toolgroups.ReadOnly,
		"update_js_tool": toolgroups.Consequential, "delete_js_tool": toolgroups.Consequential,
	}
	if diff := cmp.Diff(want, effects); diff != "" {
		t.Error(diff)
	}
	if got := slices.Sorted(maps.Keys(effects)); len(got) != 4 || files(t, h.dir) != "" {
		t.Error(got, files(t, h.dir))
	}
}
