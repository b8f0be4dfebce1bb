package markdown_test

import (
	"fmt"
	"strings"
	"testing"

	"oneclaw/internal/markdown"
)

const telegramLimit, slackLimit = 4096, 3000

func telegramHTML(t *testing.T, source string, limit int) []markdown.Part {
	t.Helper()
	if err := verifyTelegram(source, limit); err != nil {
		t.Error(err)
	}
	return markdown.Parse(source).TelegramHTML(limit)
}

func slackMrkdwn(t *testing.T, source string, limit int) []markdown.Part {
	t.Helper()
	if err := verifySlack(source, limit); err != nil {
		t.Error(err)
	}
	return markdown.Parse(source).SlackMrkdwn(limit)
}

// join puts parts together, with the zero-width space as ␣.
func join(parts []markdown.Part) string {
	var texts []string
	for _, p := range parts {
		texts = append(texts, strings.ReplaceAll(p.Text, "\u200b", "␣"))
	}
	return strings.Join(texts, "|")
}

// Addresses with quotes keep the markup valid.
func TestTelegramInline(t *testing.T) {
	tests := []struct{ name, source, want string }{
		{"escapes", `a < b & c > "d"`, `a &lt; b &amp; c &gt; "d"`},
		{"entities", `&lt;b&gt; &copy; \&amp; \*x\*`, `&lt;b&gt; © &amp;amp; *x*`},
		{"nested emphasis", `**a *b ~~c~~***`, `<b>a <i>b <s>c</s></i></b>`},
		{"quotes and ampersands in a URL", `[x](http://a.b/?q="1"&r=<2>)`, `<a href="http://a.b/?q=%221%22&amp;r=%3C2%3E">x</a>`},
		{"single quote in a URL", `[x](http://a.b/it's)`, `<a href="http://a.b/it's">x</a>`},
		{"other scheme", `[x](javascript:alert(1))`, `x (javascript:alert(1))`},
		{"relative address", `[x](docs/y.md)`, `x (docs/y.md)`},
		{"mail", `[Bob](mailto:b@c.de), b@c.de`, `Bob (b@c.de), b@c.de`},
		{"tg scheme", `[x](tg://resolve?domain=a)`, `<a href="tg://resolve?domain=a">x</a>`},
		{"image", `![alt](http://a.b/c.png) ![](http://a.b/d.png)`, `<a href="http://a.b/c.png">alt</a> <a href="http://a.b/d.png">image</a>`},
		{"code in a link", "[`f`](http://a.b)", `<a href="http://a.b">f</a>`},
		{"link without text", `[](http://a.b)`, `<a href="http://a.b">http://a.b</a>`},
		{"raw HTML", `a <b>bold</b> <br> <script>`, "a &lt;b&gt;bold&lt;/b&gt;\n&lt;script&gt;"},
		{"comment", `<!-- kept -->`, `&lt;!-- kept --&gt;`},
		{"backticks in code", "`` a`b ``", "<code>a`b</code>"},
		{"bare link", `see www.a.bc.`, `see <a href="http://www.a.bc">www.a.bc</a>.`},
		{"used definition", "[a][r]\n\n[r]: http://r.s", `<a href="http://r.s">a</a>`},
		{"right to left", `**שלום** עולם`, `<b>שלום</b> עולם`},
		{"control characters", "a\x00b\r\nc\xff", "a b\nc\uFFFD"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := join(telegramHTML(t, tt.source, telegramLimit)); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestSlackInline(t *testing.T) {
	tests := []struct{ name, source, want string }{
		{"styles", "**b** *i* ~~s~~ `c`", "*b* _i_ ~s~ `c`"},
		{"escapes outside and inside code", "a < b & c `a < b & c`", "a &lt; b &amp; c `a &lt; b &amp; c`"},
		{"escapes in a block", "```\na < b & c\n```", "```\na &lt; b &amp; c\n```"},
		{"link", `[a **b** <c>](http://x.y/?a=1&b=|)`, `<http://x.y/?a=1&amp;b=%7C|a b &lt;c&gt;>`},
		{"bold in a word", `foo**bar**baz`, `foo␣*bar*␣baz`},
		{"bold beside punctuation", `(**a**), **b**.`, `(*a*), *b*.`},
		{"bold beside quotation marks and a colon", `"**a**" **b**: c`, `"*a*" *b*: c`},
		{"code beside slashes", "`a`/`b`; `c`(", "`a`␣/␣`b`␣; `c`␣("},
		{"bold beside ideographs", `中**文**字`, `中␣*文*␣字`},
		{"bold over lines", "**a\nb**", "*a*\n*b*"},
		{"snake case", `a_b_c 2\*3\*4`, `a_b_c 2*3*4`},
		{"literal marks", `\*a\* ~ \~`, `*␣a* ~ ~`},
		{"lone tilde", `in ~/.config`, `in ~/.config`},
		{"backtick in code", "`` a`b ``", "``` a`b ```"},
		{"fence in code", "~~~\n```\n~~~", "```\n`␣`␣`\n```"},
		{"quote", "> a\n> b\n>\n> c", "> a\n> b\n>\n> c"},
		{"literal quote", `\> a`, `␣&gt; a`},
		{"mail", `[Bob](mailto:b@c.de)`, `<mailto:b@c.de|Bob>`},
		{
			"mentions", `<!channel> <!here|x> <@U123> <#C1> @channel @Here @everyone @bob`,
			`&lt;!channel&gt; &lt;!here|x&gt; &lt;@U123&gt; &lt;#C1&gt; @␣channel @␣Here @␣everyone @bob`,
		},
		{"mention put together", `@**channel**`, `@␣*channel*`},
		{"mention with a tail", `@channe*l*`, `@␣channe␣_l_`},
		{"mention in code stays", "`@channel`", "`@channel`"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := join(slackMrkdwn(t, tt.source, slackLimit)); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestTelegramMentions(t *testing.T) {
	source := "@bob a@b.cd (@al) [u](tg://user?id=1) `@code`\n\n```\n@block\n```"
	part := telegramHTML(t, source, telegramLimit)[0]
	want := "@␣bob a@b.cd (@␣al) u (tg://user?id=1) <code>@code</code>\n\n<pre>@block</pre>"
	if got := join([]markdown.Part{part}); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if strings.Contains(part.Plain, "@code") || strings.Contains(part.Plain, "@block") {
		t.Errorf("live mention in plain text, which has no code: %s", part.Plain)
	}
}

// Telegram drops a link to such a host without an error.
func TestLinksThatTelegramDropsShowTheirAddress(t *testing.T) {
	for _, address := range []string{
		"http://localhost:3000/d/1", "https://grafana/", "http://wiki?q", "http://./", "http://a.b:0/", "http://a.b:65536/", "http://a.b:/", "http://a@b@c.d/",
		"http://a.b:c/", "tg://a.b", "tg://u:1", "tg:",
	} {
		want := "see x (" + address + ")"
		if got := join(telegramHTML(t, "see [x]("+address+")", telegramLimit)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	for _, address := range []string{
		"http://a.b:8080/%25zz", "HTTPS://%C3%A4.example#x", "http://1.2.3.4/", "http://a-b_c.d?q", "http://u:p@a.b/", "tg:resolve?domain=a",
	} {
		want := `see <a href="` + address + `">x</a>`
		if got := join(telegramHTML(t, "see [x]("+address+")", telegramLimit)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// Telegram deletes some characters before it looks for names.
func TestMentionsBehindDeletedCharacters(t *testing.T) {
	for _, deleted := range []string{"\u202a", "\u202e\u202c", "\u030a", "\u0333", "\u033f", "&#x202d;"} {
		part := telegramHTML(t, "@"+deleted+"alice, @"+deleted+"**"+deleted+"bob**", telegramLimit)[0]
		if got := join([]markdown.Part{part}); got != "@␣alice, @<b>␣bob</b>" {
			t.Errorf("%q: got %q", deleted, got)
		}
		if strings.Contains(part.Plain, "@alice") {
			t.Errorf("%q: live plain text %q", deleted, part.Plain)
		}
	}
}

// TestMentionBehindALink has a name that follows a word in the rendering but a
// parenthesis in the plain text.
func TestMentionBehindALink(t *testing.T) {
	for _, source := range []string{"[x](http://a.b)@channel", "[@](http://a.b)channel", "[x](http://a.b)@bob"} {
		slackMrkdwn(t, source, slackLimit)
		part := telegramHTML(t, source, telegramLimit)[0]
		if strings.Contains(part.Plain, "@bob") || strings.Contains(part.Plain, "@channel") {
			t.Errorf("%s: live plain text %q", source, part.Plain)
		}
	}
}

func TestItemsKeepTheirNumbers(t *testing.T) {
	for source, want := range map[string]string{
		"3. c\n2. b\n1. a":             "3. c\n2. b\n1. a",
		"2. a\n5. b\n   1. x\n   4. y": "2. a\n5. b\n    1. x\n    4. y",
		"4. [x] a\n6. [ ] b":           "4. ☑ a\n6. ☐ b",
		"1. a\n1. b\n1. c":             "1. a\n2. b\n3. c",
		"5.\n7. b":                     "5.\n7. b",
	} {
		if got := join(telegramHTML(t, source, telegramLimit)); got != want {
			t.Errorf("%q: got %q, want %q", source, got, want)
		}
	}
}

func TestRowsKeepWhatIsBeyondTheirCells(t *testing.T) {
	source := "| Op | Code | Is |\n|-|-|-|\n| or | `a || b` | either |\n| x | | y |  |\n> | A | B |\n> |-|-|\n> | 1 | 2 | 3"
	want := "<pre>Op | Code | Is\n---+------+--------------\nor | `a   | | b` | either\nx  |      | y</pre>\n\n<blockquote><pre>A | B\n--+------\n1 | 2 | 3</pre></blockquote>"
	if got := join(telegramHTML(t, source, telegramLimit)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestUnusedDefinitionsBehindAUsedOneAreShown(t *testing.T) {
	for block, shown := range map[string][2]string{
		"- See [the guide][1]\n- more":       {"• See <a href=\"https://a.example\">the guide</a>\n• more", "• See <https://a.example|the guide>\n• more"},
		"[the guide][1]\n\n```\nx := 1\n```": {"<a href=\"https://a.example\">the guide</a>\n\n<pre>x := 1</pre>", "<https://a.example|the guide>\n\n```\nx := 1\n```"},
		"> [the guide][1]":                   {"<blockquote><a href=\"https://a.example\">the guide</a></blockquote>", "> <https://a.example|the guide>"},
		"| A |\n|-|\n| [the guide][1] |":     {"<pre>A\n-----------------------------\nthe guide (https://a.example)</pre>", "```\nA\n-----------------------------\nthe guide (https://a.example)\n```"},
		"[the guide][1]\n\n---":              {"<a href=\"https://a.example\">the guide</a>\n\n────────", "<https://a.example|the guide>\n\n────────"},
	} {
		source := block + "\n\n[1]: https://a.example\n[2]: https://b.example\n[3]: https://c.example \"C\""
		want := shown[0] + "\n\n[2]: <a href=\"https://b.example\">https://b.example</a>\n[3]: <a href=\"https://c.example\">https://c.example</a> \"C\""
		if got := join(telegramHTML(t, source, telegramLimit)); got != want {
			t.Errorf("Telegram: got\n%s\nwant\n%s", got, want)
		}
		want = shown[1] + "\n\n[2]: <https://b.example|https://b.example>\n[3]: <https://c.example|https://c.example> \"C\""
		if got := join(slackMrkdwn(t, source, slackLimit)); got != want {
			t.Errorf("Slack: got\n%s\nwant\n%s", got, want)
		}
	}
}

func TestEmptyTextHasNoParts(t *testing.T) {
	for _, source := range []string{"", " \n\t\n", "\u200b", "\x00"} {
		if got := telegramHTML(t, source, telegramLimit); len(got) != 0 {
			t.Errorf("%q: Telegram parts %v", source, got)
		}
		if got := slackMrkdwn(t, source, slackLimit); len(got) != 0 {
			t.Errorf("%q: Slack parts %v", source, got)
		}
	}
}

func TestMarkupAloneIsTheText(t *testing.T) {
	for source, want := range map[string]string{
		"```\xcc": "```\uFFFD", "> ": "&gt;", "#\n\n- ": "#\n\n-",
		"[a]: http://b.c": `[a]: <a href="http://b.c">http://b.c</a>`,
	} {
		if got := join(markdown.Parse(source).TelegramHTML(telegramLimit)); got != want {
			t.Errorf("%q: Telegram shows %q", source, got)
		}
	}
	if got := slackMrkdwn(t, strings.Repeat("[a]: http://b.c\n", 1000), slackLimit); len(got) < 4 {
		t.Errorf("definitions of links in %d parts", len(got))
	}
}

// An answer that cannot be rendered goes out plain.
func TestFailingReaderGivesPlainText(t *testing.T) {
	doc := markdown.ParseWith("**a** <b>\n\nc\nd", func() { panic("no Markdown today") })
	if got := join(doc.TelegramHTML(telegramLimit)); got != "**a** &lt;b&gt;\n\nc\nd" {
		t.Errorf("got %q", got)
	}
}

// An answer that cannot be rendered goes out plain.
func TestFailingRenderingGivesPlainText(t *testing.T) {
	doc := markdown.Broken("**a** <b>\n\nc")
	if got := join(doc.TelegramHTML(telegramLimit)); got != "**a** &lt;b&gt;\n\nc" {
		t.Errorf("got %q", got)
	}
	if got := doc.SlackMrkdwn(slackLimit); len(got) != 1 || got[0].Plain != "**a** &lt;b&gt;\n\nc" {
		t.Errorf("got %q", got)
	}
}

// TestCostlyInput has texts that take the parser minutes without the caps.
func TestCostlyInput(t *testing.T) {
	t.Parallel()
	const size = 40_000
	sources := map[string]string{
		"quotes":         strings.Repeat(">", 20_000) + "a",
		"quotes apart":   strings.Repeat("> ", size/2) + "a",
		"lists":          strings.Repeat("1. ", size/3) + "a",
		"bullets":        strings.Repeat("- ", size/2) + "a",
		"delimiters":     strings.Repeat("*x_", size/3),
		"lines":          strings.Repeat("*x_\n", size/4),
		"in a quote":     strings.Repeat("> *x_\n", size/6),
		"heading":        "# " + strings.Repeat("*x_", size/3),
		"setext":         strings.Repeat("*x_\n", size/4) + "===",
		"quoted setext":  strings.Repeat("> *x_\n", size/6) + "> ===",
		"links":          strings.Repeat("[a](", size/4),
		"brackets":       strings.Repeat("[", size/2) + strings.Repeat("]", size/2),
		"hidden":         "<pre>\n```\n</pre>\n\n" + strings.Repeat("*x_", size/3),
		"hidden later":   "a\n<!--\n```\n-->\n\n" + strings.Repeat(">", 20_000) + "a",
		"behind a fence": "```\na\n   ````  \n" + strings.Repeat(">", 20_000) + "a",
		"within a list":  "- a\n\n  ```\n\n" + strings.Repeat("*x_", size/3),
		"table":          strings.Repeat("|a", 1000) + "\n" + strings.Repeat("|-", 1000) + "\n" + strings.Repeat("a\n", size/2),
		"one cluster":    "e" + strings.Repeat("\u0301", size/2),
		"long":           strings.Repeat("**a** ", 44_000),
		"deep emphasis":  strings.Repeat("**a ", 900) + strings.Repeat(" a**", 900),
	}
	for name, source := range sources {
		t.Run(name, func(t *testing.T) {
			if err := verifyTelegram(source, telegramLimit); err != nil {
				t.Error(err)
			}
			if err := verifySlack(source, slackLimit); err != nil {
				t.Error(err)
			}
		})
	}
}

// Code stays code, whatever is in it, and what follows it is no part of it.
func TestCodeOfManyMarksIsCode(t *testing.T) {
	t.Parallel()
	for _, code := range []string{
		"a\n\n" + strings.Repeat(">", 65) + "\nb", "  a <br>\n\n" + strings.Repeat("*a", 4100), strings.Repeat("- ", 65) + "a", "a\n    ```\n``\n~~~\n" + strings.Repeat("[", 4100),
	} {
		for _, fence := range []string{"```", "~~~~", "`````"} {
			source := "**Before:**\n\n" + fence + "\n" + code + "\n" + fence + "\n\n**Behind.**"
			want := "<b>Before:</b>\n\n<pre>" + strings.ReplaceAll(strings.ReplaceAll(code, "<", "&lt;"), ">", "&gt;") + "</pre>\n\n<b>Behind.</b>"
			if got := join(markdown.Parse(source).TelegramHTML(1 << 20)); got != want {
				t.Errorf("%.60q is shown as %.200q", source, got)
			}
			if got := join(markdown.Parse(source).SlackMrkdwn(1 << 20)); !strings.HasPrefix(got, "*Before:*\n\n```\n") {
				t.Errorf("%.60q is shown in Slack as %.200q", source, got)
			}
		}
	}
}

func TestLongAnswersAreSplit(t *testing.T) {
	var b strings.Builder
	for i := range 400 {
		fmt.Fprintf(&b, "Sentence %d of the answer, with a few words.\n\n", i)
	}
	for _, part := range slackMrkdwn(t, b.String(), 4000) {
		if utf16Len(part.Text) < 3000 && !strings.Contains(part.Text, "Sentence 399") {
			t.Errorf("a part of only %d units", utf16Len(part.Text))
		}
	}
	parts := telegramHTML(t, b.String(), telegramLimit)
	if len(parts) != 5 || !strings.HasSuffix(parts[0].Text, "words.") {
		t.Errorf("%d parts, the first ends %q", len(parts), parts[0].Text[len(parts[0].Text)-20:])
	}
}

func TestCutsKeepMarkup(t *testing.T) {
	long := func(s string, n int) string { return strings.TrimSpace(strings.Repeat(s, n)) }
	tests := []struct{ name, source, want string }{
		{
			"bold is closed and opened", "**" + long("word ", 20) + "**",
			"<b>" + long("word ", 13) + "</b>|<b>" + long("word ", 7) + "</b>",
		},
		{
			"code is opened with its language", "```go\n" + strings.Repeat("x := 12345\n", 7) + "```",
			`<pre><code class="language-go">` + long("x := 12345\n", 5) + `</code></pre>|<pre><code class="language-go">` + long("x := 12345\n", 2) + "</code></pre>",
		},
		{"sentence before word", long("a ", 20) + "b. " + long("c ", 20), long("a ", 20) + "b.|" + long("c ", 20)},
		{"numbers go on", "8. " + long("x", 30) + "\n9. " + long("y", 30) + "\n10. z", "8. " + long("x", 30) + "|9. " + long("y", 30) + "\n10. z"},
		{"a long word that fits is moved", "a b " + long("x", 63), "a b|" + long("x", 63)},
		{"a longer one is cut", long("x", 70), long("x", 64) + "|" + long("x", 6)},
		{"emoji clusters stay whole", long("👩‍👩‍👧‍👦", 9), long("👩‍👩‍👧‍👦", 5) + "|" + long("👩‍👩‍👧‍👦", 4)},
		{"flags stay whole", "a" + long("🇩🇪", 16), "a" + long("🇩🇪", 15) + "|🇩🇪"},
		{"heading stays with its text", long("x ", 15) + "\n\n# Heading\n\n" + long("y ", 15), long("x ", 15) + "|<b>Heading</b>\n\n" + long("y ", 15)},
		{
			"table repeats its header", "|h|i|\n|-|-|\n" + strings.Repeat("|aaaa|bbbb|\n", 6),
			"<pre>h    | i\n-----+-----\naaaa | bbbb\naaaa | bbbb\naaaa | bbbb</pre>|<pre>h    | i\n-----+-----\naaaa | bbbb\naaaa | bbbb\naaaa | bbbb</pre>",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := join(telegramHTML(t, tt.source, 64)); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestSentenceEndAtTheLimit has a sentence that ends exactly at the limit
// and one that ends a character later.
// Telegram makes links, users and commands of names of files and packages, which people want to copy.
func TestNamesOfFilesAndPackagesAreCode(t *testing.T) {
	for source, want := range map[string]string{
		"Write to ann.lee+news@example.org.":       "Write to <code>ann.lee+news@example.org</code>.",
		"o'neil@example.org, 'ann@example.org'":    "<code>o'neil@example.org</code>, 'ann@example.org'",
		"Run `x`, then run.py (see README.md)!":    "Run <code>x</code>, then <code>run.py</code> (see <code>README.md</code>)!",
		"npm i @angular/cli, or ./run.sh and ../x": "npm i <code>@angular/cli</code>, or <code>./run.sh</code> and <code>../x</code>",
		"**src/main.rs** is it":                    "<b><code>src/main.rs</code></b> is it",
		"[README.md](https://a.b/README.md)":       `<a href="https://a.b/README.md">README.md</a>`,
		"ask a.com, v1.2 and etc.":                 "ask a.com, v1.2 and etc.",
		"hello @ann":                               "hello @\u200bann",
	} {
		if got := markdown.Parse(source).TelegramHTML(4096); len(got) != 1 || got[0].Text != want {
			t.Errorf("%q is %+v, want %q", source, got, want)
		}
	}
}

// Telegram refuses a message whose links together have long addresses, however short their texts are.
func TestPartsAreCutByTheSizeOfTheirFormatting(t *testing.T) {
	for name, item := range map[string]string{
		"links":                "- [l](https://example.org/" + strings.Repeat("a", 170) + ")\n",
		"references":           "- [y]\n",
		"bold words in a link": "[a **b** c](https://example.org/" + strings.Repeat("a", 170) + ")\n",
		"longest addresses":    "[z](https://example.org/" + strings.Repeat("a", 1900) + ") ",
	} {
		source := strings.Repeat(item, 60) + "\n[y]: https://example.org/" + strings.Repeat("b", 300)
		if err := strictTelegram(source, 4096); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		links := 0
		for _, p := range markdown.Parse(source).TelegramHTML(4096) {
			links += strings.Count(p.Text, "<a ")
		}
		if links < 60 {
			t.Errorf("%s: %d of 60 links", name, links)
		}
	}
}

func TestSentenceEndAtTheLimit(t *testing.T) {
	for _, n := range []int{62, 63, 64, 65} {
		telegramHTML(t, strings.Repeat("a", n)+". "+strings.Repeat("𝕏", 40), 64)
	}
}

func TestPlainHasAddresses(t *testing.T) {
	source := "**See** [docs](http://a.b/?x=1&y) and `c < d`"
	if got, want := telegramHTML(t, source, telegramLimit)[0].Plain, "See docs (http://a.b/?x=1&y) and c < d"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := slackMrkdwn(t, source, slackLimit)[0].Plain, "See docs (http://a.b/?x=1&amp;y) and c &lt; d"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func benchmarkAnswer(size int) string {
	const section = "## Heading\n\nSome **bold** text with `code`, a [link](https://a.b/c?d=e&f) and 100 other words.\nA second line.\n\n" +
		"- one\n- two\n  - nested *item* here\n\n```go\nfor i := range n {\n\tfmt.Println(i, a < b)\n}\n```\n\n" +
		"| name | count |\n|---|---:|\n| one | 1 |\n| two | 22 |\n\n> A quote, & so on.\n\n"
	return strings.Repeat(section, size/len(section)+1)[:size]
}

func BenchmarkAnswer(b *testing.B) {
	for _, size := range []int{4 << 10, 100 << 10} {
		source := benchmarkAnswer(size)
		doc := markdown.Parse(source)
		run := func(name string, f func()) {
			b.Run(fmt.Sprintf("%s/%dKiB", name, size>>10), func(b *testing.B) {
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					f()
				}
			})
		}
		run("parse", func() { markdown.Parse(source) })
		run("telegram", func() { doc.TelegramHTML(telegramLimit) })
		run("slack", func() { doc.SlackMrkdwn(slackLimit) })
	}
}
