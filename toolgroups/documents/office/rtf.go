package office

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"

	"oneclaw/internal/formula"
)

// rtfReader reads an RTF document as a stream of control words, groups and text.
type rtfReader struct {
	in            *bufio.Reader
	out           *emitter
	state         rtfState
	stack         []rtfState
	codePage      encoding.Encoding // of characters given as bytes
	fonts         map[int]int       // code pages by font
	fontNames     map[int]string
	headingLevels map[int]int     // heading levels by style
	bytes         []byte          // characters that are not decoded yet
	text          richText        // of the paragraph
	lines         strings.Builder // the paragraphs before it in its cell
	mark          string          // the number or bullet of the paragraph
	boxes         strings.Builder // the text boxes at the paragraph, each after a line break
	table         rtfTable
	aside         richText // of the note or the text box that is read
	author        string   // of the comment that follows
	class         string   // of the object that is read
	form          rtfForm
	formulaRoom   int    // elements that the formula may still have
	field         string // the instruction of the last field
	depth         int    // of the item
	level         int    // of the paragraph
	inRow         bool   // the paragraph is in a table
	highSurrogate rune   // the last UTF-16 unit, perhaps the first of a pair
	skip          int    // replacement characters to skip
}

// rtfState is the state of a group.
type rtfState struct {
	into    destination
	font    int
	ucSkip  int
	style   int // the style being defined
	text    textStyle
	deleted bool
	inField bool
	formula *formula.Element // the element of a formula that is read
}

// rtfForm is a form field: its value, the value that it begins with, and the entries of a list.
type rtfForm struct {
	value, first int
	entries      []string
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
	intoComment
	intoAuthor // of a comment
	intoBox    // a text box
	intoField  // the instruction of a field
	intoForm   // a form field
	intoEntry  // of a form field's list
	intoObject // an object of another program
	intoClass  // of the object
	intoFormula
)

// groupDestinations maps the names of groups to the use of their text.
var groupDestinations = map[string]destination{
	"fonttbl": intoFonts, "stylesheet": intoStyles, "listtext": intoMark, "pntext": intoMark, "footnote": intoNote,
	"colortbl": intoNothing, "info": intoNothing, "pict": intoNothing, "object": intoObject, "objclass": intoClass, "header": intoNothing,
	"headerl": intoNothing, "headerr": intoNothing, "headerf": intoNothing, "footer": intoNothing, "footerl": intoNothing,
	"footerr": intoNothing, "footerf": intoNothing, "fldinst": intoField, "fldrslt": intoBody, "themedata": intoNothing,
	"listtable": intoNothing, "listoverridetable": intoNothing, "rsidtbl": intoNothing, "xmlnstbl": intoNothing,
	"datastore": intoNothing, "latentstyles": intoNothing, "generator": intoNothing, "datafield": intoNothing,
	"annotation": intoComment, "atnid": intoNothing, "atnauthor": intoAuthor, "bkmkstart": intoNothing, "bkmkend": intoNothing,
	"nonshppict": intoNothing, "shppict": intoBody, "shpinst": intoBody, "sp": intoNothing, "pn": intoNothing, "revtbl": intoNothing,
	"shptxt": intoBox, "dptxbxtext": intoBox, "do": intoBody, "shprslt": intoNothing, "nonesttables": intoNothing, "xe": intoNothing, "tc": intoNothing,
	"formfield": intoForm, "ffl": intoEntry, "moMathPara": intoBody, "moMath": intoFormula, "mmathPict": intoNothing,
}

// controlChars are the control words for characters.
var controlChars = map[string]string{
	"tab": "\t", "line": "\n", "emdash": "—", "endash": "–", "lquote": "‘", "rquote": "’", "ldblquote": "“", "rdblquote": "”",
	"bullet": "•", "emspace": " ", "enspace": " ", "qmspace": " ",
}

