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
	// partialLine matches a line that consists only of a mark so far: that of
	// a list, a heading, a quotation or a fence, or a heading's underline.
	partialLine = regexp.MustCompile("^\\s*(?:[-*+]|\\d{1,9}[.)]?|#{1,6}|(?:>\\s*)+|`{1,2}|~{1,2}|[-=*_]{2,}|[-*+]\\s\\[[ xX]?\\]?)?\\s*$")
	// blockMark matches the mark that begins a block on a paragraph's line.
	blockMark = regexp.MustCompile(`^\s*(?:(?:[-*+]|\d{1,9}[.)]|#{1,6}|>)\s+)+`)
	tableRule = regexp.MustCompile(`^\s*\|?(?:\s*:?-+:?\s*\|)+(?:\s*:?-+:?\s*)?$`)
)

// CloseUnfinished prepares a growing text for display. It closes formatting that is
// open at the end, and leaves out a link or table row that is not recognisable yet.
func CloseUnfinished(text string) string {
	lines := strings.SplitAfter(text, "\n")
	if last := len(lines) - 1; lines[last] == "" {
		lines = lines[:last]
	}
	var at blockTracker
	for i, line := range lines {
		if half := at.addLine(i, strings.TrimRight(line, "\r\n"), strings.HasSuffix(line, "\n")); half {
			lines = lines[:i]
		}
	}
	if at.fence != "" {
		return strings.Join(lines, "")
	}
	return closeLastBlock(lines, at.begin)
}

// blockTracker tracks where the last block of a text begins, and the open fence.
type blockTracker struct {
	begin int
	fence string
}

// addLine handles the next line. It reports whether that line is the unfinished beginning of a fence.
func (b *blockTracker) addLine(i int, line string, whole bool) (half bool) {
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

// closeLastBlock closes formatting that is open in the last block of a text, outside of fences.
func closeLastBlock(lines []string, block int) string {
	for len(lines) > 0 && !strings.HasSuffix(lines[len(lines)-1], "\n") && partialLine.MatchString(lines[len(lines)-1]) {
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
	return strings.Join(lines[:block], "") + mark + closeInline(last[len(mark):])
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

// inlineCloser closes formatting that is open at the end of a paragraph.
// It is simpler than the parser; marks that it misjudges are shown.
type inlineCloser struct {
	out  strings.Builder
	open []string // the open marks
}

func closeInline(text string) string {
	text = strings.TrimRightFunc(text, unicode.IsSpace)
	var in inlineCloser
	for at := 0; at < len(text); {
		at += in.consume(text, at)
	}
	// Marks do not close after white space.
	end := strings.TrimRightFunc(in.out.String(), unicode.IsSpace)
	for _, mark := range slices.Backward(in.open) {
		if bare, found := strings.CutSuffix(end, mark); found {
			end = strings.TrimRightFunc(bare, unicode.IsSpace) // it encloses nothing yet
			continue
		}
		end += mark
	}
	return end
}

// consume handles the text from an offset on, and returns how many bytes it handled.
func (in *inlineCloser) consume(text string, at int) int {
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
		return in.consumeCode(rest)
	case '[':
		return in.consumeLink(rest)
	case '!':
		if strings.HasPrefix(rest, "![") && !strings.Contains(rest, ")") {
			return 1 // a picture shows only its label, too
		}
		in.out.WriteByte(c)
		return 1
	case '*', '_', '~':
		n := len(rest) - len(strings.TrimLeft(rest, string(c)))
		in.consumeMarks(text, at, n)
		return n
	}
	next := strings.IndexAny(rest[1:], "\\`[!*_~") + 1
	if next == 0 {
		next = len(rest)
	}
	in.out.WriteString(rest[:next])
	return next
}

// consumeCode handles a code span, which it closes if necessary, and returns its length.
func (in *inlineCloser) consumeCode(rest string) int {
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

// consumeLink handles a link, and returns its length. Only the label of an incomplete link is kept.
func (in *inlineCloser) consumeLink(rest string) int {
	label := strings.IndexByte(rest, ']')
	switch {
	case label < 0:
		return 1 // its bracket
	case label+1 == len(rest):
	case rest[label+1] != '(' || strings.Contains(rest[label:], ")"):
		in.out.WriteByte('[')
		return 1
	}
	in.out.WriteString(closeInline(rest[1:label]))
	return len(rest)
}

// consumeMarks handles a run of emphasis marks.
func (in *inlineCloser) consumeMarks(text string, at, n int) {
	mark := text[at : at+n]
	before, _ := utf8.DecodeLastRuneInString(text[:at])
	after, _ := utf8.DecodeRuneInString(text[at+n:])
	first, last := at == 0 || unicode.IsSpace(before), at+n == len(text) || unicode.IsSpace(after)
	if isLiteral(mark, before, after, first, last) && at+n < len(text) {
		in.out.WriteString(mark)
		return
	}
	if !first {
		mark = in.closeMarks(mark, at+n == len(text))
	}
	if mark == "" || at+n == len(text) {
		return // half of a mark, or one followed by nothing yet
	}
	in.out.WriteString(mark)
	if !last {
		in.open = append(in.open, mark)
	}
}

// isLiteral reports whether the context makes a run of marks literal.
func isLiteral(mark string, before, after rune, first, last bool) bool {
	switch {
	case mark[0] == '_' && !first && !last:
		return isWordRune(before) && isWordRune(after)
	case mark[0] == '~' && len(mark) > 2:
		return true
	}
	return first && last
}

// closeMarks closes the formatting that a run of marks ends, and returns
// the rest of the run. The last run of a text may be incomplete.
func (in *inlineCloser) closeMarks(mark string, end bool) string {
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
