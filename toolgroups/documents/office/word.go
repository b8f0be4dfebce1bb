package office

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"

	"oneclaw/internal/wording"
)

// docxReader reads a DOCX file. Pages begin at page
// breaks, and where they began when Word saved the file.
type docxReader struct {
	*zipDocument
	out       *emitter
	rels      map[string]relation
	styles    map[string]style
	lists     numbering
	notes     []note // in the order of their marks
	afterItem bool   // the last block was a list item
}

// style is a paragraph style.
type style struct {
	level   int // of a heading
	list    string
	depth   int
	basedOn string
}

// note is a footnote, an endnote or a comment.
type note struct{ kind, id, mark string }

// paragraph is the state of a paragraph while it is read.
type paragraph struct {
	text        strings.Builder
	style       string
	level       int    // of a heading
	list        string // the id of its list, "0" for none
	depth       int
	mark        string // the number or bullet of an item
	breakBefore bool   // a page begins before it
	emitted     bool   // its beginning was passed to the sink
	inCell      bool   // it is in a table cell, in which pages do not break
	breakAfter  bool   // a page begins after the row
}

func (p *zipDocument) readWord(main string, s *scanner, out *emitter) error {
	w := &docxReader{zipDocument: p, out: out, lists: numbering{}}
	var err error
	if w.rels, err = p.readRelations(main); err != nil {
		return err
	}
	if err := w.readStyles(relatedFile(w.rels, "styles")); err != nil {
		return err
	}
	if err := w.lists.read(p, relatedFile(w.rels, "numbering")); err != nil {
		return err
	}
	if err := s.eachChild(w.blockReader(s)); err != nil {
		return err
	}
	return w.readNotes()
}