func readRTF(from io.Reader, out *emitter) error {
	r := &rtfReader{
		in: bufio.NewReaderSize(from, 64<<10), out: out, codePage: charmap.Windows1252,
		fonts: map[int]int{}, fontNames: map[int]string{}, headingLevels: map[int]int{}, state: rtfState{ucSkip: 1}, table: rtfTable{table: table{out: out}},
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
			if r.state.formula != nil {
				r.beginElement()
			}
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
		if r.text.Len()+r.lines.Len()+r.aside.Len()+r.boxes.Len()+len(r.bytes) > maxToken {
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
	if err := r.table.end(); err != nil {
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
	if was.into != r.state.into {
		r.endDestination(was)
	}
	if was.inField && !r.state.inField {
		r.endField()
	}
	return nil
}

// endDestination writes what a group was collected for.
func (r *rtfReader) endDestination(was rtfState) {
	switch was.into {
	case intoNote, intoComment, intoBox:
		text := r.aside.String()
		r.aside.reset()
		if !r.inRow && len(r.table.cells) == 0 {
			_ = r.table.end() // the notes of the table before; the next block returns the error
		}
		switch was.into {
		case intoNote:
			r.addMark(r.out.addNote(text))
		case intoComment:
			r.addMark(r.out.addNote(commentText(r.author, text)))
			r.author = ""
		default:
			r.boxes.WriteString("\n" + text)
		}
	case intoObject:
		r.addMark(embeddedObject(r.class))
		r.class = ""
	case intoFormula:
		switch {
		case r.formulaRoom < 0:
			r.addMark(formula.Unread)
		case was.formula != nil:
			r.addMark(was.formula.Line())
		}
	}
}

// endField writes what a field shows that has no result.
func (r *rtfReader) endField() {
	instruction := strings.TrimSpace(r.field)
	name, code, _ := strings.Cut(instruction, " ")
	value := r.form.value
	if value == notFilled {
		value = r.form.first
	}
	switch {
	case name == "EQ":
		r.addMark("[formula: " + oneLine(code) + "]")
	case name == "FORMCHECKBOX" && value == 1:
		r.addMark("☒")
	case name == "FORMCHECKBOX":
		r.addMark("☐")
	case name == "FORMDROPDOWN" && value >= 0 && value < len(r.form.entries):
		r.addMark(oneLine(r.form.entries[value]))
	}
	r.field = ""
}

// notFilled is the value of a form field that has none of its own.
const notFilled = 25

// beginElement begins an element of a formula, whose name follows.
func (r *rtfReader) beginElement() {
	part := &formula.Element{}
	if r.formulaRoom--; r.formulaRoom >= 0 {
		r.state.formula.Parts = append(r.state.formula.Parts, part)
	}
	r.state.formula = part
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
		return r.setDestination(name, into)
	}
	if f := r.state.formula; f != nil {
		if element, ok := strings.CutPrefix(name, "m"); ok && f.Name == "" {
			f.Name = element
		}
		if name != "u" && name != "uc" {
			return nil
		}
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
		r.state.inField, r.field, r.form = true, "", rtfForm{value: notFilled}
	case "ffres":
		r.form.value = n
	case "ffdefres":
		r.form.first = n
	case "outlinelevel":
		if n >= 0 && n < 9 && r.state.into == intoBody {
			r.level = n + 1
		}
	case "v", "strike", "striked", "deleted", "super", "sub", "nosupersub", "up", "dn", "plain":
		r.decode()
		r.applyFormat(name, n, given)
	default:
		return r.applyStructure(name, n)
	}
	return nil
}

// applyFormat executes a control word for the format of text.
func (r *rtfReader) applyFormat(name string, n int, given bool) {
	on := !given || n != 0
	switch name {
	case "v":
		r.state.text.hidden = on
	case "strike", "striked":
		r.state.text.struck = on
	case "deleted":
		r.state.deleted = on
	case "super":
		r.state.text.script = 0
		if on {
			r.state.text.script = 1
		}
	case "sub":
		r.state.text.script = 0
		if on {
			r.state.text.script = -1
		}
	case "nosupersub":
		r.state.text.script = 0
	case "up", "dn": // in half points
		r.state.text.script = 0
		switch raised := !given || n >= minRaised; {
		case raised && name == "up":
			r.state.text.script = 1
		case raised:
			r.state.text.script = -1
		}
	case "plain":
		r.state.text = textStyle{link: r.state.text.link}
		r.state.deleted, r.state.font = false, 0
	}
}

// applyStructure executes a control word that begins or ends a paragraph, cell, row or page.
func (r *rtfReader) applyStructure(name string, n int) error {
	r.decode()
	if r.state.into != intoBody {
		switch name {
		case "par", "row", "nestrow":
			r.addText("\n")
		case "cell", "nestcell":
			r.addText("\t")
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
		if err := r.table.end(); err != nil {
			return err
		}
		r.out.breakPage()
	case "trowd":
		r.table.edges = nil
	case "cellx":
		if len(r.table.edges) < maxCells {
			r.table.edges = append(r.table.edges, n)
		}
	case "cell":
		r.lines.WriteString(r.takeParagraph())
		r.table.cells = append(r.table.cells, cellText(r.lines.String()))
		r.lines.Reset()
		if len(r.table.cells) > maxCells {
			return r.endRow()
		}
	case "nestcell", "nestrow": // a table in a cell becomes lines
		r.lines.WriteString(r.takeParagraph() + "\n")
	case "row":
		return r.endRow()
	}
	return nil
}

// setDestination sets the destination of a group's text.
func (r *rtfReader) setDestination(name string, into destination) error {
	r.decode()
	// Groups that readers may skip are marked before their name; known ones are read.
	outer := intoBody
	if len(r.stack) > 0 {
		outer = r.stack[len(r.stack)-1].into
	}
	switch outer {
	case intoNothing, intoFonts, intoStyles, intoFormula, intoMark:
		return nil
	case intoNote, intoComment, intoBox:
		if into == intoNote || into == intoComment || into == intoBox {
			into = outer // one in another is a part of it
		}
	case intoObject:
		if into != intoClass {
			into = intoObject
		}
	}
	switch into {
	case intoBody:
		into = outer
	case intoFormula:
		r.formulaRoom = formula.MaxElements
		r.state.formula = &formula.Element{Name: "oMath"}
	case intoNote, intoComment, intoBox:
		r.state.text = textStyle{} // not that of the mark
	case intoMark:
		r.mark = ""
	case intoAuthor:
		r.author = ""
	case intoEntry:
		if len(r.form.entries) < maxCells {
			r.form.entries = append(r.form.entries, "")
		}
	}
	switch name {
	case "fldrslt":
		if m := linkField.FindStringSubmatch(r.field); m != nil {
			r.state.text.link = m[1]
		}
	case "pict":
		r.state.into = outer
		r.addMark("[picture]")
	}
	r.state.into = into
	return nil
}

// addByte handles a byte of text.
func (r *rtfReader) addByte(c byte) {
	if r.skip > 0 {
		r.skip--
		return
	}
	if into := r.state.into; into != intoNothing && into != intoObject {
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
	if r.symbolFont() != "" {
		e = charmap.ISO8859_1 // its characters are not letters
	}
	text, err := e.NewDecoder().Bytes(r.bytes)
	if err != nil {
		text = r.bytes
	}
	r.bytes = r.bytes[:0]
	r.addText(string(text))
}

// symbolFont returns the name of the font if its characters are signs, or "".
func (r *rtfReader) symbolFont() string {
	name := strings.TrimSuffix(strings.TrimSpace(r.fontNames[r.state.font]), ";")
	if r.state.into == intoFonts || symbolText(name, "a") == "a" {
		return ""
	}
	return name
}

// addMark adds a text that is neither above nor below the line.
func (r *rtfReader) addMark(text string) {
	was := r.state
	r.state.text.script, r.state.font = 0, -1
	r.addText(text)
	r.state = was
}

// addText adds a text to the destination of its group.
func (r *rtfReader) addText(text string) {
	if len(r.bytes) > 0 {
		r.decode()
	}
	if r.state.deleted {
		return
	}
	text = symbolText(r.symbolFont(), text)
	switch r.state.into {
	case intoBody:
		r.text.write(text, r.state.text)
	case intoNote, intoComment, intoBox:
		r.aside.write(text, r.state.text)
	case intoMark:
		collect(&r.mark, text)
	case intoAuthor:
		collect(&r.author, text)
	case intoClass:
		collect(&r.class, text)
	case intoField:
		collect(&r.field, text)
	case intoEntry:
		if n := len(r.form.entries); n > 0 {
			collect(&r.form.entries[n-1], text)
		}
	case intoFormula:
		if f := r.state.formula; f != nil && len(f.Text) < maxBlock {
			f.Text += text
		} else {
			r.formulaRoom = -1
		}
	case intoFonts:
		name := r.fontNames[r.state.font]
		collect(&name, text)
		r.fontNames[r.state.font] = name
	case intoStyles:
		if level := headingLevel(strings.TrimSuffix(strings.TrimSpace(text), ";")); level > 0 {
			r.headingLevels[r.state.style] = level
		}
	}
}

// collect adds a text to one that is short.
func collect(to *string, text string) {
	if len(*to) < maxInstruction {
		*to += text
	}
}

// itemMark matches the number or bullet before an item's text.
var itemMark = regexp.MustCompile(`^\s*([•·●○▪◦\x{f0b7}o§-]|\(?[0-9]{1,4}[.)]|\(?[a-zA-Z][.)]|[ivxIVX]{1,6}[.)])\t\s*`)

// takeParagraph returns the text of the paragraph in a cell, with its mark and its text boxes.
func (r *rtfReader) takeParagraph() string {
	text := r.text.String()
	r.text.reset()
	text = behindMark(itemNumber(r.mark), text)
	r.mark = ""
	text += r.boxes.String()
	r.boxes.Reset()
	return text
}

// itemNumber returns the number of an item, or a bullet if its mark is none, or "" if it has no mark.
func itemNumber(mark string) string {
	mark = oneLine(mark)
	switch {
	case mark == "":
		return ""
	case mark == "o" || !strings.ContainsFunc(mark, isWordRune):
		return bulletMark(mark)
	}
	return mark
}

// endParagraph passes the paragraph to the sink. In a table it becomes a line of its cell.
func (r *rtfReader) endParagraph() error {
	r.decode()
	if r.inRow || len(r.table.cells) > 0 {
		r.lines.WriteString(r.takeParagraph() + "\n")
		return nil
	}
	mark := itemNumber(r.mark)
	r.mark = ""
	text := r.takeParagraph()
	if strings.TrimSpace(text) == "" {
		return nil
	}
	if err := r.table.end(); err != nil {
		return err
	}
	if r.level > 0 {
		return r.out.addHeading(r.level, behindMark(headingMark(mark), text))
	}
	if m := itemMark.FindStringSubmatch(text); mark == "" && m != nil {
		mark, text = itemNumber(m[1]), text[len(m[0]):]
	}
	if mark != "" {
		return r.out.addItem(r.depth, mark, text, true)
	}
	return r.out.addParagraph(text, false)
}

// endRow ends a row of a table.
func (r *rtfReader) endRow() error {
	r.lines.Reset()
	return r.table.endRow()
}

// rtfTable is a table, whose columns are known only when all rows are: a row says where its cells end.
type rtfTable struct {
	table table
	cells []string // of the row
	edges []int    // the right edges of the row's cells
	rows  []rtfRow
	size  int   // of the rows, in bytes
	grid  []int // the right edges of the columns
}

// rtfRow is a row that waits for the others.
type rtfRow struct {
	cells []string
	edges []int
}

const (
	// maxWaiting and maxWaitingSize bound the rows that wait for others.
	maxWaiting     = 500
	maxWaitingSize = 1 << 20
	// sameEdge is how far apart the edges of one column may be, in twips.
	sameEdge = 30
)

// endRow ends a row.
func (t *rtfTable) endRow() error {
	if len(t.cells) == 0 {
		return nil
	}
	for n := len(t.cells); len(t.edges) > 0 && n > len(t.edges) && t.cells[n-1] == ""; n-- {
		t.cells = t.cells[:n-1] // LibreOffice writes more cells than a row has behind a table in a cell
	}
	for len(t.cells) < len(t.edges) {
		t.cells = append(t.cells, "")
	}
	for _, text := range t.cells {
		t.size += len(text)
	}
	t.rows = append(t.rows, rtfRow{t.cells, t.edges})
	t.cells = nil
	if len(t.rows) < maxWaiting && t.size < maxWaitingSize {
		return nil
	}
	return t.flush()
}

// end ends the table.
func (t *rtfTable) end() error {
	if err := t.flush(); err != nil {
		return err
	}
	err := t.table.end()
	t.table, t.grid = table{out: t.table.out}, nil
	return err
}

// flush writes the rows that wait. A cell over several columns is followed by empty ones.
func (t *rtfTable) flush() error {
	edges := t.grid
	for _, row := range t.rows {
		if len(row.edges) == len(row.cells) {
			edges = append(edges, row.edges...)
		}
	}
	slices.Sort(edges)
	t.grid = nil
	for _, edge := range edges {
		if n := len(t.grid); (n == 0 || edge > t.grid[n-1]+sameEdge) && n < maxCells {
			t.grid = append(t.grid, edge)
		}
	}
	for _, row := range t.rows {
		if err := t.table.addRow(t.spread(row)); err != nil {
			return err
		}
	}
	t.rows, t.size = nil, 0
	return nil
}

// spread returns the cells of a row by the columns of the table.
func (t *rtfTable) spread(row rtfRow) (cells []string) {
	if len(row.edges) != len(row.cells) {
		return row.cells
	}
	column := 0
	for i, text := range row.cells {
		cells = append(cells, text)
		for column++; column < len(t.grid) && t.grid[column]-sameEdge <= row.edges[i]; column++ {
			cells = append(cells, "")
		}
	}
	return cells
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
