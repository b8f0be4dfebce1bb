package office

import (
	"encoding/xml"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"oneclaw/internal/wording"
)

// xlsxReader reads an XLSX file.
type xlsxReader struct {
	*zipDocument
	rels      map[string]relation
	shared    sharedTexts
	formats   []cellFormat // by cell style
	people    map[string]string
	dayOffset int // days by which the calendar begins later than Excel's first
}

// cellFormat is what a cell's style changes of its value.
type cellFormat struct {
	number        numberFormat
	before, after string // the currency or the unit around a number
	struck        bool
}

// numberFormat is how a cell's number is shown.
type numberFormat struct {
	kind numberKind
	// fractions says that a time is shown with fractions of seconds.
	fractions bool
}

// numberKind is what a number stands for.
type numberKind int

const (
	plainNumber numberKind = iota
	percentage
	date
	timeOfDay
	dateAndTime
	duration
)

func (p *zipDocument) readBook(main string, s *scanner) error {
	b := &xlsxReader{zipDocument: p}
	type sheet struct {
		name, id string
		hidden   bool
	}
	var sheets []sheet
	err := s.eachChild(func(el xml.StartElement) error {
		switch el.Name.Local {
		case "workbookPr":
			if v := attr(el, "date1904"); v == "1" || v == "true" {
				b.dayOffset = 1462
			}
		case "sheets":
			return s.eachChild(func(el xml.StartElement) error {
				state := attr(el, "state")
				sheets = append(sheets, sheet{unescapeCharacters(attr(el, "name")), relationID(el), state == "hidden" || state == "veryHidden"})
				return nil
			})
		}
		return nil
	})
	if err != nil {
		return err
	}
	if b.rels, err = p.readRelations(main); err != nil {
		return err
	}
	if err := b.readFormats(relatedFile(b.rels, "styles")); err != nil {
		return err
	}
	if texts := relatedFile(b.rels, "sharedStrings"); p.has(texts) {
		if err := p.scan(texts, b.shared.read); err != nil {
			return err // no sheet says anything without them
		}
	}
	if err := b.readPeople(relatedFile(b.rels, "person")); err != nil {
		return err
	}
	for _, sh := range sheets {
		r := b.rels[sh.id]
		if !p.out.beginPart(sh.name, sh.hidden) {
			continue
		}
		switch r.kind {
		case "worksheet":
			err = b.readSheet(r.target)
		case "chartsheet":
			err = b.readDrawings(r.target, 0)
		case "": // the file names none
		default:
			err = p.out.addParagraph("[This sheet is of a kind that is not read.]", false)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// relationID returns the id by which an element refers to
// another file. Some elements also have an id of their own.
func relationID(el xml.StartElement) string {
	for _, a := range el.Attr {
		if a.Name.Local == "id" && strings.HasSuffix(a.Name.Space, "/relationships") {
			return a.Value
		}
	}
	return ""
}

// sharedTexts are the texts of cells, each stored once, in one buffer.
type sharedTexts struct {
	text []byte
	ends []int
}

// maxShared bounds the shared texts, in bytes.
const maxShared = 48 << 20

func (t *sharedTexts) read(s *scanner) error {
	return s.eachChild(func(xml.StartElement) error {
		return s.eachChild(func(xml.StartElement) error {
			text, err := readRichText(s)
			t.text = append(t.text, text...)
			t.ends = append(t.ends, len(t.text))
			if len(t.text)+8*len(t.ends) > maxShared {
				return Refusal(fmt.Sprintf("has more than the limit of %d MiB of texts in its cells, and is not read", maxShared>>20))
			}
			return err
		})
	})
}

func (t *sharedTexts) at(i int) string {
	if i < 0 || i >= len(t.ends) {
		return ""
	}
	begin := 0
	if i > 0 {
		begin = t.ends[i-1]
	}
	return string(t.text[begin:t.ends[i]])
}

// readRichText returns the text of an element that may consist of runs, without phonetic hints.
func readRichText(s *scanner) (string, error) {
	var b richText
	var style textStyle
	var read func(el xml.StartElement) error
	read = func(el xml.StartElement) error {
		switch el.Name.Local {
		case "t":
			text, err := s.readText()
			b.write(unescapeCharacters(text), style)
			return err
		case "r":
			style = textStyle{}
			return s.eachChild(read)
		case "rPr":
			return s.eachChild(func(el xml.StartElement) error {
				switch el.Name.Local {
				case "vertAlign":
					style.script = map[string]int{"superscript": 1, "subscript": -1}[attr(el, "val")]
				case "strike":
					style.struck = !isOff(el)
				}
				return nil
			})
		}
		return nil
	}
	err := s.eachChild(read)
	return b.String(), err
}

// readFormats reads what styles change of values.
func (b *xlsxReader) readFormats(name string) error {
	codes := map[string]cellFormat{}
	var struck []bool // by font
	return b.scanOptional(name, func(s *scanner) error {
		return s.eachChild(func(xml.StartElement) error {
			return s.eachChild(func(el xml.StartElement) error {
				part := el.Name.Local
				return s.eachChild(func(el xml.StartElement) error {
					switch part {
					case "numFmts":
						code := attr(el, "formatCode")
						is := cellFormat{number: parseFormatCode(code)}
						if is.number.kind <= percentage {
							is.before, is.after = parseUnits(code)
						}
						codes[attr(el, "numFmtId")] = is
					case "fonts":
						struck = append(struck, false)
						return s.eachChild(func(el xml.StartElement) error {
							if el.Name.Local == "strike" {
								struck[len(struck)-1] = !isOff(el)
							}
							return nil
						})
					case "cellXfs":
						id := attr(el, "numFmtId")
						is, ok := codes[id]
						if !ok {
							is.number = builtinFormat(id)
						}
						font, err := strconv.Atoi(attr(el, "fontId"))
						is.struck = err == nil && font >= 0 && font < len(struck) && struck[font]
						b.formats = append(b.formats, is)
					}
					return nil
				})
			})
		})
	})
}

// builtinFormat returns the meaning of a built-in number format (ECMA-376, 18.8.30).
func builtinFormat(id string) numberFormat {
	n, err := strconv.Atoi(id)
	switch {
	case err != nil:
	case n == 9, n == 10:
		return numberFormat{kind: percentage}
	case n >= 14 && n <= 17, n >= 27 && n <= 31, n == 36, n >= 50 && n <= 58:
		return numberFormat{kind: date}
	case n == 47:
		return numberFormat{timeOfDay, true}
	case n >= 18 && n <= 21, n == 45, n >= 32 && n <= 35:
		return numberFormat{kind: timeOfDay}
	case n == 22:
		return numberFormat{kind: dateAndTime}
	case n == 46:
		return numberFormat{kind: duration}
	}
	return numberFormat{}
}

// literalText matches literal text in a format code, and elapsedTime a count of hours, minutes or
// seconds.
var (
	literalText = regexp.MustCompile(`"[^"]*"|\\.|_.|\*.|\[(?:[^hms\]]|ma)[^\]]*\]`) // [magenta] is a colour
	elapsedTime = regexp.MustCompile(`\[(h+|m+|s+)\]`)
)

// parseFormatCode returns how a format code shows a number.
func parseFormatCode(code string) numberFormat {
	code, _, _ = strings.Cut(strings.ToLower(literalText.ReplaceAllString(strings.ToLower(code), "")), ";")
	day, hour := strings.ContainsAny(code, "yd"), strings.ContainsAny(code, "hs")
	fractions := strings.Contains(code, "s.0") || strings.Contains(code, "s].0")
	switch {
	case strings.Contains(code, "general"):
		return numberFormat{}
	case elapsedTime.MatchString(code):
		return numberFormat{duration, fractions}
	case day && hour:
		return numberFormat{dateAndTime, fractions}
	case hour:
		return numberFormat{timeOfDay, fractions}
	case day, strings.Contains(code, "m") && !strings.ContainsAny(code, "0#?"):
		return numberFormat{kind: date}
	case strings.Contains(code, "%"):
		return numberFormat{kind: percentage}
	}
	return numberFormat{}
}

// sheetReader reads a sheet.
type sheetReader struct {
	*xlsxReader
	comments      map[int]map[int]string // by row and column
	commentRows   []int                  // rows with comments that are not written yet, in their order
	links         map[int]string         // by row<<16 | column
	hiddenColumns map[int]bool
	lastColumn    int // up to which it is known whether columns are hidden
	above         formulas
	number        int // of the last row
}

// readSheet reads the rows of a sheet, one after the other, and then its drawings.
func (b *xlsxReader) readSheet(name string) error {
	rels, err := b.readRelations(name)
	if err != nil {
		return err
	}
	r := &sheetReader{xlsxReader: b, above: formulas{}, hiddenColumns: map[int]bool{}}
	if err := r.readComments(rels); err != nil {
		return err
	}
	if err := r.readLinks(name, rels); err != nil {
		return err
	}
	err = b.scan(name, func(s *scanner) error {
		return s.eachChild(func(xml.StartElement) error {
			return s.eachChild(func(el xml.StartElement) error {
				switch el.Name.Local {
				case "cols":
					return s.eachChild(r.readColumn)
				case "sheetData":
					return s.eachChild(func(el xml.StartElement) error { return r.readRow(s, el) })
				}
				return nil
			})
		})
	})
	if err := r.tolerate(name, err); err != nil {
		return err
	}
	if err := r.writeComments(math.MaxInt); err != nil {
		return err
	}
	return b.readDrawings(name, r.number)
}

// readColumn notes columns that are hidden.
func (r *sheetReader) readColumn(el xml.StartElement) error {
	first, err := strconv.Atoi(attr(el, "min"))
	last, wrong := strconv.Atoi(attr(el, "max"))
	if err != nil || wrong != nil {
		return nil
	}
	hidden := attr(el, "hidden")
	for at := max(first, r.lastColumn+1); at <= min(last, maxColumns); at++ {
		if hidden == "1" || hidden == "true" {
			r.hiddenColumns[at-1] = true
		}
		r.lastColumn = at
	}
	return nil
}

// readRow reads a row.
func (r *sheetReader) readRow(s *scanner, el xml.StartElement) error {
	number := r.number + 1
	if n, err := strconv.Atoi(attr(el, "r")); err == nil && n > 0 {
		number = n
	}
	if err := r.writeComments(number); err != nil {
		return err
	}
	r.number = number
	hidden := attr(el, "hidden")
	cells, column := map[int]string{}, -1
	err := s.eachChild(func(el xml.StartElement) error {
		column++
		if at, _ := parseReference(attr(el, "r")); at >= 0 {
			column = at
		}
		if column >= maxColumns {
			return nil
		}
		value, formula, err := r.readCell(s, el)
		if style := (textStyle{struck: r.format(el).struck, link: r.links[number<<16|column]}); style != (textStyle{}) {
			var styled richText
			styled.write(value, style)
			value = styled.String()
		}
		cells[column] = r.above.withFormula(value, formula, number, column)
		return err
	})
	if err != nil {
		return err
	}
	for at, said := range r.comments[number] {
		cells[at] = strings.TrimSpace(cells[at] + " " + said)
	}
	if len(r.commentRows) > 0 && r.commentRows[0] == number {
		r.commentRows = r.commentRows[1:]
	}
	return r.out.addRow(Block{Number: number, Hidden: hidden == "1" || hidden == "true", HiddenColumns: r.hiddenColumns}, cells)
}

// writeComments writes the comments on rows before a row that the file leaves out.
func (r *sheetReader) writeComments(before int) error {
	for len(r.commentRows) > 0 && r.commentRows[0] < before {
		number := r.commentRows[0]
		r.commentRows = r.commentRows[1:]
		r.number = max(r.number, number)
		if err := r.out.addRow(Block{Number: number, HiddenColumns: r.hiddenColumns}, r.comments[number]); err != nil {
			return err
		}
	}
	return nil
}

// maxColumns bounds the columns of a sheet.
const maxColumns = 16_384

// parseReference returns the column, from 0, and the row, from 1, of a reference such as B7; negative
// if it is invalid.
func parseReference(ref string) (column, row int) {
	letters := strings.IndexFunc(ref, unicode.IsDigit)
	if letters < 1 || letters > 3 {
		return -1, -1
	}
	for _, c := range ref[:letters] {
		if c < 'A' || c > 'Z' {
			return -1, -1
		}
		column = column*26 + int(c-'A') + 1
	}
	row, err := strconv.Atoi(ref[letters:])
	if err != nil || column > maxColumns {
		return -1, -1
	}
	return column - 1, row
}

// readCell returns a cell's shown value, and its own formula, if any.
func (b *xlsxReader) readCell(s *scanner, el xml.StartElement) (value, formula string, err error) {
	kind := attr(el, "t")
	var raw string
	err = s.eachChild(func(el xml.StartElement) (err error) {
		switch el.Name.Local {
		case "v":
			raw, err = s.readText()
		case "f":
			formula, err = s.readText() // empty if it is shared with an earlier cell
			formula = futureFunction.ReplaceAllString(formula, "")
		case "is":
			raw, err = readRichText(s)
		}
		return err
	})
	switch kind {
	case "s":
		at, err := strconv.Atoi(strings.TrimSpace(raw))
		if err != nil {
			return "", formula, nil
		}
		return b.shared.at(at), formula, nil
	case "b":
		return map[string]string{"0": "FALSE", "1": "TRUE"}[strings.TrimSpace(raw)], formula, err
	case "", "n":
		is := b.format(el)
		return withUnits(formatNumber(strings.TrimSpace(raw), is.number, b.dayOffset), is.before, is.after), formula, err
	case "d":
		return formatISO(strings.TrimSpace(raw)), formula, err
	case "str", "e":
		raw = unescapeCharacters(raw)
	}
	return raw, formula, err
}

// futureFunction matches what Excel writes before the names of functions and parameters that it did not
// have in 2007, and does not show.
var futureFunction = regexp.MustCompile(`_xlfn\.|_xlws\.|_xlpm\.|_xlop\.|_xludf\.`)

// format returns what the style of a cell changes of its value.
func (b *xlsxReader) format(el xml.StartElement) cellFormat {
	if style, _ := strconv.Atoi(attr(el, "s")); style >= 0 && style < len(b.formats) {
		return b.formats[style]
	}
	return cellFormat{}
}

// reference matches a cell in a formula: column and row.
var reference = regexp.MustCompile(`(\$?[A-Z]{1,3})(\$?)(\d{1,7})\b`)

// formulas are the relative formulas of the row above, by column.
type formulas map[int]string

// withFormula returns the value of a cell with its formula,
// unless the formula only continues that of the cell above, or is TRUE() or an error.
func (above formulas) withFormula(value, formula string, row, column int) string {
	pattern := relativeFormula(formula, row)
	if formula != "" && strings.TrimSuffix(formula, "()") != value && (value == "" || pattern != above[column]) {
		value = strings.TrimSpace(value + " (=" + formula + ")")
	}
	above[column] = pattern
	return value
}

// relativeFormula returns a formula in a form that is the same in the cells below.
func relativeFormula(formula string, row int) string {
	if formula == "" || len(formula) > 1_000 {
		return formula
	}
	return reference.ReplaceAllStringFunc(formula, func(ref string) string {
		m := reference.FindStringSubmatch(ref)
		n, err := strconv.Atoi(m[3])
		if m[2] != "" || err != nil {
			return ref
		}
		return fmt.Sprintf("%s[%d]", m[1], n-row)
	})
}

// readLinks reads the links of a sheet, which follow its rows in the file.
func (r *sheetReader) readLinks(name string, rels map[string]relation) error {
	external := func(rel relation) bool { return rel.kind == "hyperlink" && rel.external }
	if !slices.ContainsFunc(slices.Collect(maps.Values(rels)), external) {
		return nil
	}
	r.links = map[int]string{}
	left := r.bytesLeft
	err := r.scan(name, func(s *scanner) error {
		return s.eachChild(func(xml.StartElement) error {
			return s.eachChild(func(el xml.StartElement) error {
				if el.Name.Local != "hyperlinks" {
					return nil
				}
				return s.eachChild(func(el xml.StartElement) error {
					first, _, _ := strings.Cut(attr(el, "ref"), ":")
					column, row := parseReference(first)
					to := rels[relationID(el)]
					if column < 0 || !external(to) {
						return nil
					}
					if len(r.links) == maxLinks {
						return Refusal(fmt.Sprintf("has a sheet with more links than the limit of %d, and only these are shown", maxLinks))
					}
					if at := attr(el, "location"); at != "" {
						to.target += "#" + at
					}
					r.links[row<<16|column] = to.target
					return nil
				})
			})
		})
	})
	err = r.tolerate(name, err)
	r.bytesLeft = left // the sheet counts when its rows are read
	return err
}

// maxLinks bounds the links of a sheet; Excel has at most 65,530.
const maxLinks = 100_000

// readPeople reads the names of those who write comments in threads, by id.
func (b *xlsxReader) readPeople(name string) error {
	b.people = map[string]string{}
	return b.scanOptional(name, func(s *scanner) error {
		return s.eachChild(func(xml.StartElement) error {
			return s.eachChild(func(el xml.StartElement) error {
				b.people[attr(el, "id")] = oneLine(attr(el, "displayName"))
				return nil
			})
		})
	})
}

// readComments reads the comments of a sheet. Where a cell has comments in a thread, its other one only
// repeats them for older programs.
func (r *sheetReader) readComments(rels map[string]relation) error {
	r.comments = map[int]map[int]string{}
	threads := map[string][]string{}
	err := r.scanOptional(relatedFile(rels, "threadedComment"), func(s *scanner) error {
		return s.eachChild(func(xml.StartElement) error {
			return s.eachChild(func(el xml.StartElement) error {
				return s.eachChild(func(part xml.StartElement) error {
					if part.Name.Local != "text" {
						return nil
					}
					text, err := s.readText()
					ref := attr(el, "ref")
					threads[ref] = append(threads[ref], commentText(r.people[attr(el, "personId")], unescapeCharacters(text)))
					return err
				})
			})
		})
	})
	if err != nil {
		return err
	}
	for ref, said := range threads {
		r.addComment(ref, strings.Join(said, "; "))
	}
	err = r.scanOptional(relatedFile(rels, "comments"), func(s *scanner) error {
		return s.eachChild(func(xml.StartElement) error {
			return s.eachChild(func(xml.StartElement) error {
				return s.eachChild(func(el xml.StartElement) error {
					if ref := attr(el, "ref"); el.Name.Local == "comment" && threads[ref] == nil {
						return s.eachChild(func(part xml.StartElement) error {
							if part.Name.Local != "text" { // where it is drawn
								return nil
							}
							text, err := readRichText(s)
							r.addComment(ref, commentText("", text))
							return err
						})
					}
					return nil
				})
			})
		})
	})
	r.commentRows = slices.Sorted(maps.Keys(r.comments))
	return err
}

// addComment adds a comment on a cell.
func (r *sheetReader) addComment(ref, text string) {
	column, row := parseReference(ref)
	if column < 0 || row < 1 {
		return
	}
	if r.comments[row] == nil {
		r.comments[row] = map[int]string{}
	}
	r.comments[row][column] = "[" + text + "]"
}

// readDrawings reads what is drawn on a sheet with the number of rows: text boxes, charts and pictures.
func (b *xlsxReader) readDrawings(of string, rows int) error {
	rels, err := b.readRelations(of)
	if err != nil {
		return err
	}
	name := relatedFile(rels, "drawing")
	if rels, err = b.readRelations(name); err != nil {
		return err
	}
	number, place := rows, ""
	add := func(text string) error {
		if tidy(text) == "" {
			return nil
		}
		number++
		return b.out.add(Block{Number: number, Text: tidy(place + text)})
	}
	return b.scanOptional(name, func(s *scanner) error {
		described := false
		var read func(el xml.StartElement) error
		read = func(el xml.StartElement) error {
			switch el.Name.Local {
			case "from":
				at := map[string]int{}
				err := s.eachChild(func(el xml.StartElement) error {
					text, err := s.readText()
					if n, wrong := strconv.Atoi(strings.TrimSpace(text)); wrong == nil && n >= 0 && n < maxSheetRows {
						at[el.Name.Local] = n
					}
					return err
				})
				place = fmt.Sprintf("At %s%d: ", wording.ColumnName(at["col"]), at["row"]+1)
				return err
			case "cNvPr":
				if said := oneLine(attr(el, "descr")); said != "" {
					described = true
					return add("[picture: " + said + "]")
				}
				described = false
				return nil
			case "blip":
				if described {
					return nil
				}
				return add("[picture]")
			case "txBody":
				lines, err := readDrawingLines(s, nil)
				if err != nil {
					return err
				}
				return add(strings.Join(lines, "\n"))
			case "chart":
				text, err := b.readChart(rels[relationID(el)].target)
				if err != nil {
					return err
				}
				return add(text)
			case "Fallback":
				return nil
			}
			return s.eachChild(read)
		}
		return s.eachChild(read)
	})
}

// maxSheetRows bounds the rows and columns of a drawing's place.
const maxSheetRows = 1 << 20
