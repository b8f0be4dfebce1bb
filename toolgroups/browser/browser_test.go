package browser_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"image/png"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tiktoken-go/tokenizer"
	"go.uber.org/goleak"

	"oneclaw/internal/readable"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/browser"
)

// shared is the tool of a browser that most tests use: to start one takes a second.
// It may reach 127.0.0.1 and nothing else of this machine.
var shared toolgroups.Tool

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == readable.Argument {
		if err := readable.Serve(os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		return
	}
	_ = flag.Set("test.parallel", "4") // they wait more than they compute
	b, err := browser.New(browser.Config{AllowPrivate: loopback(), MaxTabs: 4})
	if err == nil {
		shared, err = b.Tool()
	}
	if err != nil {
		log.Fatal(err)
	}
	shared.Timeout = patience
	code := m.Run()
	if err := errors.Join(b.Close(), goleak.Find()); err != nil && code == 0 {
		log.Fatal(err)
	}
	os.Exit(code)
}

// patience bounds a call: other programs may keep this machine busy.
const patience = 5 * time.Minute

func loopback() []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")} }

// harness is a browser at work in a workspace, and a site that it may reach.
type harness struct {
	dir  string
	tool toolgroups.Tool
	mux  *http.ServeMux
	site string
}

func newTool(t testing.TB, cfg browser.Config) toolgroups.Tool {
	t.Helper()
	b, err := browser.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	tool, err := b.Tool()
	if err != nil {
		t.Fatal(err)
	}
	tool.Timeout = patience
	return tool
}

// serve starts a server at an address of this machine.
func serve(t testing.TB, ip string, h http.Handler) *httptest.Server {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", net.JoinHostPort(ip, "0"))
	if err != nil {
		t.Skipf("%s cannot be listened on: %v", ip, err)
	}
	s := httptest.NewUnstartedServer(h)
	_ = s.Listener.Close()
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// newDesk makes a desk with the shared browser.
func newDesk(t testing.TB) *harness {
	t.Helper()
	if !installed() {
		t.Skip("there is no Chromium on this machine")
	}
	d := &harness{dir: t.TempDir(), mux: http.NewServeMux(), tool: shared}
	d.site = serve(t, "127.0.0.1", d.mux).URL
	return d
}

func installed() bool {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if _, err := exec.LookPath(name); err == nil {
			return true
		}
	}
	return false
}

// page has the site answer a path with HTML.
func (d *harness) page(path, html string) string {
	d.mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, html)
	})
	return d.site + path
}

type args map[string]any

func (d *harness) run(t testing.TB, in args) (toolgroups.Result, *toolgroups.Error) {
	t.Helper()
	raw, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	return toolgroups.Run(t.Context(), nil, d.tool, toolgroups.Call{
		Name: "browser", Arguments: raw, Scope: toolgroups.Scope{Workspace: d.dir, Owner: "telegram:1"},
	})
}

// extract reads a page, with arguments beside its address.
func (d *harness) extract(t testing.TB, address string, more args) string {
	t.Helper()
	in := args{"url": address, "mode": "extract", "wait_seconds": 0}
	maps.Copy(in, more)
	res, fault := d.run(t, in)
	if fault != nil {
		t.Fatalf("%v: %s: %s", in, fault.Code, fault.Message)
	}
	return res.Text
}

func TestPagesAreReadAfterTheirScripts(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	address := d.page("/", `<title>Tea</title><nav>Menu</nav><main><h2>Boil</h2><p id=p>nothing</p></main>
<script>alert("stop"); document.querySelector("p").innerHTML = 'Use <a href="/water">water</a> for ' + (20 + 22) + ' cups.'</script>`)
	want := "# Tea\n\n## Boil\n\nUse [water](" + d.site + "/water) for 42 cups."
	if diff := cmp.Diff(want, d.extract(t, address, nil)); diff != "" {
		t.Error(diff)
	}
	late := d.page("/late", `<p>early</p><script>setTimeout(() => document.querySelector("p").textContent = "late", 200)</script>`)
	if got := d.extract(t, late, args{"wait_seconds": 1}); got != "late" {
		t.Errorf("after the wait the page is %q", got)
	}
	plain := d.page("/plain", `<body><button>Only a button</button></body>`)
	if got := d.extract(t, plain, nil); got != "Only a button" {
		t.Errorf("a page without content is %q", got)
	}
}

