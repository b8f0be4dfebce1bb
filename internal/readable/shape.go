package readable

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"oneclaw/internal/formula"
	"oneclaw/internal/wording"
)

// maxFilled bounds the empty cells added for spanning cells in a page.
const maxFilled = 20_000

// spellOut writes as text what only elements express: the state of a checkbox, a list item's own
// number, formulas, exponents (10<sup>6</sup> is not 106) and indexes. It also gives a lazily loaded picture its address.
func spellOut(doc *html.Node) {
	for n := range doc.Descendants() {
		switch n.DataAtom {
		case atom.Input:
			box := "[ ] "
			if attribute(n, "type") != "checkbox" || n.Parent.DataAtom != atom.Li && n.Parent.Parent.DataAtom != atom.Li {
				continue
			}
			if slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "checked" }) {
				box = "[x] "
			}
			*n = html.Node{Type: html.TextNode, Data: box, Parent: n.Parent, PrevSibling: n.PrevSibling, NextSibling: n.NextSibling}
		case atom.Img:
			if later := cmp.Or(attribute(n, "data-src"), attribute(n, "data-original")); later != "" && isDataURI(n) {
				n.Attr = append(slices.DeleteFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "src" }), html.Attribute{Key: "src", Val: later})
			}
		case atom.Sup, atom.Sub:
			markScript(n)
		case atom.Math:
			line := strings.TrimSpace(formulaOf(n))
			*n = html.Node{Type: html.TextNode, Data: line, Parent: n.Parent, PrevSibling: n.PrevSibling, NextSibling: n.NextSibling}
		case atom.Ol:
			numberItems(n)
		}
	}
}

// isDataURI reports whether a picture is embedded in the page, as placeholders often are.
func isDataURI(img *html.Node) bool {
	return strings.HasPrefix(strings.TrimSpace(attribute(img, "src")), "data:")
}

// markScript marks an exponent or an index. Footnotes, which are links, and ordinals stay unmarked.
func markScript(n *html.Node) {
	mark := "^"
	if n.DataAtom == atom.Sub {
		mark = "_"
	}
	words := strings.TrimSpace(textOf(n))
	letters := strings.TrimLeft(words, "+-−")
	odd := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	next := ""
	if n.NextSibling != nil && n.NextSibling.Type == html.TextNode {
		next = n.NextSibling.Data
	}
	follows, _ := utf8.DecodeRuneInString(next)
	last, _ := utf8.DecodeLastRuneInString(words)
	switch {
	case strings.TrimFunc(words, odd) == "" || find(n, isLink) != nil:
	case mark == "^" && len(letters) > 1 && strings.IndexFunc(words, func(r rune) bool { return !unicode.IsLetter(r) }) < 0:
	case strings.IndexFunc(letters, odd) >= 0, unicode.IsDigit(follows), unicode.IsLetter(follows) && !unicode.IsDigit(last):
		prepend(n, mark+"(")
		n.AppendChild(&html.Node{Type: html.TextNode, Data: ")"})
	default:
		prepend(n, mark)
	}
}

// formulaOf returns a formula on one line.
func formulaOf(math *html.Node) string {
	left := formula.MaxElements
	var read func(n *html.Node) *formula.Element
	read = func(n *html.Node) *formula.Element {
		e := &formula.Element{Name: n.Data}
		for _, a := range n.Attr {
			if e.Attrs == nil {
				e.Attrs = map[string]string{}
			}
			e.Attrs[a.Key] = a.Val
		}
		for c := range n.ChildNodes() {
			switch {
			case c.Type == html.TextNode:
				e.Text += c.Data
			case c.Type == html.ElementNode && left > 0:
				left--
				e.Parts = append(e.Parts, read(c))
			}
		}
		return e
	}
	if whole := read(math); left > 0 {
		return whole.Line()
	}
	return formula.Unread
}

func isLink(n *html.Node) bool { return n.DataAtom == atom.A }

