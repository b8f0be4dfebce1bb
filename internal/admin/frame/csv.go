package frame

import (
	"encoding/csv"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
)

// file writes a table of a page as comma-separated values.
func (f *Frame) file(w io.Writer, page Page, name string) error {
	i := slices.IndexFunc(page.Sections, func(s Section) bool { return s.Table != nil && s.Table.Name == name })
	if i < 0 {
		return ErrNotFound
	}
	table := page.Sections[i].Table
	out := csv.NewWriter(w)
	row := make([]string, len(table.Columns))
	for i, c := range table.Columns {
		row[i] = escapeFormula(c.Name)
	}
	_ = out.Write(row) // Error reports it
	for _, cells := range table.Rows {
		row = row[:0]
		for _, c := range cells {
			row = append(row, f.value(c))
		}
		_ = out.Write(row) // as above
	}
	out.Flush()
	return out.Error()
}

func (f *Frame) value(c Cell) string {
	if !c.Time.IsZero() {
		return c.Time.UTC().Format(time.RFC3339)
	}
	return escapeFormula(f.cfg.Redact(c.Text))
}

// formulaAfterSeparator matches a formula after a character that ends a cell if commas do not.
var formulaAfterSeparator = regexp.MustCompile(`([;\t\r\n])([-=+@])`)

// escapeFormula makes a text that no spreadsheet takes for a formula.
func escapeFormula(text string) string {
	text = formulaAfterSeparator.ReplaceAllString(text, "$1'$2")
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}
