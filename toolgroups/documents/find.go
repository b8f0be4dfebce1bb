package documents

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode"

	"oneclaw/internal/wording"
	"oneclaw/toolgroups/documents/office"
)

const (
	// Bounds of a search: hits, and characters of each hit.
	maxHits  = 25
	hitChars = 400
)

// blockSearch implements [office.Sink]. It finds blocks with the exact phrase, and blocks with all words.
type blockSearch struct {
	checkTime func() error
	phrase    string
	words     []string

	currentPart office.Part
	heading     string
	phraseHits  hits
	wordHits    hits
}

// hits are the found blocks: their number, and the first maxHits.
type hits struct {
	total int
	kept  []hit
}

type hit struct {
	part          office.Part
	block         int
	hidden        bool // the row
	heading, text string
}

// newSearch makes a case-insensitive search. over returns an error when the time is over.
func newSearch(query string, over func() error) *blockSearch {
	phrase := normalizeText(query)
	return &blockSearch{checkTime: over, phrase: phrase, words: strings.FieldsFunc(phrase, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r)
	})}
}

// normalizeText returns a text in lower case with single spaces.
func normalizeText(text string) string {
	return strings.ToLower(strings.Join(strings.Fields(text), " "))
}

// Begin starts a part.
func (s *blockSearch) Begin(p office.Part) bool {
	s.currentPart, s.heading = p, ""
	return true
}

// Add searches a block.
func (s *blockSearch) Add(b office.Block) error {
	if err := s.checkTime(); err != nil {
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
	found := hit{part: s.currentPart, block: b.Number, hidden: b.Hidden, heading: s.heading}
	lower := strings.ToLower(text)
	if !s.look(lower, text, found) && strings.ContainsAny(lower, "^_~") {
		s.look(markup.ReplaceAllString(lower, "$1$2"), text, found)
	}
	return nil
}

// markup matches the marks of notes and of raised, lowered and struck text, which people do not type.
var markup = regexp.MustCompile(`\[\^\d+\]|~~|[\^_]\(([^()]*)\)|[\^_]([\pL\pN+-])`)

// look looks for the words in the text of a block in lower case. It reports whether they are there.
func (s *blockSearch) look(lower, text string, found hit) bool {
	if at := strings.Index(lower, s.phrase); at >= 0 {
		found.text = snippet(text, at)
		s.phraseHits.add(found)
		return true
	}
	first := len(lower)
	for _, w := range s.words {
		at := strings.Index(lower, w)
		if at < 0 {
			return false
		}
		first = min(first, at)
	}
	if len(s.words) > 1 {
		found.text = snippet(text, first)
		s.wordHits.add(found)
	}
	return true
}

func (h *hits) add(found hit) {
	if h.total++; len(h.kept) < maxHits {
		h.kept = append(h.kept, found)
	}
}

// snippet returns the text around a match. at is the offset of the match in the lower-case text. It
// is approximate, because the length of that text may differ.
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
	if err != nil && !late && s.currentPart.Number == 0 {
		return t.errorReport(err.Error())
	}
	var b strings.Builder
	found, what := s.phraseHits, ""
	if found.total == 0 {
		found, what = s.wordHits, "the words "
	}
	query := wording.Clip(strings.Join(strings.Fields(t.Query), " "), maxTitle)
	switch found.total {
	case 0:
		fmt.Fprintf(&b, "'%s' does not hold %q, nor a %s with all of its words. Try other or fewer words.", t.Name, query, format.Block)
	default:
		fmt.Fprintf(&b, "Found %s%q in %s of '%s':\n", what, query, wording.Plural(found.total, format.Block, format.Block+"s"), t.Name)
	}
	for _, h := range found.kept {
		fmt.Fprintf(&b, "\n- %d:%d (%s): %s", h.part.Number, h.block, h.location(format), h.text)
	}
	if more := found.total - len(found.kept); more > 0 {
		fmt.Fprintf(&b, "\n[%d more are not shown; search for something narrower.]", more)
	}
	if len(found.kept) > 0 {
		h := found.kept[0]
		fmt.Fprintf(&b, "\n\n[To read around a place: read_document with a part such as \"%d:%d-%d:%d\".]", h.part.Number, max(1, h.block-5), h.part.Number, h.block+15)
	}
	switch {
	case late:
		b.WriteString("\n[The search took too long: the rest of the document was not looked at.]")
	case err != nil && !errors.Is(err, ctx.Err()):
		fmt.Fprintf(&b, "\n[The rest was not looked at: the file %s.]", err)
	}
	return report{Text: b.String(), Mail: format.Name == "mail"}
}

// location describes the location of a hit.
func (h hit) location(format office.Format) string {
	text := fmt.Sprintf("%s %d", format.Part, h.part.Number)
	if h.part.Name != "" && h.part.Name != h.heading {
		text += " " + wording.Clip(h.part.Name, maxTitle)
	}
	text += fmt.Sprintf("%s, %s %d%s", hiddenMark(h.part.Hidden), format.Block, h.block, hiddenMark(h.hidden))
	if h.heading != "" {
		text += ", under " + wording.Clip(h.heading, maxTitle)
	}
	return text
}
