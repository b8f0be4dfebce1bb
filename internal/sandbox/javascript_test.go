package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"oneclaw/internal/sandbox"
)

func engine(t testing.TB) *sandbox.Engine {
	t.Helper()
	e, err := sandbox.NewEngine(sandbox.EngineConfig{Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func run(t testing.TB, s sandbox.Script) (string, error) {
	t.Helper()
	return engine(t).Run(t.Context(), s)
}

func TestValueOfCode(t *testing.T) {
	for _, tc := range []struct{ code, want string }{
		{`1 + 1`, `2`},
		{`"text"`, `text`},
		{`null`, ``},
		{`undefined`, ``},
		{`var a = 1`, ``},
		{`({a: [1, "x", null], b: {c: true}})`, `{"a":[1,"x",null],"b":{"c":true}}`},
		{`[1, 2].map(x => x * 2)`, `[2,4]`},
		{`false`, `false`},
		{`2n ** 64n`, `18446744073709551616`},
		{`new Date(0)`, `"1970-01-01T00:00:00.000Z"`},
		{`function main() { return "main" } "expression"`, `main`},
		{`const main = async () => ({ok: true}); 7`, `{"ok":true}`},
		{`await Promise.resolve(5)`, `5`},
		{`const x = await Promise.resolve(5); x + 1`, `6`},
		{`return 5`, `5`},
		{`const f = await Promise.resolve(4); if (f > 3) return {f}`, `{"f":4}`},
		{`Promise.resolve("later")`, `later`},
		{`"\u00fc\u{1F600}\u0000"`, "ü😀\x00"},
		{`"\ud800"`, "\uFFFD"},
		{`Object.groupBy([1, 2, 3], n => n % 2 ? "odd" : "even")`, `{"odd":[1,3],"even":[2]}`},
	} {
		if got, err := run(t, sandbox.Script{Source: tc.code}); err != nil || got != tc.want {
			t.Errorf("%s: %q, %v", tc.code, got, err)
		}
	}
}

func TestEntryGetsParams(t *testing.T) {
	for _, tc := range []struct{ source, entry, want string }{
		{`function execute(p) { return p.a + p.b }`, "execute", "xy"},
		{`const execute = async ({a}) => a`, "execute", "x"},
		{`globalThis.$other_1 = (p) => p`, "$other_1", `{"a":"x","b":"y"}`},
		{`async function execute(p) { await null; return Object.keys(p) }`, "execute", `["a","b"]`},
	} {
		got, err := run(t, sandbox.Script{
			Source: tc.source, Entry: tc.entry, Params: json.RawMessage(`{"a":"x","b":"y"}`),
		})
		if err != nil || got != tc.want {
			t.Errorf("%s: %q, %v", tc.source, got, err)
		}
	}
}

func TestParamsKeepTheDigitsOfNumbers(t *testing.T) {
	for params, want := range map[string]string{
		`{"id":725653563933458433,"n":[-18446744073709551615,9007199254740991,9007199254740992]}`: `{"id":"725653563933458433","n":["-18446744073709551615",9007199254740991,"9007199254740992"]}`,
		`{"t":"id 725653563933458433, \"7256535639334584330\"","x":0.1234567890123456789}`:        `{"t":"id 725653563933458433, \"7256535639334584330\"","x":0.12345678901234568}`,
		`{"1234567890123456789":1e30,"e":12345678901234567890e2}`:                                 `{"1234567890123456789":1e+30,"e":1.2345678901234568e+21}`,
	} {
		got, err := run(t, sandbox.Script{Source: `const execute = (p) => p`, Entry: "execute", Params: json.RawMessage(params)})
		if err != nil || got != want {
			t.Errorf("%s: %q, %v", params, got, err)
		}
	}
	long := `{"id":725653563933458433,"t":"` + strings.Repeat(`a\n`, 1<<20) + `"}`
	if got, err := run(t, sandbox.Script{Source: `const execute = (p) => p.id + " " + p.t.length`, Entry: "execute", Params: json.RawMessage(long)}); err != nil || got != "725653563933458433 2097152" {
		t.Errorf("%.100q, %v", got, err)
	}
}

func TestFailuresSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ source, entry, want string }{
		{`let = `, "", "SyntaxError: "},
		{"1;\n2;\n}", "", "(line 3)"},
		{`throw new TypeError("mine")`, "", "TypeError: mine"},
		{`throw "just text"`, "", "thrown: just text"},
		{`throw {code: 7}`, "", `thrown: {"code":7}`},
		{`throw null`, "", "thrown: null"},
		{`nothere()`, "", "ReferenceError: "},
		{`async function main() { await null; missing.x }`, "", "ReferenceError: "},
		{`let o = {}; o.o = o; o`, "", "TypeError: circular reference"},
		{`await new Promise(() => {})`, "", "nothing will settle"},
		{`var execute = 1`, "execute", "no function execute(params)"},
		{`return 1`, "execute", "SyntaxError: "},
		{`let a = []; for (;;) a.push(new Array(10000).fill(1))`, "", "out of memory"},
		{`"x".repeat(2 ** 28)`, "", "out of memory"},
		// Which of the two bounds is met first depends on the size of the frames.
		{`function f() { return f() + 1 } f()`, "", "stack"},
		{`JSON.parse("[".repeat(1e6))`, "", "stack"},
		{`(async () => { let a = []; for (;;) { a.push("y".repeat(1e5) + a.length); await null } })()`, "", "memory"},
	} {
		got, err := run(t, sandbox.Script{Source: tc.source, Entry: tc.entry})
		var fault *sandbox.ScriptError
		if !errors.As(err, &fault) || !strings.Contains(fault.Message, tc.want) {
			t.Errorf("%s: %q, %v", tc.source, got, err)
		}
	}
}

// runaways are scripts that would never end by themselves. None of them can be
// stopped by what it could catch.
func runaways() map[string]string {
	return map[string]string{
		"loop":            `for (;;);`,
		"catch-all loop":  `for (;;) { try { for (;;); } catch {} finally { continue } }`,
		"allocating":      `for (;;) { try { let a = []; for (;;) a.push({}); } catch {} }`,
		"recursion":       `for (;;) { try { (function f() { f() })() } catch {} }`,
		"backtracking":    `/^(a+)+$/.test("a".repeat(60) + "b")`,
		"microtasks":      `(function f() { Promise.resolve().then(f) })(); await new Promise(() => {})`,
		"async loop":      `for (;;) await null`,
		"compare":         `[3, 1, 2].sort(() => { for (;;); })`,
		"getter":          `({get a() { for (;;); }}).a`,
		"toJSON":          `({toJSON() { for (;;); }})`,
		"native loop":     `Array.prototype.includes.call({length: 2 ** 53 - 1}, 1)`,
		"native join":     `new Array(4e9).join("")`,
		"generator":       `function* g() { for (;;) yield 1 } for (const x of g()); `,
		"proxy":           `let p = new Proxy({}, {get: () => { for (;;); }}); p.x`,
		"timers":          `setInterval(() => {}, 0); await new Promise(() => {})`,
		"host calls":      `for (;;) probe()`,
		"console":         `for (;;) console.log("x".repeat(1000))`,
		"main":            `function main() { for (;;); }`,
		"thenable":        `({then() { for (;;); }})`,
		"thenable result": `(function again() { return {then: (ok) => ok(again())} })()`,
	}
}

func TestRunawaysAreStopped(t *testing.T) {
	t.Parallel()
	for name, source := range runaways() {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			_, err := engine(t).Run(ctx, sandbox.Script{
				Source:  "probe(); " + source,
				Prelude: `(host) => { globalThis.probe = () => host.call("probe") }`,
				Functions: map[string]sandbox.Function{"probe": func(context.Context, json.RawMessage) (any, error) {
					cancel() // It runs: that is enough.
					return nil, nil
				}},
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("ended with %v", err)
			}
		})
	}
}

