package readable_test

import (
	"strings"
	"testing"
)

// Every word of a page is there once, in its order, and means what it meant.
func TestWordsKeepTheirPlacesAndMeanings(t *testing.T) {
	for name, c := range map[string]struct{ page, want string }{
		"lines and lists in cells": {
			"<table><tr><th>A<th>B<tr><td><ul><li>one<li>two<ol start=3><li>x<li>y</ol></ul><td><p>p</p>q<br>r|s</table>",
			"| A | B |\n|---|---|\n| - one<br>- two<br>3. x<br>4. y | p<br>q<br>r\\|s |",
		},
		"a table with code": {
			"<table><tr><th>A<th>B<tr><td><pre>a | b\nc</pre><td><code>d|e</code></table>",
			"A\n\nB\n\n```\na | b\nc\n```\n\n`d|e`",
		},
		"a table in a table": {"<table><tr><td><table><tr><td>a<td>b</table><td>c</table>", "|  |  |\n|---|---|\n| a | b |\n\nc"},
		"a single column":    {"<table><tr><td>a<tr><td>b</table>", "a\n\nb"},
		"a table in bold":    {"<b><table><tr><td>a<td>b</table></b>", "**a**\n\n**b**"},
		"rows with names":    {"<table><tr><td>a<td>b<tr><th>c<td>d</table>", "|  |  |\n|---|---|\n| a | b |\n| c | d |"},
		"cells over columns": {"<table><tr><td colspan=99>a<tr><td colspan=2>b<td>c</table>", "|  |  |  |\n|---|---|---|\n| a |  |  |\n| b |  | c |"},
		"cells to the end":   {"<table><tr><td rowspan=0>a<td>b<tr><td>c<tr><td>d</table>", "|  |  |\n|---|---|\n| a | b |\n|  | c |\n|  | d |"},
		"cells over many rows": {
			"<table><tr><th>A<th>B<tr><td rowspan=12>a<td>b" + strings.Repeat("<tr><td>c", 11) + "<tr><td>d<td>e</table>",
			"| A | B |\n|---|---|\n| a | b |\n" + strings.Repeat("|  | c |\n", 11) + "| d | e |",
		},
		"code in a quote":         {"<blockquote>a<pre>b\n\nc</pre><blockquote>d</blockquote></blockquote>", "> a\n> \n> ```\n> b\n> \n> c\n> ```\n> \n> > d"},
		"a list that counts down": {"<ol reversed><li><p>a</p><li>b</ol>", "- 2. a\n- 1. b"},
		"a list with gaps":        {"<ol><li>a<li value=7>b<li>c</ol>", "- 1. a\n- 7. b\n- 8. c"},
		"letters and numerals":    {`<ol type=a start=2><li>a<li>b</ol><ol style="list-style-type: upper-roman"><li>c<li>d</ol>`, "- b. a\n- c. b\n\n- I. c\n- II. d"},
		"boxes":                   {"<ul><li><input type=checkbox checked> a<li><label><input type=checkbox> b</label></ul>", "- [x] a\n- [ ] b"},
		"exponents":               {"<p>10<sup>6</sup> 2<sup>-3</sup> x<sup>n+1</sup> 1<sup>st</sup> a<sup><a href=/n>[1]</a></sup> b<sup>®</sup></p>", "10^6 2^-3 x^(n+1) 1st a[[1]](https://example.org/n) b®"},
		"indexes":                 {"<p>H<sub>2</sub>O log<sub>2</sub>8 x<sub>i</sub>y v<sub>max</sub></p>", "H_2O log_(2)8 x_(i)y v_max"},
		"struck":                  {"<p><s>19</s> 9 <del>a</del><strike>b</strike></p>", "~~19~~ 9 ~~ab~~"},
		"a formula":               {"<p>a <math><mfrac><mi>a</mi><mrow><mi>b</mi><mo>+</mo><mn>1</mn></mrow></mfrac><annotation>x</annotation></math> b</p>", "a a/(b+1) b"},
		"a summary":               {"<details><summary>a</summary>b</details>", "a\n\nb"},
		"signs of markup":         {"<p>a &lt; b &amp;&amp; List&lt;T> &amp;lt; &amp;copy; <code>&lt;i></code></p>", "a < b && List<T> &lt; &copy; `<i>`"},
		"a picture for later":     {`<p>a<img src="data:image/gif;base64,AA" data-src="/b.png" alt="b"></p>`, "a![b](https://example.org/b.png)"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := markdown(t, "<article>"+c.page+"</article>")
			if err != nil || got != c.want {
				t.Errorf("%v, got\n%s\nwant\n%s", err, got, c.want)
			}
		})
	}
}

func TestTablesStaySmall(t *testing.T) {
	for name, page := range map[string]string{
		"cells that span others": "<tr>" + strings.Repeat("<td rowspan=10 colspan=10>x", 2000),
		"one long cell":          "<tr><td>a<td>" + strings.Repeat("x", 10_000) + strings.Repeat("<tr><td>a<td>b", 1000),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := newReader(t).VisibleText(t.Context(), "<table>"+page+"</table>")
			if err != nil || len(got) > 300_000 {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		})
	}
}

func TestWholeLeavesNothingOut(t *testing.T) {
	mail := `<head><title>t</title><style>p{}</style></head><table role=presentation><tr><td><h1>Shop</h1><td><a href="/x">Log in</a></table>
<table><tr><td>Total<td>12,50 €</table><footer>Imprint &lt;a@b.example></footer>`
	got, err := newReader(t).VisibleText(t.Context(), mail)
	if want := "# Shop\n\n[Log in](/x)\n\n|  |  |\n|---|---|\n| Total | 12,50 € |\n\nImprint <a@b.example>"; err != nil || got != want {
		t.Errorf("%v, got\n%s\nwant\n%s", err, got, want)
	}
}
