package markdown

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

var (
	fenceLine = regexp.MustCompile("^ {0,3}(`{3,}|~{3,})([^\n]*)$")
	// halfLine matches a line that has only a mark so far: of a list, a heading, a quotation, a
	// fence, or a heading's underline.
	halfLine = regexp.MustCompile("^\\s*(?:[-*+]|\\d{1,9}[.)]?|#{1,6}|(?:>\\s*)+|`{1,2}|~{1,2}|[-=*_]{2,}|[-*+]\\s\\[[ xX]?\\]?)?\\s*$")
	// blockMark matches the mark that begins a block on a paragraph's line.
	blockMark = regexp.MustCompile(`^\s*(?:(?:[-*+]|\d{1,9}[.)]|#{1,6}|>)\s+)+`)
	tableRule = regexp.MustCompile(`^\s*\|?(?:\s*:?-+:?\s*\|)+(?:\s*:?-+:?\s*)?$`)
)

// Unfinished prepares a growing text for display: it closes what is open at the end, and leaves
// out a link or table row that is not recognisable yet.
func Unfinished(text string) string {
	lines := strings.SplitAfter(text, "\n")
	if last := len(lines) - 1; lines[last] == "" {
		lines = lines[:last]
	}
	var at blockTracker
	for i, line := range lines {
		if half := at.pass(i, strings.TrimRight(line, "\r\n"), strings.HasSuffix(line, "\n")); half {
			lines = lines[:i]
		}
	}
	if at.fence != "" {
		return strings.Join(lines, "")
	}
	return finish(lines, at.begin)
}

// blockTracker tracks where the last block of a text begins, and the open fence.
type blockTracker struct {
	begin int
	fence string
}

// pass handles the next line. It reports whether that is the last one and a partial fence.
func (b *blockTracker) pass(i int, line string, whole bool) (half bool) {
	m := fenceLine.FindStringSubmatch(line)
	opens := m != nil && (m[1][0] == '~' || !strings.Contains(m[2], "`"))
	if b.fence != "" {
		bare := strings.Trim(line, b.fence[:1]+" ") == ""
		if m != nil && bare && strings.Contains(m[1], b.fence) {
			b.fence, b.begin = "", i+1
			return false
		}
		return !whole && bare && line != ""
	}
	switch {
	case opens && whole:
		b.fence, b.begin = m[1], i+1
	case strings.TrimSpace(line) == "":
		b.begin = i + 1
	}
	return opens && !whole
}

// finish closes what is open in the last block of a text, outside of fences.
func finish(lines []string, block int) string {
	for len(lines) > 0 && !strings.HasSuffix(lines[len(lines)-1], "\n") && halfLine.MatchString(lines[len(lines)-1]) {
		lines = lines[:len(lines)-1]
	}
	if lines = unfinishedTable(lines, block); len(lines) <= block {
		return strings.Join(lines, "")
	}
	for i := len(lines) - 1; i > block; i-- {
		if blockMark.MatchString(lines[i]) {
			block = i
			break
		}
	}
	last := strings.Join(lines[block:], "")
	mark := blockMark.FindString(last)
	return strings.Join(lines[:block], "") + mark + closed(last[len(mark):])
}

// unfinishedTable drops the lines of a table that is not recognisable yet, and an incomplete
// row.
func unfinishedTable(lines []string, block int) []string {
	from := len(lines)
	for from > block && strings.HasPrefix(strings.TrimSpace(lines[from-1]), "|") {
		from--
	}
	rows := lines[from:]
	switch {
	case len(rows) == 0:
		return lines
	case len(rows) < 2 || !strings.HasSuffix(rows[1], "\n") || !tableRule.MatchString(strings.TrimRight(rows[1], "\r\n")):
		return lines[:from]
	case !strings.HasSuffix(rows[len(rows)-1], "\n"):
		return lines[:len(lines)-1]
	}
	return lines
}

// inline closes what is open at the end of a paragraph. It is simpler than the parser: what it
// gets wrong is shown with its marks.
type inline struct {
	out  strings.Builder
	open []string // the open marks
}

func closed(text string) string {
	text = strings.TrimRightFunc(text, unicode.IsSpace)
	var in inline
	for at := 0; at < len(text); {
		at += in.take(text, at)
	}
	// Marks do not close after white space.
	end := strings.TrimRightFunc(in.out.String(), unicode.IsSpace)
	for _, mark := range slices.Backward(in.open) {
		if bare, found := strings.CutSuffix(end, mark); found {
			end = strings.TrimRightFunc(bare, unicode.IsSpace) // nothing in it yet
			continue
		}
		end += mark
	}
	return end
}

