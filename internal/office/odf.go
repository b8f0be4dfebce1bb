package office

import (
	"encoding/xml"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// odf reads a document in OpenDocument's format. Its pages are those recorded when the file was
// saved, if any, and those of page breaks.
type odf struct {
	out      *emitter
	breaks   map[string]bool // paragraph styles that begin a page
	numbered map[string]bool // list styles with numbers
	hidden   map[string]bool // styles of hidden sheets
	notes    []string
	listed   bool
}

func (p *pack) readODF(out *emitter) (format Format, err error) {
	err = p.scanAny("META-INF/manifest.xml", func(s *scanner) error {
		return s.children(func(root xml.StartElement) error {
			return s.children(func(el xml.StartElement) error {
				return s.children(func(el xml.StartElement) error {
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
	d := &odf{out: out, breaks: map[string]bool{}, numbered: map[string]bool{}, hidden: map[string]bool{}}
	err = p.scan("content.xml", func(s *scanner) error {
		return s.children(func(root xml.StartElement) error {
			return s.children(func(el xml.StartElement) error {
				switch el.Name.Local {
				case "automatic-styles":
					return d.readStyles(s)
				case "body":
					return s.children(func(el xml.StartElement) error {
						switch el.Name.Local {
						case "text":
							format = odtFormat
							return s.children(d.block(s, 0))
						case "spreadsheet":
							format = odsFormat
							return d.sheets(s)
						case "presentation", "drawing":
							format = odpFormat
							return d.slides(s)
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
	return format, out.footnotes(d.notes)
}

func (d *odf) readStyles(s *scanner) error {
	return s.children(func(el xml.StartElement) error {
		name := attr(el, "name")
		return s.children(func(el xml.StartElement) error {
			switch el.Name.Local {
			case "paragraph-properties":
				d.breaks[name] = d.breaks[name] || attr(el, "break-before") == "page"
			case "list-level-style-number":
				d.numbered[name] = true
			case "table-properties":
				d.hidden[name] = attr(el, "display") == "false"
			}
			return nil
		})
	})
}

// block reads the content of a text, depth lists deep.
func (d *odf) block(s *scanner, depth int) func(xml.StartElement) error {
	var read func(el xml.StartElement) error
	read = func(el xml.StartElement) error {
		switch el.Name.Local {
		case "h", "p":
			return d.paragraph(s, el)
		case "list":
			return d.list(s, el, depth)
		case "table":
			d.listed = false
			return d.table(s)
		case "soft-page-break":
			d.out.breakPage()
		case "tracked-changes", "forms", "table-of-content-source", "sequence-decls":
		default:
			return s.children(read)
		}
		return nil
	}
	return read
}

// paragraph reads a paragraph or a heading of a text.
func (d *odf) paragraph(s *scanner, el xml.StartElement) error {
	if d.breaks[attr(el, "style-name")] {
		d.out.breakPage()
	}
	d.listed = false
	level := 0
	if el.Name.Local == "h" {
		level, _ = strconv.Atoi(attr(el, "outline-level"))
		level = max(level, 1)
	}
	text, late, err := d.text(s)
	switch {
	case err != nil:
	case level > 0:
		err = d.out.heading(level, text)
	default:
		err = d.out.paragraph(text, false)
	}
	if late {
		d.out.breakPage()
	}
	return err
}

// text returns the text of a paragraph, and whether a page ends in it.
func (d *odf) text(s *scanner) (text string, late bool, err error) {
	var b strings.Builder
	var read func(el xml.StartElement) error
	say := func(text string) { b.WriteString(collapse(text, b.Len() == 0 || strings.HasSuffix(b.String(), " "))) }
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
			if err := s.content(read, say); err != nil {
				return err
			}
			to := line(attr(el, "href"))
			if words := b.String()[before:]; strings.TrimSpace(words) != "" && words != to && !strings.HasPrefix(to, "#") {
				fmt.Fprintf(&b, " (%s)", to)
			}
		case "note", "annotation":
			return d.note(s, el, &b)
		case "p", "h": // in a frame
			b.WriteByte('\n')
			return s.content(read, say)
		case "title", "desc": // of a picture
			said, err := s.text()
			fmt.Fprintf(&b, "[picture: %s]", line(said))
			return err
		case "note-citation", "annotation-end", "binary-data":
		default:
			return s.content(read, say)
		}
		return nil
	}
	err = s.content(read, say)
	return b.String(), late, err
}

// blanks matches white space that XML collapses.
var blanks = regexp.MustCompile(`[ \t\r\n]+`)

// collapse replaces each run of blanks by one space, and drops it after another space.
func collapse(text string, behindSpace bool) string {
	text = blanks.ReplaceAllString(text, " ")
	if behindSpace {
		text = strings.TrimPrefix(text, " ")
	}
	return text
}

// note marks a note or a comment, whose text is written at the end.
func (d *odf) note(s *scanner, el xml.StartElement, b *strings.Builder) error {
	var lines []string
	author := ""
	var read func(el xml.StartElement) error
	read = func(el xml.StartElement) (err error) {
		switch el.Name.Local {
		case "creator":
			author, err = s.text()
		case "p":
			var text string
			text, _, err = d.text(s)
			lines = append(lines, text)
		case "note-citation", "date", "date-string", "creator-initials", "initials":
		default:
			return s.children(read)
		}
		return err
	}
	if err := s.children(read); err != nil || len(d.notes) >= maxNotes {
		return err
	}
	text := line(strings.Join(lines, " "))
	if el.Name.Local == "annotation" {
		text = strings.Replace("comment of "+line(author)+": "+text, " of :", ":", 1)
	}
	d.notes = append(d.notes, text)
	fmt.Fprintf(b, "[^%d]", len(d.notes))
	return nil
}

// list reads a list, depth others deep.
func (d *odf) list(s *scanner, el xml.StartElement, depth int) error {
	numbered, n := d.numbered[attr(el, "style-name")], 0
	return s.children(func(el xml.StartElement) error {
		mark := bullet
		if n++; numbered {
			mark = strconv.Itoa(n) + "."
		}
		if el.Name.Local == "list-header" {
			mark = ""
		}
		first := true
		return s.children(func(el xml.StartElement) error {
			if el.Name.Local != "p" || !first {
				return d.block(s, depth+1)(el)
			}
			first = false
			text, late, err := d.text(s)
			if err != nil {
				return err
			}
			tight := d.listed
			d.listed = true
			err = d.out.item(depth, mark, text, tight)
			if late {
				d.out.breakPage()
			}
			return err
		})
	})
}

// rowsOf calls do with each row of a table, grouped or not.
func rowsOf(s *scanner, do func(xml.StartElement) error) error {
	var read func(el xml.StartElement) error
	read = func(el xml.StartElement) error {
		switch el.Name.Local {
		case "table-row":
			return do(el)
		case "table-rows", "table-header-rows", "table-row-group", "named-expressions":
			return s.children(read)
		}
		return nil
	}
	return s.children(read)
}

// repeated returns how often an element counts.
func repeated(el xml.StartElement, what string) int {
	n, err := strconv.Atoi(attr(el, "number-"+what+"-repeated"))
	if err != nil {
		return 1
	}
	return max(n, 1)
}

// table reads a table of a text.
func (d *odf) table(s *scanner) error {
	t := table{out: d.out}
	return rowsOf(s, func(xml.StartElement) error {
		var cells []string
		late := false
		err := s.children(func(el xml.StartElement) error {
			text, broke, err := d.cell(s)
			late = late || broke
			for range min(repeated(el, "columns"), maxCells-len(cells)) {
				cells = append(cells, cellText(text))
			}
			return err
		})
		if err != nil {
			return err
		}
		err = t.row(cells)
		if late {
			d.out.breakPage()
		}
		return err
	})
}

// cell returns the text of a cell, its paragraphs as lines.
func (d *odf) cell(s *scanner) (text string, late bool, err error) {
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
			err := d.note(s, el, &b)
			lines = append(lines, b.String())
			return err
		}
		return s.children(read)
	}
	err = s.children(read)
	return strings.Join(lines, "\n"), late, err
}

// sheets reads the tables of a spreadsheet.
func (d *odf) sheets(s *scanner) error {
	return s.children(func(el xml.StartElement) error {
		if el.Name.Local != "table" || !d.out.begin(attr(el, "name"), d.hidden[attr(el, "style-name")]) {
			return nil
		}
		number, above := 0, formulas{}
		return rowsOf(s, func(el xml.StartElement) error {
			times := repeated(el, "rows")
			first := number + 1
			number += times
			cells, err := d.row(s, first, above)
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
			return d.out.row(first, cells)
		})
	})
}

// row reads the non-empty cells of a row.
func (d *odf) row(s *scanner, number int, above formulas) (map[int]string, error) {
	cells, column := map[int]string{}, 0
	err := s.children(func(el xml.StartElement) error {
		at := column
		column += repeated(el, "columns")
		if el.Name.Local != "table-cell" {
			return nil
		}
		shown, _, err := d.cell(s)
		value := cellValue(el, shown)
		value = above.shown(value, cleanFormula(attr(el, "formula")), number, at)
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
		return number(attr(el, "value"), plainNumber, 0)
	case "percentage":
		return number(attr(el, "value"), percentage, 0)
	case "date":
		return strings.TrimSuffix(strings.Replace(attr(el, "date-value"), "T", " ", 1), " 00:00:00")
	case "boolean":
		return strings.ToUpper(attr(el, "boolean-value"))
	}
	return shown
}

// spelled matches OpenDocument's references: [.B2], [.B2:.B5], ['Old'.A1].
var spelled = regexp.MustCompile(`\[([^\[\]]*)\]`)

// cleanFormula formats a formula as users write it.
func cleanFormula(formula string) string {
	if at := strings.Index(formula, "="); at >= 0 {
		formula = formula[at+1:]
	}
	return spelled.ReplaceAllStringFunc(formula, func(ref string) string {
		ref = strings.ReplaceAll(ref[1:len(ref)-1], ":.", ":")
		return strings.Replace(strings.TrimPrefix(ref, "."), ".", "!", 1)
	})
}

// slides reads the pages of a presentation.
func (d *odf) slides(s *scanner) error {
	return s.children(func(el xml.StartElement) error {
		if el.Name.Local != "page" || !d.out.begin(attr(el, "name"), false) {
			return nil
		}
		return s.children(d.shape(s, ""))
	})
}

// shape reads a shape on a slide; kind is the purpose of its frame.
func (d *odf) shape(s *scanner, kind string) func(xml.StartElement) error {
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
				return d.out.heading(1, text)
			case "notes":
				text = "Notes: " + text
			}
			return d.out.paragraph(text, false)
		case "list":
			d.listed = false
			return d.list(s, el, 0)
		case "table":
			return d.table(s)
		case "frame":
			if kind == "notes" {
				return s.children(read)
			}
			return s.children(d.shape(s, attr(el, "class")))
		case "notes":
			return s.children(d.shape(s, "notes"))
		case "title", "desc":
			said, err := s.text()
			if err == nil && line(said) != "" {
				err = d.out.paragraph("[picture: "+line(said)+"]", false)
			}
			return err
		}
		return s.children(read)
	}
	return read
}
