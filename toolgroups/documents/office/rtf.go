package office

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
)

// rtfReader reads an RTF document as a stream of control words, groups and text.
type rtfReader struct {
	in            *bufio.Reader
	out           *emitter
	state         rtfState
	stack         []rtfState
	codePage      encoding.Encoding // of characters given as bytes
	fonts         map[int]int       // code pages by font
	headingLevels map[int]int       // heading levels by style
	bytes         []byte            // characters that are not decoded yet
	text          strings.Builder   // of the paragraph
	cells         []string          // of the row
	table         *table            // the current table, or nil
	notes         []string          // the text of footnotes
	field         string            // the instruction of the last field
	depth         int               // of the item
	level         int               // of the paragraph
	inRow         bool              // the paragraph is in a table
	highSurrogate rune              // the last UTF-16 unit, perhaps the first of a pair
	skip          int               // replacement characters to skip
}

// rtfState is the state of a group.
type rtfState struct {
	into    destination
	font    int
	ucSkip  int
	style   int  // the style being defined
	hidden  bool // invisible text
	inField bool
}

// destination is the use of a group's text.
type destination int

const (
	intoBody destination = iota
	intoNothing
	intoFonts
	intoStyles
	intoMark // the number or bullet of an item
	intoNote
	intoField // the instruction of a field
)

// groupDestinations maps the names of groups to the use of their text.
var groupDestinations = map[string]destination{
	"fonttbl": intoFonts, "stylesheet": intoStyles, "listtext": intoMark, "pntext": intoMark, "footnote": intoNote,
	"colortbl": intoNothing, "info": intoNothing, "pict": intoNothing, "object": intoNothing, "header": intoNothing,
	"headerl": intoNothing, "headerr": intoNothing, "headerf": intoNothing, "footer": intoNothing, "footerl": intoNothing,
	"footerr": intoNothing, "footerf": intoNothing, "fldinst": intoField, "fldrslt": intoBody, "themedata": intoNothing,
	"listtable": intoNothing, "listoverridetable": intoNothing, "rsidtbl": intoNothing, "xmlnstbl": intoNothing,
	"datastore": intoNothing, "latentstyles": intoNothing, "generator": intoNothing, "datafield": intoNothing,
	"annotation": intoNote, "atnid": intoNothing, "atnauthor": intoNothing, "bkmkstart": intoNothing, "bkmkend": intoNothing,
	"nonshppict": intoNothing, "shppict": intoBody, "shpinst": intoBody, "sp": intoNothing, "pn": intoNothing, "revtbl": intoNothing,
}

// controlChars are the control words for characters.
var controlChars = map[string]string{
	"tab": "\t", "line": "\n", "emdash": "—", "endash": "–", "lquote": "‘", "rquote": "’", "ldblquote": "“", "rdblquote": "”",
	"bullet": "•", "emspace": " ", "enspace": " ", "qmspace": " ",
}

func readRTF(from io.Reader, out *emitter) error {
	r := &rtfReader{
		in: bufio.NewReaderSize(from, 64<<10), out: out, codePage: charmap.Windows1252,
		fonts: map[int]int{}, headingLevels: map[int]int{}, state: rtfState{ucSkip: 1},
	}
	for {
		c, err := r.in.ReadByte()
		switch {
		case err == io.EOF:
			return r.finish()
		case err != nil:
			return err
		case c == '{':
			if len(r.stack) >= maxDepth {
				return errDeep
			}
			r.decode()
			r.stack, r.skip = append(r.stack, r.state), 0
		case c == '}':
			if err := r.endGroup(); err != nil {
				return err
			}
		case c == '\\':
			if err := r.readControl(); err != nil {
				return err
			}
		case c == '\r', c == '\n', c == 0:
		default:
			r.addByte(c)
		}
		if r.text.Len()+len(r.bytes) > maxToken {
			return errLong
		}
	}
}

// finish writes what is pending. A truncated document has open groups.
func (r *rtfReader) finish() error {
	if err := r.endRow(); err != nil {
		return err
	}
	r.inRow = false
	if err := r.endParagraph(); err != nil {
		return err
	}
	for i, text := range r.notes {
		r.notes[i] = oneLine(text)
	}
	if err := r.out.addFootnotes(r.notes); err != nil {
		return err
	}
	if len(r.stack) > 0 {
		return errDamaged
	}
	return nil
}

// endGroup ends a group.
func (r *rtfReader) endGroup() error {
	r.decode()
	if len(r.stack) == 0 {
		return nil
	}
	was := r.state
	r.state, r.stack = r.stack[len(r.stack)-1], r.stack[:len(r.stack)-1]
	r.skip = 0
	if was.into == intoNote && r.state.into != intoNote && len(r.notes) > 0 {
		r.addText(fmt.Sprintf("[^%d]", len(r.notes)))
	}
	if m := linkField.FindStringSubmatch(r.field); m != nil && was.inField && !r.state.inField {
		r.addText(" (" + m[1] + ")")
	}
	return nil
}

