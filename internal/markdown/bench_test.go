package markdown_test

import (
	"strings"
	"testing"

	"oneclaw/internal/markdown"
)

// enormous are answers of a size that were costly to split once: words without end,
// characters that grow when they are escaped, marks, characters of several code points.
func enormous(size int) map[string]string {
	pieces := map[string]string{
		"words": "word ", "one word": "x", "angles": "<", "ampersands": "&", "entities": "&amp;", "stars": "*", "quotes": ">",
		"ideographs": "字。", "families": "👨‍👩‍👧‍👦", "accents": "e\u0301\u0301\u0301", "spaces": " \u0301", "mentions": "@here",
		"backticks": "`", "brackets": "[", "links": "[a](https://a.b/c) ", "bold": "**b** ", "list": "- a\n", "table": "|a|b|\n|-|-|\n", "lines": "a\n\n",
		"code": "```\n" + strings.Repeat("c", 5000) + "\n```\n", "tags": "<b>x</b>", "escapes": `\*`, "quotation": `"`,
	}
	for name, piece := range pieces {
		pieces[name] = strings.Repeat(piece, size/len(piece)+1)
	}
	return pieces
}

// BenchmarkEnormous renders answers of 256 KiB, which are read as Markdown, and of 1 MiB,
// which are not. The time for a byte must not grow with the size.
func BenchmarkEnormous(b *testing.B) {
	for name, size := range map[string]int{"256KiB": 255 << 10, "1MiB": 1 << 20} {
		for what, text := range enormous(size) {
			b.Run(what+"/"+name+"/telegram", func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					markdown.Parse(text).TelegramHTML(4000)
				}
			})
			b.Run(what+"/"+name+"/slack", func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					markdown.Parse(text).SlackMrkdwn(3900)
				}
			})
		}
	}
}

// BenchmarkShort renders an answer of two sentences, as most are.
func BenchmarkShort(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		markdown.Parse("That is **tomorrow** at nine. Shall I [remind](https://example.com) you?").TelegramHTML(4000)
	}
}
