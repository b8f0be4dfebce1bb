package documents

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"oneclaw/internal/wording"
	"oneclaw/toolgroups/documents/office"
)

const (
	// Bounds of an outline: headings or parts, and characters.
	maxOutline   = 60
	outlineChars = 3_500
	// maxTitle bounds a heading or the name of a part, in characters.
	maxTitle = 80
	// columnChars is the room that a column of a table takes above the rows, in characters.
	columnChars = len(" AAA |") + len("---|")
)

// resultLimit returns the limit of the text in a result of at most inline characters. It leaves room for
// the outline, if any.
func resultLimit(want selection, inline int) int {
	if want.all {
		return max(inline-outlineChars, inline/3)
	}
	return inline
}

// excerpt implements [office.Sink]. It keeps the selected part of a document, up to limit.
type excerpt struct {
	want      selection
	checkTime func() error // returns an error when the time is over
	limit     int          // characters

	partCount    int // in the document
	currentPart  office.Part
	partSelected bool
	outline      []*outlineEntry
	currentEntry *outlineEntry // the current part in the outline
	sections     []*section
	usedChars    int    // characters
	continueAt   *place // where to continue
	shortened    bool   // set if the first block was cut
	timedOut     bool   // set if time ran out
	readError    string // error at which reading stopped
	kept         []keptFile
	keptBytes    int
}

// outlineEntry is a heading or a part in an outline.
type outlineEntry struct {
	position   place
	title      string
	level      int
	blockCount int // in the part
}

// section is the selected text of a part.
type section struct {
	part                  office.Part
	body                  strings.Builder
	firstShown, lastShown int // numbers of blocks, 0 if none is shown
	lastBlock             int // the number of the last block of the part
	width                 int // columns, if it is a table
	hiddenColumns         map[int]bool
}

// Begin starts a part.
func (x *excerpt) Begin(p office.Part) bool {
	x.partCount, x.currentPart = x.partCount+1, p
	x.partSelected = x.want.includesPart(p)
	x.currentEntry = nil
	if x.want.all {
		x.currentEntry = x.addToOutline(outlineEntry{position: place{p.Number, 1}, title: p.Name})
	}
	if x.partSelected && x.continueAt == nil {
		if x.usedChars += len("\n--- Chapter 1000:  (hidden), 10000-20000 of 30000 ---\n") + min(len(p.Name), maxTitle); x.usedChars > x.limit {
			x.continueAt = &place{p.Number, 1}
			return x.partSelected
		}
		x.sections = append(x.sections, &section{part: p})
	}
	return x.partSelected
}

// keptFile is a file that the document carries.
type keptFile struct {
	name string
	data []byte
}

// maxKept bounds the files of one result, in bytes.
const maxKept = 24 << 20

// Keep keeps a file whose part the call names.
func (x *excerpt) Keep(p office.Part, name string, data []byte) {
	if x.want.all || !x.want.includesPart(p) || x.keptBytes+len(data) > maxKept {
		return
	}
	x.keptBytes += len(data)
	x.kept = append(x.kept, keptFile{name, data})
}

// addToOutline adds an entry to the outline unless that is full. It returns the entry.
func (x *excerpt) addToOutline(e outlineEntry) *outlineEntry {
	if len(x.outline) < 20*maxOutline {
		x.outline = append(x.outline, &e)
	}
	return &e
}

// Add keeps a block if it is selected and fits. A first block that does not fit is cut, because no later
// call could get past it otherwise.
func (x *excerpt) Add(b office.Block) error {
	if err := x.checkTime(); err != nil {
		return err
	}
	if x.want.all && b.Level > 0 {
		x.addToOutline(outlineEntry{position: place{x.currentPart.Number, b.Number}, title: strings.TrimLeft(b.Text, "# "), level: b.Level})
	}
	if x.currentEntry != nil {
		x.currentEntry.blockCount = b.Number
	}
	current := x.currentSection()
	if current != nil {
		current.lastBlock = b.Number
	}
	if !x.partSelected || x.continueAt != nil || !x.want.includesBlock(x.currentPart, b.Number) {
		return nil
	}
	cells, text := b.Cells, b.Text
	if cells != nil {
		current.hiddenColumns = b.HiddenColumns
		text = formatRow(b, cells)
	}
	switch {
	case current.body.Len() == 0:
	case b.Tight, b.Cells != nil:
		text = "\n" + text
	default:
		text = "\n\n" + text
	}
	room := x.limit - x.usedChars
	if utf8.RuneCountInString(text)+columnChars*max(current.width, len(cells)) > room {
		if current.firstShown > 0 || len(x.sections) > 1 {
			x.continueAt = &place{x.currentPart.Number, b.Number}
			return nil
		}
		x.shortened = true
		if text = wording.Clip(text, room); cells != nil {
			cells = clipRow(cells, room)
			text = formatRow(b, cells)
		}
	}
	if current.firstShown == 0 {
		current.firstShown = b.Number
	}
	current.lastShown = b.Number
	current.width = max(current.width, len(cells))
	current.body.WriteString(text)
	x.usedChars += utf8.RuneCountInString(text)
	return nil
}

// formatRow formats the cells of a row, after its number.
func formatRow(b office.Block, cells []string) string {
	return fmt.Sprintf("| %d%s | %s |", b.Number, hiddenMark(b.Hidden), strings.Join(cells, " | "))
}

// hiddenMark returns what follows the name of a part, a row or a column that is hidden.
func hiddenMark(hidden bool) string {
	if hidden {
		return " (hidden)"
	}
	return ""
}

