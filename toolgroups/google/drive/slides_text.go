package drive

import (
	"context"
	"strings"

	"google.golang.org/api/slides/v1"

	"oneclaw/toolgroups/google/service"
)

type slidesText struct {
	Title          string       `json:"title"`
	PresentationID string       `json:"presentationId"`
	Slides         []slidesPage `json:"slides"`
}

type slidesPage struct {
	ObjectID string   `json:"objectId"`
	Texts    []string `json:"texts"`
	Notes    string   `json:"notes,omitempty"`
}

func slidesGetText(ctx context.Context, api *slides.Service, _ *service.Conn, in slidesArgs) (any, error) {
	p, err := api.Presentations.Get(in.PresentationID).Context(ctx).
		Fields("presentationId", "title", "slides(objectId,pageElements,slideProperties/notesPage)").Do()
	if err != nil {
		return nil, err
	}
	out := slidesText{p.Title, p.PresentationId, make([]slidesPage, len(p.Slides))}
	for i, s := range p.Slides {
		out.Slides[i] = slidesPage{s.ObjectId, slidesAppendTexts([]string{}, s.PageElements), slidesNotes(s)}
	}
	return out, nil
}

// slidesAppendTexts appends the texts of elements, including those in groups and table cells.
func slidesAppendTexts(texts []string, elements []*slides.PageElement) []string {
	add := func(text string) {
		if strings.TrimSpace(text) != "" {
			texts = append(texts, text)
		}
	}
	for _, e := range elements {
		switch {
		case e.Shape != nil:
			add(strings.TrimSpace(slidesPlainText(e.Shape.Text)))
		case e.WordArt != nil:
			add(e.WordArt.RenderedText)
		case e.Table != nil:
			for _, row := range e.Table.TableRows {
				add(slidesRowText(row))
			}
		case e.ElementGroup != nil:
			texts = slidesAppendTexts(texts, e.ElementGroup.Children)
		}
	}
	return texts
}

// slidesRowText returns the text of a table row with tabs between cells.
func slidesRowText(row *slides.TableRow) string {
	cells := make([]string, len(row.TableCells))
	for i, c := range row.TableCells {
		cells[i] = strings.ReplaceAll(strings.TrimSpace(slidesPlainText(c.Text)), "\n", " ")
	}
	return strings.Join(cells, "\t")
}

// slidesNotes returns the speaker notes of a slide. The rest of the notes page is a picture of
// the slide and elements of its master.
func slidesNotes(s *slides.Page) string {
	if s.SlideProperties == nil || s.SlideProperties.NotesPage == nil {
		return ""
	}
	page := s.SlideProperties.NotesPage
	if page.NotesProperties == nil {
		return ""
	}
	for _, e := range page.PageElements {
		if e.ObjectId == page.NotesProperties.SpeakerNotesObjectId && e.Shape != nil {
			return strings.TrimSpace(slidesPlainText(e.Shape.Text))
		}
	}
	return ""
}

// slidesPlainText returns the text of a shape or a cell.
func slidesPlainText(text *slides.TextContent) string {
	if text == nil {
		return ""
	}
	var b strings.Builder
	for _, e := range text.TextElements {
		switch {
		case e.TextRun != nil:
			b.WriteString(e.TextRun.Content)
		case e.AutoText != nil:
			b.WriteString(e.AutoText.Content)
		}
	}
	return strings.ReplaceAll(b.String(), "\v", "\n") // a line break within a paragraph
}
