package markdown

import (
	"strings"

	east "github.com/yuin/goldmark/extension/ast"
)

// Piece is a part of a document, for platforms that show tables and code natively.
type Piece struct {
	// Text is the piece as a document, also of a table or a block of code.
	Text *Document
	// Table or Code is set if the piece is a table or a block of code.
	Table *Table
	Code  *Code
}

// Table is a table of texts.
type Table struct {
	// Rows are the rows, the head first, with equal numbers of cells.
	Rows [][]string
	// Align is left, center or right for each column.
	Align []string
}

// Code is a block of code.
type Code struct{ Lang, Text string }

// Pieces splits a document. Tables and code inside lists and quotes stay there.
func (d *Document) Pieces() (pieces []Piece) {
	joins := false // the next block may join the last piece
	for _, n := range d.root.children {
		alone := newDocument([]*node{n})
		switch {
		case n.kind == kindTable && len(n.children) > 0:
			rows, _ := cellTexts(n)
			pieces = append(pieces, Piece{Text: alone, Table: &Table{Rows: rows, Align: alignmentNames(n.align)}})
		case n.kind == kindCodeBlock && strings.TrimSpace(n.text) != "":
			pieces = append(pieces, Piece{Text: alone, Code: &Code{Lang: n.lang, Text: strings.TrimRight(n.text, "\n")}})
		case joins:
			text := pieces[len(pieces)-1].Text
			text.source += "\n\n" + alone.source
			text.root.children = append(text.root.children, n)
		default:
			pieces = append(pieces, Piece{Text: alone})
		}
		last := pieces[len(pieces)-1]
		joins = last.Table == nil && last.Code == nil
	}
	return pieces
}

// SplitBlocks splits a document between its blocks into documents whose texts have about limit bytes, with
// at most one table each. A longer block stays with what precedes it, and a heading with what
// follows.
func (d *Document) SplitBlocks(limit int) (stretches []*Document) {
	var at []*node
	size, tables := 0, 0
	end := func() {
		if len(at) > 0 {
			stretches = append(stretches, newDocument(at))
		}
		at, size, tables = nil, 0, 0
	}
	for _, n := range d.root.children {
		long, table := len(n.flatText(true)), 0
		if n.kind == kindTable {
			table = 1
		}
		if size > limit || long <= limit && size+long > limit || tables+table > 1 {
			last := len(at)
			for last > 1 && at[last-1].kind == kindHeading {
				last--
			}
			heads := at[last:]
			at = at[:last]
			end()
			for _, h := range heads {
				at, size = append(at, h), size+len(h.flatText(true))
			}
		}
		at, size, tables = append(at, n), size+long, tables+table
	}
	end()
	return stretches
}

// newDocument makes a document from blocks of another one.
func newDocument(blocks []*node) *Document {
	d := &Document{root: &node{kind: kindDocument, children: blocks}}
	for i, n := range blocks {
		if i > 0 {
			d.source += "\n\n"
		}
		d.source += n.flatText(true)
	}
	return d
}

func alignmentNames(list []east.Alignment) []string {
	names := make([]string, len(list))
	for i, a := range list {
		if names[i] = a.String(); a == east.AlignNone {
			names[i] = east.AlignLeft.String()
		}
	}
	return names
}