func TestDeadlineIsTheErrorOfARunaway(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 1)
	defer cancel()
	if _, err := engine(t).Run(ctx, sandbox.Script{Source: `for (;;);`}); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

func TestFunctionsOfTheHost(t *testing.T) {
	t.Parallel()
	var open, most atomic.Int32
	functions := map[string]sandbox.Function{
		"double": func(_ context.Context, arg json.RawMessage) (any, error) {
			for n := open.Add(1); n > most.Load(); {
				most.Store(n)
			}
			defer open.Add(-1)
			var n int
			if err := json.Unmarshal(arg, &n); err != nil {
				return nil, errors.New("not a number")
			}
			return n * 2, nil
		},
		"huge": func(context.Context, json.RawMessage) (any, error) { return strings.Repeat("\x01", 2<<20), nil },
	}
	const preludeCode = `(host) => { globalThis.host = host }`
	for _, tc := range []struct{ source, want string }{
		{`host.call("double", 4)`, `8`},
		{`await host.start("double", 4)`, `8`},
		{`await Promise.all(Array.from({length: 200}, (_, i) => host.start("double", i))).then(a => a.at(-1))`, `398`},
		{`const ring = []; ring.push(ring); // cannot be encoded
		await Promise.allSettled(Array.from({length: 60}, (_, i) => host.start("double", i < 16 || i > 50 ? i : ring))).then(a => a.at(-1).value)`, `118`},
		{`const later = host.start("double", 1); host.call("double", 5) + await later`, `12`},
		{`try { host.call("double", "x") } catch (e) { String(e) }`, `Error: not a number`},
		{`await host.start("double", "x").catch(e => e.message)`, `not a number`},
		{`try { host.call("other") } catch (e) { e.message }`, `there is no function "other"`},
		{`try { host.call("huge") } catch (e) { e.message }`, `the value is too large`},
		{`try { host.call("double", "\x01".repeat(1.5e6)) } catch (e) { e.message }`, `the arguments are too large`},
		{`[host.has("double"), host.has("x")]`, `[true,false]`},
	} {
		got, err := run(t, sandbox.Script{Source: tc.source, Prelude: preludeCode, Functions: functions})
		if err != nil || got != tc.want {
			t.Errorf("%s: %q, %v", tc.source, got, err)
		}
	}
	if most.Load() > 16 {
		t.Errorf("%d calls at once", most.Load())
	}
}

