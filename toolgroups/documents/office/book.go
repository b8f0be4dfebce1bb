package office

import (
	"encoding/xml"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// xlsxReader reads an XLSX file.
type xlsxReader struct {
	*zipDocument
	out       *emitter
	rels      map[string]relation
	shared    sharedTexts
	formats   []numberFormat // number formats by cell style
	dayOffset int            // days by which the calendar begins later than Excel's first
}

// numberFormat is how a cell's number is shown.
type numberFormat int

const (
	plainNumber numberFormat = iota
	percentage
	date
	timeOfDay
	dateAndTime
	duration
)

func (p *zipDocument) readBook(main string, s *scanner, out *emitter) error {
	b := &xlsxReader{zipDocument: p, out: out}
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
				sheets = append(sheets, sheet{attr(el, "name"), relationID(el), state == "hidden" || state == "veryHidden"})
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
	if err := p.scanOptional(relatedFile(b.rels, "sharedStrings"), b.shared.read); err != nil {
		return err
	}
	for _, sh := range sheets {
		r := b.rels[sh.id]
		if !out.beginPart(sh.name, sh.hidden) || r.kind != "worksheet" {
			continue
		}
		if err := b.readSheet(r.target); err != nil {
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
	var b strings.Builder
	var read func(el xml.StartElement) error
	read = func(el xml.StartElement) error {
		switch el.Name.Local {
		case "t":
			text, err := s.readText()
			b.WriteString(text)
			return err
		case "r":
			return s.eachChild(read)
		}
		return nil
	}
	err := s.eachChild(read)
	return b.String(), err
}

// readFormats reads how styles format numbers.
func (b *xlsxReader) readFormats(name string) error {
	codes := map[string]numberFormat{}
	return b.scanOptional(name, func(s *scanner) error {
		return s.eachChild(func(xml.StartElement) error {
			return s.eachChild(func(el xml.StartElement) error {
				part := el.Name.Local
				return s.eachChild(func(el xml.StartElement) error {
					switch part {
					case "numFmts":
						codes[attr(el, "numFmtId")] = parseFormatCode(attr(el, "formatCode"))
					case "cellXfs":
						id := attr(el, "numFmtId")
						is, ok := codes[id]
						if !ok {
							is = builtinFormat(id)
						}
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
		return percentage
	case n >= 14 && n <= 17, n >= 27 && n <= 31, n == 36, n >= 50 && n <= 58:
		return date
	case n >= 18 && n <= 21, n == 45, n == 47, n >= 32 && n <= 35:
		return timeOfDay
	case n == 22:
		return dateAndTime
	case n == 46:
		return duration
	}
	return plainNumber
}

// literalText matches literal text in a format code, and elapsedTime a count of hours, minutes or
// seconds.
var (
	literalText = regexp.MustCompile(`"[^"]*"|\\.|_.|\*.|\[[^hms\]][^\]]*\]`)
	elapsedTime = regexp.MustCompile(`\[(h+|m+|s+)\]`)
)

// parseFormatCode returns how a format code shows a number.
func parseFormatCode(code string) numberFormat {
	code, _, _ = strings.Cut(strings.ToLower(literalText.ReplaceAllString(strings.ToLower(code), "")), ";")
	day, hour := strings.ContainsAny(code, "yd"), strings.ContainsAny(code, "hs")
	switch {
	case strings.Contains(code, "general"):
		return plainNumber
	case elapsedTime.MatchString(code):
		return duration
	case day && hour:
		return dateAndTime
	case hour:
		return timeOfDay
	case day, strings.Contains(code, "mmm"):
		return date
	case strings.Contains(code, "%"):
		return percentage
	}
	return plainNumber
}

// readSheet reads the rows of a sheet, one after the other.
func (b *xlsxReader) readSheet(name string) error {
	comments, err := b.readComments(name)
	if err != nil {
		return err
	}
	above, number := formulas{}, 0
	return b.scan(name, func(s *scanner) error {
		return s.eachChild(func(xml.StartElement) error {
			return s.eachChild(func(el xml.StartElement) error {
				if el.Name.Local != "sheetData" {
					return nil
				}
				return s.eachChild(func(el xml.StartElement) error {
					number++
					if n, err := strconv.Atoi(attr(el, "r")); err == nil && n > 0 {
						number = n
					}
					return b.readRow(s, number, above, comments)
				})
			})
		})
	})
}

// readRow reads a row.
func (b *xlsxReader) readRow(s *scanner, number int, above formulas, comments map[int]string) error {
	cells, column := map[int]string{}, -1
	err := s.eachChild(func(el xml.StartElement) error {
		column++
		if at, _ := parseReference(attr(el, "r")); at >= 0 {
			column = at
		}
		if column >= maxColumns {
			return nil
		}
		value, formula, err := b.readCell(s, el)
		value = above.withFormula(value, formula, number, column)
		if said := comments[number<<16|column]; said != "" {
			value = strings.TrimSpace(value + " [comment: " + said + "]")
		}
		cells[column] = value
		return err
	})
	if err != nil {
		return err
	}
	return b.out.addRow(number, cells)
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
		style, _ := strconv.Atoi(attr(el, "s"))
		is := plainNumber
		if style >= 0 && style < len(b.formats) {
			is = b.formats[style]
		}
		return formatNumber(strings.TrimSpace(raw), is, b.dayOffset), formula, err
	}
	return raw, formula, err
}

// reference matches a cell in a formula: column and row.
var reference = regexp.MustCompile(`(\$?[A-Z]{1,3})(\$?)(\d{1,7})\b`)

// formulas are the relative formulas of the row above, by column.
type formulas map[int]string

// withFormula returns the value of a cell with its formula,
// unless the formula only continues that of the cell above.
func (above formulas) withFormula(value, formula string, row, column int) string {
	pattern := relativeFormula(formula, row)
	if formula != "" && (value == "" || pattern != above[column]) {
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

// readComments returns the comments of a sheet, by row<<16 | column.
func (b *xlsxReader) readComments(of string) (map[int]string, error) {
	rels, err := b.readRelations(of)
	if err != nil {
		return nil, err
	}
	said := map[int]string{}
	err = b.scanOptional(relatedFile(rels, "comments"), func(s *scanner) error {
		return s.eachChild(func(xml.StartElement) error {
			return s.eachChild(func(xml.StartElement) error {
				return s.eachChild(func(el xml.StartElement) error {
					column, row := parseReference(attr(el, "ref"))
					if el.Name.Local != "comment" || column < 0 {
						return nil
					}
					text, err := s.readText()
					said[row<<16|column] = oneLine(text)
					return err
				})
			})
		})
	})
	return said, err
}
