package documents

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"oneclaw/internal/office"
	"oneclaw/internal/wording"
)

const (
	// Bounds of a search: hits, and characters of each.
	maxHits  = 25
	hitChars = 400
)

// search is a sink that looks for the exact phrase, and for blocks that have all the words.
type search struct {
	over   func() error
	phrase string
	words  []string

	part    office.Part
	heading string
	exact   hits
	loose   hits
}

// hits are the places found.
type hits struct {
	total int
	shown []hit
}

type hit struct {
	part          office.Part
	number        int
	heading, text string
}

// newSearch makes a case-insensitive search.
func newSearch(query string, over func() error) *search {
	phrase := fold(query)
	return &search{over: over, phrase: phrase, words: strings.FieldsFunc(phrase, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r)
	})}
}

// fold returns a text in lower case with single spaces.
func fold(text string) string { return strings.ToLower(strings.Join(strings.Fields(text), " ")) }

// Begin starts a part.
func (s *search) Begin(p office.Part) bool {
	s.part, s.heading = p, ""
	return true
}

// Add searches a block.
func (s *search) Add(b office.Block) error {
	if err := s.over(); err != nil {
		return err
	}
	text := b.Text
	if b.Cells != nil {
		text = strings.Join(b.Cells, " | ")
	}
	text = strings.Join(strings.Fields(text), " ")
	if b.Level > 0 {
		s.heading = strings.TrimLeft(text, "# ")
	}
	lower := strings.ToLower(text)
	if at := strings.Index(lower, s.phrase); at >= 0 {
		s.exact.add(hit{s.part, b.Number, s.heading, snippet(text, at)})
		return nil
	}
	at := len(lower)
	for _, w := range s.words {
		found := strings.Index(lower, w)
		if found < 0 {
			return nil
		}
		at = min(at, found)
	}
	if len(s.words) > 1 {
		s.loose.add(hit{s.part, b.Number, s.heading, snippet(text, at)})
	}
	return nil
}

func (h *hits) add(found hit) {
	if h.total++; len(h.shown) < maxHits {
		h.shown = append(h.shown, found)
	}
}

// snippet returns the text around a match. at is its offset in the lower-case text, whose length
// may differ a little, so it is only a hint.
func snippet(text string, at int) string {
	start := max(0, min(at, len(text))-hitChars/3)
	for start > 0 && start < len(text) && text[start]&0xc0 == 0x80 {
		start--
	}
	shown := wording.Clip(text[start:], hitChars)
	if start > 0 {
		shown = "…" + shown
	}
	return shown
}

// find searches the document.
func (t task) find(ctx context.Context, file io.ReaderAt, size int64) report {
	s := newSearch(t.Query, ctx.Err)
	format, err := office.Read(file, size, t.Name, s)
	late := ctx.Err() != nil
	if err != nil && !late && s.part.Number == 0 {
		return t.refuse(err.Error())
	}
	var b strings.Builder
	found, what := s.exact, ""
	if found.total == 0 {
		found, what = s.loose, "the words "
	}
	query := wording.Clip(strings.Join(strings.Fields(t.Query), " "), maxTitle)
	switch {
	case found.total == 0:
		fmt.Fprintf(&b, "'%s' does not hold %q, nor a %s with all of its words. Try other or fewer words.", t.Name, query, format.Block)
	default:
		fmt.Fprintf(&b, "Found %s%q in %s of '%s':\n", what, query, wording.Count(found.total, format.Block, format.Block+"s"), t.Name)
	}
	for _, h := range found.shown {
		fmt.Fprintf(&b, "\n- %d:%d (%s): %s", h.part.Number, h.number, h.location(format), h.text)
	}
	if more := found.total - len(found.shown); more > 0 {
		fmt.Fprintf(&b, "\n[%d more are not shown; search for something narrower.]", more)
	}
	if len(found.shown) > 0 {
		h := found.shown[0]
		fmt.Fprintf(&b, "\n\n[To read around a place: read_document with a part such as \"%d:%d-%d:%d\".]", h.part.Number, max(1, h.number-5), h.part.Number, h.number+15)
	}
	switch {
	case late:
		b.WriteString("\n[The search took too long: the rest of the document was not looked at.]")
	case err != nil && !errors.Is(err, ctx.Err()):
		fmt.Fprintf(&b, "\n[The rest was not looked at: the file %s.]", err)
	}
	return report{Text: b.String()}
}

// location describes the location of a hit.
func (h hit) location(format office.Format) string {
	text := fmt.Sprintf("%s %d", format.Part, h.part.Number)
	if h.part.Name != "" && h.part.Name != h.heading {
		text += " " + wording.Clip(h.part.Name, maxTitle)
	}
	text += fmt.Sprintf(", %s %d", format.Block, h.number)
	if h.heading != "" {
		text += ", under " + wording.Clip(h.heading, maxTitle)
	}
	return text
}
