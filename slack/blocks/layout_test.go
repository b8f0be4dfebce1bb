package blocks

import (
	"fmt"
	"strings"
	"testing"

	"github.com/slack-go/slack"
	"pgregory.net/rapid"

	"oneclaw/internal/markdown"
)

// shown is what people see of blocks, one line for each.
func shown(t interface{ Fatalf(string, ...any) }, all []slack.Block) (lines []string) {
	for _, b := range all {
		switch b := b.(type) {
		case *slack.SectionBlock:
			lines = append(lines, "section: "+b.Text.Text)
		case *slack.MarkdownBlock:
			lines = append(lines, "code: "+b.Text)
		case *slack.TableBlock:
			lines = append(lines, fmt.Sprint("table ", b.ColumnSettings, ":"))
			for _, row := range b.Rows {
				var cells []string
				for _, c := range row {
					cells = append(cells, c.(*slack.TableRawTextCell).Text)
				}
				lines = append(lines, strings.Join(cells, "|"))
			}
		default:
			t.Fatalf("there is a %T", b)
		}
	}
	return lines
}

func TestTablesAndCodeHaveBlocksOfTheirOwn(t *testing.T) {
	small := "| a | b |\n|---|--:|\n| **1** <!channel> | |\n"
	for name, tt := range map[string]struct{ text, want string }{
		"neither":    {"Just *words*.\n\n- `x`\n", ""},
		"in a list":  {"- one\n\n  ```\n  x\n  ```\n", ""},
		"table":      {"Look:\n\n" + small + "\nSo.", "section: Look:\ntable [{left true} {right true}]:\na|b\n1 <!channel>| \nsection: So."},
		"two tables": {small + "\nand\n\n" + small, "table [{left true} {right true}]:\na|b\n1 <!channel>| \nsection: and\nsection: ```\na            | b\n-------------+--\n1 &lt;!channel&gt; |\n```"},
		"code":       {"Do:\n\n````go\nx := \"```\"\n````\n", "section: Do:\ncode: ````go\nx := \"```\"\n````"},
		"calling":    {"```\n<!here>\n```\n\n```\nx\n```\n", "section: ```\n&lt;!here&gt;\n```\ncode: ```\nx\n```"},
		"too wide":   {strings.Repeat("|a", 21) + "|\n" + strings.Repeat("|-", 21) + "|\n", ""},
		"too long":   {"|a|\n|-|\n" + strings.Repeat("|b|\n", 100), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(shown(t, Decode(Layout(markdown.Parse(tt.text)))), "\n"); !strings.Contains(got, tt.want) || tt.want == "" && got != "" {
				t.Errorf("it is laid out as\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

// Whatever an answer is, its layout keeps the limits, calls nobody, and shows each of its words.
func TestLayoutsKeepTheWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOfN(rapid.SampledFrom([]string{
			"word", "**bold** <!here>", "\n\n", "```\ncode <@U1>\n```\n\n", "| a | b |\n|---|---|\n| cell | x |\n\n", "- item\n", "> quote\n\n", "```js\n", "[link](https://example.com)",
		}), 1, 60).Draw(t, "pieces")
		laid := Decode(Layout(markdown.Parse(strings.Join(pieces, ""))))
		tables, lines := 0, shown(t, laid)
		for _, b := range laid {
			if table, ok := b.(*slack.TableBlock); ok {
				tables++
				if len(table.Rows) == 0 || len(table.Rows) > maxRows {
					t.Fatalf("a table of %d rows", len(table.Rows))
				}
			}
			if s, ok := b.(*slack.SectionBlock); ok && (s.Text.Text == "" || strings.Contains(s.Text.Text, "<!") || strings.Contains(s.Text.Text, "<@")) {
				t.Fatalf("a section says %q", s.Text.Text)
			}
		}
		if tables > 1 || len(laid) > maxBlocks {
			t.Fatalf("%d tables in %d blocks", tables, len(laid))
		}
		all := strings.Join(lines, "\n")
		for _, word := range []string{"word", "bold", "code", "cell", "item", "quote", "link"} {
			n := 0
			for _, p := range pieces {
				n += strings.Count(p, word)
			}
			if laid != nil && strings.Count(strings.ReplaceAll(all, "code: ", ""), word) != n {
				t.Fatalf("%q stands there %d times, want %d:\n%s", word, strings.Count(all, word), n, all)
			}
		}
	})
}
