package markdown

import (
	"strings"

	east "github.com/yuin/goldmark/extension/ast"
)

// kind is the kind of a node.
type kind uint8

const (
	kindDocument kind = iota
	kindParagraph
	kindHeading
	kindCodeBlock
	kindQuote
	kindList
	kindItem
	kindTable
	kindRow
	kindCell
	kindRule

	kindText
	kindBreak
	kindCode
	kindStrong
	kindEmphasis
	kindStrike
	kindLink

	kindNote // in a line the reference to a footnote, as a block the footnote
)

// node is a part of the tree. Only the fields of its kind are set.
type node struct {
	kind       kind
	text       string           // text, code, code block
	url        string           // link
	isAutolink bool             // link: its text is its address
	lang       string           // code block
	level      int              // heading
	ordered    bool             // list
	number     int              // item of an ordered list, footnote
	checkBox   string           // item: its check box, empty if it has none
	align      []east.Alignment // table
	children   []*node
}

// cellLines returns the text in a cell with the addresses of links. Tags break its lines.
func (n *node) cellLines() string {
	switch {
	case n.kind == kindText:
		return lineBreak.ReplaceAllString(n.text, "\n")
	case len(n.children) == 0:
		return n.flatText(true)
	}
	var b strings.Builder
	for _, c := range n.children {
		b.WriteString(c.cellLines())
	}
	return b.String() + n.urlSuffix()
}

// flatText returns the text in n without structure, optionally with the addresses of links.
func (n *node) flatText(addresses bool) string {
	if len(n.children) == 0 {
		if n.kind == kindBreak {
			return " "
		}
		return n.text
	}
	var b strings.Builder
	for _, c := range n.children {
		b.WriteString(c.flatText(addresses))
	}
	if addresses {
		b.WriteString(n.urlSuffix())
	}
	return b.String()
}

// urlSuffix returns the address of a link as a suffix of its text, if they differ.
func (n *node) urlSuffix() string {
	if n.kind != kindLink || n.isAutolink || n.url == "" || strings.TrimPrefix(n.url, "mailto:") == n.flatText(false) {
		return ""
	}
	return " (" + strings.TrimPrefix(n.url, "mailto:") + ")"
}

// plainTree makes paragraphs of verbatim text.
func plainTree(text string) *node {
	root := &node{kind: kindDocument}
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, "\n"); strings.TrimSpace(line) != "" {
			lines = append(lines, line)
			continue
		}
		root.children = appendLines(root.children, lines)
		lines = lines[:0]
	}
	root.children = appendLines(root.children, lines)
	return root
}

// appendLines appends a paragraph of the lines, if any.
func appendLines(blocks []*node, lines []string) []*node {
	if len(lines) == 0 {
		return blocks
	}
	p := &node{kind: kindParagraph}
	for i, line := range lines {
		if i > 0 {
			p.children = append(p.children, &node{kind: kindBreak})
		}
		p.children = append(p.children, &node{kind: kindText, text: line})
	}
	return append(blocks, p)
}
