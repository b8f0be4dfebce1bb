package jstools_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneclaw/toolgroups"
	"oneclaw/toolgroups/jstools"
)

func hello(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }

// echo tells what was sent.
func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("X-Answer", "42")
	w.WriteHeader(http.StatusTeapot)
	_, _ = fmt.Fprintf(w, "%s %s|%s|%s", r.Method, r.Header.Get("Content-Type"), r.Header.Get("X-Asked"), body)
}

func TestFetch(t *testing.T) {
	h := newHouse(t)
	url := serve(t, echo)
	for _, tc := range []struct{ code, want string }{
		{
			`fetch(U).then(async r => [r.ok, r.status, r.statusText, r.headers["x-answer"], r.headers.get("X-Answer"), r.headers.has("none"), await r.text()].join())`,
			`false,418,I'm a teapot,42,42,false,GET ||`,
		},
		{`(await fetch(U, {method: "post", body: {a: 1}, headers: {"X-Asked": "x"}})).text()`, `POST application/json|x|{"a":1}`},
		{`(await fetch(U, {method: "PATCH", body: '{"a":1}'})).text()`, `PATCH application/json||{"a":1}`},
		{`(await fetch(U, {method: "PUT", body: "text"})).text()`, `PUT text/plain;charset=UTF-8||text`},
		{`(await fetch(U, {method: "POST", body: "<a/>", headers: {"content-type": "application/xml"}})).text()`, `POST application/xml||<a/>`},
		{`(await fetch(U, {method: "POST", body: {a: 1}, headers: [["Content-Type", "application/merge-patch+json"]]})).text()`, `POST application/merge-patch+json||{"a":1}`},
		{`(await fetch(U, {method: "POST", body: new URLSearchParams({a: "b c"})})).text()`, `POST application/x-www-form-urlencoded;charset=UTF-8||a=b+c`},
		{`(await fetch(new URL(U), {method: "DELETE"})).text()`, `DELETE ||`},
		{`(await fetch(U, {method: "HEAD"})).status`, `418`},
		{`(await Promise.all(Array.from({length: 30}, () => fetch(U)))).length`, `30`},
		{`(await fetch(U)).json().catch(e => e.name)`, `SyntaxError`},
	} {
		if got := h.asTool(t, url, tc.code); got != tc.want {
			t.Errorf("%s: %q", tc.code, got)
		}
	}
}