// take handles the text at a position and returns its length.
func (in *inline) take(text string, at int) int {
	rest := text[at:]
	switch c := rest[0]; c {
	case '\\':
		if len(rest) == 1 {
			return 1
		}
		_, size := utf8.DecodeRuneInString(rest[1:])
		in.out.WriteString(rest[:1+size])
		return 1 + size
	case '`':
		return in.code(rest)
	case '[':
		return in.link(rest)
	case '!':
		if strings.HasPrefix(rest, "![") && !strings.Contains(rest, ")") {
			return 1 // a picture shows only its label, too
		}
		in.out.WriteByte(c)
		return 1
	case '*', '_', '~':
		n := len(rest) - len(strings.TrimLeft(rest, string(c)))
		in.marks(text, at, n)
		return n
	}
	next := strings.IndexAny(rest[1:], "\\`[!*_~") + 1
	if next == 0 {
		next = len(rest)
	}
	in.out.WriteString(rest[:next])
	return next
}

// code handles a code span, and closes an open one.
func (in *inline) code(rest string) int {
	n := len(rest) - len(strings.TrimLeft(rest, "`"))
	ticks := rest[:n]
	for at := n; ; {
		i := strings.Index(rest[at:], ticks)
		if i < 0 {
			break
		}
		from := at + i
		run := len(rest[from:]) - len(strings.TrimLeft(rest[from:], "`"))
		if run == n {
			in.out.WriteString(rest[:from+n])
			return from + n
		}
		at = from + run
	}
	if inner := strings.TrimRight(rest[n:], "`"); strings.TrimSpace(inner) != "" {
		in.out.WriteString(ticks + strings.TrimRightFunc(inner, unicode.IsSpace) + ticks)
	}
	return len(rest)
}

// link handles a link; of an incomplete one only the label is kept.
func (in *inline) link(rest string) int {
	label := strings.IndexByte(rest, ']')
	switch {
	case label < 0:
		return 1 // its bracket
	case label+1 == len(rest):
	case rest[label+1] != '(' || strings.Contains(rest[label:], ")"):
		in.out.WriteByte('[')
		return 1
	}
	in.out.WriteString(closed(rest[1:label]))
	return len(rest)
}

// marks handles a run of emphasis marks.
func (in *inline) marks(text string, at, n int) {
	mark := text[at : at+n]
	before, _ := utf8.DecodeLastRuneInString(text[:at])
	after, _ := utf8.DecodeRuneInString(text[at+n:])
	first, last := at == 0 || unicode.IsSpace(before), at+n == len(text) || unicode.IsSpace(after)
	if literal(mark, before, after, first, last) && at+n < len(text) {
		in.out.WriteString(mark)
		return
	}
	if !first {
		mark = in.shut(mark, at+n == len(text))
	}
	if mark == "" || at+n == len(text) {
		return // half of a mark, or one followed by nothing yet
	}
	in.out.WriteString(mark)
	if !last {
		in.open = append(in.open, mark)
	}
}

// literal reports whether a run of marks is literal, by its context.
func literal(mark string, before, after rune, first, last bool) bool {
	switch {
	case mark[0] == '_' && !first && !last:
		return wordRune(before) && wordRune(after)
	case mark[0] == '~' && len(mark) > 2:
		return true
	}
	return first && last
}

// shut closes what a run of marks closes, and returns the rest of it. The last run of a text may
// be incomplete.
func (in *inline) shut(mark string, end bool) string {
	for mark != "" && len(in.open) > 0 {
		top := in.open[len(in.open)-1]
		if top[0] != mark[0] {
			at := slices.IndexFunc(in.open, func(o string) bool { return o[0] == mark[0] })
			if at < 0 {
				return mark
			}
			in.open = slices.Delete(in.open, at+1, len(in.open)) // they were no marks
			continue
		}
		n := min(len(top), len(mark))
		if n < len(top) && end {
			return ""
		}
		in.out.WriteString(mark[:n])
		mark = mark[n:]
		in.open = in.open[:len(in.open)-1]
		if n < len(top) {
			in.open = append(in.open, top[n:])
		}
	}
	return mark
}
