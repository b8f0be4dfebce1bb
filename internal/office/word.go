package office

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"

	"oneclaw/internal/wording"
)

// word reads a DOCX. Its pages are those recorded when Word saved the file, and those of page
// breaks.
type word struct {
	*pack
	out    *emitter
	rels   map[string]relation
	styles map[string]style
	lists  numbering
	notes  []note // in the order of their marks
	listed bool   // the last block was a list item
}

// style is a paragraph style.
type style struct {
	level int // of a heading
	list  string
	depth int
	based string
}

// note is a footnote, an endnote or a comment.
type note struct{ kind, id, mark string }

// paragraph is the state of a paragraph while it is read.
type paragraph struct {
	text  strings.Builder
	style string
	level int    // of a heading
	list  string // the id of its list, "0" for none
	depth int
	mark  string // the number or bullet of an item
	early bool   // a page begins before it
	begun bool   // its beginning was passed to the sink
	cell  bool   // it is in a table cell, in which pages do not break
	late  bool   // a page begins after the row
}

func (p *pack) readWord(main string, s *scanner, out *emitter) error {
	w := &word{pack: p, out: out, lists: numbering{}}
	var err error
	if w.rels, err = p.relations(main); err != nil {
		return err
	}
	if err := w.readStyles(related(w.rels, "styles")); err != nil {
		return err
	}
	if err := w.lists.read(p, related(w.rels, "numbering")); err != nil {
		return err
	}
	if err := s.children(w.block(s)); err != nil {
		return err
	}
	return w.readNotes()
}

func (w *word) readStyles(name string) error {
	w.styles = map[string]style{}
	err := w.scanAny(name, func(s *scanner) error {
		return s.children(func(xml.StartElement) error {
			return s.children(func(el xml.StartElement) error {
				if el.Name.Local != "style" || attr(el, "type") != "paragraph" {
					return nil
				}
				var is style
				id := attr(el, "styleId")
				err := s.children(func(el xml.StartElement) error {
					switch el.Name.Local {
					case "name":
						is.level = headingLevel(attr(el, "val"))
					case "basedOn":
						is.based = attr(el, "val")
					case "pPr":
						var p paragraph
						err := properties(s, &p)
						is.level, is.list, is.depth = cmp.Or(is.level, p.level), p.list, p.depth
						return err
					}
					return nil
				})
				w.styles[id] = is
				return err
			})
		})
	})
	return err
}

// headingLevel returns the heading level of a style's name, or 0.
func headingLevel(name string) int {
	name = strings.ToLower(name)
	if name == "title" {
		return 1
	}
	level, ok := strings.CutPrefix(name, "heading ")
	if n, err := strconv.Atoi(level); ok && err == nil {
		return min(max(n, 1), 9)
	}
	return 0
}

// styled applies a style to a paragraph.
func (w *word) styled(p *paragraph, id string) {
	for range 16 { // a longer chain is a cycle
		is, ok := w.styles[id]
		if !ok {
			return
		}
		p.level = cmp.Or(p.level, is.level)
		if p.list == "" && is.list != "" {
			p.list, p.depth = is.list, is.depth
		}
		id = is.based
	}
}

// properties reads pPr into p, without its style.
func properties(s *scanner, p *paragraph) error {
	return s.children(func(el xml.StartElement) error {
		value := attr(el, "val")
		switch el.Name.Local {
		case "pStyle":
			p.style = value
		case "pageBreakBefore":
			p.early = !isOff(el)
		case "outlineLvl":
			if n, err := strconv.Atoi(value); err == nil && n >= 0 && n < 9 {
				p.level = n + 1
			}
		case "numPr":
			return s.children(func(el xml.StartElement) error {
				switch el.Name.Local {
				case "numId":
					p.list = attr(el, "val")
				case "ilvl":
					p.depth, _ = strconv.Atoi(attr(el, "val"))
				}
				return nil
			})
		}
		return nil
	})
}

// block reads the content of the body. The content of unknown elements is read too.
func (w *word) block(s *scanner) func(xml.StartElement) error {
	var read func(el xml.StartElement) error
	read = func(el xml.StartElement) error {
		switch el.Name.Local {
		case "p":
			var p paragraph
			if err := s.children(w.inline(s, &p)); err != nil {
				return err
			}
			return w.flush(&p)
		case "tbl":
			w.listed = false
			return w.table(s)
		}
		return unlessLeftOut(el, s, read)
	}
	return read
}

// unlessLeftOut reads the content of an element, except deleted text, fallbacks for older
// programs, and settings.
func unlessLeftOut(el xml.StartElement, s *scanner, read func(xml.StartElement) error) error {
	switch el.Name.Local {
	case "del", "moveFrom", "Fallback", "instrText", "sectPr", "sdtPr", "rPr", "tblPr", "trPr", "tblGrid":
		return nil
	}
	return s.children(read)
}