// numberItems writes numbers before the items of a list that counts down, or whose items have numbers of
// their own, or letters or Roman numerals.
func numberItems(list *html.Node) {
	var items []*html.Node
	own := false
	for n := range list.ChildNodes() {
		if n.DataAtom == atom.Li {
			items = append(items, n)
			own = own || attribute(n, "value") != ""
		}
	}
	step, at := 1, 1
	if slices.ContainsFunc(list.Attr, func(a html.Attribute) bool { return a.Key == "reversed" }) {
		step, at = -1, len(items)
	}
	label := itemLabels[itemStyle(list)]
	if !own && step > 0 && label == nil {
		return
	}
	if first, err := strconv.Atoi(attribute(list, "start")); err == nil {
		at = first
	}
	list.DataAtom, list.Data = atom.Ul, "ul"
	for _, item := range items {
		if value, err := strconv.Atoi(attribute(item, "value")); err == nil {
			at = value
		}
		number := strconv.Itoa(at)
		if label != nil && at > 0 && at < 4_000 {
			number = label(at)
		}
		prepend(item, number+". ")
		at += step
	}
}

// itemStyle returns how the items of a list are numbered, by its attribute or its style.
func itemStyle(list *html.Node) string {
	if m := listStyle.FindStringSubmatch(attribute(list, "style")); m != nil {
		return strings.ToLower(m[1])
	}
	return attribute(list, "type")
}

// listStyle matches the kind of numbers in the style of a list.
var listStyle = regexp.MustCompile(`(?i)list-style(?:-type)?\s*:[^;]*\b((?:lower|upper)-(?:alpha|latin|roman))\b`)

// itemLabels are the numbers of items that are not decimal.
var itemLabels = map[string]func(int) string{
	"a": lowerLetter, "lower-alpha": lowerLetter, "lower-latin": lowerLetter, "i": lowerRoman, "lower-roman": lowerRoman,
	"A": wording.RepeatedLetter, "upper-alpha": wording.RepeatedLetter, "upper-latin": wording.RepeatedLetter, "I": wording.Roman, "upper-roman": wording.Roman,
}

func lowerLetter(n int) string { return strings.ToLower(wording.RepeatedLetter(n)) }

func lowerRoman(n int) string { return strings.ToLower(wording.Roman(n)) }

// prepend puts a text before the content of an element.
func prepend(n *html.Node, text string) {
	first := n.FirstChild
	for first != nil && first.Type == html.TextNode && strings.TrimSpace(first.Data) == "" {
		first = first.NextSibling
	}
	if first != nil && (first.DataAtom == atom.P || first.DataAtom == atom.Div) {
		prepend(first, text)
		return
	}
	n.InsertBefore(&html.Node{Type: html.TextNode, Data: text}, first)
}

// convertTables converts the tables of a document to what Markdown supports. A table with content that no
// cell can hold, or with a single column, becomes paragraphs.
func convertTables(doc *html.Node) {
	room := maxFilled
	for table := range doc.Descendants() {
		if table.DataAtom != atom.Table {
			continue
		}
		rows := rowsOf(table)
		if !isConvertible(table, rows) {
			dissolve(table)
			continue
		}
		headless := find(table, isTableHead) == nil
		for i, row := range rows {
			for _, cell := range cellsOf(row) {
				if i > 0 && headless && cell.DataAtom == atom.Th {
					cell.DataAtom, cell.Data = atom.Td, "td" // the library takes its row for the first
				}
				flattenLists(cell)
			}
		}
		room = fillSpans(rows, room)
		escapeCells(table, false)
	}
}

func isTableHead(n *html.Node) bool { return n.DataAtom == atom.Thead }

// rowsOf returns the rows of a table, without those of nested tables.
func rowsOf(n *html.Node) (rows []*html.Node) {
	for c := range n.ChildNodes() {
		switch c.DataAtom {
		case atom.Tr:
			rows = append(rows, c)
		case atom.Thead, atom.Tbody, atom.Tfoot:
			rows = append(rows, rowsOf(c)...)
		}
	}
	return rows
}

func cellsOf(row *html.Node) (cells []*html.Node) {
	for c := range row.ChildNodes() {
		if c.DataAtom == atom.Td || c.DataAtom == atom.Th {
			cells = append(cells, c)
		}
	}
	return cells
}

