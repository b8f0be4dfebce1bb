// Package office reads office files (DOCX, XLSX, PPTX, ODT, ODS, ODP, EPUB, RTF, CSV, HTML, mails
// and text) as Markdown, in parts (pages, sheets, slides, chapters) and blocks (paragraphs, rows,
// lines), as a stream, so that little of a file is in memory.
//
// It follows and runs nothing in a file: no link, macro or formula; a cell shows its saved
// value. It bounds what can be counted: unpacked bytes, files in an archive, depth and length of
// elements. The process that reads a file bounds memory and time, see package sandbox.
package office

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"oneclaw/internal/wording"
)

// Format is the name of a format and of its parts and blocks.
type Format struct {
	Name, Part, Block string
}

// The formats.
var (
	wordFormat   = Format{"Word document", "page", "paragraph"}
	bookFormat   = Format{"Excel workbook", "sheet", "row"}
	slidesFormat = Format{"PowerPoint presentation", "slide", "paragraph"}
	odtFormat    = Format{"OpenDocument text", "page", "paragraph"}
	odsFormat    = Format{"OpenDocument spreadsheet", "sheet", "row"}
	odpFormat    = Format{"OpenDocument presentation", "slide", "paragraph"}
	epubFormat   = Format{"EPUB book", "chapter", "paragraph"}
	rtfFormat    = Format{"RTF document", "page", "paragraph"}
	csvFormat    = Format{"CSV table", "table", "row"}
	htmlFormat   = Format{"HTML page", "page", "paragraph"}
	textFormat   = Format{"text", "text", "line"}
	mailFormat   = Format{"mail", "part", "paragraph"}
)

// Part is a page, a sheet, a slide or a chapter.
type Part struct {
	// Number is the index of the part in the document, from 1.
	Number int
	// Name is the name of a sheet or chapter; often empty.
	Name string
	// Hidden is true for a hidden sheet or slide.
	Hidden bool
}

// Block is a paragraph, a row or a line.
type Block struct {
	// Number is the index of the block in the part, from 1; for a row, its number in the sheet, whose
	// empty rows are left out.
	Number int
	// Text is the Markdown of the block; empty for a row.
	Text string
	// Level is the level of a heading, else 0.
	Level int
	// Tight reports whether no empty line precedes the block.
	Tight bool
	// Cells are the cells of a sheet's row from column A on, escaped for a Markdown table. Non-empty
	// cells beyond 100 columns follow, each after the name of its column.
	Cells []string
	// Hidden is true for a hidden row, and for the columns in HiddenColumns, counted from 0.
	Hidden        bool
	HiddenColumns map[int]bool
}

// Sink receives the content of a document.
type Sink interface {
	// Begin begins a part. It reports whether the part's blocks are wanted.
	Begin(Part) bool
	// Add adds a block. Its error ends the reading.
	Add(Block) error
}

// Refusal is an error that says, after the name of a file, what is wrong with it and what to do.
type Refusal string

// Error returns the sentence without its subject.
func (r Refusal) Error() string { return string(r) }

// Errors of documents that are not read, or not completely.
const (
	errPassword = Refusal("is protected with a password. Ask for a copy without one")
	errDamaged  = Refusal("is damaged or incomplete. Ask for it once more")
	errEntities = Refusal("declares entities of its own, which are not read: such a file can be an attack. Ask for it in another format")
	errDeep     = Refusal("is nested deeper than the limit of 256 levels, and not read further")
	errLong     = Refusal("holds an element of more than the limit of 8 MiB, and is not read further")
)

const (
	// maxHead bounds the beginning of a file from which its format is detected.
	maxHead = 4 << 10
	// maxBlock bounds a block, in characters. Longer text is split, a longer row is cut.
	maxBlock = 20_000
)

// Read reads a document of size bytes. It detects the format from the content and, if that is
// ambiguous, the name. The error is a [Refusal], or the sink's.
func Read(file io.ReaderAt, size int64, name string, sink Sink) (Format, error) {
	out := &emitter{sink: sink}
	format, err := read(file, size, name, out)
	if err == nil {
		err = out.flushNotes()
	}
	switch {
	case out.err != nil:
		return format, out.err
	case err == nil:
		return format, nil
	}
	return format, asRefusal(err)
}

