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
	Title    string `json:"title"`
	Text     string `json:"text"`
	Document string `json:"documentId"`
}

func docsGetText(ctx context.Context, api *docs.Service, _ *service.Conn, in docsArgs) (any, error) {
	doc, err := api.Documents.Get(in.Document).Context(ctx).IncludeTabsContent(true).Do()
	if err != nil {
		return nil, err
	}
	var w docsWriter
	if len(doc.Tabs) == 0 {
		w.tab(&docs.DocumentTab{Body: doc.Body, Headers: doc.Headers, Footers: doc.Footers, Footnotes: doc.Footnotes})
	}
	w.tabs(doc.Tabs, len(doc.Tabs) > 1)
	return docsText{doc.Title, w.String(), doc.DocumentId}, nil
}

// docsWriter collects the text of a document.
type docsWriter struct {
	strings.Builder
	notes []string // ids of footnotes in the order of their references
}

// tabs writes tabs and their child tabs, with titles if there are several.
func (w *docsWriter) tabs(tabs []*docs.Tab, titled bool) {
	for _, t := range tabs {
		if titled || len(t.ChildTabs) > 0 {
			title := "Tab"
			if t.TabProperties != nil {
				title += ": " + t.TabProperties.Title
			}
			w.part(title)
		}
		if t.DocumentTab != nil {
			w.tab(t.DocumentTab)
		}
		w.tabs(t.ChildTabs, true)
	}
}

// part begins a named part of the document.
func (w *docsWriter) part(name string) {
	w.line()
	w.WriteString("[" + name + "]\n")
}

// line ends the current line, if any.
func (w *docsWriter) line() {
	if s := w.String(); s != "" && !strings.HasSuffix(s, "\n") {
		w.WriteString("\n")
	}
}

// tab writes headers, body, footers and footnotes.
func (w *docsWriter) tab(t *docs.DocumentTab) {
	w.notes = nil
	for _, id := range slices.Sorted(maps.Keys(t.Headers)) {
		h := t.Headers[id]
		w.named("Header", h.Content)
	}
	if t.Body != nil {
		w.content(t.Body.Content)
	}
	for _, id := range slices.Sorted(maps.Keys(t.Footers)) {
		f := t.Footers[id]
		w.named("Footer", f.Content)
	}
	for _, id := range w.notes {
		if f, ok := t.Footnotes[id]; ok {
			w.named("Footnote", f.Content)
		}
	}
}

// named writes a part unless it is empty.
func (w *docsWriter) named(name string, content []*docs.StructuralElement) {
	var inner docsWriter
	inner.content(content)
	if strings.TrimSpace(inner.String()) == "" {
		return
	}
	w.part(name)
	w.WriteString(inner.String())
}

func (w *docsWriter) content(elements []*docs.StructuralElement) {
	for _, e := range elements {
		switch {
		case e.Paragraph != nil:
			for _, p := range e.Paragraph.Elements {
				w.WriteString(w.element(p))
			}
		case e.Table != nil:
			w.table(e.Table)
		case e.TableOfContents != nil:
			w.content(e.TableOfContents.Content)
		}
	}
}

// element returns the text of a part of a paragraph.
func (w *docsWriter) element(p *docs.ParagraphElement) string {
	switch {
	case p.TextRun != nil:
		return suggested(p.TextRun)
	case p.Person != nil && p.Person.PersonProperties != nil:
		who := p.Person.PersonProperties
		return cmp.Or(who.Name, who.Email)
	case p.RichLink != nil && p.RichLink.RichLinkProperties != nil:
		link := p.RichLink.RichLinkProperties
		return cmp.Or(link.Title, link.Uri)
	case p.DateElement != nil && p.DateElement.DateElementProperties != nil:
		return p.DateElement.DateElementProperties.DisplayText
	case p.FootnoteReference != nil:
		w.notes = append(w.notes, p.FootnoteReference.FootnoteId)
		return "[" + p.FootnoteReference.FootnoteNumber + "]"
	}
	return ""
}

// suggested returns a text with its suggestions: editors get the suggested insertions and
// deletions together.
func suggested(run *docs.TextRun) string {
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

// table writes one line per row, with tabs between cells.
func (w *docsWriter) table(t *docs.Table) {
	w.line()
	for _, row := range t.TableRows {
		for i, cell := range row.TableCells {
			if i > 0 {
				w.WriteString("\t")
			}
			inner := docsWriter{}
			inner.content(cell.Content)
			w.notes = append(w.notes, inner.notes...)
			w.WriteString(strings.ReplaceAll(strings.TrimRight(inner.String(), "\n"), "\n", " "))
		}
		w.WriteString("\n")
	}
}
