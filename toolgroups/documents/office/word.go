package office

import (
	"cmp"
	"encoding/xml"
	"strconv"
	"strings"

	"oneclaw/internal/formula"
)

// docxReader reads a DOCX file. Pages begin at page
// breaks, and where they began when Word saved the file.
type docxReader struct {
	*zipDocument
	rels      map[string]relation
	styles    map[string]style
	lists     numbering
	notes     map[noteID]string // texts
	inNotes   bool              // the notes are read, not the body
	fields    []*field          // in which the text is
	described bool              // the text of a drawing was written
	afterItem bool              // the last block was a list item
}

// style is a style of paragraphs or characters.
type style struct {
	level    int // of a heading
	list     string
	depth    int
	hasDepth bool
	basedOn  string
	run      runFormat
}

// runFormat is what a run or a style says of its text; 0 if it says nothing.
type runFormat struct {
	script         int // 1 above the line, -1 below it, 2 on it
	struck, hidden int // 1 or -1
	font           string
}

// over returns the format above that of a style.
func (f runFormat) over(base runFormat) runFormat {
	return runFormat{cmp.Or(f.script, base.script), cmp.Or(f.struck, base.struck), cmp.Or(f.hidden, base.hidden), cmp.Or(f.font, base.font)}
}

// noteID identifies a footnote, an endnote or a comment.
type noteID struct{ kind, id string }

// field is a field of Word: an instruction and its result.
type field struct {
	instruction string
	inResult    bool
	state       string // of a form field that has no result
}

// paragraph is the state of a paragraph while it is read.
type paragraph struct {
	text        richText
	boxes       strings.Builder // the text boxes at the paragraph, each after a line break
	base, run   runFormat       // of the paragraph, and of the run
	link        string
	style       string
	level       int    // of a heading
	list        string // the id of its list, "0" for none
	depth       int
	hasDepth    bool
	mark        string // the number or bullet of an item
	counted     bool   // the mark is set
	breakBefore bool   // a page begins before it
	deleted     bool   // a change that is not accepted yet deletes it
	emitted     bool   // its beginning was passed to the sink
	inCell      bool   // it is in a table cell, in which pages do not break
	breakAfter  bool   // a page begins after the row
}

func (p *zipDocument) readWord(main string, s *scanner) error {
	w := &docxReader{zipDocument: p, notes: map[noteID]string{}}
	rels, err := p.readRelations(main)
	if err != nil {
		return err
	}
	if err := w.readStyles(relatedFile(rels, "styles")); err != nil {
		return err
	}
	if err := w.lists.read(p, relatedFile(rels, "numbering")); err != nil {
		return err
	}
	for _, kind := range []string{"comment", "footnote", "endnote"} {
		if err := w.readNotes(relatedFile(rels, kind+"s"), kind); err != nil {
			return err
		}
	}
	w.rels, w.fields = rels, nil
	if err := w.lists.read(p, relatedFile(rels, "numbering")); err != nil { // the notes have counted
		return err
	}
	return s.eachChild(w.blockReader(s))
}

