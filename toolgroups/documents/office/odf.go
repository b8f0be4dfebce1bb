package office

import (
	"encoding/xml"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// odfReader reads a document in OpenDocument's format. Pages begin at page
// breaks, and where they began when the file was saved, if that is recorded.
type odfReader struct {
	*zipDocument
	styles    odfStyles
	list      *odfCounter            // of the list that is read, or nil
	shapeList *odfCounter            // of the lists of the shape that is read, or nil
	lists     map[string]*odfCounter // by id, and by style after a slash
	headings  odfCounter
	hidden    int // hidden sections around the text
	afterItem bool
}

func (p *zipDocument) readODF() (format Format, err error) {
	err = p.scanOptional("META-INF/manifest.xml", func(s *scanner) error {
		return s.eachChild(func(root xml.StartElement) error {
			return s.eachChild(func(el xml.StartElement) error {
				return s.eachChild(func(el xml.StartElement) error {
					if el.Name.Local == "encryption-data" {
						return errPassword
					}
					return nil
				})
			})
		})
	})
	if err != nil {
		return Format{}, err
	}
	d := &odfReader{zipDocument: p, lists: map[string]*odfCounter{}, styles: odfStyles{named: map[string]odfStyle{}, lists: map[string]*odfList{}}}
	err = p.scanOptional("styles.xml", func(s *scanner) error {
		return s.eachChild(func(root xml.StartElement) error {
			return s.eachChild(func(el xml.StartElement) error {
				if el.Name.Local == "styles" { // the others are those of headers and footers
					return d.styles.read(s)
				}
				return nil
			})
		})
	})
	if err != nil {
		return Format{}, err
	}
	err = p.scan("content.xml", func(s *scanner) error {
		return s.eachChild(func(root xml.StartElement) error {
			return s.eachChild(func(el xml.StartElement) error {
				switch el.Name.Local {
				case "automatic-styles":
					return d.styles.read(s)
				case "body":
					return s.eachChild(func(el xml.StartElement) error {
						switch el.Name.Local {
						case "text":
							format = odtFormat
							return s.eachChild(d.blockReader(s, 0))
						case "spreadsheet":
							format = odsFormat
							return d.readSheets(s)
						case "presentation", "drawing":
							format = odpFormat
							return d.readSlides(s)
						}
						return Refusal("holds no text, no sheets and no slides. Ask for it as PDF")
					})
				}
				return nil
			})
		})
	})
	return format, err
}

// blockReader returns a function that reads the content of a text inside depth lists.
func (d *odfReader) blockReader(s *scanner, depth int) func(xml.StartElement) error {
	var read func(el xml.StartElement) error
	read = func(el xml.StartElement) error {
		switch el.Name.Local {
		case "h", "p":
			return d.readParagraph(s, el)
		case "list":
			return d.readList(s, el, depth, d.addItem)
		case "table":
			d.afterItem = false
			return d.readTable(s)
		case "soft-page-break":
			d.out.breakPage()
		case "section":
			if attr(el, "display") != "none" {
				return s.eachChild(read)
			}
			d.hidden++
			err := s.eachChild(read)
			d.hidden--
			return err
		case "frame", "custom-shape", "g", "rect", "annotation": // at the page, not in a paragraph
			t := odfText{odfReader: d, s: s}
			if err := t.inline(el); err != nil {
				return err
			}
			return d.out.addParagraph(t.String(), false)
		case "tracked-changes", "forms", "table-of-content-source", "sequence-decls":
		default:
			return s.eachChild(read)
		}
		return nil
	}
	return read
}

// readParagraph reads a paragraph or a heading of a text.
func (d *odfReader) readParagraph(s *scanner, el xml.StartElement) error {
	style := d.styles.find("paragraph", attr(el, "style-name"))
	if style.breaksPage {
		d.out.breakPage()
	}
	d.afterItem = false
	level := headingDepth(el)
	mark := ""
	if level > 0 && d.list == nil && d.styles.outline != nil && attr(el, "is-list-header") != "true" && (!style.hasOwnList || style.list != "") {
		start := ""
		if attr(el, "restart-numbering") == "true" {
			start = attr(el, "start-value")
		}
		d.headings.styles[0] = d.styles.outline
		mark = headingMark(d.headings.next(level-1, start))
	}
	text, late, err := d.text(s, style.run)
	switch {
	case err != nil:
	case level > 0:
		err = d.out.addHeading(level, behindMark(mark, text))
	default:
		err = d.out.addParagraph(text, false)
	}
	if late {
		d.out.breakPage()
	}
	return err
}

// headingDepth returns the level of a heading, 0 for a paragraph.
func headingDepth(el xml.StartElement) int {
	if el.Name.Local != "h" {
		return 0
	}
	level, _ := strconv.Atoi(attr(el, "outline-level"))
	return max(level, 1)
}

// odfText is the state of a paragraph while it is read.
type odfText struct {
	*odfReader
	s     *scanner
	b     richText
	boxes strings.Builder // the text boxes at the paragraph, each after a line break
	run   runFormat
	link  string
	blank bool      // the text ends with a space, which swallows another
	frame *odfFrame // around what is read, or nil
	late  bool      // a page ends in the paragraph
}

// odfFrame is a frame: a text box, a picture or an object.
type odfFrame struct {
	object, picture bool
	said            []string // its title and its description
}

// text returns the text of a paragraph, and whether a page ends within it.
func (d *odfReader) text(s *scanner, run runFormat) (text string, late bool, err error) {
	t := odfText{odfReader: d, s: s, run: run}
	err = s.eachChildAndText(t.inline, t.say)
	return t.String(), t.late, err
}

// String returns the text, and the text boxes at it.
func (t *odfText) String() string { return t.b.String() + t.boxes.String() }

// say adds a text, in which blanks are collapsed.
func (t *odfText) say(text string) {
	t.write(collapseSpace(text, t.b.Len() == 0 || t.blank))
}

// write adds a text with the format of its span.
func (t *odfText) write(text string) {
	if text == "" {
		return
	}
	style := textStyle{struck: t.run.struck == 1, hidden: t.run.hidden == 1 || t.hidden > 0, link: t.link}
	if t.run.script != 2 {
		style.script = t.run.script
	}
	t.b.write(symbolText(t.run.font, text), style)
	t.blank = strings.HasSuffix(text, " ")
}

// writeMark adds what is neither above nor below the line.
func (t *odfText) writeMark(text string) {
	t.b.write(text, textStyle{struck: t.run.struck == 1, hidden: t.run.hidden == 1 || t.hidden > 0, link: t.link})
	t.blank = false
}

// inline reads an element of a paragraph.
func (t *odfText) inline(el xml.StartElement) error {
	switch el.Name.Local {
	case "s":
		n, err := strconv.Atoi(attr(el, "c"))
		if err != nil {
			n = 1
		}
		t.write(strings.Repeat(" ", min(max(n, 0), 100)))
	case "tab":
		t.write("\t")
	case "line-break":
		t.write("\n")
	case "soft-page-break":
		t.late = true
	case "span":
		was := t.run
		t.run = t.styles.find("text", attr(el, "style-name")).run.over(was)
		err := t.s.eachChildAndText(t.inline, t.say)
		t.run = was
		return err
	case "a":
		was := t.link
		if to := oneLine(attr(el, "href")); !strings.HasPrefix(to, "#") {
			t.link = to
		}
		err := t.s.eachChildAndText(t.inline, t.say)
		t.link = was
		return err
	case "note":
		text, err := t.readNote(t.s)
		t.writeMark(t.out.addNote(text))
		return err
	case "annotation":
		text, err := t.readComment(t.s)
		t.writeMark(t.out.addNote(text))
		return err
	case "p", "h": // in a frame
		text, _, err := t.text(t.s, t.styles.find("paragraph", attr(el, "style-name")).run)
		t.boxes.WriteString("\n" + text)
		return err
	case "list": // in a frame
		return t.readList(t.s, el, 0, func(_, depth int, mark, text string, _ bool) error {
			t.boxes.WriteString("\n" + strings.Repeat("  ", min(depth, 8)) + behindMark(mark, text))
			return nil
		})
	case "frame", "object", "object-ole", "image", "math", "title", "desc":
		return t.drawn(el)
	case "note-citation", "annotation-end", "binary-data", "ruby-text", "script", "event-listeners":
	default:
		return t.s.eachChildAndText(t.inline, t.say)
	}
	return nil
}

// drawn reads a frame and what is in it.
func (t *odfText) drawn(el xml.StartElement) error {
	switch el.Name.Local {
	case "frame":
		was := t.frame
		t.frame = &odfFrame{}
		err := t.s.eachChild(t.inline)
		t.writeMark(t.frame.String())
		t.frame = was
		return err
	case "object":
		text, err := t.readObject(t.s, el)
		t.writeMark(text)
		if t.frame != nil {
			t.frame.object = true
		}
		return err
	case "object-ole":
		t.writeMark("[embedded object]")
		if t.frame != nil {
			t.frame.object = true
		}
	case "image":
		if t.frame != nil {
			t.frame.picture = true
		}
	case "math":
		text, err := readFormula(t.s, el)
		t.writeMark(text)
		return err
	default: // title, desc
		said, err := t.s.readText()
		if said = oneLine(said); said != "" && t.frame != nil {
			t.frame.said = append(t.frame.said, said)
		} else if said != "" {
			t.writeMark("[picture: " + said + "]")
		}
		return err
	}
	return nil
}

// String returns what stands for a picture. The text of other frames is in their place.
func (f *odfFrame) String() string {
	switch {
	case f.object:
		return ""
	case len(f.said) > 0:
		return "[picture: " + strings.Join(f.said, ": ") + "]"
	case f.picture:
		return "[picture]"
	}
	return ""
}

// readObject returns the text of an object in a document: a formula or a chart. It is a document in the
// archive, or the content of the element.
func (d *odfReader) readObject(s *scanner, el xml.StartElement) (string, error) {
	text := ""
	read := func(s *scanner) error {
		return s.eachChild(func(root xml.StartElement) (err error) {
			switch root.Name.Local {
			case "math":
				text, err = readFormula(s, root)
			case "document-content", "document":
				text, err = d.readODFChart(s)
			}
			return err
		})
	}
	err := read(s)
	if name := path.Join(attr(el, "href"), "content.xml"); err == nil && text == "" && d.has(name) && !strings.Contains(name, "..") {
		err = d.tolerate(name, d.scan(name, read))
	}
	if text == "" {
		text = "[embedded object]"
	}
	return text, err
}

// readODFChart returns the titles and values of a chart, or "" if the object is no chart.
func (d *odfReader) readODFChart(s *scanner) (string, error) {
	c, found := chart{}, false
	var rows [][]string
	var read func(el xml.StartElement) error
	read = func(el xml.StartElement) error {
		switch el.Name.Local {
		case "chart":
			found = true
		case "title", "subtitle":
			text, err := s.readText()
			if c.axis {
				c.axes = append(c.axes, oneLine(text))
			} else {
				c.title = oneLine(c.title + " " + text)
			}
			return err
		case "axis":
			c.axis = true
			err := s.eachChild(read)
			c.axis = false
			return err
		case "table":
			return eachRow(s, func(xml.StartElement) error {
				var row []string
				err := s.eachChild(func(el xml.StartElement) error {
					shown, _, err := d.readCell(s)
					for range min(repeatCount(el, "columns"), maxCells-len(row)) {
						row = append(row, oneLine(cellValue(el, shown)))
					}
					return err
				})
				if len(rows) <= maxPoints {
					rows = append(rows, row)
				}
				return err
			}, nil)
		case "automatic-styles", "styles", "master-styles":
			return nil
		}
		return s.eachChild(read)
	}
	err := s.eachChild(read)
	if !found {
		return "", err
	}
	width := 0
	for _, row := range rows {
		width = max(width, len(row))
	}
	for at := 1; at < width; at++ {
		name, points := "", []string{}
		if at < len(rows[0]) {
			name = rows[0][at] + ": "
		}
		for _, row := range rows[1:] {
			if at < len(row) && row[at] != "" && row[at] != "NaN" {
				points = append(points, strings.TrimSpace(row[0]+" "+row[at]))
			}
		}
		c.series = append(c.series, strings.TrimPrefix(name, ": ")+strings.Join(points, ", "))
	}
	return c.String(), err
}

// blankRun matches white space that XML collapses.
var blankRun = regexp.MustCompile(`[ \t\r\n]+`)

// collapseSpace replaces each run of blanks by one space, and drops the space if another precedes it.
func collapseSpace(text string, behindSpace bool) string {
	text = blankRun.ReplaceAllString(text, " ")
	if behindSpace {
		text = strings.TrimPrefix(text, " ")
	}
	return text
}

// readNote returns the text of a footnote or an endnote.
func (d *odfReader) readNote(s *scanner) (string, error) {
	text, _, err := d.readLines(s)
	return oneLine(text), err
}

// readComment returns a comment with its author.
func (d *odfReader) readComment(s *scanner) (string, error) {
	text, author, err := d.readLines(s)
	return commentText(author, text), err
}

// readLines returns the paragraphs of a note or a comment, and its author, if it has one.
func (d *odfReader) readLines(s *scanner) (text, author string, err error) {
	var lines []string
	var read func(el xml.StartElement) error
	read = func(el xml.StartElement) (err error) {
		switch el.Name.Local {
		case "creator":
			author, err = s.readText()
		case "p", "h":
			var text string
			text, _, err = d.text(s, runFormat{})
			lines = append(lines, text)
		case "list":
			return d.readList(s, el, 0, func(_, _ int, mark, text string, _ bool) error {
				lines = append(lines, behindMark(mark, text))
				return nil
			})
		case "note-citation", "date", "date-string", "creator-initials", "initials":
		default:
			return s.eachChild(read)
		}
		return err
	}
	err = s.eachChild(read)
	return strings.Join(lines, "\n"), author, err
}

// addItem passes a list item to the sink; level is that of a heading, else 0.
func (d *odfReader) addItem(level, depth int, mark, text string, late bool) (err error) {
	if level > 0 {
		d.afterItem = false
		err = d.out.addHeading(level, behindMark(headingMark(mark), text))
	} else {
		tight := d.afterItem
		d.afterItem = true
		err = d.out.addItem(depth, mark, text, tight)
	}
	if late {
		d.out.breakPage()
	}
	return err
}

// readList reads a list inside depth others. add receives the first paragraph of each item.
func (d *odfReader) readList(s *scanner, el xml.StartElement, depth int, add func(level, depth int, mark, text string, late bool) error) error {
	style := attr(el, "style-name")
	if depth == 0 || d.list == nil {
		was := d.list
		defer func() { d.list = was }()
		d.list = d.counter(el, style)
	}
	d.list.enter(min(depth, maxOutlineLevels-1), d.styles.lists[style], attr(el, "continue-numbering") == "true")
	return s.eachChild(func(item xml.StartElement) error {
		if item.Name.Local != "list-item" && item.Name.Local != "list-header" {
			return nil
		}
		first := true
		return s.eachChild(func(el xml.StartElement) error {
			switch {
			case el.Name.Local == "list":
				return d.readList(s, el, depth+1, add)
			case el.Name.Local != "p" && el.Name.Local != "h":
				return d.blockReader(s, depth+1)(el)
			}
			mark := ""
			if first && item.Name.Local == "list-item" {
				mark = d.list.next(depth, attr(item, "start-value"))
			}
			text, late, err := d.text(s, d.styles.find("paragraph", attr(el, "style-name")).run)
			if err != nil {
				return err
			}
			if !first {
				return add(headingDepth(el), depth+1, "", text, late)
			}
			first = false
			return add(headingDepth(el), depth, mark, text, late)
		})
	})
}

// counter returns the counter of a list, which goes on with the numbers of another one if it says so.
func (d *odfReader) counter(el xml.StartElement, style string) *odfCounter {
	if d.shapeList != nil {
		return d.shapeList
	}
	c := d.lists[attr(el, "continue-list")]
	if attr(el, "continue-list") == "" && attr(el, "continue-numbering") == "true" {
		c = d.lists["/"+style]
	}
	if c == nil {
		c = &odfCounter{}
	}
	if id := attr(el, "id"); id != "" {
		d.lists[id] = c
	}
	d.lists["/"+style] = c
	return c
}

// eachRow calls do with each row of a table, also with rows in groups, and other with what else is in it.
func eachRow(s *scanner, do, other func(xml.StartElement) error) error {
	var read func(el xml.StartElement) error
	read = func(el xml.StartElement) error {
		switch el.Name.Local {
		case "table-row":
			return do(el)
		case "table-rows", "table-header-rows", "table-row-group", "named-expressions", "table-columns", "table-header-columns", "table-column-group":
			return s.eachChild(read)
		}
		if other != nil {
			return other(el)
		}
		return nil
	}
	return s.eachChild(read)
}

// repeatCount returns how many rows or columns an element stands for.
func repeatCount(el xml.StartElement, what string) int {
	n, err := strconv.Atoi(attr(el, "number-"+what+"-repeated"))
	if err != nil {
		return 1
	}
	return max(n, 1)
}

// isHiddenRow reports whether a row or column is hidden.
func isHiddenRow(el xml.StartElement) bool {
	v := attr(el, "visibility")
	return v == "collapse" || v == "filter"
}

// readTable reads a table of a text.
func (d *odfReader) readTable(s *scanner) error {
	t := table{out: d.out}
	err := eachRow(s, func(row xml.StartElement) error {
		var cells []string
		late := false
		err := s.eachChild(func(el xml.StartElement) error {
			text, broke, err := d.readCell(s)
			late = late || broke
			for range min(repeatCount(el, "columns"), maxCells-len(cells)) {
				cells = append(cells, cellText(text))
			}
			return err
		})
		if err != nil {
			return err
		}
		return t.endRow(cells, isHiddenRow(row), late)
	}, nil)
	if err != nil {
		return err
	}
	return t.end()
}

// readCell returns the text of a cell, its paragraphs as lines.
func (d *odfReader) readCell(s *scanner) (text string, late bool, err error) {
	lines, late, _, err := d.readCellLines(s, false)
	return strings.Join(lines, "\n"), late, err
}

// readCellLines returns the lines of a cell, and the comments on it if they are to be apart.
func (d *odfReader) readCellLines(s *scanner, apart bool) (lines []string, late bool, comments []string, err error) {
	var read func(el xml.StartElement) error
	read = func(el xml.StartElement) error {
		switch el.Name.Local {
		case "p", "h":
			text, broke, err := d.text(s, d.styles.find("paragraph", attr(el, "style-name")).run)
			late = late || broke
			lines = append(lines, text)
			return err
		case "list":
			return d.readList(s, el, 0, func(_, _ int, mark, text string, broke bool) error {
				late = late || broke
				lines = append(lines, behindMark(mark, text))
				return nil
			})
		case "annotation":
			text, err := d.readComment(s)
			if apart {
				comments = append(comments, "["+text+"]")
			} else {
				lines = append(lines, d.out.addNote(text))
			}
			return err
		case "frame", "custom-shape":
			t := odfText{odfReader: d, s: s}
			err := t.inline(el)
			lines = append(lines, t.String())
			return err
		}
		return s.eachChild(read)
	}
	err = s.eachChild(read)
	return lines, late, comments, err
}

// readSheets reads the tables of a spreadsheet.
func (d *odfReader) readSheets(s *scanner) error {
	return s.eachChild(func(el xml.StartElement) error {
		if el.Name.Local != "table" || !d.out.beginPart(attr(el, "name"), d.styles.find("table", attr(el, "style-name")).hidden) {
			return nil
		}
		number, above, column := 0, formulas{}, 0
		hiddenColumns := map[int]bool{}
		var drawn []string
		err := eachRow(s, func(el xml.StartElement) error {
			times := repeatCount(el, "rows")
			first := number + 1
			number += times
			cells, err := d.readRow(s, first, above)
			if err != nil || len(cells) == 0 {
				return err
			}
			if times > 1 {
				last := 0
				for at := range cells {
					last = max(last, at)
				}
				cells[last] += fmt.Sprintf(" [the same down to row %d]", number)
			}
			return d.out.addRow(Block{Number: first, Hidden: isHiddenRow(el), HiddenColumns: hiddenColumns}, cells)
		}, func(el xml.StartElement) error {
			switch el.Name.Local {
			case "table-column":
				for range min(repeatCount(el, "columns"), maxColumns-column) {
					if isHiddenRow(el) {
						hiddenColumns[column] = true
					}
					column++
				}
			case "shapes":
				return s.eachChild(func(el xml.StartElement) error {
					t := odfText{odfReader: d, s: s}
					err := t.inline(el)
					drawn = append(drawn, t.String())
					return err
				})
			}
			return nil
		})
		for _, text := range drawn {
			if text = tidy(text); text != "" && err == nil {
				number++
				err = d.out.add(Block{Number: number, Text: text})
			}
		}
		return err
	})
}

// readRow reads the non-empty cells of a row.
func (d *odfReader) readRow(s *scanner, number int, above formulas) (map[int]string, error) {
	cells, column := map[int]string{}, 0
	err := s.eachChild(func(el xml.StartElement) error {
		at := column
		column += repeatCount(el, "columns")
		if el.Name.Local != "table-cell" {
			return nil
		}
		lines, _, comments, err := d.readCellLines(s, true)
		value := cellValue(el, strings.Join(lines, "\n"))
		if d.styles.find("table-cell", attr(el, "style-name")).run.struck == 1 {
			var struck richText
			struck.write(value, textStyle{struck: true})
			value = struck.String()
		}
		value = above.withFormula(value, cleanFormula(attr(el, "formula")), number, at)
		value = strings.TrimSpace(strings.Join(append([]string{value}, comments...), " "))
		if value == "" {
			return err
		}
		for ; at < min(column, maxCells); at++ {
			cells[at] = value
		}
		if at < column && at == column-1 {
			cells[at] = value
		}
		return err
	})
	return cells, err
}

// cellValue returns the value of a cell: for dates and numbers the saved value, which does not
// depend on the language, else the shown one. LibreOffice saves TRUE and FALSE of other programs as numbers.
func cellValue(el xml.StartElement, shown string) string {
	switch attr(el, "value-type") {
	case "float":
		raw := attr(el, "value")
		if (raw == "0" || raw == "1") && strings.ContainsFunc(shown, unicode.IsLetter) && !strings.ContainsFunc(shown, unicode.IsDigit) {
			return shown
		}
		return formatShown(raw, shown)
	case "currency":
		return withUnits(formatNumber(attr(el, "value"), numberFormat{}, 0), "", oneLine(attr(el, "currency")))
	case "percentage":
		return formatNumber(attr(el, "value"), numberFormat{kind: percentage}, 0)
	case "date":
		return strings.TrimSuffix(strings.Replace(attr(el, "date-value"), "T", " ", 1), " 00:00:00")
	case "boolean":
		return strings.ToUpper(attr(el, "boolean-value"))
	}
	return shown
}

var (
	// odfReference matches OpenDocument's references: [.B2], [.B2:.B5], ['Old'.A1].
	odfReference = regexp.MustCompile(`\[([^\[\]]*)\]`)
	// vendorFunction matches what programs write before the names of functions that are not in the standard.
	vendorFunction = regexp.MustCompile(`(COM\.MICROSOFT|ORG\.LIBREOFFICE|ORG\.OPENOFFICE)\.`)
)

// cleanFormula formats a formula as users write it.
func cleanFormula(formula string) string {
	if at := strings.Index(formula, "="); at >= 0 {
		formula = formula[at+1:]
	}
	formula = vendorFunction.ReplaceAllString(futureFunction.ReplaceAllString(formula, ""), "")
	return odfReference.ReplaceAllStringFunc(formula, func(ref string) string {
		ref = strings.ReplaceAll(ref[1:len(ref)-1], ":.", ":")
		return strings.Replace(strings.TrimPrefix(ref, "."), ".", "!", 1)
	})
}

// readSlides reads the pages of a presentation.
func (d *odfReader) readSlides(s *scanner) error {
	return s.eachChild(func(el xml.StartElement) error {
		if el.Name.Local != "page" || !d.out.beginPart(attr(el, "name"), d.styles.find("drawing-page", attr(el, "style-name")).hidden) {
			return nil
		}
		return s.eachChild(d.shapeReader(s, ""))
	})
}

// shapeReader returns a function that reads a shape on a slide; kind is the purpose of the frame.
func (d *odfReader) shapeReader(s *scanner, kind string) func(xml.StartElement) error {
	d.shapeList, d.afterItem = &odfCounter{inShape: true}, false
	add := func(text string) error {
		d.shapeList, d.afterItem = &odfCounter{inShape: true}, false
		if kind == "notes" && tidy(text) != "" {
			text = "Notes: " + text
		}
		return d.out.addParagraph(text, false)
	}
	var read func(el xml.StartElement) error
	read = func(el xml.StartElement) error {
		switch el.Name.Local {
		case "p", "h":
			text, _, err := d.text(s, d.styles.find("paragraph", attr(el, "style-name")).run)
			if err == nil && kind == "title" {
				return d.out.addHeading(1, text)
			}
			if err == nil {
				err = add(text)
			}
			return err
		case "list":
			if kind != "notes" {
				return d.readList(s, el, 0, d.addItem)
			}
			return d.readList(s, el, 0, func(_, _ int, mark, text string, _ bool) error { return add(behindMark(mark, text)) })
		case "table":
			return d.readTable(s)
		case "frame":
			return d.readFrame(s, el, kind)
		case "custom-shape", "rect", "ellipse", "polygon", "path", "g":
			return s.eachChild(d.shapeReader(s, kind))
		case "annotation":
			text, err := d.readComment(s)
			if err != nil {
				return err
			}
			return d.out.addParagraph(text, false)
		case "a": // around a shape
			if err := s.eachChild(read); err != nil {
				return err
			}
			return d.out.addParagraph(strings.TrimSpace(linkSuffix(attr(el, "href"))), true)
		case "notes":
			return s.eachChild(d.shapeReader(s, el.Name.Local))
		case "title", "desc":
			said, err := s.readText()
			if err == nil && oneLine(said) != "" {
				err = d.out.addParagraph("[picture: "+oneLine(said)+"]", false)
			}
			return err
		}
		return s.eachChild(read)
	}
	return read
}

// readFrame reads a frame on a slide.
func (d *odfReader) readFrame(s *scanner, el xml.StartElement, kind string) error {
	switch class := attr(el, "class"); {
	case class == "page-number", class == "date-time", class == "header", class == "footer":
		return nil
	case kind != "notes":
		kind = class
	}
	read := d.shapeReader(s, kind)
	var frame odfFrame
	err := s.eachChild(func(el xml.StartElement) error {
		switch el.Name.Local {
		case "object", "object-ole", "image", "title", "desc":
			t := odfText{odfReader: d, s: s, frame: &frame}
			if err := t.drawn(el); err != nil {
				return err
			}
			return d.out.addParagraph(t.String(), false)
		case "table":
			frame.object = true // a picture of it follows
		}
		return read(el)
	})
	if err != nil || kind == "notes" {
		return err
	}
	return d.out.addParagraph(frame.String(), false)
}
