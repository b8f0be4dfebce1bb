package documents

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"oneclaw/internal/office"
	"oneclaw/internal/wording"
	"oneclaw/toolgroups/files"
)

const (
	// Bounds of an outline: headings or parts, and characters.
	maxOutline   = 60
	outlineChars = 3_500
	// maxTitle bounds a heading or the name of a part, in characters.
	maxTitle = 80
)

// resultLimit bounds a result in characters. The first result has an outline too.
func resultLimit(want selection) int {
	if want.all {
		return files.MaxInline - outlineChars
	}
	return files.MaxInline
}

// excerpt is a sink that keeps the selected part of a document, up to the size of a result.
type excerpt struct {
	want  selection
	over  func() error // reports that the time is over
	limit int          // characters

	parts    int // of the document
	part     office.Part
	wanted   bool
	outline  []*entry
	listed   *entry // the current part in the outline
	sections []*section
	used     int    // characters
	next     *place // where to continue
	late     bool   // the time was over
	trouble  string // why the rest could not be read
}

// entry is a heading or a part in an outline.
type entry struct {
	at     place
	title  string
	level  int
	blocks int // of the part
}

// section is the shown text of a part.
type section struct {
	part        office.Part
	body        strings.Builder
	first, last int // shown blocks
	total       int // the number of the last block of the part
	width       int // columns, if it is a table
}

// Begin starts a part.
func (x *excerpt) Begin(p office.Part) bool {
	x.parts, x.part = x.parts+1, p
	x.wanted = x.want.part(p)
	x.listed = nil
	if x.want.all {
		x.listed = x.addToOutline(entry{at: place{p.Number, 1}, title: p.Name})
	}
	if x.wanted && x.next == nil {
		if x.used += len("\n--- Chapter 1000:  (hidden), 10000-20000 of 30000 ---\n") + min(len(p.Name), maxTitle); x.used > x.limit {
			x.next = &place{p.Number, 1}
			return x.wanted
		}
		x.sections = append(x.sections, &section{part: p})
	}
	return x.wanted
}

// addToOutline adds to the outline unless that is full.
func (x *excerpt) addToOutline(e entry) *entry {
	if len(x.outline) < 20*maxOutline {
		x.outline = append(x.outline, &e)
	}
	return &e
}

// Add keeps a block if it is selected and fits.
func (x *excerpt) Add(b office.Block) error {
	if err := x.over(); err != nil {
		return err
	}
	if x.want.all && b.Level > 0 {
		x.addToOutline(entry{at: place{x.part.Number, b.Number}, title: strings.TrimLeft(b.Text, "# "), level: b.Level})
	}
	if x.listed != nil {
		x.listed.blocks = b.Number
	}
	current := x.current()
	if current != nil {
		current.total = b.Number
	}
	if !x.wanted || x.next != nil || !x.want.block(x.part, b.Number) {
		return nil
	}
	text := b.Text
	if b.Cells != nil {
		text = fmt.Sprintf("| %d | %s |", b.Number, strings.Join(b.Cells, " | "))
		current.width = max(current.width, len(b.Cells))
	}
	switch {
	case current.body.Len() == 0:
	case b.Tight, b.Cells != nil:
		text = "\n" + text
	default:
		text = "\n\n" + text
	}
	size := utf8.RuneCountInString(text)
	if x.used > 0 && x.used+size+10*current.width > x.limit {
		x.next = &place{x.part.Number, b.Number}
		return nil
	}
	if current.first == 0 {
		current.first = b.Number
	}
	current.last = b.Number
	current.body.WriteString(text)
	x.used += size
	return nil
}

// current returns the section of the current part, or nil.
func (x *excerpt) current() *section {
	if n := len(x.sections); n > 0 && x.sections[n-1].part.Number == x.part.Number {
		return x.sections[n-1]
	}
	return nil
}

// report assembles the result.
func (x *excerpt) report(t task, format office.Format) report {
	head := fmt.Sprintf("File: %s\nFormat: %s", t.Name, format.Name)
	if x.parts > 0 {
		head += ", " + wording.Count(x.parts, format.Part, format.Part+"s")
	}
	if x.late || x.trouble != "" {
		head += " or more"
	}
	var b strings.Builder
	b.WriteString(head + "\n")
	if len(x.sections) == 0 {
		if x.want.all {
			return report{Text: head + "\n\n[It holds no text. Pictures in it are not read.]"}
		}
		return report{Code: CodeInvalidPart, Text: fmt.Sprintf("There is no such part of '%s', which has %s. Read it without 'part' for an outline.",
			t.Name, wording.Count(x.parts, format.Part, format.Part+"s"))}
	}
	if s := x.sections[0]; len(x.sections) == 1 && s.first == 0 && s.total > 0 {
		return report{Code: CodeInvalidPart, Text: fmt.Sprintf("There is nothing there: %s %d of '%s' ends with %s %d.",
			format.Part, s.part.Number, t.Name, format.Block, s.total)}
	}
	if x.next != nil || x.late {
		b.WriteString(x.contents(format))
	}
	for _, s := range x.sections {
		s.write(&b, format, x.parts)
	}
	switch {
	case x.next != nil:
		fmt.Fprintf(&b, "\n[Cut: the limit is %d characters. Go on with part %q.]", x.limit, x.continuation())
	case x.late:
		b.WriteString("\n[Reading took too long: the rest is missing. Name a part of it.]")
	case x.trouble != "":
		fmt.Fprintf(&b, "\n[The rest is missing: the file %s.]", x.trouble)
	}
	return report{Text: strings.TrimRight(b.String(), "\n")}
}

// continuation returns the selection that continues where this one ends.
func (x *excerpt) continuation() string {
	at, to := *x.next, ""
	switch {
	case x.want.from.part == 0 && !x.want.all:
		to = fmt.Sprint(at.part)
	case x.want.to.part < end:
		to = fmt.Sprint(x.want.to.part)
		if x.want.to.block < end {
			to += fmt.Sprintf(":%d", x.want.to.block)
		}
	}
	return fmt.Sprintf("%d:%d-%s", at.part, at.block, to)
}

// contents returns the outline: the headings of a text, or the parts.
func (x *excerpt) contents(format office.Format) string {
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
		where := fmt.Sprintf("%d:%d", e.at.part, e.at.block)
		about := ""
		if e.level == 0 {
			where, about = fmt.Sprint(e.at.part), fmt.Sprintf(" (%s)", wording.Count(e.blocks, format.Block, format.Block+"s"))
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
	if parts > 1 || s.part.Name != "" || s.first > 1 || s.last < s.total {
		fmt.Fprintf(b, "\n--- %s %d", strings.ToUpper(format.Part[:1])+format.Part[1:], s.part.Number)
		if s.part.Name != "" {
			b.WriteString(": " + wording.Clip(s.part.Name, maxTitle))
		}
		if s.part.Hidden {
			b.WriteString(" (hidden)")
		}
		if s.first > 0 && (s.first > 1 && s.width == 0 || s.last < s.total) {
			fmt.Fprintf(b, ", %ss %d-%d of %d", format.Block, s.first, s.last, s.total)
		}
		b.WriteString(" ---")
	}
	b.WriteByte('\n')
	switch {
	case s.width > 0:
		b.WriteString("| |")
		for at := range s.width {
			b.WriteString(" " + wording.Column(at) + " |")
		}
		b.WriteString("\n|" + strings.Repeat("---|", s.width+1) + "\n")
	case s.body.Len() == 0:
		b.WriteString("(empty)")
	}
	b.WriteString(s.body.String())
	b.WriteByte('\n')
}
