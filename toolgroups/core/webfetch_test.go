package core_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"oneclaw/toolgroups/core"
)

// story is a page with an article amid what surrounds articles.
func story() string {
	return `<!doctype html><html><head><title>A  Story</title><script>var x = "scripted"</script></head><body>
<nav><a href="/">Home</a> navigation</nav><header>masthead</header>
<article><h2>Chapter</h2><p>` + strings.Repeat("It was a long evening, and the rain, which had begun at noon, went on. ", 12) + `</p>
<p>See <a href="../next">the next</a> and <img src="/p.png" alt="pic"><img src="data:image/png;base64,AAAA" alt="no">.</p>
<ul><li>one<ul><li>inner</li></ul></li><li>two</li></ul>
<pre><code class="language-go">func main() {}</code></pre>
<table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1</td><td>x|y</td></tr></tbody></table>
<p>` + strings.Repeat("And then, at last, the morning came, bright and cold, over the hills. ", 12) + `</p></article>
<aside>advertisement</aside><footer>imprint</footer><form><input value="field"><button>press</button></form></body></html>`
}

func pages() http.HandlerFunc {
	page := func(w http.ResponseWriter, kind, body string) {
		w.Header().Set("Content-Type", kind)
		_, _ = io.WriteString(w, body)
	}
	return func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/deep/story":
			page(w, "text/html; charset=utf-8", story())
		case "/list":
			page(w, "text/html", `<html><head><title>List</title></head><body><nav>menu</nav><main><p>Short <a href="/x">link</a></p></main></body></html>`)
		case "/cyrillic":
			page(w, "text/html; charset=windows-1251", "<html><body><p>\xcf\xf0\xe8\xe2\xe5\xf2</p></body></html>")
		case "/meta":
			page(w, "text/html", "<html><head><meta charset=windows-1251></head><body><p>\xcf\xf0\xe8\xe2\xe5\xf2</p></body></html>")
		case "/json":
			page(w, "application/json", `{"a": "b"}`)
		case "/file.pdf":
			page(w, "application/pdf", "%PDF-1.4\x00binary")
		case "/plain.pdf":
			page(w, "application/pdf", plainPDF)
		case "/untyped.pdf":
			page(w, "application/octet-stream", plainPDF)
		case "/empty":
			page(w, "text/html", "")
		case "/scripted":
			page(w, "text/html", "<html><body><script>document.write('x')</script></body></html>")
		case "/long":
			page(w, "text/plain", strings.Repeat(strings.Repeat("word ", 200)+"\n\n", 100))
		case "/nested":
			page(w, "text/html", strings.Repeat("<div>", 20_000)+"text")
		case "/many":
			page(w, "text/html", strings.Repeat("<p>x", 300_000))
		case "/moved":
			http.Redirect(w, r, "/deep/story", http.StatusMovedPermanently)
		default:
			http.Error(w, "gone "+strings.Repeat("away ", 1000), http.StatusGone)
		}
	}
}

