package jstools_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/internal/sandbox"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/jstools"
)

const weather = `[
	{"_meta": true, "display_name": "Weather", "description": "Rain and sun"},
	{"name": "rain", "description": "Will it rain?", "function": "willRain", "effect": "read_only", "timeoutSeconds": 3},
	{"name": "sun", "description": "Will the sun shine?", "role": "admin"}
]`

// A group file of one's own behaves like any group.
func TestAGroupFileIsAGroup(t *testing.T) {
	h := newHouse(t)
	h.put(t, map[string]string{
		"weather.json": weather, "weather.js": `function willRain() { return "rain" } const sun = (p) => p`,
		"alone.json": `{"name":"alone","description":"Stands alone"}`, "alone.js": `function execute() { return "alone" }`,
		"named.json": `{"name":"named","description":"Another function","function":"go"}`, "named.js": `function go() { return "gone" }`,
	})
	if got := h.groups(); got != "core(alone named) weather(rain sun)" || h.mistakes() != "" {
		t.Error(got, h.mistakes())
	}
	reg := h.registry(t)
	if len(reg.Core()) != 4 { // with load_tool_group and js_eval
		t.Errorf("%d core tools", len(reg.Core()))
	}
	g, _ := reg.Group("weather")
	if g.DisplayName != "Weather" || g.Description != "Rain and sun" || g.Source != "user" ||
		g.Tools[0].Timeout != 3*time.Second || g.Tools[0].Effect != toolgroups.ReadOnly || g.Tools[1].Role != toolgroups.RoleAdmin {
		t.Errorf("%+v", g)
	}
	for name, want := range map[string]string{"rain": "rain", "sun": `{"_env":{}}`, "alone": "alone", "named": "gone"} {
		if got := h.must(t, name, args{}); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := h.must(t, "list_user_tools", args{}); !strings.HasPrefix(got, "User tools: 4\n- alone: ") || !strings.Contains(got, "weather.json, group weather)") {
		t.Error(got)
	}
}

func TestBrokenFilesDoNotKeepOthersOut(t *testing.T) {
	h := newHouse(t)
	tools := map[string]string{
		"good.json": `{"name":"good","description":"d"}`, "good.js": "",
		"syntax.json": "{\n\n,", "syntax.js": "",
		"nocode.json": `{"name":"nocode","description":"d"}`,
		"orphan.js":   "function execute() {}",
		"other.json":  `{"name":"different","description":"d"}`, "other.js": "",
		"天気.json": `{"name":"天気","description":"d"}`, "天気.js": "",
		"exec.json": `{"name":"exec","description":"d"}`, "exec.js": "",
		"pdf.json": `[{"name":"mine","description":"d"}]`, "pdf.js": "",
		"partly.json": `[{"name":"ok","description":"d"},{"name":"pdf_info","description":"d"},{"name":"good","description":"d"},{"name":"Bad"},7]`, "partly.js": "",
		"inject.json": `[{"name":"evil","description":"d","function":"x);steal("}]`, "inject.js": "",
		"env.json": `{"name":"env","description":"d","env":["A B"]}`, "env.js": "",
		"env2.json": `{"name":"env2","description":"d","env":"A"}`, "env2.js": "",
		"number.json": "7", "number.js": "", "empty.json": "", "empty.js": "", "none.json": "[]", "none.js": "",
		".hidden.json": "{", "notes.txt": "x", "user_tools.json": `[{"name":"u","description":"d"}]`, "user_tools.js": "",
		"large.json": `{"name":"large","description":"d"}`, "large.js": strings.Repeat(" ", sandbox.MaxSource+1),
	}
	h.put(t, tools)
	if err := syscall.Mkfifo(filepath.Join(h.dir, "pipe.json"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.put(t, nil)
	if got := h.groups(); got != "core(good) partly(ok)" {
		t.Error(got)
	}
	mistakes := h.mistakes()
	for _, want := range []string{
		"天気.json: ", "empty.json: ", "env.json: env: env: \"A B\" is no name", "env2.json: env2: env must be a list",
		`exec.json: the name of the tool "exec" is taken by the program`, "inject.json: entry 1 (evil): function must match", `inject.json: the group "inject" has no tool that can be used, and is left out`,
		"large.json: its code: large.js: larger than", "nocode.json: its code: nocode.js: no such file", "none.json: the list is empty",
		"number.json: ", "other.json: the tool must be named", `partly.json: the name of the tool "pdf_info" is taken by the program`,
		`partly.json: the name of the tool "good" is taken by good.json`, "partly.json: entry 4 (Bad)", "partly.json: entry 5",
		`pdf.json: the name of the group "pdf" is taken`, "pipe.json: pipe.json: not a regular file", "syntax.json: line 3",
		`user_tools.json: the name of the group "user_tools" is taken`,
	} {
		if !strings.Contains(mistakes, want) {
			t.Errorf("missing: %s", want)
		}
	}
	if strings.Contains(mistakes, h.dir) {
		t.Error("the path of the host is told")
	}
	if got := h.must(t, "list_user_tools", args{}); !strings.Contains(got, "Left out because of mistakes: 20\n- empty.json") {
		t.Error(got)
	}
	// What is broken can be mended and deleted.
	h.must(t, "update_js_tool", args{"name": "env", "required_permissions": "env:AB"})
	h.must(t, "delete_js_tool", args{"name": "syntax"})
	if got := h.groups(); got != "core(env good) partly(ok)" {
		t.Error(got)
	}
}

func TestFilesOfAnEditor(t *testing.T) {
	h := newHouse(t)
	h.put(t, map[string]string{"a.json": "\ufeff" + `{"name":"a","description":"d"}`, "a.js": "function execute() { return 1 }"})
	h.must(t, "update_js_tool", args{"name": "a", "description": "e"})
	if got := h.must(t, "a", args{}); got != "1" {
		t.Error(got)
	}
	if err := os.Remove(filepath.Join(h.dir, "a.json")); err != nil {
		t.Fatal(err)
	}
	h.put(t, nil)
	if got := h.groups(); got != "" {
		t.Error(got)
	}
}

func TestWatchLoadsWhatChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			h.Watch(ctx)
		}()
		wait := func(want string, changes int32) {
			t.Helper()
			time.Sleep(jstools.DefaultRescan)
			synctest.Wait()
			if got := h.groups(); got != want || h.changes.Load() != changes {
				t.Errorf("%s after %d changes, want %s after %d", got, h.changes.Load(), want, changes)
			}
		}
		write := func(name, text string) {
			t.Helper()
			if err := os.WriteFile(filepath.Join(h.dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		wait("", 0)
		write("a.js", "")
		write("a.json", `{"name":"a","description":"d"}`)
		wait("core(a)", 1)
		wait("core(a)", 1)
		write("weather.js", "")
		write("weather.json", weather)
		wait("core(a) weather(rain sun)", 2)
		write("a.json", `{`)
		wait("weather(rain sun)", 3)
		if err := os.RemoveAll(h.dir); err != nil {
			t.Fatal(err)
		}
		wait("weather(rain sun)", 3) // A folder that cannot be read takes nothing away.
		cancel()
		<-done
	})
}

func TestManyAtOnce(t *testing.T) {
	h := newHouse(t)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			name := fmt.Sprintf("tool_%d", i)
			if _, fault := h.call(t, "create_js_tool", greet(with("name", name))); fault != nil {
				t.Error(fault)
			}
			if err := h.Reload(); err != nil || len(h.Errors()) > 0 {
				t.Error(err, h.mistakes())
			}
			if got, fault := h.call(t, name, args{"who": name}); fault != nil || got != "Hello "+name {
				t.Error(got, fault)
			}
			if i%2 == 0 {
				if _, fault := h.call(t, "delete_js_tool", args{"name": name}); fault != nil {
					t.Error(fault)
				}
			}
		})
	}
	all.Wait()
	if got := h.groups(); got != "core(tool_1 tool_3)" {
		t.Error(got)
	}
}

