package frame

import (
	"encoding/csv"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
)

// writeCSV writes a table of a page as comma-separated values.
func (f *Frame) writeCSV(w io.Writer, page Page, name string) error {
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
	_ = out.Write(row) // out.Error returns the error
	for _, cells := range table.Rows {
		row = row[:0]
		for _, c := range cells {
			row = append(row, f.csvValue(c))
		}
		_ = out.Write(row) // as above
	}
	out.Flush()
	return out.Error()
}

func (f *Frame) csvValue(c Cell) string {
	if !c.Time.IsZero() {
		return c.Time.UTC().Format(time.RFC3339)
	}
	return escapeFormula(f.cfg.Redact(c.Text))
}

// formulaAfterSeparator matches a formula after a character that may separate cells instead of a comma.
var formulaAfterSeparator = regexp.MustCompile(`([;\t\r\n])([-=+@])`)

// escapeFormula changes a text so that no spreadsheet takes it for a formula.
func escapeFormula(text string) string {
	text = formulaAfterSeparator.ReplaceAllString(text, "$1'$2")
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}
