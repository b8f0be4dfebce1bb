package frame

import (
	"context"
	"encoding/csv"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// file writes a table of a page as comma-separated values.
func (f *Frame) file(ctx context.Context, w http.ResponseWriter, page Page, name string, request Request) {
	for _, s := range page.Sections {
		if s.Table == nil || s.Table.Name != name {
			continue
		}
		if f.cfg.Exported != nil {
			if err := f.cfg.Exported(ctx, request.Visitor, name+".csv of "+request.Link()); err != nil {
				f.fail(w, request.Visitor, View{}, err)
				return
			}
		}
		header := w.Header()
		header.Set("Content-Type", "text/csv; charset=utf-8")
		header.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", "oneclaw-"+name+".csv"))
		header.Set("Cache-Control", "no-store")
		out := csv.NewWriter(w)
		row := make([]string, len(s.Table.Columns))
		for i, c := range s.Table.Columns {
			row[i] = defused(c.Name)
		}
		_ = out.Write(row) // who asked sees that it broke off
		for _, cells := range s.Table.Rows {
			row = row[:0]
			for _, c := range cells {
				row = append(row, f.value(c))
			}
			_ = out.Write(row)
		}
		out.Flush()
		return
	}
	http.Error(w, "There is no such table.", http.StatusNotFound)
}

func (f *Frame) value(c Cell) string {
	if !c.Time.IsZero() {
		return c.Time.UTC().Format(time.RFC3339)
	}
	return defused(f.cfg.Redact(c.Text))
}

// defused is a text that no spreadsheet takes for a formula.
func defused(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}