// asRefusal returns an error as one that says what is wrong with the file.
func asRefusal(err error) Refusal {
	if known := Refusal(""); errors.As(err, &known) {
		return known
	}
	return Refusal(fmt.Sprintf("is damaged or incomplete (%s). Ask for it once more", wording.Clip(oneLine(err.Error()), 200)))
}

func read(file io.ReaderAt, size int64, name string, out *emitter) (Format, error) {
	head := make([]byte, min(size, maxHead))
	if _, err := file.ReadAt(head, 0); err != nil && err != io.EOF {
		return Format{}, err
	}
	whole := io.NewSectionReader(file, 0, size)
	extension := strings.ToLower(path.Ext(name))
	switch {
	case len(head) == 0:
		return Format{}, Refusal("is empty")
	case bytes.HasPrefix(head, []byte("PK\x03\x04")), bytes.HasPrefix(head, []byte("PK\x05\x06")):
		return readZip(file, size, out)
	case bytes.HasPrefix(head, []byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")):
		return Format{}, refuseOLE(whole)
	case bytes.HasPrefix(head, []byte(`{\rtf`)):
		return rtfFormat, readRTF(whole, out)
	case bytes.HasPrefix(head, []byte("%PDF")):
		return Format{}, Refusal("is a PDF. Load the group pdf")
	case isArchive(extension):
		return Format{}, errDamaged
	}
	if isMail(head, extension) {
		return mailFormat, readMail(whole, out)
	}
	return readText(whole, head, extension, out)
}

// isArchive reports whether a file with such an extension has to be an archive.
func isArchive(extension string) bool {
	switch extension {
	case ".docx", ".docm", ".xlsx", ".xlsm", ".pptx", ".pptm", ".odt", ".ods", ".odp", ".epub":
		return true
	}
	return false
}

// refuseOLE explains the content of an OLE container, which Office used before 2007 and for
// encryption.
func refuseOLE(file io.Reader) error {
	const overlap = 64
	known := []struct {
		stream string
		why    Refusal
	}{
		{"EncryptedPackage", errPassword},
		{"WordDocument", "is in the format of Word before 2007 (.doc), which is not read. Ask for it as DOCX or PDF"},
		{"Workbook", "is in the format of Excel before 2007 (.xls), which is not read. Ask for it as XLSX or CSV"},
		{"PowerPoint Document", "is in the format of PowerPoint before 2007 (.ppt), which is not read. Ask for it as PPTX or PDF"},
		{"__substg1.0", "is a mail of Outlook (.msg), which is not read. Ask for its text or for its attachments"},
	}
	found := len(known)
	buffer := make([]byte, overlap, overlap+64<<10)
	for {
		n, err := io.ReadFull(file, buffer[overlap:cap(buffer)])
		for i, k := range known[:found] {
			if bytes.Contains(buffer[:overlap+n], utf16Text(k.stream)) {
				found = i
				break
			}
		}
		if err != nil || found == 0 {
			break
		}
		copy(buffer[:overlap], buffer[n:n+overlap])
	}
	if found < len(known) {
		return known[found].why
	}
	return Refusal("is in an old binary format that is not read. Ask for it as DOCX, XLSX, PPTX or PDF")
}

// utf16Text returns a text in UTF-16, as in the names of such containers.
func utf16Text(text string) []byte {
	var b []byte
	for _, c := range []byte(text) {
		b = append(b, c, 0)
	}
	return b
}

// emitter numbers parts and blocks and passes them to the sink.
type emitter struct {
	sink   Sink
	parts  int
	inPart bool // a part has begun
	wanted bool // the sink wants the blocks of the part
	blocks int  // of the part
	// The notes to which the block that comes refers, and how many the document has so far.
	notes     []string
	noteBytes int
	noteCount int
	inChunk   bool // a document in the document is read
	mails     int  // in which the document is an attachment
	err       error
}

// beginPart begins a part and reports whether it is wanted.
func (e *emitter) beginPart(name string, hidden bool) bool {
	if e.inPart {
		_ = e.flushNotes() // the next block returns the error
	}
	e.parts++
	e.inPart, e.blocks = true, 0
	e.wanted = e.sink.Begin(Part{Number: e.parts, Name: oneLine(name), Hidden: hidden})
	return e.wanted
}

// breakPage makes the next block begin a new page, unless the current page is empty.
func (e *emitter) breakPage() {
	if e.blocks > 0 {
		_ = e.flushNotes() // the next block returns the error
		e.inPart = false
	}
}

// addNote returns the mark of a note. Its text follows the paragraph or the table that refers to it, so that
// whoever reads that sees it too.
func (e *emitter) addNote(text string) string {
	e.noteCount++
	mark := fmt.Sprintf("[^%d]", e.noteCount)
	if text = oneLine(text); text != "" {
		e.notes = append(e.notes, mark+": "+text)
	}
	if e.noteBytes += len(text); e.noteBytes > maxToken {
		_ = e.flushNotes() // the next block returns the error
	}
	return mark
}

// addDefect notes that a part of the document is not read, and why.
func (e *emitter) addDefect(name string, err error) {
	if name != "" {
		name = ", " + oneLine(path.Base(name)) + ","
	}
	text := fmt.Sprintf("[A part of this document%s %s.]", name, oneLine(asRefusal(err).Error()))
	e.notes = append(e.notes, text)
	e.noteBytes += len(text)
}

// takeNotes returns the texts of the notes to which the block refers, each on a line of its own.
func (e *emitter) takeNotes() string {
	if len(e.notes) == 0 {
		return ""
	}
	text := "\n" + strings.Join(e.notes, "\n")
	e.notes, e.noteBytes = nil, 0
	return text
}

// flushNotes passes the texts of the notes to which a heading or a table refers to the sink.
func (e *emitter) flushNotes() error {
	if text := strings.TrimSpace(e.takeNotes()); text != "" {
		return e.add(Block{Text: text})
	}
	return e.err
}

// add passes a block to the sink. A text that is too long is split.
func (e *emitter) add(b Block) error {
	if e.err != nil {
		return e.err
	}
	if !e.inPart {
		e.beginPart("", false)
	}
	for whole := b.Text; e.err == nil; {
		var rest string
		if b.Text, rest = wording.SplitAt(whole, maxBlock); rest != "" {
			if at := strings.LastIndexAny(b.Text, " \n"); at > len(b.Text)/2 {
				b.Text, rest = whole[:at+1], whole[at+1:]
			}
		}
		e.blocks++
		b.Number = cmp.Or(b.Number, e.blocks)
		if e.wanted {
			e.err = e.sink.Add(b)
		}
		if rest == "" {
			break
		}
		whole, b = rest, Block{Tight: true}
	}
	return e.err
}

// addParagraph passes a text to the sink, if it is not empty.
func (e *emitter) addParagraph(text string, tight bool) error {
	if text = tidy(text); text == "" {
		return nil
	}
	return e.add(Block{Text: text + e.takeNotes(), Tight: tight})
}

// addHeading passes a heading to the sink. Markdown has six levels.
func (e *emitter) addHeading(level int, text string) error {
	if text = oneLine(text); text == "" {
		return nil
	}
	level = min(max(level, 1), 6)
	if err := e.add(Block{Text: strings.Repeat("#", level) + " " + text, Level: level}); err != nil {
		return err
	}
	return e.flushNotes()
}

// addItem passes a list item to the sink; mark is empty if it has neither a number nor a bullet.
func (e *emitter) addItem(depth int, mark, text string, tight bool) error {
	if text = tidy(text); text == "" {
		return nil
	}
	indent := strings.Repeat("  ", min(max(depth, 0), 8))
	text = strings.ReplaceAll(text+e.takeNotes(), "\n", "\n"+indent+"  ")
	return e.add(Block{Text: indent + behindMark(mark, text), Tight: tight})
}

// behindMark returns the text of an item behind its number or bullet, if it has one.
func behindMark(mark, text string) string {
	if mark == "" || tidy(text) == "" {
		return text
	}
	return mark + " " + text
}

// maxCells bounds the columns of a sheet's table.
const maxCells = 100

// addRow passes a row of a sheet to the sink, with the cells by their columns. Cells beyond maxCells columns
// follow, each after the name of its column.
func (e *emitter) addRow(b Block, cells map[int]string) error {
	last, far := 0, []int{}
	for at, text := range cells {
		switch {
		case text == "":
		case at >= maxCells:
			far = append(far, at)
		default:
			last = max(last, at+1)
		}
	}
	if last == 0 && len(far) == 0 {
		return nil
	}
	row, room := make([]string, last), maxBlock
	for at := range row {
		row[at] = clipCell(cellText(cells[at]), &room)
	}
	slices.Sort(far)
	for _, at := range far {
		if room > 0 {
			row = append(row, clipCell(wording.ColumnName(at)+": "+cellText(cells[at]), &room))
		}
	}
	b.Cells = row
	return e.add(b)
}

// clipCell cuts the text of a cell to the room that is left in its row.
func clipCell(text string, room *int) string {
	if *room <= 0 {
		return "…"
	}
	if head, rest := wording.SplitAt(text, *room); rest != "" {
		text = head + "…"
	}
	*room -= len(text)
	return text
}

// table writes the rows of a table, each as a block. Rows of a single cell are paragraphs, unless a row of
// several follows them.
type table struct {
	out     *emitter
	columns int      // of the first row
	single  []string // rows of a single cell that are not written yet
}

// maxSingle bounds the rows that wait for one of several cells.
const maxSingle = 20

// addRow passes a row to the sink.
func (t *table) addRow(cells []string) error {
	if t.columns == 0 && len(cells) <= 1 {
		t.single = append(t.single, strings.Join(cells, ""))
		if len(t.single) < maxSingle {
			return nil
		}
		return t.end()
	}
	if t.columns == 0 {
		t.columns = len(cells)
		for i, text := range t.single {
			if err := t.write(append([]string{text}, make([]string, len(cells)-1)...), i == 0); err != nil {
				return err
			}
		}
		err := t.write(cells, len(t.single) == 0)
		t.single = nil
		return err
	}
	return t.write(cells, false)
}

func (t *table) write(cells []string, first bool) error {
	text := "| " + strings.Join(cells, " | ") + " |"
	if first {
		text += "\n|" + strings.Repeat("---|", len(cells))
	}
	return t.out.add(Block{Text: text, Tight: !first})
}

// end writes rows of a single cell, after which no row of several followed.
func (t *table) end() error {
	if t.columns == 0 && len(t.single) == 0 {
		return nil
	}
	for _, text := range t.single {
		if err := t.out.addParagraph(strings.ReplaceAll(text, "<br>", "\n"), false); err != nil {
			return err
		}
	}
	t.single = nil
	return t.out.flushNotes()
}

// endRow passes a row to the sink, with a mark if it is hidden. late says that a page ends in it.
func (t *table) endRow(cells []string, hidden, late bool) error {
	if hidden && len(cells) > 0 {
		cells[0] = strings.TrimSpace("[hidden row] " + cells[0])
	}
	if err := t.addRow(cells); err != nil {
		return err
	}
	if late {
		return t.breakPage()
	}
	return nil
}

// breakPage begins a page after a row.
func (t *table) breakPage() error {
	err := t.end()
	t.out.breakPage()
	return err
}

// cellText escapes a text for a cell of a Markdown table.
func cellText(text string) string {
	var lines []string
	for l := range strings.Lines(tidy(text)) {
		if l = strings.Join(strings.Fields(l), " "); l != "" {
			lines = append(lines, l)
		}
	}
	return strings.ReplaceAll(strings.Join(lines, "<br>"), "|", `\|`)
}

// tidy removes control characters and surrounding blanks.
func tidy(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case r == '\r', r == '\v', r == '\u2028', r == '\u2029':
			return '\n'
		case r == '\u00a0':
			return ' '
		case r < ' ', r == '\x7f', r == '\u00ad', r == '\ufeff':
			return -1
		}
		return r
	}, text)
	return strings.Trim(text, " \n\t")
}

// oneLine returns a text on one line.
func oneLine(text string) string { return strings.Join(strings.Fields(tidy(text)), " ") }
