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

// rtf reads an RTF document as a stream of control words, groups and text.
type rtf struct {
	in    *bufio.Reader
	out   *emitter
	state rtfState
	stack []rtfState
	page  encoding.Encoding // of characters that are bytes
	fonts map[int]int       // code pages of fonts
	heads map[int]int       // levels of styles
	bytes []byte            // characters that wait for their encoding
	text  strings.Builder   // of the paragraph
	cells []string          // of the row
	table *table            // whose rows are read; nil outside
	notes []string          // the text of footnotes
	field string            // what the last field is made of
	depth int               // of the item
	level int               // of the paragraph
	inRow bool              // the paragraph is in a table
	high  rune              // the first half of a character, or another one
	skip  int               // characters that stand for one that was read already
}

// rtfState is what a group keeps to itself.
type rtfState struct {
	into   destination
	font   int
	ucSkip int
	style  int  // the style that is described
	hidden bool // text that is not seen
	field  bool
}

// destination is what the text of a group is for.
type destination int

const (
	intoBody destination = iota
	intoNothing
	intoFonts
	intoStyles
	intoMark // the number or bullet of an item
	intoNote
	intoField // what a field is made of
)

// intoOf are the groups that hold no text of the document, or another one.
var intoOf = map[string]destination{
	"fonttbl": intoFonts, "stylesheet": intoStyles, "listtext": intoMark, "pntext": intoMark, "footnote": intoNote,
	"colortbl": intoNothing, "info": intoNothing, "pict": intoNothing, "object": intoNothing, "header": intoNothing,
	"headerl": intoNothing, "headerr": intoNothing, "headerf": intoNothing, "footer": intoNothing, "footerl": intoNothing,
	"footerr": intoNothing, "footerf": intoNothing, "fldinst": intoField, "fldrslt": intoBody, "themedata": intoNothing,
	"listtable": intoNothing, "listoverridetable": intoNothing, "rsidtbl": intoNothing, "xmlnstbl": intoNothing,
	"datastore": intoNothing, "latentstyles": intoNothing, "generator": intoNothing, "datafield": intoNothing,
	"annotation": intoNote, "atnid": intoNothing, "atnauthor": intoNothing, "bkmkstart": intoNothing, "bkmkend": intoNothing,
	"nonshppict": intoNothing, "shppict": intoBody, "shpinst": intoBody, "sp": intoNothing, "pn": intoNothing, "revtbl": intoNothing,
}

// said are the control words that stand for a character.
var said = map[string]string{
	"tab": "\t", "line": "\n", "emdash": "—", "endash": "–", "lquote": "‘", "rquote": "’", "ldblquote": "“", "rdblquote": "”",
	"bullet": "•", "emspace": " ", "enspace": " ", "qmspace": " ",
}

func readRTF(from io.Reader, out *emitter) error {
	r := &rtf{
		in: bufio.NewReaderSize(from, 64<<10), out: out, page: charmap.Windows1252,
		fonts: map[int]int{}, heads: map[int]int{}, state: rtfState{ucSkip: 1},
	}
	for {
		c, err := r.in.ReadByte()
		switch {
		case err == io.EOF:
			return r.end()
		case err != nil:
			return err
		case c == '{':
			if len(r.stack) >= maxDepth {
				return errDeep
			}
			r.decode()
			r.stack, r.skip = append(r.stack, r.state), 0
		case c == '}':
			if err := r.leave(); err != nil {
				return err
			}
		case c == '\\':
			if err := r.control(); err != nil {
				return err
			}
		case c == '\r', c == '\n', c == 0:
		default:
			r.byte(c)
		}
		if r.text.Len()+len(r.bytes) > maxToken {
			return errLong
		}
	}
}

// end writes what is left. A document that is cut off has a group that is open.
func (r *rtf) end() error {
	if err := r.row(); err != nil {
		return err
	}
	r.inRow = false
	if err := r.paragraph(); err != nil {
		return err
	}
	for i, text := range r.notes {
		r.notes[i] = line(text)
	}
	if err := r.out.footnotes(r.notes); err != nil {
		return err
	}
	if len(r.stack) > 0 {
		return errDamaged
	}
	return nil
}

// leave ends a group.
func (r *rtf) leave() error {
	r.decode()
	if len(r.stack) == 0 {
		return nil
	}
	was := r.state
	r.state, r.stack = r.stack[len(r.stack)-1], r.stack[:len(r.stack)-1]
	r.skip = 0
	if was.into == intoNote && r.state.into != intoNote && len(r.notes) > 0 {
		r.write(fmt.Sprintf("[^%d]", len(r.notes)))
	}
	if m := linked.FindStringSubmatch(r.field); m != nil && was.field && !r.state.field {
		r.write(" (" + m[1] + ")")
	}
	return nil
}

// linked is a field that leads to a page.
var linked = regexp.MustCompile(`HYPERLINK\s+"([^"#][^"]*)"`)

// control reads what follows a backslash.
func (r *rtf) control() error {
	c, err := r.in.ReadByte()
	if err != nil {
		return nil // The end is seen by the caller.
	}
	if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
		_ = r.in.UnreadByte() // It was read just now.
		return r.word()
	}
	switch c {
	case '\'':
		var hex [2]byte
		if _, err := io.ReadFull(r.in, hex[:]); err != nil {
			return nil
		}
		if n, err := strconv.ParseUint(string(hex[:]), 16, 8); err == nil {
			r.byte(byte(n))
		}
	case '*':
		r.state.into = intoNothing // What follows is for programs that know it: all that is known here is in intoOf.
	case '~':
		r.write(" ")
	case '_':
		r.write("-")
	case '\r', '\n':
		return r.paragraph()
	case '\\', '{', '}':
		r.byte(c)
	}
	return nil
}

