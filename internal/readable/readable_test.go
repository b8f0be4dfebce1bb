package readable_test

import (
	"net/url"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"oneclaw/internal/readable"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == readable.Argument {
		if err := readable.Serve(os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

func newReader(t testing.TB) *readable.Reader {
	t.Helper()
	r, err := readable.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// markdown reads a page that was found at an address of example.org.
func markdown(t testing.TB, page string) (text string, err error) {
	t.Helper()
	at := &url.URL{Scheme: "https", Host: "example.org", Path: "/a/b"}
	err = newReader(t).Markdown(t.Context(), readable.Page{Body: strings.NewReader(page), ContentType: readable.UTF8, URL: at}, readable.StoreIn(&text))
	return text, err
}

func TestMarkdownKeepsTheContentAlone(t *testing.T) {
	page := `<title>Tea</title><nav>Menu</nav><main><h2>Boil</h2><p>Use <a href="../water">water</a>.</p>
<script>alert(1)</script></main><footer>Imprint</footer>`
	got, err := markdown(t, page)
	if err != nil {
		t.Fatal(err)
	}
	if want := "# Tea\n\n## Boil\n\nUse [water](https://example.org/water)."; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestHeadingsKeepTheirSigns(t *testing.T) {
	page := "<article><h1>C#</h1><p>a</p><h2>#</h2><h3> Two\n<br><em>lines</em> #</h3><h4> </h4><h6>F</h6></article>"
	got, err := markdown(t, page)
	if err != nil {
		t.Fatal(err)
	}
	if want := "## C#\n\na\n\n## #\n\n### Two *lines* #\n\n###### F"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestMarkdownRefusesWhatCostsTooMuch(t *testing.T) {
	if got, err := markdown(t, strings.Repeat("<p>x", 100_001)); err == nil || !strings.Contains(err.Error(), "parts, more than the limit") {
		t.Errorf("a page of too many parts: %d bytes, %v", len(got), err)
	}
}

func FuzzMarkdown(f *testing.F) {
	f.Add("<title>a</title><article><h1>b</h1><table><tr><td colspan=99>|</table></article>")
	f.Add("<title>a</title><article><h1>#</h1></article>")
	f.Add("<table><tr><th>a<td colspan=2><ol reversed><li value=3>b<sup>2</sup></ol><tr><td rowspan=0>c<input type=checkbox></table>")
	f.Add("<ul><li><blockquote><pre><code>x</code></pre></blockquote></ul>")
	f.Fuzz(func(t *testing.T, page string) {
		at := &url.URL{Scheme: "https", Host: "example.org"}
		got, err := readable.ConvertPage(page, at)
		if err == nil && got != strings.TrimSpace(got) {
			t.Errorf("space around %q", got)
		}
		if _, err := readable.Convert(strings.NewReader(page)); err != nil {
			t.Log(err) // a page of too many parts
		}
	})
}
