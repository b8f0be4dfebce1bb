package markdown

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// However a document is cut, its blocks stand there once and in order, no stretch has two tables,
// none begins behind its heading, and a stretch that is long is so because of one block.
func TestCutKeepsAllBlocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const limit = 200
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{
			"A paragraph of some words.", "# Head", "```go\nx := 1\n```", "| a | b |\n|---|---|\n| c | d |", "- one\n- two", strings.Repeat("long ", 60), "> quote",
		}), 0, 30).Draw(t, "blocks"), "\n\n")
		d := Parse(text)
		var all []*node
		for _, s := range d.SplitBlocks(limit) {
			blocks := s.root.children
			size, tables := 0, 0
			for _, n := range blocks {
				size += len(n.flatText(true))
				if n.kind == kindTable {
					tables++
				}
			}
			last := blocks[len(blocks)-1]
			if rest := size - len(last.flatText(true)); tables > 1 || rest > limit {
				t.Fatalf("a stretch of %d characters with %d tables", size, tables)
			}
			if all = append(all, blocks...); last.kind == kindHeading && blocks[0].kind != kindHeading && len(all) < len(d.root.children) {
				t.Fatalf("a heading ends a stretch")
			}
		}
		if len(all) != len(d.root.children) {
			t.Fatalf("%d blocks of %d", len(all), len(d.root.children))
		}
		for i, n := range all {
			if n != d.root.children[i] {
				t.Fatalf("block %d is another one", i)
			}
		}
	})
}