// maxWord is the longest control word that there is.
const maxWord = 40

// word reads a control word, its number, and the space behind it.
func (r *rtf) word() error {
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
			_ = r.in.UnreadByte() // It was read just now.
		}
		break
	}
	n, err := strconv.Atoi(string(digits))
	return r.apply(string(name), n, err == nil)
}

// apply does what a control word says.
func (r *rtf) apply(name string, n int, given bool) error {
	if text, ok := said[name]; ok {
		r.write(text)
		return nil
	}
	if into, ok := intoOf[name]; ok {
		return r.enter(into)
	}
	switch name {
	case "bin":
		_, _ = r.in.Discard(max(n, 0)) // The end is seen by the caller.
	case "u":
		r.decode()
		unit := rune(uint16(n))
		if pair := utf16.DecodeRune(r.high, unit); pair != utf8.RuneError {
			r.write(string(pair))
		} else if !utf16.IsSurrogate(unit) {
			r.write(string(unit))
		}
		r.high, r.skip = unit, r.state.ucSkip
	case "uc":
		r.state.ucSkip = min(max(n, 0), 10)
	case "ansicpg":
		r.page = codepage(n)
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
			r.level = cmp.Or(r.heads[n], r.level) // A style of characters has none.
		}
	case "ilvl":
		r.depth = n
	case "field":
		r.state.field, r.field = true, ""
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
		return r.structure(name)
	}
	return nil
}

// structure does what a control word says that ends or begins something.
func (r *rtf) structure(name string) error {
	r.decode()
	if r.state.into != intoBody {
		if name == "par" {
			r.write(" ")
		}
		return nil
	}
	switch name {
	case "par", "sect":
		return r.paragraph()
	case "pard":
		r.level, r.depth, r.inRow = 0, 0, false
	case "intbl":
		r.inRow = true
	case "page":
		if err := r.paragraph(); err != nil {
			return err
		}
		r.out.breakPage()
	case "cell", "nestcell":
		r.cells = append(r.cells, cellText(r.text.String()))
		r.text.Reset()
		if len(r.cells) > maxCells {
			return r.row()
		}
	case "row", "nestrow":
		return r.row()
	}
	return nil
}

// enter has the text of a group go where it belongs.
func (r *rtf) enter(into destination) error {
	r.decode()
	// A group that a reader may skip has said so before its name; what is known is not skipped.
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

// byte takes a byte of text.
func (r *rtf) byte(c byte) {
	if r.skip > 0 {
		r.skip--
		return
	}
	if r.state.into != intoNothing && r.state.into != intoFonts {
		r.bytes = append(r.bytes, c)
	}
}

// decode makes text of the bytes that were read.
func (r *rtf) decode() {
	if len(r.bytes) == 0 {
		return
	}
	e := r.page
	if of := r.fonts[r.state.font]; of != 0 {
		e = codepage(of)
	}
	text, err := e.NewDecoder().Bytes(r.bytes)
	if err != nil {
		text = r.bytes
	}
	r.bytes = r.bytes[:0]
	r.write(string(text))
}

// write puts a text where the group that it is in says.
func (r *rtf) write(text string) {
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
			r.heads[r.state.style] = level
		}
	}
}

// itemMark is the number or bullet of an item, as it stands before its text.
var itemMark = regexp.MustCompile(`^\s*([•·●○▪◦\x{f0b7}o§-]|\(?[0-9]{1,4}[.)]|\(?[a-zA-Z][.)]|[ivxIVX]{1,6}[.)])\t\s*`)

// paragraph gives what was read of a paragraph to the sink. In a table it is a line of its cell.
func (r *rtf) paragraph() error {
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
		return r.out.heading(r.level, text)
	}
	if m := itemMark.FindStringSubmatch(text); m != nil {
		mark := m[1]
		if len(mark) == 1 || []rune(mark)[0] > 0x7f {
			mark = bullet
		}
		return r.out.item(r.depth, mark, text[len(m[0]):], true)
	}
	return r.out.paragraph(text, false)
}

// row ends a row of a table.
func (r *rtf) row() error {
	if len(r.cells) == 0 {
		return nil
	}
	if r.table == nil {
		r.table = &table{out: r.out}
	}
	cells := r.cells
	r.cells = nil
	return r.table.row(cells)
}

// codepage is a code page of Windows.
func codepage(n int) encoding.Encoding {
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
		return named("shift_jis")
	case 936:
		return named("gbk")
	case 949:
		return named("euc-kr")
	case 950:
		return named("big5")
	case 65001:
		return encoding.Nop
	}
	return named(fmt.Sprintf("windows-%d", n))
}

// named is an encoding by its name on the web.
func named(name string) encoding.Encoding {
	if e, err := htmlindex.Get(name); err == nil {
		return e
	}
	return charmap.Windows1252
}

// charsets are the code pages of fonts, by their number (RTF 1.9.1, \fcharset). Others have that of the document.
var charsets = map[int]int{
	77: 10000, 128: 932, 129: 949, 134: 936, 136: 950, 161: 1253, 162: 1254, 163: 1258, 177: 1255, 178: 1256, 186: 1257,
	204: 1251, 222: 874, 238: 1250,
}
