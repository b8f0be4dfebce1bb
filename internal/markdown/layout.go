package markdown

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// cutLevel rates a place for a cut; a higher level is a better place.
type cutLevel uint8

const (
	cutNever cutLevel = iota
	cutWord
	cutSentence
	cutLine
	cutItem
	cutBlock
	cutLevels
)

// style is the formatting of a span.
type style uint8

const (
	styleBold style = iota
	styleItalic
	styleStrike
	styleCode
	styleLink
	styleQuote
	stylePre
)

// span is a formatting context with its parent; the nil span is unformatted text.
type span struct {
	parent      *span
	style       style
	depth       int
	href        string // link: the address as in the markup
	plainSuffix string // link: appended to its text in plain text, may be empty
	lang        string // pre
	hasBacktick bool   // code: contains a backtick
	tableHead   []atom // pre of a table: its header, repeated in each part
}

// enclosing returns the innermost span of the style that is or contains s.
func (s *span) enclosing(want style) *span {
	for ; s != nil; s = s.parent {
		if s.style == want {
			return s
		}
	}
	return nil
}

// isCode reports whether text in s is verbatim.
func (s *span) isCode() bool {
	return s != nil && (s.style == styleCode || s.style == stylePre)
}

// commonSpan returns the innermost span that contains both a and b.
func commonSpan(a, b *span) *span {
	for a != b {
		switch {
		case b == nil || a != nil && a.depth >= b.depth:
			a = a.parent
		default:
			b = b.parent
		}
	}
	return a
}

// gap is the space before an atom, which is dropped at a cut.
type gap struct {
	newlines int
	indent   int    // after the newlines
	space    string // used without newlines
	cut      cutLevel
}

// atom is a piece of text that is cut only if it does not fit into a part.
type atom struct {
	gap  gap
	text string
	span *span
	// ambiguousMarks reports whether the text belongs to a run with several
	// characters that Slack could take for a pair of formatting marks.
	ambiguousMarks bool
	// inTableBody reports whether the atom is below the header of a table.
	inTableBody bool
}

// maxIndent bounds the indentation of deep lists; listIndent is that of one level.
const maxIndent, listIndent = 16, 4

// layout turns the tree into atoms. All platforms use it.
type layout struct {
	rules       rules
	deleted     string // characters that the platform deletes
	atoms       []atom
	gap         gap
	indent      int
	lists       int  // open lists
	inTableBody bool // below the header of a table
}

func (d *Document) layOut(r rules) []atom {
	l := &layout{rules: r, deleted: r.traits().deleted}
	l.blocks(d.root.children, nil, 2, cutBlock)
	return l.atoms
}

// separate widens the gap before the next atom.
func (l *layout) separate(newlines int, cut cutLevel) {
	l.gap.newlines = max(l.gap.newlines, newlines)
	l.gap.cut = max(l.gap.cut, cut)
}

// add appends an atom after the pending gap.
func (l *layout) add(text string, s *span, marks bool) {
	if text = without(text, l.deleted); text == "" {
		return
	}
	g := l.gap
	if g.newlines > 0 {
		g.space, g.indent = "", l.indent
	}
	l.atoms = append(l.atoms, atom{gap: g, text: text, span: s, ambiguousMarks: marks, inTableBody: l.inTableBody})
	l.gap = gap{}
}

// blocks lays out blocks with separators.
func (l *layout) blocks(addBlocks []*node, s *span, newlines int, cut cutLevel) {
	for i, n := range addBlocks {
		if i > 0 {
			level := cut
			if addBlocks[i-1].kind == kindHeading {
				level = min(cut, cutSentence) // a heading stays with its text
			}
			l.separate(newlines, level)
		}
		l.addBlock(n, s)
	}
}

func (l *layout) addBlock(n *node, s *span) {
	switch n.kind {
	case kindHeading:
		l.addInlines(n.children, l.nest(s, span{style: styleBold}))
	case kindCodeBlock:
		l.outdent(func() {
			l.lines(strings.Split(n.text, "\n"), l.nest(s, span{style: stylePre, lang: n.lang}))
		})
	case kindTable:
		l.outdent(func() { l.addTable(n, s) })
	case kindQuote:
		l.outdent(func() {
			newlines := 2
			if l.lists > 0 {
				newlines = 1
			}
			l.blocks(n.children, l.nest(s, span{style: styleQuote}), newlines, cutItem)
		})
	case kindList:
		l.addList(n, s)
	case kindRule:
		l.add("────────", s, false)
	default:
		l.addInlines(n.children, s)
	}
}

// outdent lays out a block that begins at the margin.
func (l *layout) outdent(do func()) {
	if l.lists > 0 {
		l.separate(1, cutNever)
	}
	indent := l.indent
	l.indent = 0
	do()
	l.indent = indent
}

func (l *layout) addList(n *node, s *span) {
	base := l.indent
	l.lists++
	for _, item := range n.children {
		l.separate(1, cutItem)
		l.indent = base
		marker := "•"
		if n.ordered {
			marker = strconv.Itoa(item.number) + "."
		}
		switch {
		case item.checkBox != "" && n.ordered:
			marker += " " + item.checkBox
		case item.checkBox != "":
			marker = item.checkBox
		}
		l.add(marker, s, false)
		l.gap.space = " "
		l.indent = min(base+listIndent, maxIndent)
		l.blocks(item.children, s, 1, cutItem)
	}
	l.indent = base
	l.lists--
}