// inline reads the content of a paragraph into p.
func (w *word) inline(s *scanner, p *paragraph) func(xml.StartElement) error {
	var read func(el xml.StartElement) error
	read = func(el xml.StartElement) error {
		switch el.Name.Local {
		case "pPr":
			if err := properties(s, p); err != nil {
				return err
			}
			w.styled(p, p.style)
			if p.early {
				return w.breakPage(p)
			}
			return nil
		case "t":
			text, err := s.text()
			p.text.WriteString(text)
			return err
		case "tab", "ptab":
			p.text.WriteByte('\t')
		case "cr":
			p.text.WriteByte('\n')
		case "noBreakHyphen":
			p.text.WriteByte('-')
		case "br":
			if attr(el, "type") == "page" {
				return w.breakPage(p)
			}
			p.text.WriteByte('\n')
		case "lastRenderedPageBreak":
			return w.breakPage(p)
		case "p": // in a text box
			in := paragraph{cell: true}
			err := s.children(w.inline(s, &in))
			p.text.WriteString("\n" + in.text.String())
			return err
		case "hyperlink":
			return w.link(s, el, p, read)
		case "docPr":
			if said := line(attr(el, "descr")); said != "" {
				fmt.Fprintf(&p.text, "[picture: %s]", said)
			}
		case "footnoteReference", "endnoteReference", "commentReference":
			w.note(strings.TrimSuffix(el.Name.Local, "Reference"), attr(el, "id"), p)
		default:
			return unlessLeftOut(el, s, read)
		}
		return nil
	}
	return read
}

// breakPage begins a page, in a table after the row.
func (w *word) breakPage(p *paragraph) error {
	if p.cell {
		p.late = true
		return nil
	}
	err := w.flush(p)
	w.out.breakPage()
	return err
}

// link writes the target of a link.
func (w *word) link(s *scanner, el xml.StartElement, p *paragraph, read func(xml.StartElement) error) error {
	before := p.text.Len()
	err := s.children(read)
	to := w.rels[attr(el, "id")]
	if words := p.text.String()[min(before, p.text.Len()):]; to.external && strings.TrimSpace(words) != "" && words != to.target {
		fmt.Fprintf(&p.text, " (%s)", line(to.target))
	}
	return err
}

// note marks a note, whose text is written at the end.
func (w *word) note(kind, id string, p *paragraph) {
	n := note{kind, id, fmt.Sprintf("[^%d]", len(w.notes)+1)}
	if len(w.notes) < maxNotes {
		w.notes = append(w.notes, n)
	}
	p.text.WriteString(n.mark)
}

// maxNotes bounds the footnotes, endnotes and comments of a document.
const maxNotes = 10_000

// flush passes the paragraph so far to the sink.
func (w *word) flush(p *paragraph) error {
	text := p.text.String()
	p.text.Reset()
	if tidy(text) == "" {
		return nil
	}
	if p.list != "" && p.list != "0" && !p.begun {
		p.mark = w.lists.mark(p.list, p.depth)
	}
	tight := w.listed
	w.listed = false
	defer func() { p.begun = true }()
	switch {
	case p.begun:
		return w.out.paragraph(text, false)
	case p.level > 0:
		if p.mark != "" && p.mark != bullet {
			text = p.mark + " " + text
		}
		return w.out.heading(p.level, text)
	case p.mark != "":
		w.listed = true
		return w.out.item(p.depth, p.mark, text, tight)
	}
	return w.out.paragraph(text, false)
}

// table reads a table. The content of a cell, including nested tables, becomes lines.
func (w *word) table(s *scanner) error {
	t := table{out: w.out}
	var rows func(el xml.StartElement) error
	rows = func(el xml.StartElement) error {
		if el.Name.Local != "tr" {
			return unlessLeftOut(el, s, rows)
		}
		var cells []string
		late := false
		var row func(el xml.StartElement) error
		row = func(el xml.StartElement) error {
			if el.Name.Local != "tc" {
				return unlessLeftOut(el, s, row)
			}
			text, span, broke, err := w.cell(s)
			late = late || broke
			cells = append(cells, text)
			cells = append(cells, make([]string, span-1)...)
			return err
		}
		if err := s.children(row); err != nil {
			return err
		}
		if err := t.row(cells); err != nil {
			return err
		}
		if late {
			w.out.breakPage()
		}
		return nil
	}
	return s.children(rows)
}

// cell returns a cell's text, its column span, and whether a page ends in it.
func (w *word) cell(s *scanner) (text string, span int, late bool, err error) {
	span = 1
	p := paragraph{cell: true}
	covered := false
	var read func(el xml.StartElement) error
	read = func(el xml.StartElement) error {
		switch el.Name.Local {
		case "tcPr":
			return s.children(func(el xml.StartElement) error {
				switch el.Name.Local {
				case "gridSpan":
					n, _ := strconv.Atoi(attr(el, "val"))
					span = min(max(n, 1), maxCells)
				case "vMerge":
					covered = attr(el, "val") != "restart"
				}
				return nil
			})
		case "p":
			in := paragraph{cell: true}
			if err := s.children(w.inline(s, &in)); err != nil {
				return err
			}
			p.late = p.late || in.late
			p.text.WriteString(in.text.String() + "\n")
			return nil
		}
		return unlessLeftOut(el, s, read)
	}
	err = s.children(read)
	if covered {
		return "", span, p.late, err
	}
	return cellText(p.text.String()), span, p.late, err
}