// A screenshot is a file that goes to the chat.
func TestScreenshotsAreFilesForTheChat(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	address := d.page("/", `<body style="margin:0"><div style="height:3000px;background:#0a0">tall</div></body>`)
	endless := d.page("/endless", `<body style="margin:0"><div style="height:50000px">endless</div></body>`)
	for _, c := range []struct {
		in            args
		width, height int
	}{
		{args{"url": address}, 412, 915},
		{args{"url": address, "width": 800, "height": 600}, 800, 600},
		{args{"url": address, "width": 1, "height": 99_999}, 100, 2_560},
		{args{"url": address, "full_page": true}, 412, 3_000},
		{args{"url": endless, "full_page": true, "width": 100}, 100, 10_000},
	} {
		c.in["mode"], c.in["wait_seconds"] = "screenshot", 0
		res, fault := d.run(t, c.in)
		if fault != nil {
			t.Fatalf("%v: %+v", c.in, fault)
		}
		var answer struct {
			Path          string `json:"image_path"`
			Width, Height int
		}
		if err := json.Unmarshal([]byte(res.Text), &answer); err != nil {
			t.Fatal(err)
		}
		if len(res.Files) != 1 || res.Files[0].Path != answer.Path || !filepath.IsLocal(answer.Path) {
			t.Fatalf("%v: files %+v, answer %s", c.in, res.Files, res.Text)
		}
		data, err := os.ReadFile(filepath.Join(d.dir, answer.Path))
		if err != nil {
			t.Fatal(err)
		}
		picture, err := png.Decode(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if size := picture.Bounds().Size(); size.X != c.width || size.Y != c.height || answer.Width != c.width || answer.Height != c.height {
			t.Errorf("%v: picture of %v, answer %s", c.in, size, res.Text)
		}
	}
}

func TestScriptsAnswer(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	address := d.page("/", `<p>hello</p><script>window.data = {n: 1}; String.prototype.slice = JSON.parse = null</script>`)
	for script, want := range map[string]string{
		`return document.querySelector("p").textContent`: "hello",
		`return window.data`:                             `{"n":1}`,
		`return [1, "a", null]`:                          `[1,"a",null]`,
		`return await Promise.resolve(7)`:                "7",
		`return`:                                         "",
		`return null`:                                    "null",
		`throw new Error("no such thing")`:               "JavaScript error: Error: no such thing",
		`throw "bare"`:                                   `JavaScript error: "bare"`,
		`return missing.field`:                           "JavaScript error: ReferenceError: missing is not defined",
		`return (`:                                       "JavaScript error: SyntaxError: Unexpected token '}'",
		`}); (() => {`:                                   "JavaScript error: SyntaxError: Single function literal required",
	} {
		if got := d.extract(t, address, args{"javascript": script}); got != want {
			t.Errorf("%s = %q, want %q", script, got, want)
		}
	}
}

// A script may send what http_request asks for, so it asks too.
func TestScriptsAsk(t *testing.T) {
	for arguments, want := range map[string]bool{
		`{"url":"https://x.org","mode":"extract"}`:                                                             false,
		`{"url":"https://x.org","mode":"screenshot","wait_seconds":0.5}`:                                       false,
		`{"url":"https://x.org","mode":"extract","javascript":" \n"}`:                                          false,
		`{"url":"https://x.org","mode":"extract","javascript":"return document.title"}`:                        true,
		`{"url":"https://x.org","mode":"extract","javascript":"return (await fetch('/1',{method:'DELETE'}))"}`: true,
		`{"javascript":["x"]}`: true,
		`javascript`:           true,
	} {
		if got := shared.NeedsApproval(toolgroups.Call{Arguments: json.RawMessage(arguments)}); got != want || shared.Effect == toolgroups.ReadOnly || shared.LastingApproval {
			t.Errorf("%s: asks %t, want %t", arguments, got, want)
		}
	}
}

func TestLongTextsAreCutAndKept(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	address := d.page("/", "<p>"+strings.Repeat("word ", 20_000)+"</p>")
	for _, c := range []struct {
		more  args
		limit int
	}{{nil, 29_000}, {args{"max_length": 100}, 100}, {args{"javascript": `return "é".repeat(9e6)`}, 29_000}} {
		got := d.extract(t, address, c.more)
		text, note, found := strings.Cut(got, "\n\n[cut: ")
		if !found || len([]rune(text)) != c.limit {
			t.Fatalf("%v: %d characters, note %q", c.more, len([]rune(text)), note)
		}
		_, name, _ := strings.Cut(strings.TrimSuffix(note, "]"), "the file ")
		whole, err := os.ReadFile(filepath.Join(d.dir, name))
		if err != nil || !strings.HasPrefix(string(whole), strings.TrimSuffix(text, "…")) || len(whole) <= len(text) {
			t.Errorf("%v: the file has %d bytes, %v", c.more, len(whole), err)
		}
	}
}

// A page that never stops loading is looked at as it is, if there is anything.
func TestPagesThatNeverFinishLoading(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.tool = newTool(t, browser.Config{AllowPrivate: loopback(), LoadTimeout: 10 * time.Second})
	d.mux.HandleFunc("/never", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	address := d.page("/", `<p>There is text.</p><img src="/never">`)
	t.Run("text", func(t *testing.T) {
		t.Parallel()
		if got := d.extract(t, address, nil); !strings.HasPrefix(got, "[the page was still loading]\n\nThere is text.") {
			t.Errorf("page is %q", got)
		}
	})
	t.Run("picture", func(t *testing.T) {
		t.Parallel()
		if shown, fault := d.run(t, args{"url": address, "mode": "screenshot", "wait_seconds": 0}); fault != nil || !strings.Contains(shown.Text, "The page was still loading.") {
			t.Errorf("the picture is %q, %+v", shown.Text, fault)
		}
	})
	t.Run("nothing", func(t *testing.T) {
		t.Parallel()
		_, fault := d.run(t, args{"url": d.site + "/never", "mode": "extract"})
		if fault == nil || fault.Code != browser.CodeExtraction || !strings.Contains(fault.Message, "did not load within 10s") {
			t.Errorf("%+v", fault)
		}
	})
}

func TestTrafficIsBounded(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.mux.HandleFunc("/endless", func(w http.ResponseWriter, r *http.Request) {
		for chunk := make([]byte, 1<<20); r.Context().Err() == nil; {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	got := d.extract(t, d.page("/", "<p>x</p>"), args{"javascript": `const body = (await fetch("/endless")).body.getReader();
let n = 0;
try { for (;;) n += (await body.read()).value.length } catch { return n > 0 && n <= 64 * 1024 * 1024 }`})
	if got != "true" {
		t.Errorf("the page says %q", got)
	}
}

// Nothing of a call is there for the next one.
func TestCallsShareNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	address := d.page("/", `<p></p><script>
document.querySelector("p").textContent = "cookie=" + document.cookie + " stored=" + localStorage.getItem("a");
document.cookie = "a=1; max-age=1000"; localStorage.setItem("a", "1")</script>`)
	for range 2 {
		if got := d.extract(t, address, nil); got != "cookie= stored=null" {
			t.Errorf("page is %q", got)
		}
	}
}

func TestServerErrorsAreNoted(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.mux.HandleFunc("/gone", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusGone)
		_, _ = io.WriteString(w, "<p>It is gone.</p>")
	})
	if got := d.extract(t, d.site+"/gone", nil); got != "[the server answered HTTP 410 Gone]\n\nIt is gone." {
		t.Errorf("page is %q", got)
	}
}

func TestBrowserErrors(t *testing.T) {
	d := newDesk(t)
	d.page("/empty", "<body></body>")
	d.mux.HandleFunc("/download", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Disposition", "attachment; filename=a.zip")
		_, _ = io.WriteString(w, "PK")
	})
	const closed = "http://127.0.0.1:2" // nothing listens there, and Chromium asks at no port 1
	for _, c := range []struct {
		in         args
		code, text string
	}{
		{args{"mode": "extract"}, toolgroups.CodeInvalid, "url"},
		{args{"url": d.site}, toolgroups.CodeInvalid, "mode"},
		{args{"url": d.site, "mode": "print"}, toolgroups.CodeInvalid, "mode"},
		{args{"url": "not a url", "mode": "extract"}, toolgroups.CodeInvalid, "http://"},
		{args{"url": "http://%zz/", "mode": "extract"}, toolgroups.CodeInvalid, "URL"},
		{args{"url": "http://user:pw@example.org/", "mode": "extract"}, toolgroups.CodeInvalid, "password"},
		{args{"url": d.site, "mode": "extract", "javascript": strings.Repeat("x", 50_001)}, toolgroups.CodeInvalid, "javascript"},
		{args{"url": d.site + "/empty", "mode": "extract", "wait_seconds": 0}, browser.CodeExtraction, "no text"},
		{args{"url": d.site + "/download", "mode": "extract"}, browser.CodeExtraction, "webfetch"},
		{args{"url": closed, "mode": "extract"}, browser.CodeExtraction, "refused"},
		{args{"url": closed, "mode": "screenshot"}, browser.CodeScreenshot, "refused"},
		{args{"url": strings.Replace(closed, "http", "https", 1), "mode": "screenshot"}, browser.CodeScreenshot, "refused"},
	} {
		if res, fault := d.run(t, c.in); fault == nil || fault.Code != c.code || !strings.Contains(fault.Message, c.text) {
			t.Errorf("%v: %q, %+v; want %s with %q", c.in["url"], res.Text, fault, c.code, c.text)
		}
	}
}

// A page can learn the size of its window and how long it is open: numbers that the model chooses.
func TestAWindowAmongWordsOfOthersIsAUsualOne(t *testing.T) {
	tool := newTool(t, browser.Config{Path: filepath.Join(t.TempDir(), "chromium")})
	for arguments, usual := range map[string]bool{
		``: true, `,"width":1280,"height":800,"wait_seconds":3`: true, `,"width":1280,"height":801`: false, `,"width":739`: false, `,"wait_seconds":7.391`: false,
	} {
		for _, others := range []bool{true, false} {
			call := toolgroups.Call{Arguments: []byte(`{"url":"http://127.0.0.1:2","mode":"extract"` + arguments + `}`), Scope: toolgroups.Scope{Workspace: t.TempDir(), HoldsOthers: others}}
			_, err := tool.Run(t.Context(), call)
			if fault, ok := errors.AsType[*toolgroups.Error](err); !ok || (fault.Code == toolgroups.CodeInvalid) != (others && !usual) {
				t.Errorf("%s, words of others %t: %v", arguments, others, err)
			}
		}
	}
}

func TestMissingChromiumIsSaid(t *testing.T) {
	d := &harness{dir: t.TempDir(), tool: newTool(t, browser.Config{Path: filepath.Join(t.TempDir(), "chromium")})}
	for mode, code := range map[string]string{"extract": browser.CodeExtraction, "screenshot": browser.CodeScreenshot} {
		_, fault := d.run(t, args{"url": "https://example.org/", "mode": mode})
		if fault == nil || fault.Code != code || !strings.Contains(fault.Message, "no Chromium") {
			t.Errorf("%s: %+v", mode, fault)
		}
	}
}

// A page that never lets go ends with the call.
func TestHangingScriptsEndInTime(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	address := d.page("/", `<p>x</p>`)
	d.tool.Timeout = 3 * time.Second
	_, fault := d.run(t, args{"url": address, "mode": "extract", "wait_seconds": 0, "javascript": "for (;;) {}"})
	if fault == nil || fault.Code != toolgroups.CodeTimeout {
		t.Errorf("%+v", fault)
	}
	d.tool.Timeout = patience
	if got := d.extract(t, address, nil); got != "x" {
		t.Errorf("the next page is %q", got)
	}
}

func TestCallsRunSideBySide(t *testing.T) {
	d := newDesk(t)
	t.Run("calls", func(t *testing.T) {
		for i := range 4 {
			address := d.page(fmt.Sprintf("/%d", i), fmt.Sprintf("<p>page %d</p>", i))
			t.Run("", func(t *testing.T) {
				t.Parallel()
				if got := d.extract(t, address, nil); got != fmt.Sprintf("page %d", i) {
					t.Errorf("page %d is %q", i, got)
				}
			})
		}
	})
}

// Each request carries the schema.
func TestSchemaIsTerse(t *testing.T) {
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		t.Fatal(err)
	}
	n, err := codec.Count(string(toolgroups.EncodeTools([]toolgroups.Tool{newTool(t, browser.Config{})})))
	t.Logf("%d tokens", n)
	if err != nil || n > 200 {
		t.Errorf("the schema costs %d tokens (%v)", n, err)
	}
}