// lines lays out preformatted lines, without leading and trailing blank ones.
func (l *layout) lines(addLines []string, s *span) {
	newlines := 0
	for _, line := range addLines {
		if line = strings.TrimRightFunc(line, unicode.IsSpace); line == "" {
			newlines++
			continue
		}
		if len(l.atoms) > 0 && l.atoms[len(l.atoms)-1].span == s {
			l.separate(newlines, cutItem)
		}
		newlines = 1
		lead := len(line) - len(strings.TrimLeftFunc(line, unicode.IsSpace))
		first := lead + wordLen(line[lead:])
		l.add(line[:first], s, false)
		l.addText(line[first:], s)
	}
}

func (l *layout) addInlines(nodes []*node, s *span) {
	for _, n := range nodes {
		switch n.kind {
		case kindText:
			l.addLines(n.text, s)
		case kindBreak:
			l.separate(1, cutLine)
		case kindCode:
			l.addText(n.text, l.nest(s, span{style: styleCode, hasBacktick: strings.Contains(n.text, "`")}))
		case kindStrong:
			l.addInlines(n.children, l.nest(s, span{style: styleBold}))
		case kindEmphasis:
			l.addInlines(n.children, l.nest(s, span{style: styleItalic}))
		case kindStrike:
			l.addInlines(n.children, l.nest(s, span{style: styleStrike}))
		case kindLink:
			l.addLink(n, s)
		default:
			l.addInlines(n.children, s)
		}
	}
}

// addLink lays out a link, or its text and address where no link is possible.
func (l *layout) addLink(n *node, s *span) {
	if s.enclosing(styleLink) != nil {
		l.addInlines(n.children, s)
		return
	}
	href, ok := l.rules.href(n.url)
	if !ok {
		l.addInlines(n.children, s)
		if suffix := strings.TrimSpace(n.urlSuffix()); suffix != "" {
			l.addSpace(" ")
			l.add(suffix, s, !s.isCode() && hasMarkPair(suffix)) // an address is no name
		}
		return
	}
	l.addInlines(n.children, l.nest(s, span{style: styleLink, href: href, plainSuffix: n.urlSuffix()}))
}

// nest returns s as a span inside parent, or parent if s is not allowed there.
func (l *layout) nest(parent *span, s span) *span {
	if parent.enclosing(s.style) != nil {
		return parent
	}
	within, ok := l.rules.allowedParent(parent, s.style)
	if !ok {
		return parent
	}
	s.parent, s.depth = within, 1
	if within != nil {
		s.depth = within.depth + 1
	}
	return &s
}

func (l *layout) addText(s string, sp *span) {
	marks := !sp.isCode() && hasMarkPair(s)
	for s != "" {
		if n := spaceLen(s); n > 0 {
			l.addSpace(s[:n])
			s = s[n:]
			continue
		}
		n := wordLen(s)
		l.addWord(s[:n], sp, marks)
		if s = s[n:]; s != "" && spaceLen(s) == 0 {
			l.gap.cut = l.cutQuality() // between ideographs
		}
	}
}

// addWord adds a word, with what has to be shown literally as code.
func (l *layout) addWord(word string, s *span, marks bool) {
	from, to := l.rules.literal(word)
	if from == to || s.isCode() || s.enclosing(styleLink) != nil {
		l.add(word, s, marks)
		return
	}
	l.add(word[:from], s, marks)
	l.add(word[from:to], l.nest(s, span{style: styleCode}), marks)
	l.add(word[to:], s, marks)
}

// addLines adds a text in which tags break lines.
func (l *layout) addLines(text string, s *span) {
	newlines := 0
	for i, line := range lineBreak.Split(text, -1) {
		if newlines = min(newlines+1, 2); i > 0 {
			l.separate(newlines, cutLine)
		}
		if !isBlank(line) {
			newlines = 0
		}
		l.addText(line, s)
	}
}

// addSpace adds white space between two words.
func (l *layout) addSpace(s string) {
	if strings.Contains(s, "\n") {
		s = " "
	}
	if l.gap.space == "" { // otherwise a marker precedes it
		l.gap.cut = max(l.gap.cut, l.cutQuality())
	}
	l.gap.space += s
}

// cutQuality returns how good a cut after the last atom is.
func (l *layout) cutQuality() cutLevel {
	if len(l.atoms) == 0 {
		return cutWord
	}
	word := strings.TrimRight(l.atoms[len(l.atoms)-1].text, `"')]}”’»`)
	if last, _ := utf8.DecodeLastRuneInString(word); strings.ContainsRune(".!?…。！？؟", last) {
		return cutSentence
	}
	return cutWord
}

// hasMarkPair reports whether s contains a formatting mark of Slack twice.
func hasMarkPair(s string) bool {
	return slices.ContainsFunc([]string{"*", "_", "~", "`"}, func(mark string) bool {
		return strings.Count(s, mark) > 1
	})
}

// spaceLen returns the length of leading white space. A space with a combining mark is part of a
// word.
func spaceLen(s string) int {
	n := 0
	for i, r := range s {
		if isCombining(r) {
			return n
		}
		if !unicode.IsSpace(r) || r == '\u00a0' || r == '\u202f' {
			return i
		}
		n = i
	}
	return len(s)
}

// wordLen returns the length of the first word of s, at least one character. Punctuation of
// scripts without spaces also ends a word.
func wordLen(s string) int {
	var last rune
	for i, r := range s {
		if i > 0 && !isCombining(r) {
			if strings.ContainsRune("。！？；，、", last) && unicode.IsLetter(r) {
				return i
			}
			if unicode.IsSpace(r) && spaceLen(s[i:]) > 0 {
				return i
			}
		}
		last = r
	}
	return len(s)
}

// isCombining reports whether r combines with the character before it.
func isCombining(r rune) bool {
	return r >= 0x300 && (unicode.In(r, unicode.M) || r == '\u200d' || r >= 0x1F3FB && r <= 0x1F3FF)
}