func TestCallsEndWithTheScript(t *testing.T) {
	ended := make(chan error, 1)
	got, err := run(t, sandbox.Script{
		Source:  `host.start("wait"); host.call("ready"); "done"`,
		Prelude: `(host) => { globalThis.host = host }`,
		Functions: map[string]sandbox.Function{
			"ready": func(context.Context, json.RawMessage) (any, error) { return nil, nil },
			"wait": func(ctx context.Context, _ json.RawMessage) (any, error) {
				<-ctx.Done()
				ended <- ctx.Err()
				return nil, ctx.Err()
			},
		},
	})
	if err != nil || got != "done" {
		t.Fatalf("%q, %v", got, err)
	}
	select {
	case err := <-ended:
		if err == nil {
			t.Error("the function was not told to end")
		}
	default:
		t.Error("Run returned before its function did")
	}
}

func TestTheChildSeesNothingOfTheBot(t *testing.T) {
	t.Setenv("ONECLAW_TEST_SECRET", "hush")
	for _, source := range []string{
		`[typeof process, typeof require, typeof std, typeof os, typeof __call, typeof __finish, typeof print, typeof scriptArgs].join()`,
	} {
		got, err := run(t, sandbox.Script{Source: source})
		if want := strings.TrimSuffix(strings.Repeat("undefined,", 8), ","); err != nil || got != want {
			t.Errorf("%s: %q, %v", source, got, err)
		}
	}
	for _, source := range []string{`import("file:///etc/passwd")`, `import("/etc/passwd")`, `import("os")`} {
		if got, err := run(t, sandbox.Script{Source: source}); err == nil {
			t.Errorf("%s: %q", source, got)
		}
	}
}

func TestRunsShareNothing(t *testing.T) {
	e := engine(t)
	if _, err := e.Run(t.Context(), sandbox.Script{Source: `globalThis.kept = 1; Array.prototype.kept = 2`}); err != nil {
		t.Fatal(err)
	}
	got, err := e.Run(t.Context(), sandbox.Script{Source: `typeof kept + typeof [].kept`})
	if err != nil || got != "undefinedundefined" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestRunsLeaveNothing(t *testing.T) {
	files := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("no /proc here")
		}
		return len(list)
	}
	e := engine(t)
	one := func() {
		if _, err := e.Run(t.Context(), sandbox.Script{Source: "1"}); err != nil {
			t.Fatal(err)
		}
	}
	one()
	before := files()
	for range 10 {
		one()
	}
	if after := files(); after > before {
		t.Errorf("%d files open before, %d after", before, after)
	}
}

func TestLimits(t *testing.T) {
	if _, err := run(t, sandbox.Script{Source: strings.Repeat(" ", sandbox.MaxSource+1)}); !errors.Is(err, sandbox.ErrScriptTooLong) {
		t.Error(err)
	}
	got, err := run(t, sandbox.Script{Source: `"\x01".repeat(3e6)`})
	if err != nil || len(got) > sandbox.MaxResult+100 || !strings.HasSuffix(got, "of 3000000 bytes]") {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	_, err = run(t, sandbox.Script{Source: `1`, Params: json.RawMessage(`"` + strings.Repeat("x", 9<<20) + `"`)})
	if fault := (*sandbox.ScriptError)(nil); !errors.As(err, &fault) || fault.Message != "the parameters are too large" {
		t.Error(err)
	}
}

func TestConsole(t *testing.T) {
	var lines []string
	_, err := run(t, sandbox.Script{
		Source: `console.log("a", 1, {b: [2n]}, null, undefined); console.warn(new Error("w")); console.error("é".repeat(5000));
			for (let i = 0; i < 500; i++) console.info(i)`,
		Log: func(level slog.Level, text string) { lines = append(lines, level.String()+" "+text) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) != 100 || lines[0] != `INFO a 1 {"b":["2"]} null undefined` ||
		!strings.HasPrefix(lines[1], "WARN Error: w") || len(lines[2]) > 2_050 || !strings.Contains(lines[99], "left out") {
		t.Errorf("%d lines: %.300q", len(lines), lines)
	}
}

func TestCheckDoesNotCall(t *testing.T) {
	s := sandbox.Script{Source: `function execute() { throw new Error("called") }`, Entry: "execute", CheckOnly: true}
	if got, err := run(t, s); err != nil || got != "" {
		t.Errorf("%q, %v", got, err)
	}
	s.Entry = "other"
	if _, err := run(t, s); err == nil {
		t.Error("a missing function passes")
	}
}

func TestAnEngineThatDoesNotStart(t *testing.T) {
	for _, command := range [][]string{{"/nowhere/to/be/found"}, {"/bin/true"}, {"/bin/echo", "nonsense"}} {
		e, err := sandbox.NewEngine(sandbox.EngineConfig{Command: command})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := e.Run(t.Context(), sandbox.Script{Source: "1"}); err == nil {
			t.Errorf("%s: %q", command, got)
		}
	}
}
