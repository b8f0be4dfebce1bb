package markdown

import (
	"strings"

	"github.com/rivo/uniseg"
	east "github.com/yuin/goldmark/extension/ast"
)

// maxColumn bounds the width to which columns are padded. A longer cell keeps its text and
// shifts the rest of its row.
const maxColumn = 40

func (l *layout) addTable(n *node, s *span) {
	rows, widths := cellTexts(n)
	if len(rows) == 0 {
		return
	}
	pre := l.nest(s, span{style: stylePre})
	rules := make([]string, len(widths))
	for i, w := range widths {
		rules[i] = strings.Repeat("-", max(w, 1))
	}
	head := append(formatRow(rows[0], widths, n.align), strings.Join(rules, "-+-"))
	l.lines(head, pre)
	for i, line := range head {
		if line = without(line, l.deleted); strings.TrimSpace(line) != "" {
			pre.tableHead = append(pre.tableHead, atom{gap: gap{newlines: min(i, 1)}, text: line, span: pre})
		}
	}
	body := make([]string, 0, len(rows))
	for _, r := range rows[1:] {
		body = append(body, formatRow(r, widths, n.align)...)
	}
	l.inTableBody = true
	if len(body) > 0 {
		l.separate(1, cutNever)
	}
	l.lines(body, pre)
	l.inTableBody = false
}

// cellTexts returns the texts of the cells and the widths of the columns. Preformatted text has no
// links, so their addresses are written out. A cell may have several lines.
func cellTexts(n *node) ([][]string, []int) {
	var rows [][]string
	var widths []int
	for _, r := range n.children {
		var texts []string
		for i, c := range r.children {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			var lines []string
			for line := range strings.SplitSeq(c.cellLines(), "\n") {
				line = strings.Join(strings.Fields(line), " ")
				if w := uniseg.StringWidth(line); w <= maxColumn {
					widths[i] = max(widths[i], w)
				}
				lines = append(lines, line)
			}
			texts = append(texts, strings.Trim(strings.Join(lines, "\n"), "\n"))
		}
		rows = append(rows, texts)
	}
	return rows, widths
}

// formatRow returns the lines of a row.
func formatRow(texts []string, widths []int, align []east.Alignment) (lines []string) {
	cells := make([][]string, len(texts))
	height := 1
	for i, text := range texts {
		cells[i] = strings.Split(text, "\n")
		height = max(height, len(cells[i]))
	}
	for at := range height {
		line := make([]string, len(cells))
		for i := range cells {
			if at < len(cells[i]) {
				line[i] = cells[i][at]
			}
		}
		lines = append(lines, formatLine(line, widths, align))
	}
	return lines
}

func formatLine(texts []string, widths []int, align []east.Alignment) string {
	var b strings.Builder
	for i, text := range texts {
		if i > 0 {
			b.WriteString(" | ")
		}
		fill := max(widths[i]-uniseg.StringWidth(text), 0)
		left := 0
		if i < len(align) && align[i] == east.AlignRight {
			left = fill
		}
		if i < len(align) && align[i] == east.AlignCenter {
			left = fill / 2
		}
		b.WriteString(strings.Repeat(" ", left) + text + strings.Repeat(" ", fill-left))
	}
	return strings.TrimRight(b.String(), " ")
}
