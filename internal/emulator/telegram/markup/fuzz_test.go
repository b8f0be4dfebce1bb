package markup_test

import (
	"testing"
	"unicode/utf16"

	"oneclaw/internal/emulator/telegram/markup"
)

// FuzzHTML reads any text as HTML: it is accepted with entities that lie inside it,
// or refused.
func FuzzHTML(f *testing.F) {
	for _, seed := range []string{
		`<b>x</b> &lt; &#x1F600; <a href="https://e.org">y</a>`, `<pre><code class="language-go">z</code></pre>`,
		"<b <i>", `<a href='`, "&#;&#x;&", "</", " <b>\n</b> ", "<a =>", "<blockquote expandable>q</blockquote>",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, html string) {
		plain, entities, err := markup.ParseHTML(html)
		if err != nil {
			return
		}
		text := markup.Text{Plain: plain, Entities: entities}
		text.Normalize()
		size := len(utf16.Encode([]rune(text.Plain)))
		for _, e := range text.Entities {
			if e.Offset < 0 || e.Length <= 0 || e.Offset+e.Length > size {
				t.Errorf("entity %+v outside of %d units", e, size)
			}
		}
	})
}