func TestWebfetch(t *testing.T) {
	server := site(t, pages())
	d := newDesk(t, core.Config{AllowPrivate: loopback()})
	for _, path := range []string{"/deep/story", "/moved"} {
		got := d.must(t, "webfetch", args{"url": server.URL + path})
		for _, want := range []string{
			"# A Story\n", "## Chapter", "[the next](" + server.URL + "/next)", "![pic](" + server.URL + "/p.png)",
			"- one\n", "\n  - inner", "```go\nfunc main() {}\n```", "| a ", "x\\|y", "the morning came",
		} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q is missing in\n%s", path, want, got)
			}
		}
		for _, not := range []string{"scripted", "navigation", "masthead", "advertisement", "imprint", "press", "field", "base64", "\n\n\n"} {
			if strings.Contains(got, not) {
				t.Errorf("%s: %q is in\n%s", path, not, got)
			}
		}
	}
	for path, want := range map[string]string{
		"/list":     "# List\n\nShort [link](" + server.URL + "/x)",
		"/cyrillic": "Привет",
		"/meta":     "Привет",
		"/json":     `{"a": "b"}`,
	} {
		if got := d.must(t, "webfetch", args{"url": server.URL + path}); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

func TestWebfetchErrors(t *testing.T) {
	server := site(t, pages())
	d := newDesk(t, core.Config{AllowPrivate: loopback()})
	for _, tc := range []struct{ url, code, text string }{
		{"ftp://example.org", "invalid_url", "http://"},
		{"", "invalid_url", "http://"},
		{server.URL + "/gone", "http_error", "HTTP 410 Gone.\ngone away"},
		{server.URL + "/empty", "empty_response", "without a body"},
		{server.URL + "/scripted", "empty_response", "JavaScript"},
		{server.URL + "/many", "error", "limit of"},
		{server.URL + "/nested", "error", ""},
		{"http://127.0.0.1:1", "network_error", "refused"},
	} {
		d.fails(t, "webfetch", args{"url": tc.url}, tc.code, tc.text)
	}
	d.fails(t, "webfetch", args{}, "validation_error", "'url'")
	if _, err := d.run(t, "webfetch", args{"url": server.URL + "/gone"}); err == nil || len(err.Message) > 1100 {
		t.Errorf("an error page of %v is repeated", err)
	}
}

// What is longer than a result goes into a file that the result names.
func TestWebfetchCutsAtParagraphs(t *testing.T) {
	server := site(t, pages())
	d := newDesk(t, core.Config{AllowPrivate: loopback()})
	file := regexp.MustCompile(`tool-output/webfetch-[^\s\]]+`)
	for _, tc := range []struct{ asked, least, most int }{{0, 28_000, 30_000}, {1_500, 900, 1_700}, {90_000, 28_000, 30_000}, {100, 90, 300}} {
		a := args{"url": server.URL + "/long"}
		if tc.asked > 0 {
			a["max_length"] = tc.asked
		}
		got := d.must(t, "webfetch", a)
		text, note, ok := strings.Cut(got, "\n\n[cut: ")
		if n := len(got); !ok || n < tc.least || n > tc.most || tc.asked != 100 && !strings.HasSuffix(text, "word ") {
			t.Errorf("%d: %d characters, ends %q", tc.asked, n, got[len(got)-200:])
		}
		whole, err := os.ReadFile(filepath.Join(d.dir, file.FindString(note)))
		if err != nil || strings.Count(string(whole), "word") != 20_000 {
			t.Errorf("%d: the file has %d bytes, %v", tc.asked, len(whole), err)
		}
	}
}

// plainPDF is the beginning of a document that has no zero byte.
const plainPDF = "%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\nxref\n0 2\n0000000000 65535 f \n0000000009 00000 n \n"

// A file is not forced into text; it is kept where other tools find it.
func TestWebfetchKeepsFiles(t *testing.T) {
	server := site(t, pages())
	d := newDesk(t, core.Config{AllowPrivate: loopback()})
	got := d.must(t, "webfetch", args{"url": server.URL + "/file.pdf"})
	file := regexp.MustCompile(`downloads/\S+\.pdf`)
	data, err := os.ReadFile(filepath.Join(d.dir, file.FindString(got)))
	if err != nil || string(data) != "%PDF-1.4\x00binary" || !strings.Contains(got, "application/pdf, 15 bytes") {
		t.Errorf("%q, %q, %v", got, data, err)
	}
	for _, path := range []string{"/plain.pdf", "/untyped.pdf"} {
		got := d.must(t, "webfetch", args{"url": server.URL + path})
		if data, err := os.ReadFile(filepath.Join(d.dir, file.FindString(got))); err != nil || string(data) != plainPDF {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
}

// Small pages that would become huge, or take minutes, do neither.
func TestWebfetchHostilePages(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"lists in lists":  strings.Repeat("<ul><li>x", 240) + strings.Repeat("<li>y", 8_000),
		"quotes":          strings.Repeat("<blockquote>x", 490),
		"wide cells":      "<table><tr><td rowspan=60000 colspan=1000>a" + strings.Repeat("<tr><td>b", 1000),
		"marks":           "<p>" + strings.Repeat("*_[`", 100_000),
		"text far down":   strings.Repeat("<div>", 480) + strings.Repeat("<p>x, y, z some text here", 20_000),
		"unclosed inline": "<p>" + strings.Repeat("<b><i>", 240) + strings.Repeat("x<br>", 20_000),
	} {
		t.Run(name, func(t *testing.T) {
			server := site(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				_, _ = io.WriteString(w, "<html><body>"+body)
			})
			d := newDesk(t, core.Config{AllowPrivate: loopback()})
			if got := d.must(t, "webfetch", args{"url": server.URL}); len([]rune(got)) > 30_000 {
				t.Errorf("%d characters", len(got))
			}
			files, err := filepath.Glob(filepath.Join(d.dir, "tool-output", "*"))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				if info, err := os.Stat(f); err != nil || info.Size() > 10<<20 {
					t.Errorf("the page became %v, %v", info, err)
				}
			}
		})
	}
}

func TestPagesAreReadInTheirEncodings(t *testing.T) {
	far := "<title>a</title><style>" + strings.Repeat(".a{}", 500) + "</style>"
	for name, c := range map[string]struct{ kind, body, want string }{
		"no word, letters behind much ASCII": {"text/html", far + "<p>Grüße</p>", "Grüße"},
		"the word stands behind much":        {"text/html", far + "<meta charset=windows-1251><p>\xcf\xf0\xe8</p>", "При"},
		"an older form of it":                {"text/html", far + `<meta http-equiv=Content-Type content="text/html; charset=windows-1251"><p>` + "\xcf\xf0\xe8</p>", "При"},
		"a wrong one":                        {"text/html", "<meta charset=iso-8859-1><p>Grüße</p>", "Grüße"},
		"escapes of ASCII":                   {"text/html", "<meta charset=iso-2022-jp><p>\x1b$B$\"\x1b(B</p>", "あ"},
		"a mark of UTF-8":                    {"text/html", "\uFEFF<p>Grüße</p>", "Grüße"},
		"a mark of UTF-16":                   {"text/html", "\xff\xfe<\x00p\x00>\x00a\x00\xfc\x00", "aü"},
		"a letter that is cut":               {"text/html; charset=utf-8", "<p>a\xc3 b</p>", "a\uFFFD b"},
		"a feed that says so itself":         {"application/xml", `<?xml version="1.0" encoding="windows-1251"?><a>` + "\xcf\xf0\xe8</a>", `<?xml version="1.0" encoding="windows-1251"?><a>При</a>`},
	} {
		t.Run(name, func(t *testing.T) {
			server := site(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", c.kind)
				_, _ = io.WriteString(w, c.body)
			})
			d := newDesk(t, core.Config{AllowPrivate: loopback()})
			if got := d.must(t, "webfetch", args{"url": server.URL}); strings.TrimPrefix(got, "# a\n\n") != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
