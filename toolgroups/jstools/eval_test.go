package jstools_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oneclaw/toolgroups"
	"oneclaw/toolgroups/jstools"
)

func TestJsEval(t *testing.T) {
	h := newHouse(t)
	for _, tc := range []struct{ code, want string }{
		{`6 * 7`, `42`},
		{`function main() { return {a: [1, "x"]} } 1`, `{"a":[1,"x"]}`},
		{`"plain"`, `plain`},
		{`undefined`, ``},
		{`_time()`, `2026-11-21T09:05:07.000+00:00`},
		{`_time("Europe/Berlin", "human_readable")`, `Saturday, November 21, 2026 at 10:05:07 AM CET`},
		{`_time("Asia/Tokyo", "nonsense")`, `2026-11-21T18:05:07.000+09:00`},
		{`try { _time("Mars/Olympus") } catch (e) { e.message }`, `unknown time zone "Mars/Olympus": use an IANA name such as Europe/Berlin`},
		{`[typeof google, typeof lib, typeof params, typeof _env, typeof fs, typeof fetch].join()`, `undefined,undefined,undefined,undefined,object,function`},
	} {
		if got := h.js(t, tc.code); got != tc.want {
			t.Errorf("%s: %q", tc.code, got)
		}
	}
}

func TestJsEvalErrors(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for _, tc := range []struct {
		args       args
		code, text string
	}{
		{args{"code": " \n"}, "validation_error", "'code' is blank"},
		{args{}, "validation_error", "'code' is missing"},
		{args{"code": "1", "timeout_seconds": "soon"}, "validation_error", "timeout_seconds"},
		{args{"code": "let ="}, "execution_error", "SyntaxError"},
		{args{"code": "undefinedThing"}, "execution_error", "ReferenceError"},
		{args{"code": "'x'.repeat(2 ** 28)"}, "execution_error", "out of memory"},
		{args{"code": strings.Repeat(" ", 1<<20) + "1"}, "execution_error", "longer than the limit"},
		{args{"code": "for (;;);", "timeout_seconds": -5}, "timeout", "within 1 s"},
		{args{"code": "Array.prototype.includes.call({length: 2 ** 53 - 1}, 1)", "timeout_seconds": 1}, "timeout", "within 1 s"},
	} {
		_, fault := h.call(t, "js_eval", tc.args)
		wantFault(t, fault, tc.code, tc.text)
	}
}

func TestAStoppedTurnStopsTheScript(t *testing.T) {
	h := newHouse(t)
	tool, _ := h.registry(t).Tool("js_eval")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, fault := toolgroups.Run(ctx, nil, tool, toolgroups.Call{
		Arguments: json.RawMessage(`{"code":"for (;;);"}`), Scope: toolgroups.Scope{Workspace: h.workspace},
	})
	wantFault(t, fault, toolgroups.CodeCancelled, "")
}

func TestLongResultsAreKept(t *testing.T) {
	h := newHouse(t)
	text := h.js(t, `"ü".repeat(40000)`)
	if n := len([]rune(text)); n > toolgroups.MaxText {
		t.Fatalf("%d characters", n)
	}
	_, name, _ := strings.Cut(strings.TrimSuffix(text, "]"), "in the file ")
	data, err := os.ReadFile(filepath.Join(h.workspace, name))
	if err != nil || string(data) != strings.Repeat("ü", 40000) {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}

func TestJsEvalIsSmall(t *testing.T) {
	eval, err := newHouse(t).EvalTool()
	if err != nil {
		t.Fatal(err)
	}
	if n := len(eval.Parameters) + len(eval.Description); n > 300 {
		t.Errorf("%d bytes in every request", n)
	}
}

func TestFilesStayInTheWorkspace(t *testing.T) {
	h := newHouse(t)
	outside := filepath.Join(t.TempDir(), "secret.txt")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"link": outside, "dir": filepath.Dir(outside)} {
		if err := os.Symlink(target, filepath.Join(h.workspace, link)); err != nil {
			t.Fatal(err)
		}
	}
	url := serve(t, hello)
	for _, path := range []string{outside, "../x", "a/../../x", "/etc/passwd", "link", "dir/secret.txt", "dir/new", "", "a\x00b", "/proc/self/environ"} {
		quoted, err := json.Marshal(path)
		if err != nil {
			t.Fatal(err)
		}
		// The link as a target of a download is looked at below.
		got := h.asTool(t, url, `(async (P, tried) => [tried(() => fs.readFile(P)), tried(() => fs.writeFile(P, "x")), tried(() => fs.appendFile(P, "x")), fs.exists(P),
			P === "link" || (await downloadToFile(U, P)).success === false, (await uploadMultipart(U, [{type: "file", path: P}])).ok].join())(
			`+string(quoted)+`, f => { try { f(); return "done" } catch { return "refused" } })`)
		if got != "refused,refused,refused,false,true,false" {
			t.Errorf("%q: %s", path, got)
		}
	}
	h.js(t, `await downloadToFile("`+url+`", "link")`)
	if data, err := os.ReadFile(outside); err != nil || string(data) != "secret" {
		t.Errorf("the file outside holds %q, %v", data, err)
	}
}

