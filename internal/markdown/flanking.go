package markdown

import (
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// wideParser parses emphasis also where no space separates it from Chinese, Japanese or Korean text. CommonMark
// does not close **重要：**これは, because the mark stands between punctuation and a letter. The rules are those of
// github.com/tats-u/markdown-cjk-friendly: punctuation of these scripts does not count as such, and a letter of them
// counts as a space where the other side is punctuation.
type wideParser struct{ parser.InlineParser }

// wideEmphasis is the extension with these parsers.
type wideEmphasis struct{}

// Extend adds the parsers, before those that they wrap.
func (wideEmphasis) Extend(m goldmark.Markdown) {
	m.Parser().AddOptions(parser.WithInlineParsers(
		util.Prioritized(wideParser{parser.NewEmphasisParser()}, 499),
		util.Prioritized(wideParser{extension.NewStrikethroughParser()}, 499),
	))
}

// Parse parses a run of marks.
func (p wideParser) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	before := block.PrecendingCharacter()
	line, _ := block.PeekLine()
	node := p.InlineParser.Parse(parent, block, pc)
	if d, is := node.(*parser.Delimiter); is {
		after, _ := utf8.DecodeRune(line[d.OriginalLength:])
		if d.OriginalLength == len(line) {
			after = ' '
		}
		d.CanOpen, d.CanClose = flanks(before, after, d.Char == '_')
	}
	return node
}

// flanks reports whether a run of marks between two characters can open and can close emphasis. With strict, marks
// within a word do neither.
func flanks(before, after rune, strict bool) (opens, closes bool) {
	spaceBefore, spaceAfter := util.IsSpaceRune(before), util.IsSpaceRune(after)
	wideBefore, wideAfter := isWide(before), isWide(after)
	markBefore, markAfter := util.IsPunctRune(before), util.IsPunctRune(after)
	left := !spaceAfter && (!markAfter || wideAfter || spaceBefore || markBefore || wideBefore)
	right := !spaceBefore && (!markBefore || wideBefore || spaceAfter || markAfter || wideAfter)
	if !strict {
		return left, right
	}
	return left && (!right || markBefore), right && (!left || markAfter)
}

// isWide reports whether a character belongs to Chinese, Japanese or Korean text.
func isWide(r rune) bool {
	switch {
	case r < 0x1100:
		return false
	case r >= 0x2E80 && r <= 0x303F, r >= 0x30A0 && r <= 0x33FF, r >= 0xFE10 && r <= 0xFE1F, r >= 0xFE30 && r <= 0xFE6F, r >= 0xFF01 && r <= 0xFFEE, r >= 0xE0100 && r <= 0xE01EF:
		return true // symbols, full-width forms, and the selectors of ideographs
	}
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo, unicode.Yi)
}