// linkField matches a field with a link.
var linkField = regexp.MustCompile(`HYPERLINK\s+"([^"#][^"]*)"`)

// readControl reads a control word or symbol after a backslash.
func (r *rtfReader) readControl() error {
	c, err := r.in.ReadByte()
	if err != nil {
		return nil // the caller sees the end
	}
	if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
		_ = r.in.UnreadByte() // it was just read
		return r.readControlWord()
	}
	switch c {
	case '\'':
		var hex [2]byte
		if _, err := io.ReadFull(r.in, hex[:]); err != nil {
			return nil
		}
		if n, err := strconv.ParseUint(string(hex[:]), 16, 8); err == nil {
			r.addByte(byte(n))
		}
	case '*':
		r.state.into = intoNothing // an extension: the known ones are in groupDestinations
	case '~':
		r.addText(" ")
	case '_':
		r.addText("-")
	case '\r', '\n':
		return r.endParagraph()
	case '\\', '{', '}':
		r.addByte(c)
	}
	return nil
}

// maxWord bounds a control word, in bytes.
const maxWord = 40

// readControlWord reads a control word, its number, and the following space.
func (r *rtfReader) readControlWord() error {
	var name, digits []byte
	for {
		c, err := r.in.ReadByte()
		if err != nil {
			break
		}
		switch {
		case len(digits) == 0 && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z') && len(name) < maxWord:
			name = append(name, c)
			continue
		case len(digits) == 0 && c == '-', c >= '0' && c <= '9' && len(digits) < 12:
			digits = append(digits, c)
			continue
		case c != ' ':
			_ = r.in.UnreadByte() // it was just read
		}
		break
	}
	n, err := strconv.Atoi(string(digits))
	return r.applyControlWord(string(name), n, err == nil)
}

// applyControlWord executes a control word.
func (r *rtfReader) applyControlWord(name string, n int, given bool) error { //nolint:cyclop // A table: one case per control word.
	if text, ok := controlChars[name]; ok {
		r.addText(text)
		return nil
	}
	if into, ok := groupDestinations[name]; ok {
		return r.setDestination(into)
	}
	switch name {
	case "bin":
		_, _ = r.in.Discard(max(n, 0)) // the caller sees the end
	case "u":
		r.decode()
		unit := rune(uint16(n))
		if pair := utf16.DecodeRune(r.highSurrogate, unit); pair != utf8.RuneError {
			r.addText(string(pair))
		} else if !utf16.IsSurrogate(unit) {
			r.addText(string(unit))
		}
		r.highSurrogate, r.skip = unit, r.state.ucSkip
	case "uc":
		r.state.ucSkip = min(max(n, 0), 10)
	case "ansicpg":
		r.codePage = encodingForCodePage(n)
	case "f":
		r.decode()
		r.state.font = n
	case "fcharset":
		if r.state.into == intoFonts {
			r.fonts[r.state.font] = charsets[n]
		}
	case "s":
		r.state.style = n
		if r.state.into == intoBody {
			r.level = cmp.Or(r.headingLevels[n], r.level) // a character style has none
		}
	case "ilvl":
		r.depth = n
	case "field":
		r.state.inField, r.field = true, ""
	case "outlinelevel":
		if n >= 0 && n < 9 && r.state.into == intoBody {
			r.level = n + 1
		}
	case "v", "deleted":
		r.decode()
		r.state.hidden = !given || n != 0
	case "plain":
		r.decode()
		r.state.hidden, r.state.font = false, 0
	default:
		return r.applyStructure(name)
	}
	return nil
}

// applyStructure executes a control word that begins or ends a paragraph, cell, row or page.
func (r *rtfReader) applyStructure(name string) error {
	r.decode()
	if r.state.into != intoBody {
		if name == "par" {
			r.addText(" ")
		}
		return nil
	}
	switch name {
	case "par", "sect":
		return r.endParagraph()
	case "pard":
		r.level, r.depth, r.inRow = 0, 0, false
	case "intbl":
		r.inRow = true
	case "page":
		if err := r.endParagraph(); err != nil {
			return err
		}
		r.out.breakPage()
	case "cell", "nestcell":
		r.cells = append(r.cells, cellText(r.text.String()))
		r.text.Reset()
		if len(r.cells) > maxCells {
			return r.endRow()
		}
	case "row", "nestrow":
		return r.endRow()
	}
	return nil
}

