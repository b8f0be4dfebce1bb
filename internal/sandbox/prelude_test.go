package sandbox_test

import (
	"testing"

	"oneclaw/internal/sandbox"
)

func TestWhatABrowserHas(t *testing.T) {
	for _, tc := range []struct{ code, want string }{
		// Timers.
		{`await new Promise(ok => setTimeout(ok, 1, "rung"))`, `rung`},
		{`let out = ""; setTimeout(() => out += "b", 2); setTimeout(() => out += "a", 0); await new Promise(ok => setTimeout(ok, 20)); out`, `ab`},
		{`let n = 0; await new Promise(ok => { const i = setInterval(() => { if (++n === 3) { clearInterval(i); ok() } }, 1) }); n`, `3`},
		{`let hit = false; clearTimeout(setTimeout(() => hit = true, 0)); await new Promise(ok => setTimeout(ok, 5)); hit`, `false`},
		{`setTimeout(() => { throw 1 }, 0); await new Promise(ok => setTimeout(() => ok("goes on"), 5))`, `goes on`},
		{`try { for (;;) setTimeout(() => {}, 1e9) } catch (e) { String(e) }`, `RangeError: too many timers`},
		{`try { setTimeout("code") } catch (e) { e.name }`, `TypeError`},
		{`await new Promise(ok => queueMicrotask(() => ok(1)))`, `1`},
		// Text.
		{`[...new TextEncoder().encode("aü€😀\ud800")].join()`, `97,195,188,226,130,172,240,159,152,128,239,191,189`},
		{`new TextDecoder().decode(new TextEncoder().encode("aü€😀"))`, `aü€😀`},
		{`new TextDecoder("UTF-8").decode(new Uint8Array([239, 187, 191, 97]).buffer)`, `a`},
		{`new TextDecoder().decode(new Uint8Array([97, 255, 195, 40, 226, 130]))`, "a\uFFFD\uFFFD(\uFFFD"},
		{`new TextDecoder().decode(new Uint8Array([237, 160, 128])).includes("\ufffd")`, `true`},
		{`try { new TextDecoder("utf-8", {fatal: true}).decode(new Uint8Array([255])) } catch (e) { e.name }`, `TypeError`},
		{`try { new TextDecoder("latin1") } catch (e) { e.name }`, `RangeError`},
		// Base64.
		{`["", "a", "ab", "abc", "\xff\x00"].map(btoa).join()`, `,YQ==,YWI=,YWJj,/wA=`},
		{`["", "YQ==", "YWI", "YW Jj", "/wA="].map(atob).map(s => [...s].map(c => c.charCodeAt(0)).join("."))`, `["","97","97.98","97.98.99","255.0"]`},
		{`try { btoa("€") } catch (e) { e.name }`, `RangeError`},
		{`["a", "Y=Q=", "Y$==", "abcde"].map(s => { try { return atob(s) } catch (e) { return e.name } }).join()`, `RangeError,RangeError,RangeError,RangeError`},
		// Addresses.
		{`new URL("HTTPS://u:p@Example.org:8080/a/../b%20c?x=1&y=%C3%BC#h").href`, `https://u:p@example.org:8080/a/../b%20c?x=1&y=%C3%BC#h`},
		{`const u = new URL("https://example.org:443"); [u.port, u.pathname, u.origin, String(u), JSON.stringify(u)].join(" ")`, ` / https://example.org https://example.org/ "https://example.org/"`},
		{`new URL("../x?q#f", "http://example.org/a/b/c").href`, `http://example.org/a/x?q#f`},
		{`const u = new URL("http://[::1]:80/"); [u.hostname, u.host].join()`, `[::1],[::1]`},
		{`const u = new URL("http://h/p"); u.searchParams.append("a b", "ü&="); u.hash = "z"; u.href`, `http://h/p?a+b=%C3%BC%26%3D#z`},
		{`const u = new URL("http://h/p?a=1"); u.search = "b=2"; u.pathname = "/q?r"; u.searchParams.get("b") + u.href`, `2http://h/q%3Fr?b=2`},
		{`new URL("mailto:a@example.org").pathname`, `a@example.org`},
		{`["nonsense", "", "http://[", "/x"].map(s => { try { return new URL(s).href } catch (e) { return e.name } }).join()`, `TypeError,TypeError,TypeError,TypeError`},
		{`[URL.canParse("http://x"), URL.canParse("x")]`, `[true,false]`},
		{`const p = new URLSearchParams("?a=1&b=2&a=%zz&c"); [p.get("a"), p.getAll("a"), p.has("c"), p.get("d"), p.size, String(p)]`, `["1",["1","%zz"],true,null,4,"a=1&b=2&a=%25zz&c="]`},
		{`const p = new URLSearchParams({z: 1, a: "x y"}); p.set("z", 3); p.append("m", 0); p.delete("m"); p.sort(); String(p)`, `a=x+y&z=3`},
		{`[...new URLSearchParams([["a", "1"], ["b", "2"]])].flat().join()`, `a,1,b,2`},
		// Copies and chance.
		{`const a = {d: new Date(5), m: new Map([[1, {x: 1}]]), s: new Set([2]), l: [1, , 3], u: undefined, b: new Uint8Array([7])}; a.me = a; const c = structuredClone(a);
			[c !== a, c.me === c, c.d.getTime(), c.m.get(1).x, c.s.has(2), c.l.length, "u" in c, c.b[0], c.m.get(1) !== a.m.get(1)].join()`, `true,true,5,1,true,3,true,7,true`},
		{`try { structuredClone({f() {}}) } catch (e) { e.name }`, `TypeError`},
		{`/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(crypto.randomUUID()) && crypto.randomUUID() !== crypto.randomUUID()`, `true`},
		{`const a = crypto.getRandomValues(new Uint32Array(8)); a.length === 8 && a.some(x => x > 0)`, `true`},
	} {
		if got, err := run(t, sandbox.Script{Source: tc.code}); err != nil || got != tc.want {
			t.Errorf("%s:\n%q, %v, want\n%q", tc.code, got, err, tc.want)
		}
	}
}