// clipRow returns the first cells of a row, as many as fit with the columns above them.
func clipRow(cells []string, room int) (kept []string) {
	room -= len("| 10000000 |") + len(" … |") + columnChars
	for _, cell := range cells {
		if room <= columnChars {
			return append(kept, "…")
		}
		kept = append(kept, wording.Clip(cell, room-columnChars))
		room -= utf8.RuneCountInString(cell) + len(" | ") + columnChars
	}
	return kept
}

// currentSection returns the section of the current part, or nil.
func (x *excerpt) currentSection() *section {
	if n := len(x.sections); n > 0 && x.sections[n-1].part.Number == x.currentPart.Number {
		return x.sections[n-1]
	}
	return nil
}

// buildReport assembles the result.
func (x *excerpt) buildReport(t task, format office.Format) report {
	head := fmt.Sprintf("File: %s\nFormat: %s", t.Name, format.Name)
	if x.partCount > 0 {
		head += ", " + wording.Plural(x.partCount, format.Part, format.Part+"s")
	}
	if x.timedOut || x.readError != "" {
		head += " or more"
	}
	var b strings.Builder
	b.WriteString(head + "\n")
	if len(x.sections) == 0 {
		if x.want.all {
			return report{Text: head + "\n\n[It holds no text. Pictures in it, headers and footers are not read.]"}
		}
		return report{Code: codeInvalidPart, Text: fmt.Sprintf("There is no such part of '%s', which has %s. Read it without 'part' for an outline.",
			t.Name, wording.Plural(x.partCount, format.Part, format.Part+"s"))}
	}
	if s := x.sections[0]; len(x.sections) == 1 && s.firstShown == 0 && s.lastBlock > 0 && x.continueAt == nil {
		return report{Code: codeInvalidPart, Text: fmt.Sprintf("There is nothing there: %s %d of '%s' ends with %s %d.",
			format.Part, s.part.Number, t.Name, format.Block, s.lastBlock)}
	}
	if x.continueAt != nil || x.timedOut {
		b.WriteString(x.formatOutline(format))
	}
	for _, s := range x.sections {
		s.write(&b, format, x.partCount)
	}
	if x.shortened {
		fmt.Fprintf(&b, "\n[The first %s is longer than a result: what follows \"…\" is not shown.]", format.Block)
	}
	switch {
	case x.continueAt != nil:
		fmt.Fprintf(&b, "\n[Cut: the limit is %d characters. Go on with part %q.]", x.limit, x.continuation())
	case x.timedOut:
		b.WriteString("\n[Reading took too long: the rest is missing. Name a part of it.]")
	case x.readError != "":
		fmt.Fprintf(&b, "\n[The rest is missing: the file %s.]", x.readError)
	}
	return report{Text: strings.TrimRight(b.String(), "\n")}
}

// continuation returns the selection that continues where this one ends.
func (x *excerpt) continuation() string {
	at, to := *x.continueAt, ""
	switch {
	case x.want.from.part == 0 && !x.want.all:
		to = fmt.Sprint(at.part)
	case x.want.to.part < lastNumber:
		to = fmt.Sprint(x.want.to.part)
		if x.want.to.block < lastNumber {
			to += fmt.Sprintf(":%d", x.want.to.block)
		}
	}
	return fmt.Sprintf("%d:%d-%s", at.part, at.block, to)
}

// formatOutline returns the outline: the headings of a text, or the parts.
func (x *excerpt) formatOutline(format office.Format) string {
	if !x.want.all {
		return ""
	}
	var b strings.Builder
	listed := 0
	for i, e := range x.outline {
		// Pages, and chapters named by their heading, are not listed.
		if e.level == 0 && (e.title == "" || i+1 < len(x.outline) && x.outline[i+1].level > 0 && x.outline[i+1].title == e.title) {
			continue
		}
		where := fmt.Sprintf("%d:%d", e.position.part, e.position.block)
		about := ""
		if e.level == 0 {
			where, about = fmt.Sprint(e.position.part), fmt.Sprintf(" (%s)", wording.Plural(e.blockCount, format.Block, format.Block+"s"))
		}
		text := fmt.Sprintf("%s- %s %s%s\n", strings.Repeat("  ", max(e.level-1, 0)), where, wording.Clip(e.title, maxTitle), about)
		if listed++; listed > maxOutline || b.Len()+len(text) > outlineChars {
			b.WriteString("- …\n")
			break
		}
		b.WriteString(text)
	}
	if listed == 0 {
		return ""
	}
	return "Outline:\n" + b.String()
}

// write writes a section under its heading.
func (s *section) write(b *strings.Builder, format office.Format, parts int) {
	if parts > 1 || s.part.Name != "" || s.firstShown > 1 || s.lastShown < s.lastBlock {
		fmt.Fprintf(b, "\n--- %s %d", strings.ToUpper(format.Part[:1])+format.Part[1:], s.part.Number)
		if s.part.Name != "" {
			b.WriteString(": " + wording.Clip(s.part.Name, maxTitle))
		}
		b.WriteString(hiddenMark(s.part.Hidden))
		if s.firstShown > 0 && (s.firstShown > 1 && s.width == 0 || s.lastShown < s.lastBlock) {
			fmt.Fprintf(b, ", %ss %d-%d of %d", format.Block, s.firstShown, s.lastShown, s.lastBlock)
		}
		b.WriteString(" ---")
	}
	b.WriteByte('\n')
	switch {
	case s.width > 0:
		b.WriteString("| |")
		for at := range s.width {
			b.WriteString(" " + wording.ColumnName(at) + hiddenMark(s.hiddenColumns[at]) + " |")
		}
		b.WriteString("\n|" + strings.Repeat("---|", s.width+1) + "\n")
	case s.body.Len() == 0:
		b.WriteString("(empty)")
	}
	b.WriteString(s.body.String())
	b.WriteByte('\n')
}