func (w *docxReader) readStyles(name string) error {
	w.styles = map[string]style{}
	return w.scanOptional(name, func(s *scanner) error {
		return s.eachChild(func(xml.StartElement) error {
			return s.eachChild(func(el xml.StartElement) error {
				if kind := attr(el, "type"); el.Name.Local != "style" || kind != "paragraph" && kind != "character" {
					return nil
				}
				var is style
				id := attr(el, "styleId")
				err := s.eachChild(func(el xml.StartElement) (err error) {
					switch el.Name.Local {
					case "name":
						is.level = headingLevel(attr(el, "val"))
					case "basedOn":
						is.basedOn = attr(el, "val")
					case "rPr":
						is.run, _, err = readRunFormat(s)
					case "pPr":
						var p paragraph
						err = readProperties(s, &p)
						is.level, is.list, is.depth, is.hasDepth = cmp.Or(is.level, p.level), p.list, p.depth, p.hasDepth
					}
					return err
				})
				w.styles[id] = is
				return err
			})
		})
	})
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

// maxStyles bounds the styles of which each is based on the next: more are a cycle.
const maxStyles = 16

// applyStyle applies a style to a paragraph.
func (w *docxReader) applyStyle(p *paragraph, id string) {
	p.base = w.runStyle(id)
	p.run = p.base
	for range maxStyles {
		is, ok := w.styles[id]
		if !ok {
			return
		}
		p.level = cmp.Or(p.level, is.level)
		if p.list == "" && is.list != "" {
			p.list = is.list
			switch {
			case p.hasDepth:
			case is.hasDepth:
				p.depth = is.depth
			default:
				p.depth = w.lists.levelOf(is.list, id)
			}
		}
		id = is.basedOn
	}
}

// runStyle returns the format of a style's text.
func (w *docxReader) runStyle(id string) (f runFormat) {
	for range maxStyles {
		is, ok := w.styles[id]
		if !ok {
			break
		}
		f, id = f.over(is.run), is.basedOn
	}
	return f
}

// readRunFormat reads the element rPr: its own format, and its style.
func readRunFormat(s *scanner) (f runFormat, style string, err error) {
	err = s.eachChild(func(el xml.StartElement) error {
		on := 1
		if isOff(el) {
			on = -1
		}
		switch el.Name.Local {
		case "rStyle":
			style = attr(el, "val")
		case "vertAlign":
			f.script = cmp.Or(map[string]int{"superscript": 1, "subscript": -1}[attr(el, "val")], 2)
		case "position": // in half points
			if up, err := strconv.Atoi(attr(el, "val")); err == nil && (up >= minRaised || up <= -minRaised) && f.script == 0 {
				f.script = max(-1, min(up, 1))
			}
		case "strike", "dstrike":
			if f.struck != 1 {
				f.struck = on
			}
		case "vanish":
			f.hidden = on
		case "rFonts":
			f.font = cmp.Or(attr(el, "ascii"), attr(el, "hAnsi"))
		}
		return nil
	})
	return f, style, err
}

// minRaised is how far above its line text is raised, in half points; less only adjusts its position.
const minRaised = 4

// readProperties reads the element pPr into p, but does not apply the style.
func readProperties(s *scanner, p *paragraph) error {
	return s.eachChild(func(el xml.StartElement) error {
		value := attr(el, "val")
		switch el.Name.Local {
		case "pStyle":
			p.style = value
		case "pageBreakBefore":
			p.breakBefore = !isOff(el)
		case "rPr": // of the mark at its end
			return s.eachChild(func(el xml.StartElement) error {
				p.deleted = p.deleted || el.Name.Local == "del" || el.Name.Local == "moveFrom"
				return nil
			})
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
					depth, err := strconv.Atoi(attr(el, "val"))
					p.depth, p.hasDepth = depth, err == nil
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
			if !p.deleted {
				w.countItem(&p) // also an empty one
			}
			return w.flush(&p)
		case "oMathPara", "oMath": // between paragraphs
			var p paragraph
			if err := w.inlineReader(s, &p)(el); err != nil {
				return err
			}
			return w.flush(&p)
		case "tbl":
			w.afterItem = false
			return w.readTable(s)
		case "altChunk":
			w.afterItem = false
			return w.readChunk(w.rels[relationID(el)].target)
		}
		return readUnlessSkipped(el, s, read)
	}
	return read
}

// readUnlessSkipped reads the content of an element, except deleted text, fallbacks for older
// programs, and settings.
func readUnlessSkipped(el xml.StartElement, s *scanner, read func(xml.StartElement) error) error {
	switch el.Name.Local {
	case "del", "moveFrom", "Fallback", "sectPr", "sdtPr", "rPr", "tblPr", "trPr", "tblGrid", "rt":
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
		case "r":
			p.run = p.base
			err := s.eachChild(read)
			p.run = p.base
			return err
		case "rPr":
			own, style, err := readRunFormat(s)
			p.run = own.over(w.runStyle(style)).over(p.base)
			return err
		case "p": // in a text box
			text, err := w.readInner(s)
			p.boxes.WriteString("\n" + text)
			return err
		case "hyperlink":
			was := p.link
			p.link = w.linkTarget(el)
			err := s.eachChild(read)
			p.link = was
			return err
		case "br":
			if attr(el, "type") == "page" {
				return w.breakPage(p)
			}
			w.write(p, "\n")
		case "lastRenderedPageBreak":
			return w.breakPage(p)
		case "t", "tab", "ptab", "cr", "noBreakHyphen", "sym":
			text, err := readCharacters(s, el)
			w.write(p, text)
			return err
		case "fldChar", "instrText", "fldSimple":
			return w.readField(s, el, p, read)
		case "oMath":
			text, err := readFormula(s, el)
			w.writeMark(p, text)
			return err
		case "drawing":
			w.described = false
			return s.eachChild(read)
		case "docPr", "pic", "imagedata", "chart", "relIds", "object":
			return w.readObject(s, el, p)
		case "footnoteReference", "endnoteReference", "commentReference":
			w.addNote(strings.TrimSuffix(el.Name.Local, "Reference"), attr(el, "id"), p)
		default:
			return readUnlessSkipped(el, s, read)
		}
		return nil
	}
	return read
}

// readCharacters returns the characters for which an element of a run stands.
func readCharacters(s *scanner, el xml.StartElement) (string, error) {
	switch el.Name.Local {
	case "tab", "ptab":
		return "\t", nil
	case "cr":
		return "\n", nil
	case "noBreakHyphen":
		return "-", nil
	case "sym":
		code, err := strconv.ParseInt(attr(el, "char"), 16, 32)
		text := symbolText(attr(el, "font"), string(rune(code)))
		if err != nil || code >= 0xe000 && code <= 0xf8ff && text == string(rune(code)) {
			text = "[symbol]"
		}
		return text, nil
	}
	return s.readText()
}

// write adds a text with the format of its run.
func (w *docxReader) write(p *paragraph, text string) {
	style := textStyle{struck: p.run.struck == 1, hidden: p.run.hidden == 1, link: cmp.Or(p.link, w.fieldLink())}
	if p.run.script != 2 {
		style.script = p.run.script
	}
	p.text.write(symbolText(p.run.font, text), style)
}

// writeMark adds a text that is neither above nor below the line, and in no other font.
func (w *docxReader) writeMark(p *paragraph, text string) {
	p.text.write(text, textStyle{struck: p.run.struck == 1, hidden: p.run.hidden == 1, link: cmp.Or(p.link, w.fieldLink())})
}

// readInner returns the text of a paragraph in a cell, a text box or a note, behind the number of an item.
func (w *docxReader) readInner(s *scanner) (string, error) {
	in := paragraph{inCell: true}
	err := s.eachChild(w.inlineReader(s, &in))
	w.countItem(&in)
	return behindMark(in.mark, in.takeText()), err
}

// takeText returns the text of a paragraph so far, and the text boxes at it.
func (p *paragraph) takeText() string {
	text := p.text.String() + p.boxes.String()
	p.text.reset()
	p.boxes.Reset()
	return text
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

// linkTarget returns the address of a link that leaves the document.
func (w *docxReader) linkTarget(el xml.StartElement) string {
	to := w.rels[attr(el, "id")]
	if !to.external {
		return ""
	}
	if anchor := attr(el, "anchor"); anchor != "" && !strings.Contains(to.target, "#") {
		return to.target + "#" + anchor
	}
	return to.target
}

const (
	// maxFields bounds the fields in each other.
	maxFields = 64
	// maxInstruction bounds the instruction of a field, in bytes.
	maxInstruction = 4_000
)

// readField reads an element of a field.
func (w *docxReader) readField(s *scanner, el xml.StartElement, p *paragraph, read func(xml.StartElement) error) error {
	if el.Name.Local == "fldSimple" {
		w.fields = append(w.fields, &field{instruction: attr(el, "instr"), inResult: true})
		err := s.eachChild(read)
		w.endField(p)
		return err
	}
	var current *field
	if n := len(w.fields); n > 0 {
		current = w.fields[n-1]
	}
	if el.Name.Local == "instrText" {
		text, err := s.readText()
		if current != nil && !current.inResult && len(current.instruction) < maxInstruction {
			current.instruction += text
		}
		return err
	}
	switch attr(el, "fldCharType") {
	case "begin":
		state, err := readFormField(s)
		if len(w.fields) < maxFields {
			w.fields = append(w.fields, &field{state: state})
		}
		return err
	case "separate":
		if current != nil {
			current.inResult = true
		}
	case "end":
		w.endField(p)
	}
	return nil
}

// endField ends the last field. It writes what has no result.
func (w *docxReader) endField(p *paragraph) {
	n := len(w.fields)
	if n == 0 {
		return
	}
	f := w.fields[n-1]
	w.fields = w.fields[:n-1]
	if code, ok := strings.CutPrefix(strings.TrimSpace(f.instruction), "EQ "); ok {
		w.writeMark(p, "[formula: "+oneLine(code)+"]")
	}
	w.writeMark(p, f.state)
}

// fieldLink returns the target of the link in whose field the text is.
func (w *docxReader) fieldLink() string {
	for _, f := range w.fields {
		if m := linkField.FindStringSubmatch(f.instruction); f.inResult && m != nil {
			return m[1]
		}
	}
	return ""
}

// readFormField returns the state of a form field: that of a check box, or the entry of a list that is
// chosen.
func readFormField(s *scanner) (state string, err error) {
	chosen, entries, isList := 0, []string{}, false
	var read func(el xml.StartElement) error
	read = func(el xml.StartElement) error {
		switch el.Name.Local {
		case "checkBox":
			state = "☐"
		case "default", "checked":
			if state != "" {
				state = "☒"
				if isOff(el) {
					state = "☐"
				}
			}
		case "ddList":
			isList = true
		case "result":
			chosen, _ = strconv.Atoi(attr(el, "val"))
		case "listEntry":
			if len(entries) < maxCells {
				entries = append(entries, attr(el, "val"))
			}
		}
		return s.eachChild(read)
	}
	err = s.eachChild(read)
	if isList && chosen >= 0 && chosen < len(entries) {
		state = entries[chosen]
	}
	return state, err
}

// readObject reads what is drawn: a picture, a chart, a diagram or an object of another program.
func (w *docxReader) readObject(s *scanner, el xml.StartElement, p *paragraph) error {
	text := ""
	switch el.Name.Local {
	case "docPr":
		if said := oneLine(attr(el, "descr")); said != "" {
			text = "[picture: " + said + "]"
		}
		w.described = text != ""
	case "pic":
		if !w.described {
			text = "[picture]"
		}
	case "imagedata":
		text = "[picture]"
		if said := oneLine(attr(el, "title")); said != "" {
			text = "[picture: " + said + "]"
		}
	case "chart":
		said, err := w.readChart(w.rels[relationID(el)].target)
		if err != nil {
			return err
		}
		text = said
	case "relIds": // of a diagram
		return w.scanOptional(w.rels[attr(el, "dm")].target, func(s *scanner) error {
			return s.eachChild(func(el xml.StartElement) error {
				lines, err := readDrawingLines(s, nil)
				p.boxes.WriteString("\n" + strings.Join(lines, "\n"))
				return err
			})
		})
	case "object":
		program := ""
		var find func(el xml.StartElement) error
		find = func(el xml.StartElement) error {
			if el.Name.Local == "OLEObject" {
				program = attr(el, "ProgID")
			}
			return s.eachChild(find)
		}
		if err := s.eachChild(find); err != nil {
			return err
		}
		text = embeddedObject(program)
	}
	w.writeMark(p, text)
	return nil
}

// embeddedObject returns what stands for an object of another program.
func embeddedObject(program string) string {
	program = oneLine(program)
	switch {
	case strings.HasPrefix(program, "Equation"), strings.HasPrefix(program, "MathType"):
		return formula.Unread
	case program == "":
		return "[embedded object]"
	}
	return "[embedded object: " + program + "]"
}

// addNote writes a reference to a note.
func (w *docxReader) addNote(kind, id string, p *paragraph) {
	text := w.notes[noteID{kind, id}]
	if w.inNotes { // a comment on a note
		w.writeMark(p, " ["+text+"]")
		return
	}
	w.writeMark(p, w.out.addNote(text))
}

// countItem sets the number or bullet of a list item, once.
func (w *docxReader) countItem(p *paragraph) {
	if p.list != "" && p.list != "0" && !p.counted {
		p.mark, p.counted = w.lists.nextMark(p.list, p.depth), true
	}
}

// flush passes the paragraph so far to the sink.
func (w *docxReader) flush(p *paragraph) error {
	text := p.takeText()
	if tidy(text) == "" {
		return nil
	}
	w.countItem(p)
	tight := w.afterItem
	w.afterItem = false
	defer func() { p.emitted = true }()
	switch {
	case p.emitted:
		return w.out.addParagraph(text, false)
	case p.level > 0:
		return w.out.addHeading(p.level, behindMark(headingMark(p.mark), text))
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
		return w.readRow(s, &t)
	}
	if err := s.eachChild(rows); err != nil {
		return err
	}
	return t.end()
}

// readRow reads a row of a table.
func (w *docxReader) readRow(s *scanner, t *table) error {
	var cells []string
	late, hidden, deleted := false, false, false
	var row func(el xml.StartElement) error
	row = func(el xml.StartElement) error {
		switch el.Name.Local {
		case "trPr":
			return s.eachChild(func(el xml.StartElement) error {
				switch el.Name.Local {
				case "gridBefore":
					n, _ := strconv.Atoi(attr(el, "val"))
					cells = append(cells, make([]string, min(max(n, 0), maxCells))...)
				case "hidden":
					hidden = !isOff(el)
				case "del":
					deleted = true
				}
				return nil
			})
		case "tc":
			text, span, broke, err := w.readCell(s)
			late = late || broke
			cells = append(cells, text)
			cells = append(cells, make([]string, span-1)...)
			return err
		}
		return readUnlessSkipped(el, s, row)
	}
	if err := s.eachChild(row); err != nil || deleted {
		return err
	}
	return t.endRow(cells, hidden, late)
}

// readCell returns a cell's text, its column span, and whether a page ends in it.
func (w *docxReader) readCell(s *scanner) (text string, span int, late bool, err error) {
	span = 1
	covered := false
	var lines strings.Builder
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
		case "p", "oMath", "oMathPara":
			in := paragraph{inCell: true}
			inner := w.inlineReader(s, &in)
			var err error
			if el.Name.Local == "p" {
				err = s.eachChild(inner)
			} else {
				err = inner(el)
			}
			w.countItem(&in)
			late = late || in.breakAfter
			lines.WriteString(behindMark(in.mark, in.takeText()) + "\n")
			return err
		}
		return readUnlessSkipped(el, s, read)
	}
	err = s.eachChild(read)
	if covered {
		return "", span, late, err
	}
	return cellText(lines.String()), span, late, err
}

// readNotes reads the notes of a kind.
func (w *docxReader) readNotes(name, kind string) (err error) {
	if w.rels, err = w.readRelations(name); err != nil {
		return err
	}
	w.inNotes = true
	defer func() { w.inNotes = false }()
	size := 0
	return w.scanOptional(name, func(s *scanner) error {
		return s.eachChild(func(xml.StartElement) error {
			return s.eachChild(func(el xml.StartElement) error {
				p := paragraph{inCell: true}
				if author := oneLine(attr(el, "author")); author != "" {
					p.text.plain("comment of " + author + ":")
				}
				err := s.eachChild(w.inlineReader(s, &p))
				text := oneLine(p.takeText())
				if size += len(text); size > maxNotes {
					text = "[not read: the document has more notes than the limit]"
				}
				w.notes[noteID{kind, attr(el, "id")}] = text
				return err
			})
		})
	})
}

// maxNotes bounds the texts of a document's notes of a kind, in bytes.
const maxNotes = maxToken