// isConvertible reports whether Markdown supports such a table.
func isConvertible(table *html.Node, rows []*html.Node) bool {
	for p := table.Parent; p != nil; p = p.Parent {
		switch p.DataAtom {
		case atom.A, atom.B, atom.Strong, atom.I, atom.Em:
			return false
		}
	}
	tall := find(table, func(n *html.Node) bool {
		return n.DataAtom == atom.Table || n.DataAtom == atom.Pre || n.DataAtom == atom.Hr || n.DataAtom == atom.Blockquote ||
			slices.Contains(headings[:], n.DataAtom)
	})
	several := func(row *html.Node) bool { return len(cellsOf(row)) > 1 }
	return tall == nil && attribute(table, "role") != "presentation" && slices.ContainsFunc(rows, several)
}

// dissolve turns the cells of a table into paragraphs. Nested tables stay.
func dissolve(n *html.Node) {
	n.DataAtom, n.Data = atom.Div, "div"
	for c := range n.ChildNodes() {
		switch c.DataAtom {
		case atom.Caption, atom.Thead, atom.Tbody, atom.Tfoot, atom.Tr, atom.Td, atom.Th:
			dissolve(c)
		}
	}
}

// flattenLists turns the lists in a cell into lines.
func flattenLists(cell *html.Node) {
	for list := range cell.Descendants() {
		if list.DataAtom != atom.Ul && list.DataAtom != atom.Ol {
			continue
		}
		at := 0
		if first, err := strconv.Atoi(attribute(list, "start")); err == nil {
			at = first - 1
		}
		for item := range list.ChildNodes() {
			if item.DataAtom != atom.Li {
				continue
			}
			mark := "- "
			if at++; list.DataAtom == atom.Ol {
				mark = fmt.Sprintf("%d. ", at)
			}
			prepend(item, mark)
			item.AppendChild(&html.Node{Type: html.ElementNode, DataAtom: atom.Br, Data: "br"})
			item.DataAtom, item.Data = atom.Span, "span"
		}
		list.DataAtom, list.Data = atom.Div, "div"
	}
}

// fillSpans adds empty cells for spanning cells, up to room, and returns the rest of it. The library
// would put the following cells into the wrong columns.
func fillSpans(rows []*html.Node, room int) int {
	var covered []int // how many more rows a column is covered in
	for i, row := range rows {
		at := 0
		cells := cellsOf(row)
		for _, cell := range cells {
			for ; at < len(covered) && covered[at] > 0 && room > 0; at++ {
				row.InsertBefore(newEmptyCell(), cell)
				covered[at]--
				room--
			}
			wide, tall := cellSpan(cell, len(rows)-i)
			if len(cells) == 1 {
				wide = 1 // to the end of its row
			}
			for w := range min(wide, room+1) {
				if w > 0 {
					row.InsertBefore(newEmptyCell(), cell.NextSibling)
					room--
				}
				if at == len(covered) {
					covered = append(covered, 0)
				}
				covered[at] = tall - 1
				at++
			}
		}
		for ; at < len(covered); at++ {
			covered[at] = max(covered[at]-1, 0)
		}
	}
	return room
}

// cellSpan returns how many columns and rows a cell spans; rest is how many rows are left.
func cellSpan(cell *html.Node, rest int) (wide, tall int) {
	wide, tall = 1, 1
	cell.Attr = slices.DeleteFunc(cell.Attr, func(a html.Attribute) bool {
		n, err := strconv.Atoi(strings.TrimSpace(a.Val))
		switch {
		case a.Key == "colspan" && err == nil && n > 0:
			wide = min(n, maxCells)
		case a.Key == "rowspan" && err == nil && n == 0:
			tall = rest
		case a.Key == "rowspan" && err == nil && n > 0:
			tall = min(n, rest)
		}
		return a.Key == "colspan" || a.Key == "rowspan"
	})
	return wide, tall
}

func newEmptyCell() *html.Node {
	return &html.Node{Type: html.ElementNode, DataAtom: atom.Td, Data: "td"}
}