// Tools of single files are in every request as long as they are small together; larger ones are
// a group, whose line says why. Names that providers do not accept are mapped.
func TestSingleToolsAreCoreWhileTheyAreSmall(t *testing.T) {
	h := newHouse(t)
	small := map[string]string{
		"my-tools.json": `{"name":"my-tools","description":"d"}`, "my-tools.js": `function execute() { return "mine" }`,
		"getWeather.json": `{"name":"getWeather","description":"d"}`, "getWeather.js": `function execute() { return "sun" }`,
		"my tool.json": `{"name":"my tool","description":"d"}`, "my tool.js": `function execute() { return "spaced" }`,
		"list.json": `[{"name":"get-rain","description":"d"}]`, "list.js": `function get_rain() { return "rain" }`,
	}
	h.put(t, small)
	if got := h.groups(); got != "core(getWeather my_tool my-tools) list(get-rain)" || h.mistakes() != "" {
		t.Error(got, h.mistakes())
	}
	for name, want := range map[string]string{"my-tools": "mine", "getWeather": "sun", "my_tool": "spaced", "get-rain": "rain"} {
		if got := h.must(t, name, args{}); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
	if tool, _ := h.registry(t).Tool("my_tool"); tool.RuleGroup != "user_tools" {
		t.Errorf("rules hold for it as for the group %q", tool.RuleGroup)
	}
	h.must(t, "update_js_tool", args{"name": "my_tool", "description": strings.Repeat("long ", 1_600)})
	if got := h.groups(); got != "user_tools(getWeather my_tool my-tools) list(get-rain)" {
		t.Error(got)
	}
	if g, _ := h.registry(t).Group("user_tools"); !strings.Contains(g.Description, "too many for every request") {
		t.Errorf("the listing says %s", g.Description)
	}
	h.must(t, "delete_js_tool", args{"name": "my_tool"})
	if got := h.groups(); got != "core(getWeather my-tools) list(get-rain)" {
		t.Error(got)
	}
}

// The description of a group that has none names the tools that are in it, and no others.
func TestAGeneratedDescriptionNamesWhatIsThere(t *testing.T) {
	h := newHouse(t)
	h.put(t, map[string]string{
		"mine.json": `[{"name":"ok","description":"d"},{"name":"exec","description":"d"},{"name":"blank"}]`, "mine.js": "",
	})
	if g, _ := h.registry(t).Group("mine"); g.Description != "Tools of the group mine: ok" {
		t.Errorf("described as %s", g.Description)
	}
}

func TestNewNeedsAFolderAndAnEngine(t *testing.T) {
	engine, err := sandbox.NewEngine(sandbox.EngineConfig{})
	if err != nil {
		t.Fatal(err)
	}
	inTheWay := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(inTheWay, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, cfg := range []jstools.Config{
		{Engine: engine, Now: time.Now},
		{Dir: t.TempDir(), Now: time.Now},
		{Dir: t.TempDir(), Engine: engine},
		{Dir: inTheWay, Engine: engine, Now: time.Now},
	} {
		if tools, err := jstools.New(cfg); err == nil {
			t.Errorf("%+v", tools)
		}
	}
}

func FuzzManifestFile(f *testing.F) {
	f.Add([]byte(weather))
	f.Add([]byte(`{"name":"fuzz","description":"d","function":"f","env":["A"],"requiredPermissions":["google"]}`))
	f.Add([]byte(`{"name":"fuzz","parameters":{"type":"object","properties":{"a":{"type":"array"}}},"timeout_s":1e99}`))
	f.Add([]byte("\ufeff[{\"name\":\"a\",\"description\":\"b\"},{\"name\":\"a\",\"description\":\"b\"}]"))
	h := newHouse(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		h.put(t, map[string]string{"fuzz.json": string(data), "fuzz.js": ""})
		h.registry(t) // What was taken makes a registry.
		if h.groups() == "" && len(h.Errors()) == 0 {
			t.Fatalf("%q is neither used nor refused", data)
		}
		if _, fault := h.call(t, "update_js_tool", args{"name": "fuzz", "description": "changed"}); fault == nil {
			tool, ok := h.registry(t).Tool("fuzz")
			if !ok || tool.Description != "changed" {
				t.Fatalf("%q became %+v", data, tool)
			}
		}
	})
}

// The examples of docs/tools.md do what it says.
func TestTheExamplesOfTheDocumentWork(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../docs/tools.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := map[string]string{}
	for _, m := range regexp.MustCompile("(?s)`(\\w+\\.js(?:on)?)`:\n\n```\\w+\n(.*?)```").FindAllStringSubmatch(string(document), -1) {
		examples[m[1]] = m[2]
	}
	h := newHouse(t)
	h.put(t, examples)
	if _, groups := h.Tools.Tools(); len(groups) != 1 || groups[0].DisplayName != "Units" {
		t.Errorf("groups %+v", groups)
	}
	for name, c := range map[string]struct {
		arguments args
		want      string
	}{
		"celsius":      {args{"fahrenheit": 212}, `{"celsius":100}`},
		"miles_to_km":  {args{"miles": 2}, "3.218688 km"},
		"pounds_to_kg": {args{"pounds": 100}, "45.359237 kg"},
	} {
		if got := h.must(t, name, c.arguments); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// A group of which no tool can be used has no line in every prompt, and one in the log.
func TestAGroupWithoutAUsableToolIsLeftOut(t *testing.T) {
	for name, manifest := range map[string]string{
		"nothing but its description": `[{"_meta":true,"description":"To come"}]`,
		"tools that are invalid":      `[{"name":"Bad"},7]`,
		"tools whose names are taken": `[{"name":"js_eval","description":"d"}]`,
		"tools without permission":    `[{"name":"a","description":"d","env":["A B"]}]`,
	} {
		h := newHouse(t)
		h.put(t, map[string]string{"mine.json": manifest, "mine.js": ""})
		reg := h.registry(t)
		if _, ok := reg.Group("mine"); ok || strings.Contains(reg.Listing(), "mine") {
			t.Errorf("%s: %s", name, reg.Listing())
		}
		if got := h.mistakes(); strings.Count(got, `mine.json: the group "mine" has no tool that can be used, and is left out`) != 1 {
			t.Errorf("%s: %s", name, got)
		}
	}
}