func TestFiles(t *testing.T) {
	h := newHouse(t)
	got := h.js(t, `fs.writeFile("a/b.txt", "ü"); fs.appendFile("a/b.txt", "!"); await fs.readFile("a/b.txt") + fs.exists("a") + fs.exists("c")`)
	if got != "ü!truefalse" {
		t.Error(got)
	}
	if err := os.WriteFile(filepath.Join(h.workspace, "big"), make([]byte, 1<<20+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for code, want := range map[string]string{
		`fs.readFile("none")`:                           `There is no file 'none' in the workspace`,
		`fs.readFile("big")`:                            `larger than the limit`,
		`fs.readFile("a")`:                              `not a file`,
		`fs.writeFile("big2", "x".repeat(2 ** 20 + 1))`: `larger than the limit`,
	} {
		_, fault := h.call(t, "js_eval", args{"code": code})
		wantFault(t, fault, toolgroups.CodeExecution, want)
	}
}

func TestWhatARunWritesIsBounded(t *testing.T) {
	h := newHouse(t)
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 40<<20)) })
	got := h.js(t, `const all = []; for (const f of ["a", "b"]) all.push(await downloadToFile("`+url+`", f));
		try { fs.writeFile("c", "x") } catch (e) { all.push(e.message) }
		JSON.stringify(all)`)
	if strings.Count(got, "written more than the limit of 64 MiB") != 2 || files(t, h.workspace) != "a" {
		t.Errorf("%s; files %s", got, files(t, h.workspace))
	}
}

func TestJsEvalSeesNoEnvironmentAndNoAccount(t *testing.T) {
	t.Setenv("ONECLAW_SECRET_KEY", "hush")
	h := newHouse(t, func(c *jstools.Config) {
		c.Google = account{}
		c.Env = func(context.Context, toolgroups.Scope, string) (string, bool, error) { return "hush", true, nil }
	})
	got := h.js(t, `typeof google + JSON.stringify(Object.getOwnPropertyNames(globalThis).filter(n => /env|secret|process/i.test(n)))`)
	if got != "undefined[]" {
		t.Error(got)
	}
}

// What a script has written may be read again by other tools, so that its call counts as one that stores
// something; one that only computes does not.
func TestAScriptThatWritesAFileCountsAsMoreThanComputing(t *testing.T) {
	h := newHouse(t)
	tool, _ := h.registry(t).Tool("js_eval")
	for code, want := range map[string]toolgroups.Origin{
		"1 + 1": toolgroups.OriginOwn, "fs.writeFile('n.txt', 'https://evil.' + 'example/')": toolgroups.OriginComputed,
	} {
		data, err := json.Marshal(args{"code": code, "timeout_seconds": patience})
		if err != nil {
			t.Fatal(err)
		}
		scope := toolgroups.Scope{User: "telegram:1", Owner: "telegram:1", Role: toolgroups.RoleUser, Workspace: h.workspace}
		res, fault := toolgroups.Run(t.Context(), nil, tool, toolgroups.Call{Name: tool.Name, Arguments: data, Scope: scope})
		if fault != nil || res.Origin != want {
			t.Errorf("%s: origin %q, want %q: %v", code, res.Origin, want, fault)
		}
	}
}
