package office

import (
	"encoding/xml"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// odfReader reads a document in OpenDocument's format. Pages begin at page
// breaks, and where they began when the file was saved, if that is recorded.
type odfReader struct {
	out        *emitter
	pageBreaks map[string]bool // paragraph styles that begin a page
	numbered   map[string]bool // list styles with numbers
	hidden     map[string]bool // styles of hidden sheets
	notes      []string
	afterItem  bool
}

func (p *zipDocument) readODF(out *emitter) (format Format, err error) {
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
	d := &odfReader{out: out, pageBreaks: map[string]bool{}, numbered: map[string]bool{}, hidden: map[string]bool{}}
	err = p.scan("content.xml", func(s *scanner) error {
		return s.eachChild(func(root xml.StartElement) error {
			return s.eachChild(func(el xml.StartElement) error {
				switch el.Name.Local {
				case "automatic-styles":
					return d.readStyles(s)
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
	if err != nil {
		return format, err
	}
	return format, out.addFootnotes(d.notes)
}

func (d *odfReader) readStyles(s *scanner) error {
	return s.eachChild(func(el xml.StartElement) error {
		name := attr(el, "name")
		return s.eachChild(func(el xml.StartElement) error {
			switch el.Name.Local {
			case "paragraph-properties":
				d.pageBreaks[name] = d.pageBreaks[name] || attr(el, "break-before") == "page"
			case "list-level-style-number":
				d.numbered[name] = true
			case "table-properties":
				d.hidden[name] = attr(el, "display") == "false"
			}
			return nil
		})
	})
}

// blockReader returns a function that reads the content of a text inside depth lists.
func (d *odfReader) blockReader(s *scanner, depth int) func(xml.StartElement) error {
	var read func(el xml.StartElement) error
	read = func(el xml.StartElement) error {
		switch el.Name.Local {
		case "h", "p":
			return d.readParagraph(s, el)
		case "list":
			return d.readList(s, el, depth)
		case "table":
			d.afterItem = false
			return d.readTable(s)
		case "soft-page-break":
			d.out.breakPage()
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
	if d.pageBreaks[attr(el, "style-name")] {
		d.out.breakPage()
	}
	d.afterItem = false
	level := 0
	if el.Name.Local == "h" {
		level, _ = strconv.Atoi(attr(el, "outline-level"))
		level = max(level, 1)
	}
	text, late, err := d.text(s)
	switch {
	case err != nil:
	case level > 0:
		err = d.out.addHeading(level, text)
	default:
		err = d.out.addParagraph(text, false)
	}
	if late {
		d.out.breakPage()
	}
	return err
}

// text returns the text of a paragraph, and whether a page ends within it.
func (d *odfReader) text(s *scanner) (readText string, late bool, err error) {
	var b strings.Builder
	var read func(el xml.StartElement) error
	say := func(text string) {
		b.WriteString(collapseSpace(text, b.Len() == 0 || strings.HasSuffix(b.String(), " ")))
	}
	read = func(el xml.StartElement) error {
		switch el.Name.Local {
		case "s":
			n, err := strconv.Atoi(attr(el, "c"))
			if err != nil {
				n = 1
			}
			b.WriteString(strings.Repeat(" ", min(max(n, 0), 100)))
		case "tab":
			b.WriteByte('\t')
		case "line-break":
			b.WriteByte('\n')
		case "soft-page-break":
			late = true
		case "a":
			before := b.Len()
			if err := s.eachChildAndText(read, say); err != nil {
				return err
			}
			to := oneLine(attr(el, "href"))
			if words := b.String()[before:]; strings.TrimSpace(words) != "" && words != to && !strings.HasPrefix(to, "#") {
				fmt.Fprintf(&b, " (%s)", to)
			}
		case "note", "annotation":
			return d.readNote(s, el, &b)
		case "p", "h": // in a frame
			b.WriteByte('\n')
			return s.eachChildAndText(read, say)
		case "title", "desc": // of a picture
			said, err := s.readText()
			fmt.Fprintf(&b, "[picture: %s]", oneLine(said))
			return err
		case "note-citation", "annotation-end", "binary-data":
		default:
			return s.eachChildAndText(read, say)
		}
		return nil
	}
	err = s.eachChildAndText(read, say)
	return b.String(), late, err
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

// readNote writes a reference to a note or a comment, whose text is written at the end.
func (d *odfReader) readNote(s *scanner, el xml.StartElement, b *strings.Builder) error {
	var lines []string
	author := ""
	var read func(el xml.StartElement) error
	read = func(el xml.StartElement) (err error) {
		switch el.Name.Local {
		case "creator":
			author, err = s.readText()
		case "p":
			var text string
			text, _, err = d.text(s)
			lines = append(lines, text)
		case "note-citation", "date", "date-string", "creator-initials", "initials":
		default:
			return s.eachChild(read)
		}
		return err
	}
	if err := s.eachChild(read); err != nil || len(d.notes) >= maxNotes {
		return err
	}
	text := oneLine(strings.Join(lines, " "))
	if el.Name.Local == "annotation" {
		text = strings.Replace("comment of "+oneLine(author)+": "+text, " of :", ":", 1)
	}
	d.notes = append(d.notes, text)
	fmt.Fprintf(b, "[^%d]", len(d.notes))
	return nil
}

// readList reads a list inside depth others.
func (d *odfReader) readList(s *scanner, el xml.StartElement, depth int) error {
	numbered, n := d.numbered[attr(el, "style-name")], 0
	return s.eachChild(func(el xml.StartElement) error {
		mark := bullet
		if n++; numbered {
			mark = strconv.Itoa(n) + "."
		}
		if el.Name.Local == "list-header" {
			mark = ""
		}
		first := true
		return s.eachChild(func(el xml.StartElement) error {
			if el.Name.Local != "p" || !first {
				return d.blockReader(s, depth+1)(el)
			}
			first = false
			text, late, err := d.text(s)
			if err != nil {
				return err
			}
			tight := d.afterItem
			d.afterItem = true
			err = d.out.addItem(depth, mark, text, tight)
			if late {
				d.out.breakPage()
			}
			return err
		})
	})
}

// eachRow calls do with each row of a table, also with rows in groups.
func eachRow(s *scanner, do func(xml.StartElement) error) error {
	var read func(el xml.StartElement) error
	read = func(el xml.StartElement) error {
		switch el.Name.Local {
		case "table-row":
			return do(el)
		case "table-rows", "table-header-rows", "table-row-group", "named-expressions":
			return s.eachChild(read)
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

// readTable reads a table of a text.
func (d *odfReader) readTable(s *scanner) error {
	t := table{out: d.out}
	return eachRow(s, func(xml.StartElement) error {
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
		err = t.addRow(cells)
		if late {
			d.out.breakPage()
		}
		return err
	})
}

// readCell returns the text of a cell, its paragraphs as lines.
func (d *odfReader) readCell(s *scanner) (text string, late bool, err error) {
	var lines []string
	var read func(el xml.StartElement) error
	read = func(el xml.StartElement) error {
		switch el.Name.Local {
		case "p", "h":
			text, broke, err := d.text(s)
			late = late || broke
			lines = append(lines, text)
			return err
		case "annotation":
			var b strings.Builder
			err := d.readNote(s, el, &b)
			lines = append(lines, b.String())
			return err
		}
		return s.eachChild(read)
	}
	err = s.eachChild(read)
	return strings.Join(lines, "\n"), late, err
}

// readSheets reads the tables of a spreadsheet.
func (d *odfReader) readSheets(s *scanner) error {
	return s.eachChild(func(el xml.StartElement) error {
		if el.Name.Local != "table" || !d.out.beginPart(attr(el, "name"), d.hidden[attr(el, "style-name")]) {
			return nil
		}
		number, above := 0, formulas{}
		return eachRow(s, func(el xml.StartElement) error {
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
			return d.out.addRow(first, cells)
		})
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
		shown, _, err := d.readCell(s)
		value := cellValue(el, shown)
		value = above.withFormula(value, cleanFormula(attr(el, "formula")), number, at)
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
// depend on the language, else the shown one.
func cellValue(el xml.StartElement, shown string) string {
	switch attr(el, "value-type") {
	case "float", "currency":
		return formatNumber(attr(el, "value"), plainNumber, 0)
	case "percentage":
		return formatNumber(attr(el, "value"), percentage, 0)
	case "date":
		return strings.TrimSuffix(strings.Replace(attr(el, "date-value"), "T", " ", 1), " 00:00:00")
	case "boolean":
		return strings.ToUpper(attr(el, "boolean-value"))
	}
	return shown
}

// odfReference matches OpenDocument's references: [.B2], [.B2:.B5], ['Old'.A1].
var odfReference = regexp.MustCompile(`\[([^\[\]]*)\]`)

// cleanFormula formats a formula as users write it.
func cleanFormula(formula string) string {
	if at := strings.Index(formula, "="); at >= 0 {
		formula = formula[at+1:]
	}
	return odfReference.ReplaceAllStringFunc(formula, func(ref string) string {
		ref = strings.ReplaceAll(ref[1:len(ref)-1], ":.", ":")
		return strings.Replace(strings.TrimPrefix(ref, "."), ".", "!", 1)
	})
}

// readSlides reads the pages of a presentation.
func (d *odfReader) readSlides(s *scanner) error {
	return s.eachChild(func(el xml.StartElement) error {
		if el.Name.Local != "page" || !d.out.beginPart(attr(el, "name"), false) {
			return nil
		}
		return s.eachChild(d.shapeReader(s, ""))
	})
}

// shapeReader returns a function that reads a shape on a slide; kind is the purpose of the frame.
func (d *odfReader) shapeReader(s *scanner, kind string) func(xml.StartElement) error {
	var read func(el xml.StartElement) error
	read = func(el xml.StartElement) error {
		switch el.Name.Local {
		case "p", "h":
			text, _, err := d.text(s)
			if err != nil || tidy(text) == "" {
				return err
			}
			switch kind {
			case "title":
				return d.out.addHeading(1, text)
			case "notes":
				text = "Notes: " + text
			}
			return d.out.addParagraph(text, false)
		case "list":
			d.afterItem = false
			return d.readList(s, el, 0)
		case "table":
			return d.readTable(s)
		case "frame":
			if kind == "notes" {
				return s.eachChild(read)
			}
			return s.eachChild(d.shapeReader(s, attr(el, "class")))
		case "notes":
			return s.eachChild(d.shapeReader(s, "notes"))
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