// readNotes writes the notes in use.
func (w *word) readNotes() error {
	texts := map[note]string{}
	for _, kind := range []string{"footnote", "endnote", "comment"} {
		if err := w.readNotesOf(kind, texts); err != nil {
			return err
		}
	}
	for i, n := range w.notes {
		text := texts[note{kind: n.kind, id: n.id}]
		if text == "" {
			continue
		}
		if err := w.out.paragraph(n.mark+": "+text, i > 0); err != nil {
			return err
		}
	}
	return nil
}

// readNotesOf reads the notes of a kind.
func (w *word) readNotesOf(kind string, texts map[note]string) error {
	return w.scanAny(related(w.rels, kind+"s"), func(s *scanner) error {
		return s.children(func(xml.StartElement) error {
			return s.children(func(el xml.StartElement) error {
				p := paragraph{cell: true}
				if author := line(attr(el, "author")); author != "" {
					fmt.Fprintf(&p.text, "comment of %s:", author)
				}
				err := s.children(w.inline(s, &p))
				texts[note{kind: kind, id: attr(el, "id")}] = line(p.text.String())
				return err
			})
		})
	})
}

// bullet is the mark of an item without a number.
const bullet = "-"

// numbering counts the items of lists, by list id.
type numbering map[string]*list

// list is a list with its levels.
type list struct {
	levels [9]struct {
		format, text string
		start, count int
	}
}

// read reads the definitions of lists.
func (n numbering) read(p *pack, name string) error {
	kinds := map[string]*list{}
	return p.scanAny(name, func(s *scanner) error {
		return s.children(func(xml.StartElement) error {
			return s.children(func(el xml.StartElement) error {
				switch el.Name.Local {
				case "abstractNum":
					l := &list{}
					kinds[attr(el, "abstractNumId")] = l
					return l.read(s)
				case "num":
					id := attr(el, "numId")
					return s.children(func(el xml.StartElement) error {
						if l := kinds[attr(el, "val")]; el.Name.Local == "abstractNumId" && l != nil {
							n[id] = l
						}
						return nil
					})
				}
				return nil
			})
		})
	})
}

func (l *list) read(s *scanner) error {
	return s.children(func(el xml.StartElement) error {
		at, err := strconv.Atoi(attr(el, "ilvl"))
		if el.Name.Local != "lvl" || err != nil || at < 0 || at >= len(l.levels) {
			return nil
		}
		level := &l.levels[at]
		level.start = 1
		return s.children(func(el xml.StartElement) error {
			switch value := attr(el, "val"); el.Name.Local {
			case "numFmt":
				level.format = value
			case "lvlText":
				level.text = value
			case "start":
				if n, err := strconv.Atoi(value); err == nil {
					level.start = n
				}
			}
			return nil
		})
	})
}

// mark counts an item of a list and returns its formatted number, or a bullet.
func (n numbering) mark(id string, depth int) string {
	l := n[id]
	if l == nil || depth < 0 || depth >= len(l.levels) {
		return bullet
	}
	at := &l.levels[depth]
	if at.count++; at.count == 1 {
		at.count = at.start
	}
	for deeper := depth + 1; deeper < len(l.levels); deeper++ {
		l.levels[deeper].count = 0
	}
	if at.format == "bullet" || at.format == "" || at.format == "none" || !strings.Contains(at.text, "%") {
		return bullet
	}
	text := at.text
	for i, level := range l.levels[:depth+1] {
		text = strings.ReplaceAll(text, "%"+strconv.Itoa(i+1), ordinal(level.format, max(level.count, level.start)))
	}
	return line(text)
}

// ordinal formats a number in one of Word's formats.
func ordinal(format string, n int) string {
	switch {
	case n < 1 || n > 3_999:
	case format == "lowerLetter":
		return strings.ToLower(wording.Column(n - 1))
	case format == "upperLetter":
		return wording.Column(n - 1)
	case format == "lowerRoman":
		return strings.ToLower(roman(n))
	case format == "upperRoman":
		return roman(n)
	}
	return strconv.Itoa(n)
}

// roman formats a number in Roman numerals.
func roman(n int) string {
	var b strings.Builder
	for _, r := range []struct {
		value int
		text  string
	}{
		{1000, "M"}, {900, "CM"}, {500, "D"}, {400, "CD"}, {100, "C"}, {90, "XC"}, {50, "L"}, {40, "XL"},
		{10, "X"}, {9, "IX"}, {5, "V"}, {4, "IV"}, {1, "I"},
	} {
		for ; n >= r.value; n -= r.value {
			b.WriteString(r.text)
		}
	}
	return b.String()
}