func TestFetchedNumbersKeepTheirDigits(t *testing.T) {
	h := newHouse(t)
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"id":725653563933458433,"n":7,"text":"725653563933458433"}`)
	})
	if got, want := h.asTool(t, url, `(await fetch(U)).json()`), `{"id":"725653563933458433","n":7,"text":"725653563933458433"}`; got != want {
		t.Errorf("%q", got)
	}
}

func TestFetchRefuses(t *testing.T) {
	h := newHouse(t)
	url := serve(t, echo)
	for code, want := range map[string]string{
		`fetch("ftp://example.org")`:                                      "http://",
		`fetch("nonsense")`:                                               "not a usable URL",
		`fetch("http://user:hush@example.org/")`:                          "user name",
		`fetch("` + url + `", {method: "TRACE"})`:                         "is none of",
		`fetch("` + url + `", {body: "x"})`:                               "has no body",
		`fetch("` + url + `", {headers: {"X-A": "b\r\nInjected: true"}})`: "",
	} {
		_, fault := h.call(t, "js_eval", args{"code": "await " + code})
		wantFault(t, fault, toolgroups.CodeExecution, want)
		if fault != nil && strings.Contains(fault.Message, "hush") {
			t.Error("a secret of the URL is repeated")
		}
	}
	for code, want := range map[string]string{
		`fetch(U, {method: "POST", body: "x".repeat(2e6)})`: "body is larger",
		`fetch(U, {headers: {Host: "other"}})`:              "'Host' cannot be set",
		`fetch(U, {headers: {a: "x".repeat(20000)}})`:       "headers are larger",
	} {
		if got := h.asTool(t, url, code+`.catch(e => e.message)`); !strings.Contains(got, want) {
			t.Errorf("%s: %s", code, got)
		}
	}
}

// No user approves what js_eval does, so it makes no request for which http_request asks.
func TestJsEvalOnlyReadsTheWeb(t *testing.T) {
	h := newHouse(t)
	if err := os.WriteFile(filepath.Join(h.workspace, "contract.txt"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	var arrived []string
	url := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		arrived = append(arrived, r.Method+" "+r.URL.RequestURI())
	})
	for _, code := range []string{
		`fetch(U, {method: "POST", body: fs.readFile("contract.txt")})`,
		`fetch(U, {method: "put", body: "x"})`,
		`fetch(U, {method: "PATCH"})`,
		`fetch(U, {method: "DELETE"})`,
		`fetch(U, {headers: {"X-HTTP-Method-Override": "DELETE"}})`,
		`fetch(U, {method: "HEAD", headers: [["x-http-method", "PUT"]]})`,
		`fetch(U + "/?a=1&_method=DELETE")`,
		`downloadToFile(U, "f", {"X-Method-Override": "PATCH"})`,
		`fetch(U, {headers: {"X-Data": "what the conversation knows"}})`,
		`downloadToFile(U, "f", {"Cookie": "what the conversation knows"})`,
		`downloadToFile(U + "/?%5Fmethod=delete", "f")`,
		`uploadMultipart(U, [{type: "file", path: "contract.txt"}])`,
	} {
		got := h.js(t, `const U = "`+url+`"; await `+code+`.then(r => r.error ?? "sent", e => e.message)`)
		if !strings.Contains(got, "make this request with http_request, which a person approves") {
			t.Errorf("%s: %s", code, got)
		}
	}
	h.js(t, `const U = "`+url+`"; await fetch(U + "/get?method=x", {headers: {Accept: "text/html"}}); await fetch(U + "/head", {method: "head"}); await downloadToFile(U + "/file", "f")`)
	if diff := cmp.Diff([]string{"GET /get?method=x", "HEAD /head", "GET /file"}, arrived); diff != "" {
		t.Error(diff)
	}
}

func TestOneRunMakesAHundredRequests(t *testing.T) {
	h := newHouse(t)
	arrived := 0
	url := serve(t, func(http.ResponseWriter, *http.Request) { arrived++ })
	got := h.js(t, `let e = ""; for (let i = 0; i < 120; i++) { try { await fetch("`+url+`") } catch (x) { e = x.message; break } } e`)
	if arrived != 100 || !strings.Contains(got, "one run makes at most 100 requests") {
		t.Errorf("%d requests, then %q", arrived, got)
	}
}

// A script reaches what webfetch may open without asking; a user tool also the hosts that its code names.
func TestAScriptReachesOnlyAddressesThatDoNotAsk(t *testing.T) {
	h := newHouse(t)
	url := serve(t, echo)
	h.asks = func(address string, _ bool) error {
		if strings.HasSuffix(address, "/free") {
			return nil
		}
		return toolgroups.Errorf(toolgroups.CodeDenied, "A script cannot fetch this address. Fetch it with webfetch, which asks the user.")
	}
	if got := h.js(t, `(await fetch("`+url+`/free")).status`); got != "418" {
		t.Errorf("a free address: %q", got)
	}
	for _, code := range []string{`fetch("` + url + `/composed")`, `downloadToFile("` + url + `/composed", "f").then(r => { throw new Error(r.error) })`} {
		if got := h.js(t, `await `+code+`.then(() => "fetched", e => e.message)`); !strings.Contains(got, "Fetch it with webfetch") {
			t.Errorf("%s: %q", code, got)
		}
	}
	if got := h.asTool(t, url, `fetch(U + "/composed").then(r => r.status)`); got != "418" {
		t.Errorf("a host that the code of a user tool names: %q", got)
	}
	if got := h.asTool(t, "", `fetch("`+url+`/x".replace("127.0.0.1", "local" + "host")).then(() => "fetched", e => e.message)`); !strings.Contains(got, "Fetch it with webfetch") {
		t.Errorf("another host: %q", got)
	}
}

// Words of others could have named the address: there a user tool sends no more than js_eval, unless its code names
// the host. What it has read itself counts as well, unless its parameters name the host.
func TestAUserToolOnlyReadsWhereItsCodeNamesNoHostAmongWordsOfOthers(t *testing.T) {
	h := newHouse(t)
	var arrived []string
	named := serve(t, func(_ http.ResponseWriter, r *http.Request) { arrived = append(arrived, r.Method+" "+r.URL.Path) })
	other := strings.Replace(named, "127.0.0.1", "localhost", 1)
	if err := os.WriteFile(filepath.Join(h.workspace, "other.txt"), []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	const post = `await fetch(url + "/post", {method: "POST", body: "x"}).then(() => sent.push("post"), e => sent.push(e.message));`
	const every = `await fetch(url + "/read").then(() => sent.push("read"));` + post + `
		await fetch(url + "/header", {headers: {"X-Data": "x"}}).then(() => sent.push("header"), () => {});
		await downloadToFile(url + "/file", "f", {"X-Data": "x"}).then(r => r.success && sent.push("file"));
		await uploadMultipart(url + "/upload", [{type: "json", body: {}}]).then(() => sent.push("upload"), () => {});`
	all, read := []string{"GET /read", "POST /post", "GET /header", "GET /file", "POST /upload"}, []string{"GET /read"}
	joined := `"` + strings.Replace(other, "local", `local" + "`, 1) + `"`
	for name, tc := range map[string]struct {
		url, code string
		others    bool
		want      []string
	}{
		"its code names it":                     {`"` + named + `"`, every, false, all},
		"its code names it, among others":       {`"` + named + `"`, every, true, all},
		"put together":                          {joined, post, false, []string{"POST /post"}},
		"put together, after a reply":           {joined, every, false, read},
		"put together, among others":            {joined, every, true, read},
		"a file names it":                       {`fs.readFile("other.txt")`, every, false, read},
		"its parameter names it":                {`p.at`, every, false, all},
		"its parameter names it, among others":  {`p.at`, every, true, read},
		"its parameter names it, it runs texts": {`eval("p.at")`, every, false, read},
	} {
		h.put(t, map[string]string{
			"sends.json": `{"name":"sends","description":"d","timeout_s":120,"parameters":{"type":"object","properties":{"at":{"type":"string"}}}}`,
			"sends.js":   "async function execute(p) { const sent = [], url = " + tc.url + "; " + tc.code + " return sent }",
		})
		arrived = nil
		params := args{}
		if strings.Contains(tc.url, "p.at") {
			params["at"] = other
		}
		got, fault := h.callAs(t, toolgroups.Scope{User: "telegram:1", Owner: "telegram:1", Role: toolgroups.RoleUser, Workspace: h.workspace, HoldsOthers: tc.others}, "sends", params)
		if diff := cmp.Diff(tc.want, arrived); fault != nil || diff != "" || strings.Contains(got, "make this request with http_request") != (len(tc.want) == 1 && tc.code == every) {
			t.Errorf("%s: %s %v\n%s", name, got, fault, diff)
		}
	}
}

// Where a script has read what others may have written, they could have chosen an address that it does not name.
func TestWhatAScriptReadsNamesNoHost(t *testing.T) {
	h := newHouse(t)
	url := serve(t, echo)
	if err := os.WriteFile(filepath.Join(h.workspace, "url.txt"), []byte(strings.Replace(url, "127.0.0.1", "localhost", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	h.asks = func(_ string, others bool) error {
		if others {
			return errors.New("words of others")
		}
		return nil
	}
	for code, want := range map[string]string{
		`fetch(U)`: "418",
		`fetch(U.replace("127.0.0.1", "local" + "host"))`:                      "418",
		`fetch(fs.readFile("url.txt"))`:                                        "words of others",
		`fetch(U + "/?d=" + fs.readFile("url.txt"))`:                           "418",
		`fetch(U).then(() => fetch(U + "/next"))`:                              "418",
		`fetch(U).then(() => fetch(U.replace("127.0.0.1", "local" + "host")))`: "words of others",
		`eval("fetch(U)")`: "418",
		`eval("fetch(U + '/?d=' + fs.readFile('url.txt'))")`:                                  "words of others",
		`downloadToFile(fs.readFile("url.txt"), "f").then(r => { throw new Error(r.error) })`: "words of others",
	} {
		if got := h.js(t, `const U = "`+url+`"; await `+code+`.then(r => r.status, e => e.message)`); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", code, got, want)
		}
	}
}

// With what a host that the code names is asked, it could be made to lead elsewhere.
func TestAHostThatAUserToolNamesLeadsNowhereElseAmongWordsOfOthers(t *testing.T) {
	h := newHouse(t)
	to := ""
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/leads" {
			http.Redirect(w, r, to, http.StatusFound)
		}
	})
	to = strings.Replace(url, "127.0.0.1", "localhost", 1)
	h.put(t, map[string]string{
		"leads.json": `{"name":"leads","description":"d","timeout_s":120}`,
		"leads.js":   `async function execute() { return fetch("` + url + `/leads").then(r => r.status, e => e.message) }`,
	})
	for others, want := range map[bool]string{false: "200", true: "localhost"} {
		got, fault := h.callAs(t, toolgroups.Scope{User: "telegram:1", Owner: "telegram:1", Role: toolgroups.RoleUser, Workspace: h.workspace, HoldsOthers: others}, "leads", args{})
		if fault != nil || !strings.Contains(got, want) {
			t.Errorf("among words of others %t: %s %v", others, got, fault)
		}
	}
}

func TestLongBodiesAreCutWithANote(t *testing.T) {
	h := newHouse(t)
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", 300<<10)) })
	got := h.js(t, `const r = await fetch("`+url+`"); const s = await r.text(); s.length + s.slice(102395, 102435) + await r.json().catch(e => e.message.slice(0, 40))`)
	if !strings.Contains(got, "xxxxx\n[cut: only the first 102400") || !strings.Contains(got, "too long to be read as JSON") {
		t.Error(got)
	}
}

func TestDownloadsAreNotCut(t *testing.T) {
	h := newHouse(t)
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/big":
			_, _ = io.WriteString(w, strings.Repeat("x", 3<<20))
		case "/endless":
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
		case "/broken":
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "begin")
		case "/header":
			_, _ = io.WriteString(w, r.Header.Get("Authorization"))
		default:
			http.NotFound(w, r)
		}
	})
	got := h.js(t, `JSON.stringify(await downloadToFile("`+url+`/big", "./in/big.bin"))`)
	if got != `{"path":"in/big.bin","size":3145728,"success":true}` {
		t.Error(got)
	}
	if info, err := os.Stat(filepath.Join(h.workspace, "in/big.bin")); err != nil || info.Size() != 3<<20 {
		t.Error(info, err)
	}
	h.asTool(t, url, `downloadToFile(U + "/header", "h", {Authorization: "Bearer x"}).then(() => "")`)
	if data, err := os.ReadFile(filepath.Join(h.workspace, "h")); err != nil || string(data) != "Bearer x" {
		t.Errorf("%q, %v", data, err)
	}
	for path, want := range map[string]string{
		"none": "HTTP 404", "endless": "larger than the limit of 50 MiB", "broken": "unexpected EOF",
	} {
		got := h.js(t, `const r = await downloadToFile("`+url+`/`+path+`", "kept"); r.success + r.error`)
		if !strings.HasPrefix(got, "false") || !strings.Contains(got, want) {
			t.Errorf("%s: %s", path, got)
		}
	}
	if got := files(t, h.workspace); got != "h in" {
		t.Errorf("left over: %s", got)
	}
}

func TestUploadMultipart(t *testing.T) {
	h := newHouse(t)
	if err := os.WriteFile(filepath.Join(h.workspace, "pic.png"), []byte("\x89PNG"), 0o600); err != nil {
		t.Fatal(err)
	}
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		kind, boundary, _ := strings.Cut(r.Header.Get("Content-Type"), "; boundary=")
		text := strings.ReplaceAll(string(body), boundary, "B")
		_, _ = fmt.Fprintf(w, "%s %t %s", kind, int64(len(body)) == r.ContentLength, strings.ReplaceAll(text, "\r\n", "~"))
	})
	for _, tc := range []struct{ code, want string }{
		{
			`[{type: "json", body: {name: "x"}}, {type: "file", path: "pic.png"}]`,
			"multipart/related true --B~Content-Type: application/json; charset=UTF-8~~{\"name\":\"x\"}~--B~Content-Type: image/png~~\uFFFDPNG~--B--~",
		},
		{
			`[{type: "file", name: "f", path: "pic.png", contentType: "text/x; a=b"}, {type: "text", name: "g", contentType: "text/plain", body: "v"}]`,
			"multipart/form-data true --B~Content-Disposition: form-data; filename=pic.png; name=f~Content-Type: text/x; a=b~~\uFFFDPNG~--B~Content-Disposition: form-data; name=g~Content-Type: text/plain~~v~--B--~",
		},
		{
			`[{type: "json", contentType: "a/b\r\nInjected: 1", body: "v"}]`,
			"multipart/related true --B~Content-Type: application/json; charset=UTF-8~~v~--B--~",
		},
	} {
		got := h.asTool(t, url, `uploadMultipart(U, `+tc.code+`).then(r => r.ok && r.status === 200 ? r.body : r)`)
		if got != tc.want {
			t.Errorf("%s:\n%q want\n%q", tc.code, got, tc.want)
		}
	}
	for code, want := range map[string]string{
		`[]`:                             "1 to 20 parts",
		`Array(21).fill({body: "x"})`:    "1 to 20 parts",
		`[{type: "file", path: "none"}]`: "There is no file 'none'",
	} {
		if got := h.asTool(t, url, `(await uploadMultipart(U, `+code+`)).error`); !strings.Contains(got, want) {
			t.Errorf("%s: %s", code, got)
		}
	}
}

func TestInnerAddressesAreRefused(t *testing.T) {
	hits := 0
	inner := serve(t, func(http.ResponseWriter, *http.Request) { hits++ })
	h := newHouse(t, func(c *jstools.Config) { c.AllowPrivate = nil })
	for _, url := range []string{inner, "http://169.254.169.254/latest", "http://[::1]/", "http://localhost/", "http://0.0.0.0/", "http://10.0.0.1/"} {
		got := h.asTool(t, url, `[await fetch(U).then(() => "", e => e.message),
			(await downloadToFile(U, "f")).error, (await uploadMultipart(U, [{body: "x"}])).error]`)
		if strings.Count(got, "internal or reserved") != 3 {
			t.Errorf("%s: %s", url, got)
		}
	}
	if hits > 0 || files(t, h.workspace) != "" {
		t.Errorf("%d requests arrived; files: %s", hits, files(t, h.workspace))
	}
}

func TestRedirectsToInnerAddressesAreRefused(t *testing.T) {
	h := newHouse(t)
	for _, target := range []string{"http://169.254.169.254/", "http://127.0.0.2/", "http://[::1]/", "file:///etc/passwd"} {
		url := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, target, http.StatusFound) })
		got := h.js(t, `const U = "`+url+`"; [await fetch(U).then(() => "through", () => "refused"), (await downloadToFile(U, "f")).success].join()`)
		if got != "refused,false" {
			t.Errorf("%s: %s", target, got)
		}
	}
}