func (w *docxReader) readStyles(name string) error {
	w.styles = map[string]style{}
	err := w.scanOptional(name, func(s *scanner) error {
		return s.eachChild(func(xml.StartElement) error {
			return s.eachChild(func(el xml.StartElement) error {
				if el.Name.Local != "style" || attr(el, "type") != "paragraph" {
					return nil
				}
				var is style
				id := attr(el, "styleId")
				err := s.eachChild(func(el xml.StartElement) error {
					switch el.Name.Local {
					case "name":
						is.level = headingLevel(attr(el, "val"))
					case "basedOn":
						is.basedOn = attr(el, "val")
					case "pPr":
						var p paragraph
						err := readProperties(s, &p)
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

// applyStyle applies a style to a paragraph.
func (w *docxReader) applyStyle(p *paragraph, id string) {
	for range 16 { // a longer chain is a cycle
		is, ok := w.styles[id]
		if !ok {
			return
		}
		p.level = cmp.Or(p.level, is.level)
		if p.list == "" && is.list != "" {
			p.list, p.depth = is.list, is.depth
		}
		id = is.basedOn
	}
}

// readProperties reads the element pPr into p, but does not apply the style.
func readProperties(s *scanner, p *paragraph) error {
	return s.eachChild(func(el xml.StartElement) error {
		value := attr(el, "val")
		switch el.Name.Local {
		case "pStyle":
			p.style = value
		case "pageBreakBefore":
			p.breakBefore = !isOff(el)
		case "outlineLvl":
			if n, err := strconv.Atoi(value); err == nil && n >= 0 && n < 9 {
				p.level = n + 1
			}
		case "numPr":
			return s.eachChild(func(el xml.StartElement) error {
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

// blockReader returns a function that reads the content of the body, also that of unknown elements.
func (w *docxReader) blockReader(s *scanner) func(xml.StartElement) error {
	var read func(el xml.StartElement) error
	read = func(el xml.StartElement) error {
		switch el.Name.Local {
		case "p":
			var p paragraph
			if err := s.eachChild(w.inlineReader(s, &p)); err != nil {
				return err
			}
			return w.flush(&p)
		case "tbl":
			w.afterItem = false
			return w.readTable(s)
		}
		return readUnlessSkipped(el, s, read)
	}
	return read
}

// readUnlessSkipped reads the content of an element, except deleted text, fallbacks for older
// programs, and settings.
func readUnlessSkipped(el xml.StartElement, s *scanner, read func(xml.StartElement) error) error {
	switch el.Name.Local {
	case "del", "moveFrom", "Fallback", "instrText", "sectPr", "sdtPr", "rPr", "tblPr", "trPr", "tblGrid":
		return nil
	}
	return s.eachChild(read)
}

// inlineReader returns a function that reads the content of a paragraph into p.
func (w *docxReader) inlineReader(s *scanner, p *paragraph) func(xml.StartElement) error {
	var read func(el xml.StartElement) error
	read = func(el xml.StartElement) error {
		switch el.Name.Local {
		case "pPr":
			if err := readProperties(s, p); err != nil {
				return err
			}
			w.applyStyle(p, p.style)
			if p.breakBefore {
				return w.breakPage(p)
			}
			return nil
		case "t":
			text, err := s.readText()
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
			in := paragraph{inCell: true}
			err := s.eachChild(w.inlineReader(s, &in))
			p.text.WriteString("\n" + in.text.String())
			return err
		case "hyperlink":
			return w.readLink(s, el, p, read)
		case "docPr":
			if said := oneLine(attr(el, "descr")); said != "" {
				fmt.Fprintf(&p.text, "[picture: %s]", said)
			}
		case "footnoteReference", "endnoteReference", "commentReference":
			w.addNote(strings.TrimSuffix(el.Name.Local, "Reference"), attr(el, "id"), p)
		default:
			return readUnlessSkipped(el, s, read)
		}
		return nil
	}
	return read
}

// breakPage begins a page; in a table, the page begins after the row.
func (w *docxReader) breakPage(p *paragraph) error {
	if p.inCell {
		p.breakAfter = true
		return nil
	}
	err := w.flush(p)
	w.out.breakPage()
	return err
}

// readLink writes the target of a link.
func (w *docxReader) readLink(s *scanner, el xml.StartElement, p *paragraph, read func(xml.StartElement) error) error {
	before := p.text.Len()
	err := s.eachChild(read)
	to := w.rels[attr(el, "id")]
	if words := p.text.String()[min(before, p.text.Len()):]; to.external && strings.TrimSpace(words) != "" && words != to.target {
		fmt.Fprintf(&p.text, " (%s)", oneLine(to.target))
	}
	return err
}

// addNote writes a reference to a note, whose text is written at the end.
func (w *docxReader) addNote(kind, id string, p *paragraph) {
	n := note{kind, id, fmt.Sprintf("[^%d]", len(w.notes)+1)}
	if len(w.notes) < maxNotes {
		w.notes = append(w.notes, n)
	}
	p.text.WriteString(n.mark)
}

// maxNotes bounds the footnotes, endnotes and comments of a document.
const maxNotes = 10_000

// flush passes the paragraph so far to the sink.
func (w *docxReader) flush(p *paragraph) error {
	text := p.text.String()
	p.text.Reset()
	if tidy(text) == "" {
		return nil
	}
	if p.list != "" && p.list != "0" && !p.emitted {
		p.mark = w.lists.nextMark(p.list, p.depth)
	}
	tight := w.afterItem
	w.afterItem = false
	defer func() { p.emitted = true }()
	switch {
	case p.emitted:
		return w.out.addParagraph(text, false)
	case p.level > 0:
		if p.mark != "" && p.mark != bullet {
			text = p.mark + " " + text
		}
		return w.out.addHeading(p.level, text)
	case p.mark != "":
		w.afterItem = true
		return w.out.addItem(p.depth, p.mark, text, tight)
	}
	return w.out.addParagraph(text, false)
}

// readTable reads a table. The content of a cell, including nested tables, becomes lines.
func (w *docxReader) readTable(s *scanner) error {
	t := table{out: w.out}
	var rows func(el xml.StartElement) error
	rows = func(el xml.StartElement) error {
		if el.Name.Local != "tr" {
			return readUnlessSkipped(el, s, rows)
		}
		var cells []string
		late := false
		var row func(el xml.StartElement) error
		row = func(el xml.StartElement) error {
			if el.Name.Local != "tc" {
				return readUnlessSkipped(el, s, row)
			}
			text, span, broke, err := w.readCell(s)
			late = late || broke
			cells = append(cells, text)
			cells = append(cells, make([]string, span-1)...)
			return err
		}
		if err := s.eachChild(row); err != nil {
			return err
		}
		if err := t.addRow(cells); err != nil {
			return err
		}
		if late {
			w.out.breakPage()
		}
		return nil
	}
	return s.eachChild(rows)
}

// readCell returns a cell's text, its column span, and whether a page ends in it.
func (w *docxReader) readCell(s *scanner) (text string, span int, late bool, err error) {
	span = 1
	p := paragraph{inCell: true}
	covered := false
	var read func(el xml.StartElement) error
	read = func(el xml.StartElement) error {
		switch el.Name.Local {
		case "tcPr":
			return s.eachChild(func(el xml.StartElement) error {
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
			in := paragraph{inCell: true}
			if err := s.eachChild(w.inlineReader(s, &in)); err != nil {
				return err
			}
			p.breakAfter = p.breakAfter || in.breakAfter
			p.text.WriteString(in.text.String() + "\n")
			return nil
		}
		return readUnlessSkipped(el, s, read)
	}
	err = s.eachChild(read)
	if covered {
		return "", span, p.breakAfter, err
	}
	return cellText(p.text.String()), span, p.breakAfter, err
}

// readNotes writes the texts of the notes to which the document refers.
func (w *docxReader) readNotes() error {
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
		if err := w.out.addParagraph(n.mark+": "+text, i > 0); err != nil {
			return err
		}
	}
	return nil
}

// readNotesOf reads the notes of a kind.
func (w *docxReader) readNotesOf(kind string, texts map[note]string) error {
	return w.scanOptional(relatedFile(w.rels, kind+"s"), func(s *scanner) error {
		return s.eachChild(func(xml.StartElement) error {
			return s.eachChild(func(el xml.StartElement) error {
				p := paragraph{inCell: true}
				if author := oneLine(attr(el, "author")); author != "" {
					fmt.Fprintf(&p.text, "comment of %s:", author)
				}
				err := s.eachChild(w.inlineReader(s, &p))
				texts[note{kind: kind, id: attr(el, "id")}] = oneLine(p.text.String())
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
		begun        bool // count is that of the last item
	}
}

// read reads the definitions of lists.
func (n numbering) read(p *zipDocument, name string) error {
	kinds := map[string]*list{}
	return p.scanOptional(name, func(s *scanner) error {
		return s.eachChild(func(xml.StartElement) error {
			return s.eachChild(func(el xml.StartElement) error {
				switch el.Name.Local {
				case "abstractNum":
					l := &list{}
					kinds[attr(el, "abstractNumId")] = l
					return l.read(s)
				case "num":
					id := attr(el, "numId")
					return s.eachChild(func(el xml.StartElement) error {
						l := kinds[attr(el, "val")]
						switch {
						case el.Name.Local == "abstractNumId" && l != nil:
							n[id] = l
						case el.Name.Local == "lvlOverride" && n[id] != nil:
							own := *n[id] // a list with a start of its own does not go on with the numbers of another
							n[id] = &own
							return own.readOverride(s, attr(el, "ilvl"))
						}
						return nil
					})
				}
				return nil
			})
		})
	})
}

// readOverride reads the number with which a level begins in a list.
func (l *list) readOverride(s *scanner, level string) error {
	at, err := strconv.Atoi(level)
	return s.eachChild(func(el xml.StartElement) error {
		start, wrong := strconv.Atoi(attr(el, "val"))
		if el.Name.Local == "startOverride" && cmp.Or(err, wrong) == nil && at >= 0 && at < len(l.levels) {
			l.levels[at].start = start
		}
		return nil
	})
}

func (l *list) read(s *scanner) error {
	return s.eachChild(func(el xml.StartElement) error {
		at, err := strconv.Atoi(attr(el, "ilvl"))
		if el.Name.Local != "lvl" || err != nil || at < 0 || at >= len(l.levels) {
			return nil
		}
		level := &l.levels[at]
		level.start = 1
		return s.eachChild(func(el xml.StartElement) error {
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

// nextMark counts an item of a list and returns its formatted number, or a bullet.
func (n numbering) nextMark(id string, depth int) string {
	l := n[id]
	if l == nil || depth < 0 || depth >= len(l.levels) {
		return bullet
	}
	at := &l.levels[depth]
	if at.count++; !at.begun {
		at.count, at.begun = at.start, true
	}
	for deeper := depth + 1; deeper < len(l.levels); deeper++ {
		l.levels[deeper].begun = false
	}
	if at.format == "bullet" || at.format == "" || at.format == "none" || !strings.Contains(at.text, "%") {
		return bullet
	}
	text := at.text
	for i, level := range l.levels[:depth+1] {
		number := level.start
		if level.begun {
			number = level.count
		}
		text = strings.ReplaceAll(text, "%"+strconv.Itoa(i+1), formatOrdinal(level.format, number))
	}
	return oneLine(text)
}

// formatOrdinal formats a number in one of Word's formats.
func formatOrdinal(format string, n int) string {
	switch {
	case n < 1 || n > 3_999:
	case format == "lowerLetter":
		return strings.ToLower(wording.ColumnName(n - 1))
	case format == "upperLetter":
		return wording.ColumnName(n - 1)
	case format == "lowerRoman":
		return strings.ToLower(formatRoman(n))
	case format == "upperRoman":
		return formatRoman(n)
	}
	return strconv.Itoa(n)
}

// formatRoman formats a number in Roman numerals.
func formatRoman(n int) string {
	var b strings.Builder
	for _, r := range []struct {
		value int
		text  string
	}{
		{1000, "M"},
		{900, "CM"},
		{500, "D"},
		{400, "CD"},
		{100, "C"},
		{90, "XC"},
		{50, "L"},
		{40, "XL"},
		{10, "X"},
		{9, "IX"},
		{5, "V"},
		{4, "IV"},
		{1, "I"},
	} {
		for ; n >= r.value; n -= r.value {
			b.WriteString(r.text)
		}
	}
	return b.String()
}
