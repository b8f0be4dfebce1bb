package drive

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"google.golang.org/api/docs/v1"

	"oneclaw/toolgroups/google/service"
)

type docsText struct {
	Title      string `json:"title"`
	Text       string `json:"text"`
	DocumentID string `json:"documentId"`
}

func docsGetText(ctx context.Context, api *docs.Service, _ *service.Conn, in docsArgs) (any, error) {
	doc, err := api.Documents.Get(in.DocumentID).Context(ctx).IncludeTabsContent(true).Do()
	if err != nil {
		return nil, err
	}
	var w docsWriter
	if len(doc.Tabs) == 0 {
		w.writeTab(&docs.DocumentTab{Body: doc.Body, Headers: doc.Headers, Footers: doc.Footers, Footnotes: doc.Footnotes})
	}
	w.writeTabs(doc.Tabs, len(doc.Tabs) > 1)
	return docsText{doc.Title, w.String(), doc.DocumentId}, nil
}

// docsWriter collects the text of a document.
type docsWriter struct {
	strings.Builder
	footnotes []string // ids of footnotes in the order of their references
}

// writeTabs writes tabs and their child tabs, with titles if there are several.
func (w *docsWriter) writeTabs(tabs []*docs.Tab, titled bool) {
	for _, t := range tabs {
		if titled || len(t.ChildTabs) > 0 {
			title := "Tab"
			if t.TabProperties != nil {
				title += ": " + t.TabProperties.Title
			}
			w.beginPart(title)
		}
		if t.DocumentTab != nil {
			w.writeTab(t.DocumentTab)
		}
		w.writeTabs(t.ChildTabs, true)
	}
}

// beginPart begins a named part of the document.
func (w *docsWriter) beginPart(name string) {
	w.endLine()
	w.WriteString("[" + name + "]\n")
}

// endLine ends the current line, if any.
func (w *docsWriter) endLine() {
	if s := w.String(); s != "" && !strings.HasSuffix(s, "\n") {
		w.WriteString("\n")
	}
}

// writeTab writes the headers, body, footers and footnotes of a tab.
func (w *docsWriter) writeTab(t *docs.DocumentTab) {
	w.footnotes = nil
	for _, id := range slices.Sorted(maps.Keys(t.Headers)) {
		h := t.Headers[id]
		w.writePart("Header", h.Content)
	}
	if t.Body != nil {
		w.writeContent(t.Body.Content)
	}
	for _, id := range slices.Sorted(maps.Keys(t.Footers)) {
		f := t.Footers[id]
		w.writePart("Footer", f.Content)
	}
	for _, id := range w.footnotes {
		if f, ok := t.Footnotes[id]; ok {
			w.writePart("Footnote", f.Content)
		}
	}
}

// writePart writes a named part unless it is empty.
func (w *docsWriter) writePart(name string, content []*docs.StructuralElement) {
	var inner docsWriter
	inner.writeContent(content)
	if strings.TrimSpace(inner.String()) == "" {
		return
	}
	w.beginPart(name)
	w.WriteString(inner.String())
}

func (w *docsWriter) writeContent(elements []*docs.StructuralElement) {
	for _, e := range elements {
		switch {
		case e.Paragraph != nil:
			for _, p := range e.Paragraph.Elements {
				w.WriteString(w.elementText(p))
			}
		case e.Table != nil:
			w.writeTable(e.Table)
		case e.TableOfContents != nil:
			w.writeContent(e.TableOfContents.Content)
		}
	}
}

// elementText returns the text of an element of a paragraph, and notes the id of a footnote.
func (w *docsWriter) elementText(p *docs.ParagraphElement) string {
	switch {
	case p.TextRun != nil:
		return textWithSuggestions(p.TextRun)
	case p.Person != nil && p.Person.PersonProperties != nil:
		who := p.Person.PersonProperties
		return cmp.Or(who.Name, who.Email)
	case p.RichLink != nil && p.RichLink.RichLinkProperties != nil:
		link := p.RichLink.RichLinkProperties
		return cmp.Or(link.Title, link.Uri)
	case p.DateElement != nil && p.DateElement.DateElementProperties != nil:
		return p.DateElement.DateElementProperties.DisplayText
	case p.FootnoteReference != nil:
		w.footnotes = append(w.footnotes, p.FootnoteReference.FootnoteId)
		return "[" + p.FootnoteReference.FootnoteNumber + "]"
	}
	return ""
}

// textWithSuggestions returns a text with its suggestions marked: editors get the suggested
// insertions and deletions together.
func textWithSuggestions(run *docs.TextRun) string {
	lines := strings.ReplaceAll(run.Content, "\v", "\n") // a line break within a paragraph
	text := strings.TrimRight(lines, "\n")
	end := lines[len(text):]
	switch {
	case text == "":
	case len(run.SuggestedDeletionIds) > 0:
		text = "[suggested to delete: " + text + "]"
	case len(run.SuggestedInsertionIds) > 0:
		text = "[suggested to insert: " + text + "]"
	}
	return text + end
}

// writeTable writes one line per row, with tabs between cells.
func (w *docsWriter) writeTable(t *docs.Table) {
	w.endLine()
	for _, row := range t.TableRows {
		for i, cell := range row.TableCells {
			if i > 0 {
				w.WriteString("\t")
			}
			inner := docsWriter{}
			inner.writeContent(cell.Content)
			w.footnotes = append(w.footnotes, inner.footnotes...)
			w.WriteString(strings.ReplaceAll(strings.TrimRight(inner.String(), "\n"), "\n", " "))
		}
		w.WriteString("\n")
	}
}
