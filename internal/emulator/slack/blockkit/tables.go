package blockkit

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// Limits of a table (docs.slack.dev/reference/block-kit/blocks/table-block).
const (
	maxTableRows  = 100
	maxTableCells = 20
)

// cell is a cell of a table. A raw_text has a text, a raw_number a value, a rich_text has elements.
type cell struct {
	Type     string            `json:"type"`
	Text     string            `json:"text"`
	Value    json.Number       `json:"value"`
	Elements []json.RawMessage `json:"elements"`
}

type column struct {
	Align string `json:"align"`
}

// checkTable refuses an invalid table. Apps report that a cell must not be empty.
func checkTable(b block, i int) *Refusal {
	if n := len(b.Rows); n == 0 || n > maxTableRows {
		return invalidBlocks("want 1 to %d rows [json-pointer:/blocks/%d/rows]", maxTableRows, i)
	}
	for j, row := range b.Rows {
		if n := len(row); n == 0 || n > maxTableCells {
			return invalidBlocks("want 1 to %d cells [json-pointer:/blocks/%d/rows/%d]", maxTableCells, i, j)
		}
		for k, c := range row {
			if c.isEmpty() {
				return invalidBlocks("want a text [json-pointer:/blocks/%d/rows/%d/%d]", i, j, k)
			}
		}
	}
	if len(b.ColumnSettings) > maxTableCells || slices.ContainsFunc(b.ColumnSettings, func(c column) bool {
		return !slices.Contains([]string{"", "left", "center", "right"}, c.Align)
	}) {
		return invalidBlocks("invalid column_settings [json-pointer:/blocks/%d/column_settings]", i)
	}
	return nil
}

// isEmpty reports whether a cell lacks what its type needs, or has no known type.
func (c cell) isEmpty() bool {
	switch c.Type {
	case "raw_text":
		return c.Text == ""
	case "raw_number":
		return c.Value == ""
	case "rich_text":
		return len(c.Elements) == 0
	}
	return true
}

// tableText returns the visible text of a table.
func (b block) tableText() string {
	var lines []string
	for _, row := range b.Rows {
		var cells []string
		for _, c := range row {
			cells = append(cells, cmp.Or(c.Text, c.Value.String()))
		}
		lines = append(lines, strings.Join(cells, " | "))
	}
	return strings.Join(lines, "\n")
}
