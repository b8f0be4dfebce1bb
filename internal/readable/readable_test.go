package readable_test

import (
	"net/url"
	"strings"
	"testing"

	"oneclaw/internal/readable"
)

func TestMarkdownKeepsTheContentAlone(t *testing.T) {
	at := &url.URL{Scheme: "https", Host: "example.org", Path: "/a/b"}
	page := `<title>Tea</title><nav>Menu</nav><main><h2>Boil</h2><p>Use <a href="../water">water</a>.</p>
<script>alert(1)</script></main><footer>Imprint</footer>`
	got, err := readable.Markdown(t.Context(), strings.NewReader(page), at)
	if err != nil {
		t.Fatal(err)
	}
	if want := "# Tea\n\n## Boil\n\nUse [water](https://example.org/water)."; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestHeadingsKeepTheirSigns(t *testing.T) {
	at := &url.URL{Scheme: "https", Host: "example.org"}
	page := "<article><h1>C#</h1><p>a</p><h2>#</h2><h3> Two\n<br><em>lines</em> #</h3><h4> </h4><h6>F</h6></article>"
	got, err := readable.Markdown(t.Context(), strings.NewReader(page), at)
	if err != nil {
		t.Fatal(err)
	}
	if want := "## C#\n\na\n\n## #\n\n### Two *lines* #\n\n###### F"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestMarkdownRefusesWhatCostsTooMuch(t *testing.T) {
	at := &url.URL{Scheme: "https", Host: "example.org"}
	if _, err := readable.Markdown(t.Context(), strings.NewReader(strings.Repeat("<p>x", 200_001)), at); err == nil {
		t.Error("a page of too many parts was converted")
	}
}

func FuzzMarkdown(f *testing.F) {
	f.Add("<title>a</title><article><h1>b</h1><table><tr><td colspan=99>|</table></article>")
	f.Add("<title>a</title><article><h1>#</h1></article>")
	f.Add("<table><tr><th>a<td colspan=2><ol reversed><li value=3>b<sup>2</sup></ol><tr><td rowspan=0>c<input type=checkbox></table>")
	f.Add("<ul><li><blockquote><pre><code>x</code></pre></blockquote></ul>")
	f.Fuzz(func(t *testing.T, page string) {
		at := &url.URL{Scheme: "https", Host: "example.org"}
		got, err := readable.Markdown(t.Context(), strings.NewReader(page), at)
		if err == nil && got != strings.TrimSpace(got) {
			t.Errorf("space around %q", got)
		}
		if _, err := readable.Whole(t.Context(), strings.NewReader(page)); err != nil {
			t.Log(err) // a page of too many parts
		}
	})
}
