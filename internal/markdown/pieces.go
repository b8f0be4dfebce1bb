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
		alone := &Document{source: n.flat(true), root: &node{kind: kindDocument, children: []*node{n}}}
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

func alignments(list []east.Alignment) []string {
	names := make([]string, len(list))
	for i, a := range list {
		if names[i] = a.String(); a == east.AlignNone {
			names[i] = east.AlignLeft.String()
		}
	}
	return names
}
