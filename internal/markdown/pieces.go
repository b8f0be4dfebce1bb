package markdown

import (
	"strings"

	east "github.com/yuin/goldmark/extension/ast"
)

// Piece is a stretch of a document, for a platform that shows some in ways of its own.
type Piece struct {
	// Text is the piece for who shows it as a text.
	Text *Document
	// Table and Code are what it is, where it is one of these.
	Table *Table
	Code  *Code
}

// Table is a table of texts.
type Table struct {
	// Rows are the rows, the head first; each has as many cells.
	Rows [][]string
	// Align is left, center or right for each column.
	Align []string
}

// Code is a block of code.
type Code struct{ Lang, Text string }

// Pieces takes a document apart. Tables and code inside of lists and quotes stay there.
func (d *Document) Pieces() (pieces []Piece) {
	joins := false // what comes next may be one piece with the last
	for _, n := range d.root.children {
		alone := stretch([]*node{n})
		switch {
		case n.kind == kindTable && len(n.children) > 0:
			rows, _ := cells(n)
			pieces = append(pieces, Piece{Text: alone, Table: &Table{Rows: rows, Align: alignments(n.align)}})
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

// Cut parts a document between its blocks into stretches of about so many characters, with at
// most one table in each. A block that is longer stays behind what comes before it, and a heading
// in front of what follows.
func (d *Document) Cut(limit int) (stretches []*Document) {
	var at []*node
	size, tables := 0, 0
	end := func() {
		if len(at) > 0 {
			stretches = append(stretches, stretch(at))
		}
		at, size, tables = nil, 0, 0
	}
	for _, n := range d.root.children {
		long, table := len(n.flat(true)), 0
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
				at, size = append(at, h), size+len(h.flat(true))
			}
		}
		at, size, tables = append(at, n), size+long, tables+table
	}
	end()
	return stretches
}

// stretch is a document of some blocks of another one.
func stretch(blocks []*node) *Document {
	d := &Document{root: &node{kind: kindDocument, children: blocks}}
	for i, n := range blocks {
		if i > 0 {
			d.source += "\n\n"
		}
		d.source += n.flat(true)
	}
	return d
}

func alignments(list []east.Alignment) []string {
	names := make([]string, len(list))
	for i, a := range list {
		if names[i] = a.String(); a == east.AlignNone {
			names[i] = east.AlignLeft.String()
		}
	}
	return names
}