// setDestination sets the destination of a group's text.
func (r *rtfReader) setDestination(into destination) error {
	r.decode()
	// Groups that readers may skip are marked before their name; known ones are read.
	outer := intoBody
	if len(r.stack) > 0 {
		outer = r.stack[len(r.stack)-1].into
	}
	if outer == intoNothing || outer == intoFonts || outer == intoStyles {
		return nil
	}
	r.state.into = into
	if into == intoBody {
		r.state.into = outer
	}
	if into == intoNote && len(r.notes) < maxNotes {
		r.notes = append(r.notes, "")
	}
	return nil
}

// addByte handles a byte of text.
func (r *rtfReader) addByte(c byte) {
	if r.skip > 0 {
		r.skip--
		return
	}
	if r.state.into != intoNothing && r.state.into != intoFonts {
		r.bytes = append(r.bytes, c)
	}
}

// decode decodes the pending bytes.
func (r *rtfReader) decode() {
	if len(r.bytes) == 0 {
		return
	}
	e := r.codePage
	if of := r.fonts[r.state.font]; of != 0 {
		e = encodingForCodePage(of)
	}
	text, err := e.NewDecoder().Bytes(r.bytes)
	if err != nil {
		text = r.bytes
	}
	r.bytes = r.bytes[:0]
	r.addText(string(text))
}

// addText adds a text to the destination of its group.
func (r *rtfReader) addText(text string) {
	if len(r.bytes) > 0 {
		r.decode()
	}
	if r.state.hidden {
		return
	}
	switch r.state.into {
	case intoBody, intoMark:
		r.text.WriteString(text)
	case intoNote:
		if n := len(r.notes); n > 0 && len(r.notes[n-1]) < maxBlock {
			r.notes[n-1] += text
		}
	case intoField:
		if len(r.field) < maxWord*maxWord {
			r.field += text
		}
	case intoStyles:
		if level := headingLevel(strings.TrimSuffix(strings.TrimSpace(text), ";")); level > 0 {
			r.headingLevels[r.state.style] = level
		}
	}
}

// itemMark matches the number or bullet before an item's text.
var itemMark = regexp.MustCompile(`^\s*([•·●○▪◦\x{f0b7}o§-]|\(?[0-9]{1,4}[.)]|\(?[a-zA-Z][.)]|[ivxIVX]{1,6}[.)])\t\s*`)

// endParagraph passes the paragraph to the sink. In a table it becomes a line of its cell.
func (r *rtfReader) endParagraph() error {
	r.decode()
	if r.inRow || len(r.cells) > 0 {
		r.text.WriteByte('\n')
		return nil
	}
	text := r.text.String()
	r.text.Reset()
	if strings.TrimSpace(text) == "" {
		return nil
	}
	r.table = nil
	if r.level > 0 {
		return r.out.addHeading(r.level, text)
	}
	if m := itemMark.FindStringSubmatch(text); m != nil {
		mark := m[1]
		if len(mark) == 1 || []rune(mark)[0] > 0x7f {
			mark = bullet
		}
		return r.out.addItem(r.depth, mark, text[len(m[0]):], true)
	}
	return r.out.addParagraph(text, false)
}

// endRow ends a row of a table.
func (r *rtfReader) endRow() error {
	if len(r.cells) == 0 {
		return nil
	}
	if r.table == nil {
		r.table = &table{out: r.out}
	}
	cells := r.cells
	r.cells = nil
	return r.table.addRow(cells)
}

// encodingForCodePage returns the encoding of a code page.
func encodingForCodePage(n int) encoding.Encoding {
	switch n {
	case 437:
		return charmap.CodePage437
	case 850:
		return charmap.CodePage850
	case 852:
		return charmap.CodePage852
	case 10000:
		return charmap.Macintosh
	case 932:
		return encodingByName("shift_jis")
	case 936:
		return encodingByName("gbk")
	case 949:
		return encodingByName("euc-kr")
	case 950:
		return encodingByName("big5")
	case 65001:
		return encoding.Nop
	}
	return encodingByName(fmt.Sprintf("windows-%d", n))
}

// encodingByName returns an encoding by its name on the web.
func encodingByName(name string) encoding.Encoding {
	if e, err := htmlindex.Get(name); err == nil {
		return e
	}
	return charmap.Windows1252
}

// charsets are the code pages of fonts, by charset number (RTF
// 1.9.1, \fcharset). Other fonts use the document's code page.
var charsets = map[int]int{
	77: 10000, 128: 932, 129: 949, 134: 936, 136: 950, 161: 1253, 162: 1254, 163: 1258, 177: 1255, 178: 1256, 186: 1257,
	204: 1251, 222: 874, 238: 1250,
}
